"""Overlapping statements of one request: the best document's rows are retained, and no others are lost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, permutations
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.pdf.page.result import Entry, Kind, Statement, Verdict
from pipelines.intake.pdf.statement.overlaps import repeats_within
from pipelines.intake.statement_rows import account_of
from tests.conftest import examples

MONDAY = date(2026, 3, 2)


def entry(day: int, amount: str, balance: str | None, words: str = "COFFEE") -> Entry:
    exact = None if balance is None else Decimal(balance)
    return Entry(MONDAY + timedelta(days=day), None, words, Decimal(amount), exact, exact is not None, ())


def statement(
    *entries: Entry, kind: Kind = Kind.STATEMENT, days: tuple[int, int] | None = None, number: str = "12345678"
) -> Statement:
    start, end = (MONDAY + timedelta(days=day) for day in days) if days else (None, None)
    return Statement(
        bank=None,
        bank_name="Bank",
        account_name=None,
        bsb="062000",
        account_number=number,
        account_type="transaction",
        kind=kind,
        period_start=start,
        period_end=end,
        opening_balance=None,
        closing_balance=None,
        credit_limit=None,
        verdict=Verdict.RECONCILED,
        reasons=(),
        entries=entries,
        first_page=1,
        last_page=1,
        read_by_ocr=False,
    )


def find_repeats(statements: Sequence[Statement]) -> list[frozenset[int]]:
    accounts = [account_of(UUID(int=0), each, temporary_digest).account_id for each in statements]
    return repeats_within(list(zip(accounts, statements, strict=True)))


COFFEE, TEA = entry(0, "-4.50", "95.50"), entry(1, "-6", "89.50", "TEA")


def test_a_listing_repeats_a_statements_rows_in_either_order() -> None:
    listing = statement(replace(COFFEE, description="CARD COFFEE CO"), TEA, kind=Kind.LISTING)
    assert find_repeats([listing, statement(COFFEE)]) == [{0}, set()]
    assert find_repeats([statement(COFFEE), listing]) == [set(), {0}]


def test_of_two_statements_the_earlier_periods_rows_are_retained() -> None:
    later, earlier = statement(TEA, days=(1, 9)), statement(COFFEE, TEA, days=(0, 1))
    assert find_repeats([later, earlier]) == [{0}, set()]


def test_rows_of_other_accounts_are_not_repeated() -> None:
    assert find_repeats([statement(COFFEE), statement(COFFEE, number="87654321")]) == [set(), set()]
    assert find_repeats([statement(COFFEE), statement(COFFEE, number="1234 5678")]) == [set(), {0}]


def test_rows_outside_the_common_days_are_not_repeated() -> None:
    """The same amount gives the same balance a day later, in the next statement's period, so it is another row."""
    paid, again = entry(6, "-10", "100"), entry(7, "-10", "100")
    assert find_repeats([statement(paid, days=(0, 6)), statement(again, days=(7, 13))]) == [set(), set()]


def test_equal_rows_of_a_day_are_as_many_as_in_the_document_with_most() -> None:
    silent = entry(0, "-4.50", None)
    assert find_repeats([statement(silent, silent), statement(silent, silent, silent, kind=Kind.INTERIM)]) == [
        set(),
        {0, 1},
    ]


def test_no_statements_repeat_nothing() -> None:
    assert find_repeats([]) == []
    assert find_repeats([statement()]) == [set()]


@examples(2)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from(("-4.50", "-4.50", "-30"))), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from(Kind)), min_size=1, max_size=3),
    st.integers(0, 2**16),
)
def test_in_any_order_the_remaining_rows_are_the_true_ones(
    posted: list[tuple[int, str]], cuts: list[tuple[int, int, Kind]], seed: int
) -> None:
    posted = sorted(posted)
    balances = list(accumulate((Decimal(amount) for _, amount in posted), initial=Decimal(500)))[1:]
    truth = [(day, amount, str(balance)) for (day, amount), balance in zip(posted, balances, strict=True)]
    documents = [_document(truth, *cut, Random(seed + place)) for place, cut in enumerate(cuts)]
    described = [row for row in truth if any(min(cut[:2]) <= row[0] <= max(cut[:2]) for cut in cuts)]
    for order in permutations(documents):
        left = _unrepeated_entries(order)
        assert Counter(each.amount for each in left) == Counter(Decimal(row[1]) for row in described)


def _document(truth: Sequence[tuple[int, str, str]], one: int, other: int, kind: Kind, random: Random) -> Statement:
    days = (min(one, other), max(one, other))
    entries = (
        entry(day, amount, balance if random.random() < 0.6 else None, random.choice(("COFFEE", "CARD 9 COFFEE CO")))
        for day, amount, balance in truth
        if days[0] <= day <= days[1]
    )
    return statement(*entries, kind=kind, days=days)


def _unrepeated_entries(statements: Sequence[Statement]) -> list[Entry]:
    return [
        each
        for found, repeated in zip(statements, find_repeats(statements), strict=True)
        for place, each in enumerate(found.entries)
        if place not in repeated
    ]
