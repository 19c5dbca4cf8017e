"""What banks of seven countries print, and what only resembles it (tests/narratives/bank_wordings.csv)."""

from pathlib import Path

import polars as pl

from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.vocabulary.schemas import AccountType, Direction
from pipelines.vocabulary.taxonomy import TAXONOMY

WORDINGS = Path(__file__).parents[3] / "narratives" / "bank_wordings.csv"
COUNTRIES = {"AU", "NZ", "UK", "IE", "US", "CA", "ZA"}
NOT = "not "  # begins the label of a line that must have none of the categories after it


def _lines() -> pl.DataFrame:
    return pl.read_csv(WORDINGS, infer_schema=False)


def test_rules_and_lists_read_the_wordings_of_banks() -> None:
    lines = _lines().with_columns(
        direction=pl.col("side").cast(Direction), account_type=pl.lit("transaction", AccountType)
    )
    excluded = pl.col("label").str.strip_prefix(NOT).str.split(" ").list.contains(pl.col("category"))
    right = pl.when(pl.col("label").str.starts_with(NOT)).then(~excluded).otherwise(excluded)
    wrong = read_narratives(lines).filter(~right).select("description", "label", "category").rows()
    assert not wrong


def test_lines_name_known_categories_and_every_country_has_wordings() -> None:
    labels = _lines()["label"].str.strip_prefix(NOT).str.split(" ").explode().unique()
    assert set(labels) <= TAXONOMY.categories.keys()
    assert set(_lines()["country"]) == {*COUNTRIES, "-"}
