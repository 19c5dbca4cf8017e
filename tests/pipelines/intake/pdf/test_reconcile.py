"""A statement counts as reconciled only if its balances prove every row."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.intake.pdf.page.result import Kind, Verdict
from pipelines.intake.pdf.statement.reconcile import Point, Posting, is_newest_first, prove

AMOUNTS = st.integers(-10_000_00, 10_000_00).filter(bool).map(lambda cents: Decimal(cents) / 100)
PRINTED = st.sampled_from([True, True, False])


def adds_up(opening: Decimal, postings: Sequence[Posting], closing: Decimal) -> bool:
    """Return whether a statement adds up, in the simplest way."""
    balance = opening
    for posting in postings:
        balance += posting.amount
        if posting.balance is not None and posting.balance != balance:
            return False
    return balance == closing


@st.composite
def statements(draw: st.DrawFn) -> tuple[Decimal, list[Posting], Decimal]:
    """Draw a statement that adds up, with some balances not printed."""
    opening = balance = draw(AMOUNTS)
    postings = []
    for amount, shown in draw(st.lists(st.tuples(AMOUNTS, PRINTED), min_size=1, max_size=12)):
        balance += amount
        postings.append(Posting(amount, balance if shown else None, 1))
    return opening, postings, balance


Statement = tuple[Decimal, list[Posting], Decimal]


@given(statements())
def test_a_statement_that_adds_up_is_reconciled_and_every_balance_is_known(statement: Statement) -> None:
    opening, postings, closing = statement
    proof = prove(postings, opening, closing, (), Kind.STATEMENT)
    assert adds_up(opening, postings, closing)
    assert (proof.verdict, proof.reasons) == (Verdict.RECONCILED, ())
    sums = [opening + sum((each.amount for each in postings[: n + 1]), Decimal()) for n in range(len(postings))]
    assert list(proof.balances) == sums


@given(statements(), st.data())
def test_a_deleted_row_is_never_reconciled(statement: Statement, data: st.DataObject) -> None:
    opening, postings, closing = statement
    gone = data.draw(st.integers(0, len(postings) - 1))
    left = postings[:gone] + postings[gone + 1 :]
    proof = prove(left, opening, closing, (), Kind.STATEMENT)
    assert proof.verdict is not Verdict.RECONCILED
    assert proof.reasons


@given(statements(), st.data(), st.integers(0, 8), st.integers(1, 9))
def test_a_changed_digit_is_never_reconciled(
    statement: Statement, data: st.DataObject, place: int, change: int
) -> None:
    opening, postings, closing = statement
    index = data.draw(st.integers(0, len(postings) - 1))
    by = Decimal(change) * Decimal(10) ** (place - 2)
    one = postings[index]
    in_balance = data.draw(st.booleans()) and one.balance is not None
    forged = replace(one, balance=(one.balance or 0) + by) if in_balance else replace(one, amount=one.amount + by)
    proof = prove([*postings[:index], forged, *postings[index + 1 :]], opening, closing, (), Kind.STATEMENT)
    assert proof.verdict is not Verdict.RECONCILED
    assert any(reason.page == 1 and f"{by:,.2f}" in reason.message for reason in proof.reasons)


@given(statements(), st.data())
def test_two_swapped_rows_are_reconciled_only_if_the_oracle_says_so(statement: Statement, data: st.DataObject) -> None:
    opening, postings, closing = statement
    assume(len(postings) > 1)
    index = data.draw(st.integers(0, len(postings) - 2))
    swapped = [*postings[:index], postings[index + 1], postings[index], *postings[index + 2 :]]
    is_right = prove(swapped, opening, closing, (), Kind.STATEMENT).verdict is Verdict.RECONCILED
    assert is_right == adds_up(opening, swapped, closing)


@given(statements())
def test_without_any_balance_nothing_is_proved(statement: Statement) -> None:
    bare = [replace(posting, balance=None) for posting in statement[1]]
    assert prove(bare, None, None, (), Kind.STATEMENT).verdict is Verdict.UNRECONCILED
    assert prove(bare, statement[0], None, (), Kind.STATEMENT).verdict is Verdict.UNRECONCILED


@given(statements())
def test_a_statement_without_one_of_its_balances_is_at_most_partial(statement: Statement) -> None:
    opening, postings, closing = statement
    ends: list[tuple[Decimal | None, Decimal | None]] = [(None, closing), (opening, None), (None, None)]
    for first, last in ends:
        verdict = prove(postings, first, last, (), Kind.STATEMENT).verdict
        assert verdict in (Verdict.PARTIAL, Verdict.UNRECONCILED)


def listing(*rows: tuple[str, str | None]) -> list[Posting]:
    return [Posting(Decimal(amount), Decimal(balance) if balance else None, 1) for amount, balance in rows]


def test_a_listing_without_an_opening_balance_is_proved_except_its_oldest_row() -> None:
    rows = listing(("5", "105"), ("-5", "100"), ("1", "101"))
    proof = prove(rows, None, None, (), Kind.LISTING)
    assert proof.verdict is Verdict.PARTIAL
    assert [reason.code for reason in proof.reasons] == ["OldestRowUnproved"]
    assert proof.proved == (False, True, True)


def test_a_listing_with_an_opening_balance_is_proved_completely() -> None:
    rows = listing(("5", "105"), ("-5", "100"), ("1", "101"))
    proof = prove(rows, Decimal(100), None, (), Kind.LISTING)
    assert (proof.verdict, proof.reasons, proof.proved) == (Verdict.RECONCILED, (), (True, True, True))


@given(statements(), st.booleans(), st.booleans(), st.sampled_from(Kind), st.data(), AMOUNTS)
def test_only_a_row_between_two_printed_balances_counts_as_proved(
    statement: Statement, opens: bool, closes: bool, kind: Kind, data: st.DataObject, by: Decimal
) -> None:
    """The independent rule: an amount that could be changed alone without a contradiction is not proved."""
    opening, postings, closing = statement
    stated = opening if opens else None, closing if closes else None
    proof = prove(postings, *stated, (), kind)
    index = data.draw(st.integers(0, len(postings) - 1))
    changed = replace(postings[index], amount=postings[index].amount + by)
    after = prove([*postings[:index], changed, *postings[index + 1 :]], *stated, (), kind)
    is_noticed = any(reason.code == "BalanceMismatch" for reason in after.reasons)
    assert proof.proved[index] == is_noticed
    assert proof.verdict is not Verdict.RECONCILED or all(proof.proved)


def test_rows_before_a_contradicted_balance_are_not_proved() -> None:
    rows = listing(("5", "105"), ("-5", "999"), ("1", "1000"), ("1", "1001"))
    proof = prove(rows, Decimal(100), Decimal(1001), (), Kind.STATEMENT)
    assert proof.proved == (True, False, True, True)


@pytest.mark.parametrize(
    "rows",
    [
        listing(("5", "105"), ("-5", "100"), ("1", None)),  # the last is not proved
        listing(("5", None), ("-5", "100"), ("1", "101")),  # nor are the first two
        listing(("5", "105"), ("-5", "100")),
    ],
)
def test_a_listing_with_rows_that_no_balance_proves_is_partial(rows: list[Posting]) -> None:
    assert prove(rows, None, None, (), Kind.LISTING).verdict is Verdict.PARTIAL


def test_a_balance_carried_to_the_next_page_counts() -> None:
    rows = listing(("5", None), ("-5", None))
    right = Point(1, Decimal("105"), 1, "the carried balance")
    assert prove(rows, Decimal(100), Decimal(100), [right], Kind.STATEMENT).verdict is Verdict.RECONCILED
    wrong = prove(rows, Decimal(100), Decimal(100), [replace(right, balance=Decimal(106))], Kind.STATEMENT)
    assert wrong.verdict is Verdict.UNRECONCILED
    assert "The carried balance on page 1 is 106.00; the rows before it give 105.00" in wrong.reasons[0].message


def test_balances_are_not_filled_if_rows_are_not_in_order_of_days() -> None:
    rows = listing(("5", None), ("-5", None))
    assert prove(rows, Decimal(1), Decimal(1), (), Kind.STATEMENT, in_day_order=False).balances == (None, None)


def test_most_dates_decide_the_order() -> None:
    days = [date(2024, 3, day) for day in (9, 9, 7, 8, 2)]
    assert is_newest_first(days)
    assert not is_newest_first(days[::-1])
    assert not is_newest_first([])
