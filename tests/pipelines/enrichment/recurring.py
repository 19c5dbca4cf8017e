"""Synthetic labelled payments that measure the search for series, made in plain Python without the code under test.

Each case has the payments between one account and one counterparty: one or two true series, with missed, doubled, late
and drifting payments and with holidays that move them; or trade without a schedule: Poisson and gamma processes on all
days or on business days only, or purchases in a shop. `Payment.label` names the true series and is None otherwise.
"""

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import holidays
import polars as pl

from tests.pipelines.enrichment.examples import held_rows

FIRST, LAST = date(2022, 1, 1), date(2025, 12, 31)
LEAST = {"business_daily": 8, "weekly": 4, "yearly": 2, "twice_monthly": 4}
BAS = ((2, 28), (4, 28), (7, 28), (10, 28))
BSB_OF_STATE = {"NSW": "062-000", "VIC": "063-000", "QLD": "064-000", "WA": "066-000"}


@dataclass(frozen=True)
class Payment:
    party: str
    day: date
    cents: int
    channel: str
    state: str
    label: str | None = None
    period: str | None = None


@cache
def list_holidays(state: str) -> frozenset[date]:
    """Return the holidays of a state; for `settlement`, those that New South Wales and Victoria share."""
    if state == "settlement":
        return list_holidays("NSW") & list_holidays("VIC")
    return frozenset(holidays.country_holidays("AU", subdiv=state, years=range(2021, 2028)))


def is_business_day(day: date, state: str) -> bool:
    return day.weekday() < 5 and day not in list_holidays(state)


def move_to_open_day(day: date, state: str, step: int) -> date:
    """Move a closed day to the next business day (step 1) or to the one before (step -1); step 0 leaves it."""
    while step and not is_business_day(day, state):
        day += timedelta(days=step)
    return day


def month_day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """Return a weekday of the month: `nth` from 0, or -1 for the last."""
    days = [day for week in calendar.monthcalendar(year, month) if (day := week[weekday])]
    return date(year, month, days[nth])


