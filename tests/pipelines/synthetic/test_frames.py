"""Tables of synthetic businesses have the declared columns, and their figures agree."""

from datetime import date

import polars as pl
import pytest

from pipelines.synthetic import Business, business, frames

UNTIL = date(2025, 6, 30)


@pytest.fixture(scope="module")
def one() -> Business:
    made = (business(n, 3, seed=2, until=UNTIL, faults=True) for n in range(60))
    return next(each for each in made if each.accounts[0].transactions["submission"].max() == 1 and each.facilities)


def test_every_table_has_its_columns_and_names_the_customer(one: Business) -> None:
    for table, schema in (
        (frames.transactions(7, one), frames.TRANSACTIONS),
        (frames.customer(7, one), frames.CUSTOMERS),
        (frames.accounts(7, one), frames.ACCOUNTS),
        (frames.facilities(7, one), frames.FACILITIES),
    ):
        assert table.schema == schema
        assert table["customer"].unique().to_list() == [7]


def test_rows_of_the_accounts_add_up(one: Business) -> None:
    rows = frames.transactions(7, one)
    counted = rows.group_by("account_number").len().sort("account_number")
    described = frames.accounts(7, one).sort("account_number")
    assert counted["len"].to_list() == described["rows"].to_list()


def test_labels_to_train_on_are_without_repetitions(one: Business) -> None:
    rows = frames.transactions(7, one)
    labels = frames.training_labels(rows)
    assert labels.columns == [
        "date",
        "description",
        "amount",
        "customer",
        "label",
        "context_bank",
        "context_account_type",
    ]
    assert labels.height == rows.height - (rows["injected"] == "duplicate").sum()
    assert labels.height < rows.height


def test_a_customers_row_has_its_outcome_and_the_causes(one: Business) -> None:
    row = frames.customer(7, one).row(0, named=True)
    assert (row["defaults"], row["default_probability"]) == (one.outcome.defaults, one.outcome.probability)
    assert row["leverage"] == one.outcome.latents.leverage


def test_a_business_without_facilities_has_an_empty_table() -> None:
    debtless = next(each for n in range(60) if not (each := business(n, 1, seed=2, until=UNTIL)).facilities)
    assert frames.facilities(0, debtless).is_empty()
    assert isinstance(frames.facilities(0, debtless), pl.DataFrame)
