"""All steps of enrichment together: idempotent, independent of the order of rows, each customer by itself."""

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.enrichment import derive, enrich, find_changed_customers, fingerprint_customers
from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.enrichment.reading import read_rows
from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS
from tests.conftest import examples
from tests.pipelines.enrichment.examples import ACCOUNT, OTHER_ACCOUNT, accepted_rows, held_rows, submission

NOTHING = pl.DataFrame(schema=TRANSACTIONS)


def test_enriched_rows_have_schema_and_order() -> None:
    rows = enrich(NOTHING, accepted_rows({}, {"description": "RENT"})).transactions.collect()
    assert rows.schema == TRANSACTIONS
    assert_frame_equal(rows, rows.sort(SORT_KEY))


def test_enriching_again_changes_nothing() -> None:
    first = enrich(NOTHING, accepted_rows({}, {"description": "RENT"})).transactions.collect()
    again = enrich(first, accepted_rows().clear()).transactions.collect()
    assert_frame_equal(again, first)
    assert find_changed_customers(fingerprint_customers(first), again).is_empty()


def test_new_version_with_equal_results_changes_no_customer() -> None:
    first = enrich(NOTHING, accepted_rows({}, {"description": "RENT"})).transactions.collect()
    again = first.with_columns(pl.col("enrichment_version") + 1)
    assert find_changed_customers(fingerprint_customers(first), again).is_empty()
    assert find_changed_customers(
        fingerprint_customers(first), again.with_columns(category=pl.lit("other"))
    ).to_list() == [1]


def test_duplicates_alone_change_no_customer() -> None:
    first = enrich(NOTHING, submission(1, [{}])).transactions.collect()
    again = enrich(first, submission(2, [{}])).transactions.collect()
    assert find_changed_customers(fingerprint_customers(first), again).is_empty()


def test_new_row_changes_only_its_customer() -> None:
    theirs = {"customer_number": 2, "account_id": b"z" * 16, "received_seq": 2}
    held = enrich(NOTHING, accepted_rows({}, theirs)).transactions.collect()
    more = enrich(held, submission(3, [{"description": "TEA"}])).transactions.collect()
    assert find_changed_customers(fingerprint_customers(held), more).to_list() == [1]


lines = st.tuples(
    st.integers(0, 9), st.sampled_from([-100, 100, 0]), st.booleans(), st.sampled_from(["RENT", "Tfr xx12", "?"])
)


@examples(1)  # each runs every step twice
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
    one, other = (derive(read_rows(known_facts(*each))).sort("position") for each in (mixed, rows))
    assert_frame_equal(one, other)


def known_facts(*rows: dict[str, Any]) -> pl.DataFrame:
    """Return rows as the input of the steps: identified, nothing derived yet."""
    return held_rows(*rows).select(KNOWN.names())


hostile = st.text(min_size=1, max_size=60) | st.sampled_from(["(((((", ".*", "a" * 1_000, "\u202e\u200d", "[[["])


@examples(2)  # each runs every step; the steps have hostile texts of their own
@given(st.lists(hostile, min_size=1, max_size=12))
def test_hostile_descriptions_are_stored_verbatim(descriptions: list[str]) -> None:
    rows = enrich(NOTHING, accepted_rows(*({"description": text} for text in descriptions))).transactions.collect()
    assert sorted(rows["description"]) == sorted(descriptions)