def due_dates(period: str, rng: Random) -> Callable[[date, date], list[date]]:
    """Draw a schedule of the period. Return a function from first and last day to the due dates between them."""
    day_of_month, phase = rng.choice((1, 5, 10, 15, 20, 25, 28, 31, rng.randrange(1, 29))), rng.randrange(12)
    weekday, nth, start = rng.randrange(5), rng.choice((0, 1, 2, 3, -1)), rng.randrange(28)
    pair = rng.choice(((1, 15), (15, 31), (14, 28), (5, 20)))
    kind = rng.choice(("day", "day", "day", "weekday")) if period == "monthly" else ""
    statements = period == "quarterly" and rng.random() < 0.5

    def between(first: date, last: date) -> list[date]:
        months = [(n // 12, n % 12 + 1) for n in range(first.year * 12, last.year * 12 + 12)]
        every_day = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        if period == "business_daily":
            days = [day for day in every_day if is_business_day(day, "settlement")]
        elif period in ("weekly", "fortnightly", "four_weekly"):
            weeks = {"weekly": 1, "fortnightly": 2, "four_weekly": 4}[period]
            days = [day for day in every_day if (day.toordinal() - start) % (7 * weeks) == weekday + 1]
        elif period == "twice_monthly":
            days = [month_day(year, month, day) for year, month in months for day in pair]
        elif kind == "weekday":
            days = [nth_weekday(year, month, weekday, nth) for year, month in months]
        elif period == "monthly":
            days = [month_day(year, month, day_of_month) for year, month in months]
        elif statements:
            days = [date(year, month, day) for year in range(first.year, last.year + 1) for month, day in BAS]
        else:
            every = {"quarterly": 3, "yearly": 12}[period]
            days = [month_day(year, month, day_of_month) for year, month in months if month % every == phase % every]
        return [day for day in days if first <= day <= last]

    return between


def amounts(rng: Random) -> Callable[[int], int]:
    """Draw a function from n to the cents of the n-th payment: fixed, stepping up, growing, or varying."""
    usual = round(10 ** rng.uniform(3, 6))
    kind = rng.choice(("fixed", "fixed", "steps", "grows", "varies", "varies widely"))
    every, spread = rng.randrange(4, 20), {"varies": 0.12, "varies widely": 0.4}.get(kind, 0.0)

    def of(n: int) -> int:
        factor = {"steps": 1.05 ** (n // every), "grows": 1.01**n}.get(kind, 1.0)
        return max(1, round(usual * factor * (rng.lognormvariate(0, spread) if spread else 1)))

    return of


def series_of(label: str, party: str, period: str, rng: Random, size: float = 1.0) -> Iterator[Payment]:
    """Yield a true series, over a part of the history that is long enough to show it."""
    days = due_dates(period, rng)(FIRST, LAST)
    least = LEAST.get(period, 3)
    count = min(len(days), rng.choice((least + 1, least * 2, 12, 26, 52, 150)))
    begin = rng.randrange(len(days) - count + 1)
    channel, step, state = rng.choice(
        (
            ("direct_debit", 1, "settlement"),
            ("direct_debit", 1, "settlement"),
            ("bpay", -1, "settlement"),
            ("npp", 0, "settlement"),
            ("transfer", 1, rng.choice(tuple(BSB_OF_STATE))),
        )
    )
    missing, doubling = rng.choice((0, 0, 0.03, 0.08)), rng.choice((0, 0, 0.03))
    late = rng.choice((0, 0, 0, 0.1)) if period not in ("business_daily", "weekly") else 0
    branch = rng.choice(tuple(BSB_OF_STATE)) if state == "settlement" else state
    of, paid = amounts(rng), list[Payment]()
    for n, due in enumerate(days[begin : begin + count]):
        if rng.random() < missing:
            continue
        day = move_to_open_day(due, state, 1 if period == "business_daily" else step)
        if rng.random() < late:
            day = move_to_open_day(day + timedelta(days=1), state, step)
        payment = Payment(party, day, round(of(n) * size), channel, branch, label, period)
        paid.extend([payment] * (2 if rng.random() < doubling else 1))
    if len({payment.day for payment in paid}) >= least:
        yield from paid


def trade(party: str, rng: Random) -> Iterator[Payment]:
    """Yield payments without a schedule."""
    state, channel = rng.choice(tuple(BSB_OF_STATE)), rng.choice(("card", "npp", "direct_credit", "transfer"))
    first = FIRST + timedelta(days=rng.randrange(900))
    last = min(LAST, first + timedelta(days=rng.choice((90, 180, 365, 730))))
    mean, evenness = rng.choice((1.5, 3, 5, 8, 14, 21, 30, 45, 90, 180)), rng.choice((1, 1, 1, 2))
    open_only, prices = rng.random() < 0.6, [round(10 ** rng.uniform(3, 5)) for _ in range(3)]
    fixed, at = rng.random() < 0.3, float(first.toordinal())
    while (day := date.fromordinal(int(at := at + rng.gammavariate(evenness, mean / evenness)))) <= last:
        cents = rng.choice(prices) if fixed else round(prices[0] * rng.lognormvariate(0, 0.6))
        yield Payment(party, move_to_open_day(day, state, 1) if open_only else day, max(1, cents), channel, state)


def habit(party: str, rng: Random) -> Iterator[Payment]:
    """Yield purchases in the same shop on most working days."""
    often, price = rng.uniform(0.4, 0.8), rng.randrange(400, 1_600)
    for n in range(rng.choice((60, 180, 365))):
        day = FIRST + timedelta(days=n)
        if is_business_day(day, "NSW") and rng.random() < often:
            yield Payment(party, day, price if rng.random() < 0.5 else price + rng.randrange(300), "card", "NSW")


def side_by_side(party: str, rng: Random) -> Iterator[Payment]:
    """Yield two series of one counterparty: two loans of one lender, or a wage and an allowance."""
    first, second = rng.choice(
        (("monthly", "monthly"), ("weekly", "monthly"), ("fortnightly", "monthly"), ("fortnightly", "fortnightly"))
    )
    fixed = Random(rng.random())
    for number, period in enumerate((first, second)):
        days = due_dates(period, rng)(date(2024, 1, 1), LAST)
        cents = fixed.randrange(20_000, 40_000) * (1 + 2 * number)
        for due in days:
            day = move_to_open_day(due, "settlement", 1)
            yield Payment(party, day, cents, "direct_debit", "NSW", f"{party}/{number}", period)


def portfolio(cases: int, seed: int) -> list[Payment]:
    """Return the payments of `cases` counterparties, each drawn from the seed and its own number."""
    return [payment for number in range(cases) for payment in _case(number, Random(f"{seed}/{number}"))]


def _case(number: int, rng: Random) -> Iterator[Payment]:
    party, draw = f"party {number:06}", rng.random()
    periods = ("business_daily", "weekly", "fortnightly", "four_weekly", "twice_monthly")
    if draw < 0.35:
        period = rng.choice((*periods, "monthly", "monthly", "monthly", "quarterly", "yearly"))
        yield from series_of(party, party, period, rng)
    elif draw < 0.40:
        yield from side_by_side(party, rng)
    elif draw < 0.45:
        yield from habit(party, rng)
    else:
        yield from trade(party, rng)


def transactions(payments: list[Payment], a_customer: int = 50) -> pl.DataFrame:
    """Return TRANSACTIONS in the payments' order (`position`), with several counterparties per customer."""
    parties = {party: n for n, party in enumerate(dict.fromkeys(payment.party for payment in payments))}
    return held_rows(*(_row(payment, parties[payment.party] // a_customer) for payment in payments))


def _row(payment: Payment, customer: int) -> dict[str, Any]:
    return {
        "customer_number": customer,
        # The state belongs to the account, so parties of other states are in other accounts.
        "account_id": customer.to_bytes(8) + payment.state.encode().rjust(8),
        "bsb": BSB_OF_STATE[payment.state],
        "date": payment.day,
        "amount": -Decimal(payment.cents).scaleb(-2),
        "channel": payment.channel,
        "counterparty_group": payment.party,
    }


def add_truth(marked: pl.DataFrame, payments: list[Payment]) -> pl.DataFrame:
    """Add the true `label` and `period` to the marked rows of `transactions(payments)`."""
    truth = {"label": [each.label for each in payments], "period": [each.period for each in payments]}
    return marked.with_columns(pl.DataFrame(truth, {"label": pl.String(), "period": pl.String()}))


@dataclass(frozen=True)
class Score:
    """Counts of series found, true and right.

    A series is right if it has the true period and shares at least ALIKE of its rows with the true one (Jaccard).
    """

    found: int
    true: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 1.0


ALIKE = 0.8


def compare_series(marked: pl.DataFrame) -> pl.DataFrame:
    """Return every pair of a found and a true series that share rows, and every series without such a partner.

    Args:
        marked: rows with `series_id`, `series_period`, `label` and `period`.

    Returns:
        `series_id`, `label`, `series_period`, `period`, `alike` (0–1).
    """
    found = marked.drop_nulls("series_id").group_by("series_id", "series_period").agg(found_rows=pl.len())
    true = marked.drop_nulls("label").group_by("label", "period").agg(true_rows=pl.len())
    shared = marked.drop_nulls(["series_id", "label"]).group_by("series_id", "label").agg(shared=pl.len())
    both = found.join(shared, on="series_id", how="left").join(true, on="label", how="full", coalesce=True)
    union = pl.col("found_rows") + pl.col("true_rows") - pl.col("shared")
    return both.with_columns(alike=(pl.col("shared") / union).fill_null(0))


def score_series(marked: pl.DataFrame) -> Score:
    pairs = compare_series(marked)
    right = pairs.filter(pl.col("alike") >= ALIKE, pl.col("series_period").cast(pl.String) == pl.col("period"))
    return Score(pairs["series_id"].drop_nulls().n_unique(), pairs["label"].drop_nulls().n_unique(), right.height)
