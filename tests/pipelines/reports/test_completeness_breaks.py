"""Small breaks, breaks of order and breaks that money explains are told apart, as trying every order does."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise, permutations
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.reports.completeness.breaks import breaks
from pipelines.reports.completeness.orders import Day, Edge
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import add_ids, codes, completeness, daily, facts_of
from tests.pipelines.reports.examples import Row, add_balances, mark_balances, row

ROUNDING = Decimal("0.02")
KINDS = ("BalanceBreaks", "Rounding", "RowOrder")


def causes(rows: Sequence[Row], as_of: int = 400) -> list[tuple[str, Any]]:
    """Return the likely cause of each break and the money missing there; none where only the order is wrong."""
    found = breaks(facts_of(mark_balances(add_ids(rows)), as_of)).collect()
    missing = found["opening"] - found["carried"] - found["balance"]
    likely = found["likely"].to_list()
    return [(cause, None if cause == "ordering" else money) for cause, money in zip(likely, missing, strict=True)]


def off_by(rows: Sequence[Row], place: int, cents: int) -> list[Row]:
    """Add cents to every balance from a place on: a break before it."""
    return [
        {**each, "balance": each["balance"] + Decimal(cents).scaleb(-2)} if nth >= place else each
        for nth, each in enumerate(rows)
    ]


@pytest.mark.parametrize(("cents", "likely"), [(1, "rounding"), (-2, "rounding"), (3, "rows_missing")])
def test_a_break_of_two_minor_units_is_rounding(cents: int, likely: str) -> None:
    rows = off_by(add_balances(daily(range(30))), 12, cents)
    assert causes(rows) == [(likely, Decimal(cents).scaleb(-2))]
    expected = "Rounding" if likely == "rounding" else "BalanceBreaks"
    assert [code for code in codes(completeness(mark_balances(add_ids(rows)), 31)) if code in KINDS] == [expected]


def test_rows_without_balances_on_every_day_do_not_hide_a_break() -> None:
    """A feed repeats the statement's rows, rounded and without balances, so all money counts twice."""
    stated = add_balances([row(day, amount) for day in range(20) for amount in ("10.20", "-4.90")])
    repeated = [{**each, "amount": each["amount"].quantize(Decimal(1)), "balance": None} for each in stated]
    rows = sorted([*stated, *repeated], key=lambda each: (each["date"], each["balance"] is None))
    assert causes(rows) == [("rows_missing", Decimal(-5))] * 19
    found = codes(completeness(mark_balances(add_ids(rows)), 21))
    assert [code for code in found if code in KINDS] == ["BalanceBreaks"]
    assert causes([each for each in rows if each["balance"] is not None]) == []


def test_the_eleventh_small_break_of_a_year_is_an_ordinary_one() -> None:
    rows = add_balances(daily(range(500)))
    for place in [*range(10, 130, 10), 400]:
        rows = off_by(rows, place, 1)
    found = [likely for likely, _ in causes(rows, 500)]
    assert found == ["rounding"] * 10 + ["rows_missing"] * 2 + ["rounding"]


def test_rounding_in_another_account_has_its_own_ten() -> None:
    main = add_balances(daily(range(200)))
    other = add_balances(daily(range(200), account_id=bytes([7] * 16)))
    for place in range(10, 70, 10):
        main, other = off_by(main, place, 1), off_by(other, place, 2)
    assert {likely for likely, _ in causes([*main, *other])} == {"rounding"}


def test_rounding_within_a_day_whose_rows_were_shuffled_is_an_ordering_problem() -> None:
    posted = [*daily([0]), *(row(1, amount) for amount in ("10", "20", "40", "-25")), *daily([2, 3])]
    rows = off_by(add_balances(posted), 2, 1)
    for order in list(permutations(range(1, 5)))[::5]:
        found = causes([rows[0], *(rows[nth] for nth in order), *rows[5:]])
        assert ("rounding", Decimal("0.01")) in found, order
        assert {likely for likely, _ in found} <= {"rounding", "ordering"}, (order, found)
    assert ("ordering", None) in causes([rows[0], rows[3], rows[1], rows[4], rows[2], *rows[5:]])


def test_a_day_that_ends_where_it_began_may_hide_the_order() -> None:
    # The day's three rows form a ring. In the order sent it begins at 1005, but the day before ends at 1010.
    ring = [row(1, "3", balance=1008), row(1, "2", balance=1010), row(1, "-5", balance=1005)]
    sent = [row(0, "10", balance=1010), *ring, row(2, "1", balance=1011), row(3, "1", balance=1012)]
    rows = [{**each, "balance": Decimal(each["balance"])} for each in sent]
    assert [likely for likely, _ in causes(rows)] == ["ordering"]
    data = completeness(mark_balances(add_ids(rows)), 4)
    [reason] = [each for each in data["reasons"] if each["code"] == "Completeness.RowOrder"]
    assert "No rows are missing." in reason["message"]
    assert reason["settledBy"].startswith("supply the rows of account ending 2233")


