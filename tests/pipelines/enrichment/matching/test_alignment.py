"""Statements beside feeds and other statements of the same account: every transaction once, whatever says it."""

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


def printed(*rows: Row, number: int = 1) -> list[Row]:
    """The same rows, read from a PDF statement."""
    return [{**row, "statement_id": number.to_bytes(16)} for row in rows]


def after(*submissions: Sequence[Row]) -> Identified:
    """What is held after submissions that arrived one by one; the duplicates are the last one's."""
    result = Identified(NOTHING, NOTHING)
    for seq, rows in enumerate(submissions, start=1):
        result = identify(result.rows, submission(seq, rows))
    return result


def count(*submissions: Sequence[Row]) -> int:
    """How many transactions are held; the same in one batch, and in the other order."""
    frames = [submission(seq, rows) for seq, rows in enumerate(submissions, start=1)]
    held = after(*submissions).rows
    assert_frame_equal(identify(NOTHING, pl.concat(frames)).rows, held)
    other_way = after(*reversed(submissions)).rows.filter(current()).height
    assert other_way == held.filter(current()).height
    return other_way


def test_other_words_for_the_same_balance_are_no_other_transaction() -> None:
    feed = [line(0, "-4.50", "95.50"), line(0, "-4.50", "91.00")]
    paper = printed(line(0, "-4.50", "95.50", "Card xx12 Coffee Co"), line(0, "-4.50", "91.00", "Card xx12 Coffee Co"))
    assert count(feed, paper) == 2
    assert after(feed, paper).duplicates["transaction_id"].n_unique() == 2


def test_a_repeated_row_names_the_transaction_of_its_balance() -> None:
    paper = printed(line(0, "-4.50", "91.00", "Coffee two"), line(0, "-4.50", "95.50", "Coffee one"))
    held = after([line(0, "-4.50", "95.50", "ONE"), line(0, "-4.50", "91.00", "TWO")]).rows
    repeated = after([line(0, "-4.50", "95.50", "ONE"), line(0, "-4.50", "91.00", "TWO")], paper).duplicates
    [two] = held.filter(pl.col("description") == "TWO")["transaction_id"]
    assert repeated.filter(pl.col("position") == 0)["transaction_id"].item() == two


def test_what_a_statement_has_more_is_new_in_its_own_words() -> None:
    rows = after([line(0, "-4.50", "95.50")], printed(line(0, "-4.50", "95.50", "A"), line(1, "-9", "86.50", "B"))).rows
    assert rows["description"].to_list() == ["COFFEE", "B"]


def test_balances_that_contradict_each_other_keep_rows_apart() -> None:
    assert count([line(0, "-4.50", "95.50")], printed(line(0, "-4.50", "50.00"))) == 2


def test_a_purchase_and_its_booking_some_days_later_are_one() -> None:
    paper = printed(line(3, "-4.50", "95.50", "CARD"), line(3, "-1", "94.50", "FEE"))
    assert count([line(0, "-4.50", "95.50"), line(3, "-1", "94.50")], paper) == 2
    assert count([line(0, "-4.50", "95.50")], printed(line(6, "-4.50", "95.50", "CARD"))) == 2


def test_days_that_differ_need_both_balances() -> None:
    assert count([line(0, "-4.50")], printed(line(1, "-4.50", "95.50"))) == 2


def test_a_missing_balance_leaves_the_words_to_say_which_is_which() -> None:
    feed = [line(0, "-50", None, "RENT UNIT 4"), line(0, "-50", None, "COFFEE CO")]
    paper = printed(line(0, "-50", "150", "Coffee Co Sydney".upper()))
    [repeated] = after(feed, paper).duplicates["transaction_id"]
    assert after(feed).rows.filter(transaction_id=repeated)["description"].item() == "COFFEE CO"


def test_as_many_rows_are_paired_as_can_be_before_words_choose() -> None:
    held = printed(line(0, "-4.50", None, "COFFEE CO"), line(0, "-4.50", "91.00", "KIOSK"))
    feed = [line(0, "-4.50", None, "COFFEE"), line(0, "-4.50", "95.50", "SHOP")]
    assert count(held, feed) == 2


def test_words_alone_are_no_reason_to_lose_another_row() -> None:
    """The one held row without a balance is that of the same words, not the first that comes."""
    rows = after(
        [line(0, "-4.50", None, "TEA")], printed(line(0, "-4.50", "91", "LUNCH"), line(0, "-4.50", None, "TEA CO"))
    )
    assert sorted(rows.rows["description"]) == ["LUNCH", "TEA"]


def test_an_account_swept_to_zero_every_day_keeps_all_its_days() -> None:
    def days(first: int, last: int) -> list[Row]:
        return [row for day in range(first, last) for row in (line(day, "100", "100"), line(day, "-100", "0"))]

    assert count(printed(*days(0, 30)), printed(*days(30, 60), number=2)) == 120
    assert count(printed(*days(0, 30)), printed(*days(20, 60), number=2)) == 120


