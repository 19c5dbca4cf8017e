"""Files that commands write."""

import re
from pathlib import Path

import polars as pl

import api
from api.core.commands.files import as_csv


def test_spreadsheet_formulas_are_escaped_and_figures_are_not() -> None:
    texts = ["=1+1", "+61 2 9999", "-cmd", "@SUM(A1)", "\tx", "\rx", "Rent", None, "1=1"]
    frame = pl.DataFrame({"text": texts, "amount": [-5] * len(texts)})
    shown = pl.read_csv(as_csv(frame).encode(), infer_schema=False)
    assert shown["text"].to_list() == [*(f"'{text}" for text in texts[:6]), "Rent", None, "1=1"]
    assert set(shown["amount"]) == {"-5"}
    assert not as_csv(frame, heading=False).startswith("text")


def test_every_command_writes_csv_with_the_same_function() -> None:
    others = [
        path.name
        for path in Path(api.__file__).parent.glob("*/commands/*.py")
        if path.name != "files.py" and re.search(r"\.write_csv\(|csv\.(?:writer|DictWriter)\(", path.read_text("utf-8"))
    ]
    assert others == []
