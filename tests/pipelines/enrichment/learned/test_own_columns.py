"""A model reads the card, the account and the client's own columns in service as it does in training."""

from datetime import date, timedelta
from decimal import Decimal
from random import Random

import polars as pl
import pytest

from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import Activated, Knowledge
from pipelines.enrichment.training.labelled import read_labelled_rows
from pipelines.enrichment.training.training import _choose_held_back, train
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.enrichment.examples import accepted_rows

pytestmark = pytest.mark.service  # trains models

LABELS = ("meals", "materials")
DESCRIPTION = "ZORBLAX QUINTO"


def table(column: str, values: tuple[str, str]) -> pl.DataFrame:
    """Return labelled rows that only the column tells apart; `{}` in the description is the value, too."""
    rng = Random(3)
    chosen = [rng.randrange(2) for _ in range(300)]
    return pl.DataFrame(
        {
            "date": [str(date(2025, 1, 1) + timedelta(days=number // 3)) for number in range(300)],
            "description": [f"{DESCRIPTION} {values[each]}" if column == "card" else DESCRIPTION for each in chosen],
            "amount": ["-10.00"] * 300,
            "label": [LABELS[each] for each in chosen],
            column: [values[each] for each in chosen],
        }
    )


@pytest.mark.parametrize(
    ("column", "values", "sent"),
    [
        ("context_team", ("Roads", "Parks"), {"own_columns": '{"context_team": "%s"}'}),
        ("account", ("12-345 678", "12-345 679"), {"account_number": "%s"}),
        ("context_bank", ("ANZ", "NAB"), {"bank_name": "%s"}),
        ("card", ("CARD XX1234", "CARD XX9876"), {"description": f"{DESCRIPTION} %s"}),
    ],
)
def test_model_decides_by_the_column_in_service(column: str, values: tuple[str, str], sent: dict[str, str]) -> None:
    model = train(read_labelled_rows(table(column, values)).rows)
    rows = accepted_rows(
        *(
            {
                "description": DESCRIPTION,
                "amount": Decimal(-10),
                "account_type": None,
                **{
                    name: text.replace("%s", value.replace("-", "").replace(" ", "") if column == "account" else value)
                    for name, text in sent.items()
                },
            }
            for value in values
        )
    )
    known = Knowledge(models=[Activated(frozenset({1}), model)])
    found = enrich(pl.DataFrame(schema=TRANSACTIONS), rows, knowledge=known).transactions.collect()
    assert found.sort("position")["category"].to_list() == list(LABELS)


def test_columns_that_identify_the_customer_are_never_learned_from() -> None:
    for column in ("customer", "context_customer_id", "context_abn"):
        rows = read_labelled_rows(table(column, ("c1", "c2"))).rows
        model = train(rows)
        assert model.contexts == []
        assert model.facts["customers"] == 2
        assert rows["customer"].to_list() == table(column, ("c1", "c2"))[column].to_list()


def test_trials_hold_customers_back() -> None:
    some = table("context_team", ("Roads", "Parks"))
    customers = pl.Series("customer", [f"c{number % 50}" for number in range(some.height)])
    names = pl.Series("description", [f"SHOP{chr(65 + number % 26)} ZORB" for number in range(some.height)])
    rows = read_labelled_rows(some.with_columns(customers, names)).rows
    for held in _choose_held_back(rows):
        left = rows.filter(~pl.Series(held))["customer"].n_unique()
        assert 30 <= left < 50  # a tenth of fifty customers, more or less by chance
