"""A bank is known by the first digits of a BSB, and faulty entries of the list are refused."""

import polars as pl
import pytest

from pipelines.enrichment.transfers.banks import look_up_bank, parse_banks
from pipelines.vocabulary.rule_files import RuleError


@pytest.mark.parametrize(
    ("bsb", "bank"),
    [
        ("062-000", "Commonwealth Bank"),
        ("062000", "Commonwealth Bank"),
        ("182-512", "Macquarie Bank"),
        ("181-512", None),  # of no bank that the list knows
        ("484799", "Suncorp Bank"),
        ("0620", None),
        ("", None),
        (None, None),
    ],
)
def test_bank_is_found_by_the_first_digits(bsb: str | None, bank: str | None) -> None:
    assert pl.select(look_up_bank(pl.lit(bsb, pl.String))).item() == bank


def test_faulty_entries_are_refused_by_name() -> None:
    with pytest.raises(RuleError, match=r"bsb.yaml, 6: .*\nbsb.yaml, 0x: "):
        parse_banks({"06": "Commonwealth Bank", 6: "NAB", "0x": "ANZ"})  # pyrefly: ignore[bad-assignment]
