from datetime import date, timedelta
from decimal import Decimal
from functools import reduce
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrich import changed_customers, enrich
from pipelines.enrich.balances import verify_balances
from pipelines.enrich.categories import categorise
from pipelines.enrich.channels import channels
from pipelines.enrich.clean import clean_descriptions
from pipelines.enrich.flags import flags
from pipelines.enrich.transfers import transfers
from pipelines.schemas import SORT_KEY, TRANSACTIONS
from tests.pipelines.enrich.examples import ACCOUNT, OTHER_ACCOUNT, accepted, known, submission

NOTHING = pl.DataFrame(schema=TRANSACTIONS)


@pytest.mark.parametrize(
    ("description", "clean"),
    [
        ("EFTPOS PURCHASE BUNNINGS 0441 AU", "BUNNINGS 0441"),
        ("Visa Debit Purchase Card 9728 Total Tools Salisbury Effective Date 20 Nov 2025", "TOTAL TOOLS SALISBURY"),
        ("WOOLWORTHS 1234 SYDNEY NSWAU", "WOOLWORTHS 1234 SYDNEY"),
        ("Direct Credit 141000 TYRO PAYMENTS", "TYRO PAYMENTS"),
        ("Coles Value Date: 01/02/2026", "COLES"),
        ("1234567890", "1234567890"),
        ("  many   spaces ", "MANY SPACES"),
    ],
)
def test_noise_of_the_rails_is_taken_out(description: str, clean: str) -> None:
    assert clean_descriptions(known({"description": description})).collect()["clean_description"].item() == clean


@given(st.text(min_size=1, max_size=40))
def test_cleaning_never_leaves_nothing_of_something(description: str) -> None:
    cleaned = clean_descriptions(known({"description": description})).collect()["clean_description"].item()
    assert cleaned or not description.strip()


@pytest.mark.parametrize(
    ("description", "channel"),
    [("ANZ ATM GLENELG", "atm"), ("BPAY TAX OFFICE", "bpay"), ("Osko J Smith", "npp"), ("RENT", "other")],
)
def test_the_channel_is_what_the_text_says(description: str, channel: str) -> None:
    assert channels(known({"description": description})).collect()["channel"].item() == channel


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"amount": Decimal(0)}, ["information"]),
        ({"amount": Decimal(-1200)}, ["round_amount"]),
        ({"amount": Decimal(-1250)}, []),
        ({"category": "gambling", "channel": "atm"}, ["cash", "gambling"]),
        ({"category": "returned_payment"}, ["dishonour"]),
    ],
)
def test_flags_name_what_is_true(row: dict[str, Any], expected: list[str]) -> None:
    assert flags(known(row)).collect()["flags"].to_list() == [expected]


def test_a_whole_customer_comes_out_in_schema_and_order() -> None:
    rows = enrich(NOTHING, accepted({}, {"description": "RENT"})).transactions.collect()
    assert rows.schema == TRANSACTIONS
    assert_frame_equal(rows, rows.sort(SORT_KEY))


def test_enriching_again_changes_nothing() -> None:
    first = enrich(NOTHING, accepted({}, {"description": "RENT"})).transactions.collect()
    again = enrich(first, accepted().clear()).transactions.collect()
    assert_frame_equal(again, first)
    assert changed_customers(first, again).is_empty()


def test_a_new_version_that_comes_to_the_same_changes_no_customer() -> None:
    first = enrich(NOTHING, accepted({}, {"description": "RENT"})).transactions.collect()
    again = first.with_columns(pl.col("enrichment_version") + 1)
    assert changed_customers(first, again).is_empty()
    assert changed_customers(first, again.with_columns(category=pl.lit("other"))).to_list() == [1]


def test_duplicates_alone_change_no_customer() -> None:
    first = enrich(NOTHING, submission(1, [{}])).transactions.collect()
    again = enrich(first, submission(2, [{}])).transactions.collect()
    assert changed_customers(first, again).is_empty()


def test_a_new_row_changes_its_customer_alone() -> None:
    theirs = {"customer_number": 2, "account_id": b"z" * 16, "received_seq": 2}
    held = enrich(NOTHING, accepted({}, theirs)).transactions.collect()
    more = enrich(held, submission(3, [{"description": "TEA"}])).transactions.collect()
    assert changed_customers(held, more).to_list() == [1]


lines = st.tuples(
    st.integers(0, 9), st.sampled_from([-100, 100, 0]), st.booleans(), st.sampled_from(["RENT", "Tfr xx12", "?"])
)


@settings(max_examples=40)  # each runs every step twice
@given(st.lists(lines, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(some: list[tuple[int, int, bool, str]], random: Random) -> None:
    rows = [
        {
            "position": position,
            "transaction_id": position.to_bytes(16),
            "account_id": ACCOUNT if main else OTHER_ACCOUNT,
            "date": date(2026, 3, 2) + timedelta(days=day),
            "description": text,
            "amount": Decimal(amount),
            "balance": Decimal(amount * day),
        }
        for position, (day, amount, main, text) in enumerate(some)
    ]
    mixed = random.sample(rows, len(rows))
    assert_frame_equal(derived(*mixed).sort("position"), derived(*rows))


def derived(*rows: dict[str, Any]) -> pl.DataFrame:
    steps = clean_descriptions, channels, categorise, transfers, flags, verify_balances
    return reduce(pl.LazyFrame.pipe, steps, known(*rows)).collect()


def test_a_step_fills_its_columns_whether_they_exist_or_not() -> None:
    rows = known({"description": "RENT", "balance": Decimal(5)})
    filled = rows.pipe(clean_descriptions).pipe(channels).pipe(categorise).pipe(transfers).pipe(flags)
    derived_columns = ["clean_description", "channel", "is_transfer", "transfer_pair_id", "flags", "balance_verified"]
    bare = rows.drop(derived_columns)
    again = bare.pipe(clean_descriptions).pipe(channels).pipe(categorise).pipe(transfers).pipe(flags)
    expected = filled.pipe(verify_balances)
    assert_frame_equal(again.pipe(verify_balances).collect(), expected.collect(), check_column_order=False)


hostile = st.text(min_size=1, max_size=60) | st.sampled_from(["(((((", ".*", "a" * 1_000, "\u202e\u200d", "[[["])


@given(st.lists(hostile, min_size=1, max_size=5))
def test_hostile_descriptions_come_through_verbatim(descriptions: list[str]) -> None:
    rows = enrich(NOTHING, accepted(*({"description": text} for text in descriptions))).transactions.collect()
    assert sorted(rows["description"]) == sorted(descriptions)
