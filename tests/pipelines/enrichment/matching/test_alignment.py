"""Statements overlap with feeds and other statements of the same account: every transaction is held once."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.matching.duplicates import KNOWN, Identified, identify
from pipelines.enrichment.matching.retractions import RETRACTED, Retractions, identify_without
from pipelines.vocabulary.schemas import TRANSACTIONS, current
from tests.pipelines.enrichment.examples import OTHER_ACCOUNT, submission

NOTHING = pl.DataFrame(schema=KNOWN)
MONDAY = date(2026, 3, 2)
MOVING = (Decimal("-7.25"), Decimal(1003))
Row = dict[str, Any]


def line(day: int, amount: str, balance: str | None = None, words: str = "COFFEE", **others: Any) -> Row:
    stated = None if balance is None else Decimal(balance)
    described = {"amount": Decimal(amount), "balance": stated, "description": words}
    return {"date": MONDAY + timedelta(days=day), **described, **others}


def on_statement(*rows: Row, number: int = 1) -> list[Row]:
    """Return the same rows as if read from a PDF statement."""
    return [{**row, "statement_id": number.to_bytes(16)} for row in rows]


def identify_all(*submissions: Sequence[Row]) -> Identified:
    """Identify submissions one by one. Return what is held at the end, and the duplicates of the last one."""
    result = Identified(NOTHING, NOTHING)
    for seq, rows in enumerate(submissions, start=1):
        result = identify(result.rows, submission(seq, rows))
    return result


def count_held(*submissions: Sequence[Row]) -> int:
    """Count the transactions held, and check that one batch and the reverse order give the same."""
    frames = [submission(seq, rows) for seq, rows in enumerate(submissions, start=1)]
    held = identify_all(*submissions).rows
    assert_frame_equal(identify(NOTHING, pl.concat(frames)).rows, held)
    other_way = identify_all(*reversed(submissions)).rows.filter(current()).height
    assert other_way == held.filter(current()).height
    return other_way


def test_rows_with_the_same_balance_and_other_words_are_one_transaction() -> None:
    feed = [line(0, "-4.50", "95.50"), line(0, "-4.50", "91.00")]
    paper = on_statement(
        line(0, "-4.50", "95.50", "Card xx12 Coffee Co"), line(0, "-4.50", "91.00", "Card xx12 Coffee Co")
    )
    assert count_held(feed, paper) == 2
    assert identify_all(feed, paper).duplicates["transaction_id"].n_unique() == 2


def test_duplicate_refers_to_the_transaction_with_its_balance() -> None:
    paper = on_statement(line(0, "-4.50", "91.00", "Coffee two"), line(0, "-4.50", "95.50", "Coffee one"))
    held = identify_all([line(0, "-4.50", "95.50", "ONE"), line(0, "-4.50", "91.00", "TWO")]).rows
    repeated = identify_all([line(0, "-4.50", "95.50", "ONE"), line(0, "-4.50", "91.00", "TWO")], paper).duplicates
    [two] = held.filter(pl.col("description") == "TWO")["transaction_id"]
    assert repeated.filter(pl.col("position") == 0)["transaction_id"].item() == two


def test_additional_rows_of_a_statement_are_new_in_its_own_words() -> None:
    rows = identify_all(
        [line(0, "-4.50", "95.50")], on_statement(line(0, "-4.50", "95.50", "A"), line(1, "-9", "86.50", "B"))
    ).rows
    assert rows["description"].to_list() == ["COFFEE", "B"]


def test_rows_with_different_balances_are_not_matched() -> None:
    assert count_held([line(0, "-4.50", "95.50")], on_statement(line(0, "-4.50", "50.00"))) == 2


def test_purchase_and_booking_a_few_days_apart_are_one_transaction() -> None:
    paper = on_statement(line(3, "-4.50", "95.50", "CARD"), line(3, "-1", "94.50", "FEE"))
    assert count_held([line(0, "-4.50", "95.50"), line(3, "-1", "94.50")], paper) == 2
    assert count_held([line(0, "-4.50", "95.50")], on_statement(line(6, "-4.50", "95.50", "CARD"))) == 2


def test_different_days_are_matched_only_if_both_rows_state_a_balance() -> None:
    assert count_held([line(0, "-4.50")], on_statement(line(1, "-4.50", "95.50"))) == 2


def test_words_decide_where_a_balance_is_missing() -> None:
    feed = [line(0, "-50", None, "RENT UNIT 4"), line(0, "-50", None, "COFFEE CO")]
    paper = on_statement(line(0, "-50", "150", "Coffee Co Sydney".upper()))
    [repeated] = identify_all(feed, paper).duplicates["transaction_id"]
    assert identify_all(feed).rows.filter(transaction_id=repeated)["description"].item() == "COFFEE CO"


def test_words_never_reduce_the_number_of_pairs() -> None:
    held = on_statement(line(0, "-4.50", None, "COFFEE CO"), line(0, "-4.50", "91.00", "KIOSK"))
    feed = [line(0, "-4.50", None, "COFFEE"), line(0, "-4.50", "95.50", "SHOP")]
    assert count_held(held, feed) == 2


def test_row_with_the_same_words_is_paired_before_the_first_in_order() -> None:
    """The held row without a balance belongs to the sent row with similar words, not to the first one."""
    rows = identify_all(
        [line(0, "-4.50", None, "TEA")], on_statement(line(0, "-4.50", "91", "LUNCH"), line(0, "-4.50", None, "TEA CO"))
    )
    assert sorted(rows.rows["description"]) == ["LUNCH", "TEA"]


def test_account_swept_to_zero_every_day_keeps_all_days() -> None:
    def days(first: int, last: int) -> list[Row]:
        return [row for day in range(first, last) for row in (line(day, "100", "100"), line(day, "-100", "0"))]

    assert count_held(on_statement(*days(0, 30)), on_statement(*days(30, 60), number=2)) == 120
    assert count_held(on_statement(*days(0, 30)), on_statement(*days(20, 60), number=2)) == 120


def test_payment_presented_again_after_its_reversal_is_kept() -> None:
    paid, back, again = line(0, "-500", "100"), line(1, "500", "600"), line(3, "-500", "100")
    assert (
        count_held(on_statement(line(-9, "7", "600"), paid, back), on_statement(again, line(9, "5", "105"), number=2))
        == 5
    )
    assert (
        count_held(on_statement(line(-9, "7", "600"), paid), on_statement(back, again, line(9, "5", "105"), number=2))
        == 5
    )


def test_rows_of_different_accounts_are_not_matched() -> None:
    elsewhere = on_statement(line(0, "-4.50", "95.50", "A", account_id=OTHER_ACCOUNT))
    assert count_held([line(0, "-4.50", "95.50")], elsewhere) == 2


def test_mode_append_is_not_matched_but_counts_as_held() -> None:
    feed, paper = [line(0, "-4.50", "95.50", appended=True)], on_statement(line(0, "-4.50", "95.50", "CARD"))
    assert identify_all(paper, feed).rows.height == 2
    assert identify_all(feed, paper).rows.height == 1


def test_feed_with_ids_repeats_a_statement_each_time_it_is_sent() -> None:
    feed = [line(0, "-4.50", "95.50", client_transaction_id="T1")]
    paper = on_statement(line(0, "-4.50", "95.50", "CARD"))
    assert count_held(paper, feed) == 1
    assert count_held(paper, feed, feed) == 1
    assert count_held(paper, feed * 2) == 1


def test_posting_that_repeats_a_statement_still_supersedes_its_pending_row() -> None:
    pending, posting = line(0, "-4.50", status="pending"), line(2, "-4.50", "95.50")
    held = identify_all([pending], on_statement(line(2, "-4.50", "95.50", "CARD")), [posting]).rows
    assert held.filter(current())["status"].to_list() == ["posted"]


def test_data_is_matched_word_for_word_when_a_statement_is_held_too() -> None:
    feed, paper = [line(0, "-4.50", None, "A")], on_statement(line(0, "-4.50", None, "A CO"))
    assert identify_all(paper, feed, feed).rows.height == 1
    assert identify_all(feed, [line(0, "-4.50", None, "B")], paper).rows.height == 2


def test_row_of_a_retracted_statement_becomes_the_feed_row_that_repeated_it() -> None:
    paper, feed = (
        on_statement(line(0, "-4.50", "95.50", "CARD"), line(1, "-1", "94.50", "B")),
        [line(0, "-4.50", "95.50")],
    )
    held = identify_all(paper, feed).rows.match_to_schema(TRANSACTIONS, missing_columns="insert")
    retracted = pl.DataFrame([(1, (1).to_bytes(16), 1, 3)], schema=RETRACTED, orient="row")
    result = identify_without(held, submission(1, []), Retractions(retracted, submission(2, feed)))
    assert result.identified.rows.select("received_seq", "description").rows() == [(2, "COFFEE")]


# A true list of transactions, cut into overlapping documents.


class Posted(NamedTuple):
    day: int
    amount: Decimal
    balance: Decimal
    moves: bool  # dated by purchase or by posting; such rows always state their balance


class Document(NamedTuple):
    first: int  # day
    last: int
    is_statement: bool
    seed: int


@st.composite
def truths(draw: st.DrawFn) -> list[Posted]:
    """Draw days with several equal coffees; no amount leads to the same balance twice.

    The amount decides whether a row may have two dates. Otherwise a moved row could be any of the rows with its amount
    and without a balance.
    """
    days = sorted(draw(st.lists(st.integers(0, 25), min_size=1, max_size=14)))
    amounts = [Decimal(draw(st.sampled_from(("-4.50", "-4.50", "-7.25", "-7.25", "-30", "1003")))) for _ in days]
    balances = list(accumulate(amounts, initial=Decimal(500)))[1:]
    rows = [
        Posted(day, amount, balance, amount in MOVING)
        for day, amount, balance in zip(days, amounts, balances, strict=True)
    ]
    return rows if len({(row.amount, row.balance) for row in rows}) == len(rows) else draw(truths())


documents = st.lists(
    st.builds(
        lambda ends, is_statement, seed: Document(min(ends), max(ends), is_statement, seed),
        st.tuples(st.integers(0, 25), st.integers(0, 25)),
        st.booleans(),
        st.integers(0, 2**16),
    ),
    min_size=1,
    max_size=4,
)


def write_document(truth: Sequence[Posted], document: Document, number: int) -> list[Row]:
    """Return a document's rows for its days. A statement has its own words, and dates some rows later than a feed."""
    random = Random(document.seed)
    rows = []
    for nth, row in enumerate(truth):
        if document.first <= row.day <= document.last:
            shift = random.randint(0, 3) if row.moves and document.is_statement else 0
            silent = not row.moves and random.random() < 0.4
            words = f"CARD {number} {row.amount}" if document.is_statement else f"SHOP {row.amount}"
            described = line(row.day + shift, str(row.amount), None if silent else str(row.balance), words)
            rows.append({**described, "truth": nth})
    facts = [{name: value for name, value in row.items() if name != "truth"} for row in rows]
    return on_statement(*facts, number=number) if document.is_statement else facts


def check_documents(truth: list[Posted], papers: list[Document], batch_size: int) -> None:
    sent = [write_document(truth, document, number) for number, document in enumerate(papers, start=1)]
    frames = [submission(seq, rows) for seq, rows in enumerate(sent, start=1) if rows]
    held, duplicates = NOTHING, 0
    for start in range(0, len(frames), batch_size):
        result = identify(held, pl.concat(frames[start : start + batch_size]))
        held, duplicates = result.rows, duplicates + result.duplicates.height
    known = [row for row in truth if any(each.first <= row.day <= each.last for each in papers)]
    assert Counter(held["amount"]) == Counter(row.amount for row in known)
    assert duplicates == sum(map(len, sent)) - len(known)
    assert held["transaction_id"].is_unique().all()


@given(truths(), documents, st.integers(1, 4))
def test_overlapping_documents_of_one_list_give_every_transaction_once(
    truth: list[Posted], papers: list[Document], batch_size: int
) -> None:
    check_documents(truth, papers, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=3_000, deadline=None)
@given(truths(), documents, st.integers(1, 4))
def test_many_overlapping_documents_give_every_transaction_once(
    truth: list[Posted], papers: list[Document], batch_size: int
) -> None:
    check_documents(truth, papers, batch_size)
