"""The judgement of named accounts by labels, on which all figures of `benchmarks/mentions.py` depend."""

from datetime import date
from typing import Any

import polars as pl
import pytest

from benchmarks.mentions import Named, lone_sides, name_accounts, numbers
from tests.pipelines.enrichment.examples import held_rows

OWN: dict[str, Any] = {"category": "own_transfer", "is_transfer": False, "account_number": "062001111"}
LABELS = {"true_category": pl.String, "true_transfer_pair": pl.UInt32, "true_facility": pl.UInt32}


def judge(missing: str, *rows: tuple[dict[str, Any], tuple[str, int | None, int | None]]) -> Named:
    """Judge rows with labels: category, transfer pair, facility. All lone sides belong to the account `missing`."""
    facts = held_rows(*({**OWN, **row} for row, _ in rows))
    labels = pl.DataFrame([label for _, label in rows], LABELS, orient="row")
    enriched = facts.with_columns(labels)
    sides = lone_sides(enriched).join(numbers({1: missing}), on="customer_number")
    return name_accounts(enriched, sides, date(2026, 4, 1))


LONE, PAIRED = ("own_transfer", None, None), ("own_transfer", 7, None)
SUPPLIER, LOAN = ("supplies", None, None), ("term_loan_repayment", None, 2)


def test_an_account_named_by_its_digits_is_found() -> None:
    mentions = judge("77005678", ({"other_account": "5678"}, LONE))
    assert (mentions.matches().height, mentions.mentioned.height, mentions.count_right(), mentions.named.height) == (
        1,
        1,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ({"other_account": "9999"}, LONE),  # another number than that of the missing account
        ({"clean_description": "SAVER"}, PAIRED),  # its other side was supplied
        ({"clean_description": "SAVER"}, SUPPLIER),
    ],
)
def test_a_named_account_without_support_in_labels_is_wrong(
    row: dict[str, Any], label: tuple[str, int | None, None]
) -> None:
    mentions = judge("77005678", (row, label))
    assert (mentions.matches().height, mentions.count_right(), mentions.named.height) == (0, 0, 1)


def test_a_named_account_of_two_real_ones_is_wrong() -> None:
    saver = {"clean_description": "SAVER"}
    assert judge("77005678", (saver, LONE), (saver, SUPPLIER)).count_right() == 0


def test_an_account_named_twice_is_right_once() -> None:
    mentions = judge("77005678", ({"other_account": "5678"}, LONE), ({"clean_description": "SAVER"}, LONE))
    assert (mentions.matches().height, mentions.count_right(), mentions.named.height) == (1, 1, 2)


def test_a_loan_account_is_missing_by_its_label_and_is_not_an_own_account() -> None:
    mentions = judge("77005678", ({"clean_description": "LOAN REPAYMENT TO A/C"}, LOAN))
    assert (mentions.matches().height, mentions.mentioned.height, mentions.count_right(), mentions.named.height) == (
        0,
        0,
        1,
        1,
    )
    assert mentions.of_customers(pl.Series([2])).named.is_empty()
