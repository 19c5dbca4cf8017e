"""Stated balances verify the amounts between them, and show where rows are missing."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, groupby
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.balances import verify_balances
from tests.pipelines.enrichment.examples import OTHER_ACCOUNT, held_rows

MONDAY = date(2026, 3, 2)
Row = dict[str, Any]


def row(day: int, amount: str, balance: str | None, **fields: Any) -> Row:
    stated = None if balance is None else Decimal(balance)
    return {"date": MONDAY + timedelta(days=day), "amount": Decimal(amount), "balance": stated, **fields}


def list_verdicts(*rows: Row) -> list[bool | None]:
    """Return the verdicts in the order in which the rows were sent."""
    return verify_balances(held_rows(*rows)).sort("position")["balance_verified"].to_list()


def test_balances_that_follow_from_the_amounts_are_verified() -> None:
    assert list_verdicts(row(0, "10", "110"), row(1, "-5", "105"), row(2, "-5", "100")) == [None, True, True]


def test_a_missing_row_shows_where_the_balance_breaks() -> None:
    assert list_verdicts(row(0, "10", "110"), row(2, "-5", "90"), row(3, "-5", "85")) == [None, False, True]


def test_first_row_is_verified_if_its_statement_proves_it() -> None:
    for proved, first in ((True, True), (False, None), (None, None)):
        rows = [row(1, "10", "110", statement_proved=proved), row(2, "5", None, statement_proved=proved)]
        assert list_verdicts(*rows) == [first, None]


def test_the_oldest_row_of_a_listing_is_not_verified() -> None:
    oldest = row(1, "-9749.03", "110", statement_verdict="partial", statement_proved=False)
    rest = row(2, "5", "115", statement_verdict="partial", statement_proved=True)
    assert list_verdicts(oldest, rest) == [None, True]


def test_statement_does_not_prove_a_row_that_other_balances_contradict() -> None:
    rows = [row(1, "10", "110"), row(2, "5", "999", statement_proved=True)]
    assert list_verdicts(*rows) == [None, False]


def test_newest_first_is_verified_like_oldest_first() -> None:
    assert list_verdicts(row(2, "-5", "100"), row(1, "-5", "105"), row(0, "10", "110")) == [True, True, None]


def test_within_a_day_rows_may_run_either_way() -> None:
    day_before = row(0, "10", "110")
    assert list_verdicts(day_before, row(1, "1", "111"), row(1, "2", "113")) == [None, True, True]
    assert list_verdicts(day_before, row(1, "2", "113"), row(1, "1", "111")) == [None, True, True]


def test_shuffled_day_is_verified_as_a_whole() -> None:
    shuffled = (row(1, "2", "113"), row(1, "1", "111"), row(1, "4", "117"))
    assert list_verdicts(row(0, "10", "110"), *shuffled) == [None, True, True, True]


def test_rows_without_a_balance_get_no_verdict() -> None:
    assert list_verdicts(row(0, "10", "110"), row(1, "5", None), row(1, "5", "120")) == [None, None, True]


def test_amounts_of_rows_without_a_balance_still_count() -> None:
    first, last = row(1, "5", None), row(1, "7", None)
    assert list_verdicts(row(0, "10", "110"), first, row(1, "5", "120"), last, row(2, "1", "128")) == [
        None,
        None,
        True,
        None,
        True,
    ]


def test_a_day_after_a_shuffled_one_may_open_with_any_of_its_balances() -> None:
    shuffled = (row(1, "2", "113"), row(1, "4", "117"), row(1, "1", "111"))
    assert list_verdicts(row(0, "10", "110"), *shuffled, row(2, "3", "120"))[-1] is True


def test_amounts_at_the_end_of_the_range_are_summed_exactly() -> None:
    most = "9999999999999999.99"
    assert list_verdicts(row(0, most, most), row(1, f"-{most}", "0"), row(2, most, most)) == [None, True, True]


def test_accounts_are_checked_separately() -> None:
    other = {"account_id": OTHER_ACCOUNT}
    assert list_verdicts(row(0, "10", "110"), row(1, "1", "9", **other), row(2, "1", "111")) == [None, None, True]


def test_pending_and_superseded_rows_are_ignored() -> None:
    aside = row(1, "7", "7", status="pending"), row(1, "7", "7", superseded_seq=2)
    assert list_verdicts(row(0, "10", "110"), *aside, row(2, "1", "111")) == [None, None, None, True]


days = st.lists(st.lists(st.integers(-500, 500), min_size=1, max_size=4), min_size=2, max_size=6)


@given(days, st.booleans())
def test_correct_balances_are_never_marked_false(amounts: list[list[int]], newest_first: bool) -> None:
    flat = [(day, amount) for day, some in enumerate(amounts) for amount in some]
    balances = list(accumulate((amount for _, amount in flat), initial=1_000))[1:]
    rows = [row(day, str(amount), str(balance)) for (day, amount), balance in zip(flat, balances, strict=True)]
    verdicts = list_verdicts(*(reversed(rows) if newest_first else rows))
    assert False not in verdicts
    assert verdicts.count(True) >= len(rows) - len(amounts[0])


@given(days, st.data())
def test_one_wrong_balance_is_always_found(amounts: list[list[int]], data: st.DataObject) -> None:
    flat = [(day, amount) for day, some in enumerate(amounts) for amount in some[:1]]
    balances = list(accumulate((amount for _, amount in flat), initial=1_000))[1:]
    wrong = data.draw(st.integers(1, len(flat) - 1))
    rows = [
        row(day, str(amount), str(balance + (position == wrong)))
        for position, ((day, amount), balance) in enumerate(zip(flat, balances, strict=True))
    ]
    assert list_verdicts(*rows)[wrong] is False


statements = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-3, 3), st.one_of(st.none(), st.just(0), st.integers(-1, 1))), max_size=9
)


@given(statements, st.randoms(use_true_random=False), st.sampled_from(["forwards", "backwards", "shuffled"]))
def test_verdicts_agree_with_plain_python(lines: list[tuple[int, int, int | None]], random: Random, order: str) -> None:
    lines.sort(key=lambda line: line[0])
    running = accumulate((amount for _, amount, _ in lines), initial=10)
    next(running)
    rows = [
        row(day, str(amount), None if error is None else str(balance + error))
        for (day, amount, error), balance in zip(lines, running, strict=True)
    ]
    if order == "backwards":
        rows.reverse()
    elif order == "shuffled":
        random.shuffle(rows)
    assert list_verdicts(*rows) == verdicts_by_hand(rows)


def verdicts_by_hand(rows: list[Row]) -> list[bool | None]:
    """Apply the rule day by day with running sums. `closes`: the possible balances of the account after each day."""
    verdicts: dict[int, bool | None] = dict.fromkeys(range(len(rows)))
    closes: set[Decimal] = set()
    by_day = sorted(range(len(rows)), key=lambda n: (rows[n]["date"], n))
    for _, numbers in groupby(by_day, key=lambda n: rows[n]["date"]):
        day = list(numbers)
        total = sum((rows[n]["amount"] for n in day), Decimal(0))
        stated = [n for n in day if rows[n]["balance"] is not None]
        ends = {close + total for close in closes}
        if not stated:
            closes = ends
            continue
        walks = [(order, *walk([rows[n] for n in order])) for order in (day, day[::-1])]
        chaining = [(order, opens, end) for order, holds, opens, end in walks if holds]
        balances = {rows[n]["balance"] for n in stated}
        if closes:
            follows = any(opens in closes for _, opens, _ in chaining) or bool(ends & balances)
            verdicts.update(dict.fromkeys(stated, follows))
        if chaining:
            first = next(n for n in chaining[0][0] if n in stated)
            verdicts.update({n: True for n in stated if n != first})
        closes = {end for _, _, end in chaining} or balances
    return [verdicts[n] for n in range(len(rows))]


def walk(rows: list[Row]) -> tuple[bool, Decimal, Decimal]:
    """Return whether each stated balance leads to the next, and the balances before and after all rows."""
    holds, opens, held, since = True, Decimal(0), None, Decimal(0)
    for each in rows:
        since += each["amount"]
        if each["balance"] is None:
            continue
        if held is None:
            opens = each["balance"] - since
        else:
            holds = holds and held + since == each["balance"]
        held, since = each["balance"], Decimal(0)
    assert held is not None
    return holds, opens, held + since
