"""The hand-written narratives of banks of nine countries are well formed.

A failure names file and line only: whoever works on the rules must not read the narratives (tests/narratives).
"""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from pipelines.vocabulary.schemas import ACCOUNT_TYPES
from pipelines.vocabulary.taxonomy import TAXONOMY
from tests.root import ROOT

FILES = (
    "strangers.csv",
    "strangers_2.csv",
    "strangers_3.csv",
    "strangers_3_develop.csv",
    "strangers_4.csv",
    "strangers_4_develop.csv",
    "strangers_5.csv",
    "strangers_5_develop.csv",
    "strangers_6.csv",
    "strangers_6_develop.csv",
)
COLUMNS = ["country", "date", "description", "amount", "label", "context_bank", "context_account_type"]
COUNTRIES = ("AU", "CA", "IE", "NZ", "UK", "US", "ZA")  # of the second author; later ones add India, Singapore
EACH = 60  # lines of each country by the second author


def test_narratives_are_well_formed_and_distinct() -> None:
    assert [fault for file in FILES for fault in _faults(file)] == []


def test_the_second_author_wrote_as_many_lines_for_each_country() -> None:
    assert Counter(_read_file("strangers_2.csv")["country"]) == dict.fromkeys(COUNTRIES, EACH)


def _faults(file: str) -> Iterator[str]:
    lines = _read_file(file)
    if lines.columns != ["line", *COLUMNS]:
        yield f"{file}: columns"
    for check, holds in _checks().items():
        yield from (f"{file}:{line}: {check}" for line in lines.filter(~holds)["line"])


def _read_file(file: str) -> pl.DataFrame:
    return pl.read_csv(ROOT / "tests" / "narratives" / file, infer_schema=False).with_row_index("line", 2)


def _checks() -> dict[str, pl.Expr]:
    """Return what must hold of each line, by name. A null (an empty or unreadable field) doesn't hold."""
    amount = pl.col("amount").cast(pl.Decimal(18, 2), strict=False)
    side = pl.when(amount > 0).then(pl.lit("credit")).otherwise(pl.lit("debit"))
    sign = pl.col("label").replace_strict({slug: each.sign for slug, each in TAXONOMY.categories.items()}, default=None)
    checks = {
        "country": pl.col("country").is_in([*COUNTRIES, "IN", "SG"]),
        "date": pl.col("date").str.to_date("%Y-%m-%d", strict=False).dt.year().is_between(2025, 2026),
        "description": pl.col("description").str.strip_chars() == pl.col("description"),
        "description occurs twice": pl.col("description").str.to_lowercase().is_unique(),
        "amount": pl.col("amount").str.contains(r"^-?\d+\.\d\d$") & (amount != 0),
        "label": pl.col("label").is_in(list(TAXONOMY.categories)),
        "label is of the other side": sign.is_in(["either"]) | (sign == side),
        "bank": pl.col("context_bank").is_not_null(),
        "account type": pl.col("context_account_type").is_in(ACCOUNT_TYPES),
    }
    return {check: holds.fill_null(value=False) for check, holds in checks.items()}