def test_rows_of_another_account_that_cancel_are_no_ordering_problem() -> None:
    stray = [row(1, "5", balance=505), row(1, "-5", balance=500)]
    sent = [row(0, "10", balance=1010), *stray, row(2, "1", balance=1011), row(3, "1", balance=1012)]
    rows = [{**each, "balance": Decimal(each["balance"])} for each in sent]
    found = causes(rows)
    assert {likely for likely, _ in found} == {"rows_missing"}


def test_a_first_day_in_another_order_is_an_ordering_problem() -> None:
    day = add_balances([row(0, "1"), row(0, "2"), row(0, "4"), row(0, "8")])
    sent = [day[2], day[0], day[3], day[1], *add_balances(daily([1, 2]), opening=day[-1]["balance"])]
    assert [likely for likely, _ in causes(sent)] == ["ordering"]


# The oracle: every order of a day's rows.


def has_order(rows: Sequence[Edge], before: Decimal | None, after: Decimal | None, within: Decimal) -> bool:
    return any(all(abs(b - a) <= within for a, b in joints(order, before, after)) for order in permutations(rows))


def joints(order: Sequence[Edge], before: Decimal | None, after: Decimal | None) -> Iterator[tuple[Decimal, Decimal]]:
    """Yield the balances on both sides of each place where rows meet."""
    yield from ((one[1], other[0]) for one, other in pairwise(order))
    yield from ((before, order[0][0]),) if before is not None else ()
    yield from ((order[-1][1], after),) if after is not None else ()


edges = st.tuples(st.integers(0, 4).map(Decimal), st.integers(0, 4).map(Decimal))


@examples(30)
@given(st.lists(edges, min_size=1, max_size=6))
def test_an_order_is_found_exactly_if_one_exists(rows: list[Edge]) -> None:
    assert Day(rows).follows_from(None) == has_order(rows, None, None, Decimal(0))
    if sum(b - a for a, b in rows) == 0:
        for before in map(Decimal, range(5)):
            assert Day(rows).follows_from(before) == has_order(rows, before, before, Decimal(0))


def test_a_day_of_fifty_thousand_rows_takes_no_longer_per_row() -> None:
    chain = [(Decimal(nth), Decimal(nth + 1)) for nth in range(50_000)]
    Random(3).shuffle(chain)
    assert Day(chain).follows_from(None)


@examples(12)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=4), st.integers(0, 2), st.randoms(use_true_random=False))
@example(cents=[3, -3], removed=0, random=Random(0))
def test_breaks_agree_with_trying_every_order(cents: list[int], removed: int, random: Random) -> None:
    """Draw a busy day between quiet ones, with small breaks within; remove a row or none, and shuffle the rest."""
    rows = add_balances([*daily([0]), *(row(1, 100 * 2**nth) for nth in range(len(cents))), *daily([2, 3])])
    for nth, by in enumerate(cents):
        rows = off_by(rows, 1 + nth, by)
    busy = rows[1 : 1 + len(cents)]
    left = [each for nth, each in enumerate(busy) if nth != removed - 1]
    random.shuffle(left)
    found = causes([rows[0], *left, *rows[-2:]])
    day = [(each["balance"] - each["amount"], each["balance"]) for each in left]
    ended = rows[0]["balance"] + sum((each["amount"] for each in left), Decimal(0))
    adds_up = ended in {each["balance"] for each in left}  # enrichment then takes all its balances as right
    likely = {each for each, _ in found}
    if day and not adds_up:
        is_small = has_order(day, rows[0]["balance"], rows[-2]["balance"] - 10, ROUNDING)
        assert ("rows_missing" in likely) == (not is_small)
    expected = sum((each["amount"] for each in busy if each not in left), Decimal(0)) + Decimal(sum(cents)).scaleb(-2)
    assert sum((missing for _, missing in found if missing is not None), Decimal(0)) == expected


@examples(5)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=14, unique=True), st.sampled_from((1, -1, 2, -2)))
def test_at_most_ten_breaks_of_an_account_and_year_are_rounding(places: list[int], cents: int) -> None:
    rows = add_balances(daily(range(45)))
    for place in places:
        rows = off_by(rows, place, cents)
    found = [likely for likely, _ in causes(rows)]
    assert found == ["rounding"] * min(len(places), 10) + ["rows_missing"] * max(len(places) - 10, 0)
