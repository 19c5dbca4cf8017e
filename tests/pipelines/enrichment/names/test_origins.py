"""How often names of people are taken for something else, by where they come from.

Each origin's given and family names are joined in the forms that banks print. They are made up from general knowledge
(`origins.yaml`), not from data about anybody.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.vocabulary.rule_files import parse
from pipelines.vocabulary.schemas import Direction

NAMES = Path(__file__).with_name("origins.yaml")
FORMS = (
    ("debit", "TRANSFER TO {given} {family}"),
    ("debit", "{given} {family} WAGES"),
    ("debit", "PAY ANYONE TO {given} {family} INV 204"),
    ("credit", "OSKO PAYMENT {family} {given}"),
    ("credit", "TRANSFER FROM {given} {family}"),
    ("credit", "DIRECT CREDIT {given} {family}"),
)
MAX_APART = 0.03  # between the origin with the most errors and the one with the fewest
TROUBLE = ("distress", "debt_service", "debt_inflow", "high_risk")


def texts() -> Iterator[tuple[str, str, str]]:
    for origin, names in parse(NAMES.read_text("utf-8"), NAMES.name).items():
        for given in names["given"].split():
            for family in names["family"].split():
                yield from ((origin, side, form.format(given=given, family=family)) for side, form in FORMS)


@cache
def errors() -> pl.DataFrame:
    """Return each origin's shares of names taken for something else, taken for trouble, and not taken for a person."""
    rows = pl.DataFrame(list(texts()), ["origin", "direction", "description"], orient="row")
    sent = rows.with_columns(pl.col("direction").cast(Direction), account_type=pl.lit("transaction"))
    kind, group = pl.col("counterparty_kind"), pl.col("category_group")
    return (
        read_narratives(sent)
        .group_by("origin")
        .agg(
            pl.len(),
            something_else=(kind != "person").fill_null(value=False).mean(),
            trouble=group.is_in(TROUBLE).mean(),
            unrecognised=kind.is_null().mean(),
        )
        .sort("origin")
    )


@pytest.mark.parametrize("error", ["something_else", "trouble"])
def test_names_of_no_origin_are_taken_for_something_else_more_often(error: str) -> None:
    shares = errors().select(apart=pl.col(error).max() - pl.col(error).min())
    assert shares.item() <= MAX_APART
