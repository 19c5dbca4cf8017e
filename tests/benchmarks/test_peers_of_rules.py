"""The peers decide as we do; otherwise comparing their speed with ours would be meaningless.

A peer decides by the same rules with another library.
"""

from pathlib import Path

import polars as pl
import pytest

from benchmarks.peers_of_rules import INPUT_COLUMNS, InDuckDB, InPandas, Lists, expression
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.wording.phrases import search_literals
from pipelines.vocabulary.schemas import AccountType, Direction

NARRATIVES = [
    ("TELSTRA CORP INV4410", "debit"),
    ("Tyro Payments settlement 12/03", "credit"),
    ("TYRO FEES 04/24", "debit"),
    ("DISHONOURED TELSTRA 12345", "credit"),
    ("ato bas jun", "debit"),
    ("PAYROLL TAX JUN", "debit"),
    ("7-ELEVEN 2094 Parramatta", "debit"),
    ("McDonald's Penrith", "debit"),
    ("EFTPOS FEES APR", "debit"),
    ("ZZZ QQQ", "debit"),
    ("zzz qqq", "credit"),
]


@pytest.fixture(scope="module")
def lists() -> Lists:
    return Lists()


@pytest.fixture(scope="module")
def ours() -> pl.DataFrame:
    schema = {"description": pl.String(), "direction": Direction}
    rows = pl.DataFrame(NARRATIVES, schema, orient="row")
    reported = read_narratives(rows.with_columns(account_type=pl.lit("transaction", AccountType)))
    return reported.with_row_index("row").select("row", pl.col(INPUT_COLUMNS).cast(pl.String), "category")


def test_the_narratives_reach_every_layer(ours: pl.DataFrame) -> None:
    assert ours["category"].n_unique() >= 8


@pytest.mark.slow  # turns every rule into an expression of pandas, only to test a peer of a benchmark
def test_pandas_decides_as_we_do(lists: Lists, ours: pl.DataFrame) -> None:
    assert InPandas(lists).categories(ours.select(INPUT_COLUMNS).to_pandas()) == ours["category"].to_list()


@pytest.mark.slow  # the same in SQL
def test_duckdb_decides_as_we_do(lists: Lists, ours: pl.DataFrame, tmp_path: Path) -> None:
    ours.drop("category").write_parquet(tmp_path / "narratives.parquet")
    assert InDuckDB(lists).categories(tmp_path / "narratives.parquet") == ours["category"].to_list()


@pytest.mark.parametrize(
    ("phrase", "pattern"),
    [
        ("FUEL", r"\b(?:FUEL)\b"),
        ("DISHON*", r"\b(?:DISHON)"),
        ("^ RETURN", r"^(?:RETURN)\b"),
        ("PAY $", r"\b(?:PAY)$"),
        ("PLAN B2B", r"\b(?:PLAN B 2B)\b"),
        ("CARD 0000", r"\b(?:CARD [0-9]{6,}\w*)\b"),
    ],
)
def test_a_phrase_is_words_between_boundaries(phrase: str, pattern: str) -> None:
    assert expression(search_literals([phrase])) == pattern
