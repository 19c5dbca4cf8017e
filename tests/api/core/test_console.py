"""Records are printed as they come, in parts, and the output doesn't show where parts begin."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from api.core.commands import console
from api.core.commands.console import print_record, print_records

ID = UUID("2f0c81d6-1d5e-4c0f-9a53-6f9b1d6f8a11")
MOMENT = datetime(2026, 7, 1, 6, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with patch.object(console, "RECORDS_AT_ONCE", 2):
        yield


def records(count: int) -> Iterator[dict[str, object]]:
    return ({"number": number, "text": f'"{number}"'} for number in range(count))


@pytest.mark.parametrize("count", range(6))
def test_json_is_one_array_on_one_line(capsys: pytest.CaptureFixture[str], count: int) -> None:
    print_records(records(count), as_json=True, empty="")
    printed = capsys.readouterr().out
    assert json.loads(printed) == list(records(count))
    assert printed.index("\n") == len(printed) - 1


def test_tsv_has_every_record_and_field_in_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(records(5), as_json=False, empty="nothing", columns=["number"])
    lines = ["number\ttext", *(f'{number}\t"{number}"' for number in range(5))]
    assert capsys.readouterr().out.splitlines() == lines


def test_values_of_a_record_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for names in (("auc", "brier"), ("auc", "defaultScorecardAucInterval")):
        print_record(dict.fromkeys(names, "#"), as_json=False)
        [column] = {line.index("#") for line in capsys.readouterr().out.splitlines()}
        assert column == max(18, *map(len, names)) + 2


def test_tsv_has_one_plain_field_for_any_value(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {
        ID: str(ID),
        MOMENT: "2026-07-01T06:00:00Z",
        None: "",
        (): "",
        (1, "two"): "1 two",
        True: "yes",
        "[red]a\tb\nc": "[red]a\\tb\\nc",
    }
    print_records([{str(nth): value for nth, value in enumerate(fields)}], as_json=False, empty="")
    assert capsys.readouterr().out.splitlines()[1].split("\t") == list(fields.values())


def test_empty_list_is_reported_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(records(0), as_json=False, empty="nothing")
    assert capsys.readouterr() == ("", "nothing\n")


def on_terminal(rows: list[dict[str, Any]], width: int = 80) -> str:
    """Return what a terminal of this width shows of a list."""
    terminal = Console(force_terminal=True, color_system=None, width=width, file=StringIO())
    with patch.object(console, "out", terminal):
        print_records(rows, as_json=False, empty="nothing")
    shown: str = terminal.file.getvalue()  # pyrefly: ignore[missing-attribute]
    return re.sub("\x1b.*?m", "", shown)


WORDS = st.lists(st.text("abcdefghij", min_size=1, max_size=30), max_size=6).map(" ".join)
CELLS = WORDS | st.none() | st.just(ID) | st.just(MOMENT) | st.lists(WORDS, max_size=3)


@given(st.integers(1, 9).flatmap(lambda count: st.lists(st.lists(CELLS, min_size=count, max_size=count), min_size=1)))
def test_a_terminal_shows_every_word_whole_within_its_width(table: list[list[object]]) -> None:
    shown = on_terminal([{f"columnNumber{number}": cell for number, cell in enumerate(row)} for row in table])
    assert max(map(len, shown.splitlines())) <= 80
    for cell in (cell for row in table for cell in row):
        words = {"None": [], str(ID): ["2f0c81d6"], str(MOMENT): ["2026-07-01", "06:00:00Z"]}.get(str(cell))
        texts = cell if isinstance(cell, list) else [cell]
        for word in " ".join(map(str, texts)).split() if words is None else words:
            assert word in shown.split()


def test_a_table_has_headings_of_words_and_no_column_without_values() -> None:
    shown = on_terminal([{"keyId": ID, "name": "Harbour", "revokedAt": None, "rotated": ()}])
    assert [line.split() for line in shown.splitlines()] == [["key", "id", "name"], ["2f0c81d6", "Harbour"]]
    assert on_terminal([{"error": None}]).split() == ["error", "–"]


def test_a_table_that_is_too_wide_is_shown_as_lines() -> None:
    shown = on_terminal([{"keyId": ID, "name": "A" * 75}, {"keyId": ID, "name": "B"}])
    pairs = [line.split() for line in shown.splitlines() if line.strip()]
    assert pairs == [["keyId", "2f0c81d6"], ["name", "A" * 73], ["AA"], ["keyId", "2f0c81d6"], ["name", "B"]]