def test_a_payment_that_is_presented_again_after_its_reversal_is_kept() -> None:
    paid, back, again = line(0, "-500", "100"), line(1, "500", "600"), line(3, "-500", "100")
    assert count(printed(line(-9, "7", "600"), paid, back), printed(again, line(9, "5", "105"), number=2)) == 5
    assert count(printed(line(-9, "7", "600"), paid), printed(back, again, line(9, "5", "105"), number=2)) == 5


def test_rows_of_other_accounts_are_other_rows() -> None:
    elsewhere = printed(line(0, "-4.50", "95.50", "A", account_id=OTHER_ACCOUNT))
    assert count([line(0, "-4.50", "95.50")], elsewhere) == 2


def test_mode_append_is_not_matched_but_counts_as_held() -> None:
    feed, paper = [line(0, "-4.50", "95.50", appended=True)], printed(line(0, "-4.50", "95.50", "CARD"))
    assert after(paper, feed).rows.height == 2
    assert after(feed, paper).rows.height == 1


def test_a_feed_with_ids_repeats_a_statement_every_time_that_it_is_sent() -> None:
    feed = [line(0, "-4.50", "95.50", client_transaction_id="T1")]
    paper = printed(line(0, "-4.50", "95.50", "CARD"))
    assert count(paper, feed) == 1
    assert count(paper, feed, feed) == 1
    assert count(paper, feed * 2) == 1


def test_a_posting_that_a_statement_brought_first_still_ends_the_wait_of_its_pending_row() -> None:
    pending, posting = line(0, "-4.50", status="pending"), line(2, "-4.50", "95.50")
    held = after([pending], printed(line(2, "-4.50", "95.50", "CARD")), [posting]).rows
    assert held.filter(current())["status"].to_list() == ["posted"]


def test_data_is_matched_with_data_as_ever_beside_a_statement() -> None:
    feed, paper = [line(0, "-4.50", None, "A")], printed(line(0, "-4.50", None, "A CO"))
    assert after(paper, feed, feed).rows.height == 1
    assert after(feed, [line(0, "-4.50", None, "B")], paper).rows.height == 2


def test_what_a_retracted_statement_brought_is_the_feeds_that_repeated_it() -> None:
    paper, feed = printed(line(0, "-4.50", "95.50", "CARD"), line(1, "-1", "94.50", "B")), [line(0, "-4.50", "95.50")]
    held = after(paper, feed).rows.match_to_schema(TRANSACTIONS, missing_columns="insert")
    retracted = pl.DataFrame([(1, (1).to_bytes(16), 1, 3)], schema=RETRACTED, orient="row")
    result = identify_without(held, submission(1, []), Retractions(retracted, submission(2, feed)))
    assert result.identified.rows.select("received_seq", "description").rows() == [(2, "COFFEE")]


# One true list of transactions, cut into documents that overlap.


class Booked(NamedTuple):
    day: int
    amount: Decimal
    balance: Decimal
    moves: bool  # dated by purchase or by booking; such rows keep their balance


class Document(NamedTuple):
    first: int  # day
    last: int
    is_statement: bool
    seed: int


@st.composite
def truths(draw: st.DrawFn) -> list[Booked]:
    """Days with several equal coffees; no amount leads to the same balance twice.

    Amounts tell which rows have two dates: a row that moved among others of its amount, whose balances nobody states,
    could be any of them.
    """
    days = sorted(draw(st.lists(st.integers(0, 25), min_size=1, max_size=14)))
    amounts = [Decimal(draw(st.sampled_from(("-4.50", "-4.50", "-7.25", "-7.25", "-30", "1003")))) for _ in days]
    balances = list(accumulate(amounts, initial=Decimal(500)))[1:]
    rows = [
        Booked(day, amount, balance, amount in MOVING)
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


def written(truth: Sequence[Booked], document: Document, number: int) -> list[Row]:
    """What a document says of its days. A statement has its own words, and dates some rows later than a feed."""
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
    return printed(*facts, number=number) if document.is_statement else facts


def follow(truth: list[Booked], papers: list[Document], batch_size: int) -> None:
    sent = [written(truth, document, number) for number, document in enumerate(papers, start=1)]
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
def test_however_a_true_list_is_cut_and_told_all_of_it_is_held_once(
    truth: list[Booked], papers: list[Document], batch_size: int
) -> None:
    follow(truth, papers, batch_size)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=3_000, deadline=None)
@given(truths(), documents, st.integers(1, 4))
def test_so_it_is_for_many_lists(truth: list[Booked], papers: list[Document], batch_size: int) -> None:
    follow(truth, papers, batch_size)
