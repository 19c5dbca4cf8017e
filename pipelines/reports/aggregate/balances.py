"""Balances of the cash accounts day by day: of each account, and of all together.

A stated balance holds from the end of its day until the account's next day with rows. The total is known on a day when
every account seen so far is known. Between two changes it is constant, so a history is stored as `steps`: spans of days
with one balance, cut at the first of each month.

A single account is followed through its own last row, so that its figures don't depend on other accounts; all together
are followed through the customer's last row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER, list_months, posted_month
from pipelines.figures.tables import Derived, Source, Total
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import uuid_text

_KNOWN = pl.col("balance").is_not_null()
_CLOSES = pl.col("closing_balance")


def customer_history(facts: Facts) -> pl.DataFrame:
    return facts.history


def account_history(facts: Facts) -> pl.DataFrame:
    """Return each account's first and last day with rows, named as in Facts.history."""
    dates = pl.col("date")
    return facts.rows.group_by(BY_ACCOUNT).agg(first_date=dates.min(), data_through=dates.max()).sort(BY_ACCOUNT)


@dataclass(frozen=True)
class Scope:
    """Which balances are added up: those with equal `keys`, followed through `data_through` of `history`."""

    keys: tuple[str, ...]
    history: Callable[[Facts], pl.DataFrame]

    def steps(self, facts: Facts) -> pl.DataFrame:
        """Return the steps, in order.

        `keys`, `date` (first day), `month`, `days` (length), `balance` (at the end of each of its days; null: unknown).
        """
        history = facts.cached(self.history)
        marks = history.lazy().pipe(list_months).select(*self.keys, date="month", change=pl.lit(0, BALANCE), unknown=0)
        moves = _balance_changes(facts)
        begun = moves.group_by(self.keys).agg(begun=pl.col("date").min())
        # A step without a change on the first of each month, so that no step crosses months.
        marks = marks.join(begun, on=self.keys, validate="m:1").filter(pl.col("date") > pl.col("begun")).drop("begun")
        following = pl.col("date").shift(-1).over(self.keys)
        totals = pl.col("change", "unknown").cum_sum().over(self.keys)
        return (
            pl.concat([moves.select(*self.keys, "date", "change", "unknown"), marks], how="vertical_relaxed")
            .group_by(*self.keys, "date")
            .agg(pl.col("change", "unknown").sum())
            .sort(*self.keys, "date")
            .join(history.lazy(), on=self.keys, validate="m:1", maintain_order="left")
            .with_columns(totals, until=pl.coalesce(following, pl.col("data_through") + pl.duration(days=1)))
            .select(
                *self.keys,
                "date",
                month=posted_month(),
                days=(pl.col("until") - pl.col("date")).dt.total_days(),
                balance=pl.when(pl.col("unknown") == 0).then("change").cast(BALANCE),
            )
            .pipe(collect)
        )

    def balance_rows(self, facts: Facts) -> pl.LazyFrame:
        """Return the steps with a row for each account whose balance counts in a step.

        Further columns: `closing_balance`, the `transaction_id` that states it, and `represents`, true for one row of
        each step, so that its days are counted once.
        """
        through = facts.cached(self.history).lazy().select(*self.keys, "data_through")
        held = (
            facts.closings.lazy()
            .join(through, on=self.keys, validate="m:1")
            .select(
                *BY_ACCOUNT,
                "closing_balance",
                "transaction_id",
                since="date",
                until=pl.min_horizontal(
                    pl.col("date") + pl.duration(days="days_held"), pl.col("data_through") + pl.duration(days=1)
                ),
            )
        )
        latest = pl.col("since").max().over(*self.keys, "date")
        representative = pl.col("account_id").filter(pl.col("since") == latest).min().over(*self.keys, "date")
        steps = facts.cached(self.steps).lazy().join(held.select(BY_ACCOUNT).unique(), on=self.keys, validate="m:m")
        balances = held.with_columns(date="since").sort("date")
        return (
            steps.sort("date", *BY_ACCOUNT)
            .join_asof(balances, on="date", by=BY_ACCOUNT, check_sortedness=False)
            .filter(pl.col("date") < pl.col("until"))
            .with_columns(represents=pl.col("account_id") == representative)
        )

    def by_month(self, facts: Facts) -> pl.DataFrame:
        """Return the totals of BALANCES by `keys` and `month`."""
        months = (
            facts.cached(self.steps)
            .lazy()
            .group_by(*self.keys, "month")
            .agg(*day_sums(), closingBalance=pl.col("balance").max_by("date"))
            .sort(*self.keys, "month")
        )
        opened = (
            facts.cached(account_openings)
            .lazy()
            .group_by(*self.keys, "month")
            .agg(opened=_sum_if_all_known(pl.col("opening")), opens=pl.lit(value=True))
        )
        earlier = pl.col("month").shift(1).over(self.keys).is_not_null()
        carried = pl.col("closingBalance").shift(1).over(self.keys)
        unknown = (earlier & carried.is_null()) | (pl.col("opens").is_not_null() & pl.col("opened").is_null())
        return (
            months.join(opened, on=(*self.keys, "month"), how="left", validate="1:1", maintain_order="left")
            .with_columns(openingBalance=pl.when(~unknown).then(carried.fill_null(0) + pl.col("opened").fill_null(0)))
            .pipe(collect)
        )

    def parts_by_month(self, facts: Facts) -> pl.LazyFrame:
        """Return the rows that the totals of BALANCES are made of."""
        month = (*self.keys, "month")
        lasts = pl.col("date") == pl.col("date").max().over(month)
        stated = self.balance_rows(facts).with_columns(
            least_part(month), *day_parts(), closing_part=pl.when(lasts).then(_CLOSES)
        )
        carried = stated.filter(pl.col("closing_part").is_not_null()).select(
            *BY_ACCOUNT, "transaction_id", month=pl.col("month").dt.offset_by("1mo"), opening_part=_CLOSES
        )
        return pl.concat([stated, carried, opening_parts(facts)], how="diagonal_relaxed")


ALL_ACCOUNTS = Scope((BY_CUSTOMER,), customer_history)
EACH_ACCOUNT = Scope(BY_ACCOUNT, account_history)


def _balance_changes(facts: Facts) -> pl.LazyFrame:
    """Return by how much each day changed an account's balance.

    `unknown`: 1 where the balance stops being known, -1 where it is known again.
    """
    before = pl.col("closing_balance").shift(1).over(BY_ACCOUNT)
    first = pl.col("date").shift(1).over(BY_ACCOUNT).is_null()
    was_unknown = before.is_null() & ~first
    return facts.closings.lazy().select(
        *BY_ACCOUNT,
        "date",
        change=_CLOSES.fill_null(0) - before.fill_null(0),
        unknown=_CLOSES.is_null().cast(pl.Int32) - was_unknown.cast(pl.Int32),
    )


def _first_days(facts: Facts) -> pl.LazyFrame:
    """Return each account's first day in `closings` (`first_day`) and its closing balance, which may be unknown."""
    return (
        facts.closings.lazy()
        .group_by(BY_ACCOUNT)
        .agg(pl.col("closing_balance", "transaction_id").min_by("date"), first_day=pl.col("date").min())
    )


def _first_rows(facts: Facts) -> pl.LazyFrame:
    rows = facts.rows.lazy().select(*BY_ACCOUNT, "date", "amount", "transaction_id")
    firsts = _first_days(facts).select(*BY_ACCOUNT, "first_day")
    return rows.join(firsts, on=BY_ACCOUNT, validate="m:1").filter(pl.col("date") <= pl.col("first_day"))


def account_openings(facts: Facts) -> pl.DataFrame:
    """Return each account's `opening` (balance before its first row; null: unknown) and the `month` it counts in."""
    moved = _first_rows(facts).group_by(BY_ACCOUNT).agg(moved=pl.col("amount").sum())
    return (
        _first_days(facts)
        .join(moved, on=BY_ACCOUNT, validate="1:1")
        .select(*BY_ACCOUNT, month=pl.col("first_day").dt.truncate("1mo"), opening=_CLOSES - pl.col("moved"))
        .pipe(collect)
    )


def opening_parts(facts: Facts) -> pl.LazyFrame:
    """Return the parts of `account_openings`: the first balance stated, minus what moved up to it."""
    month = pl.col("first_day").dt.truncate("1mo").alias("month")
    stated = _first_days(facts).select(*BY_ACCOUNT, "transaction_id", month, opening_part=_CLOSES)
    moved = _first_rows(facts).select(
        *BY_ACCOUNT, "transaction_id", month, opening_part=-pl.col("amount").cast(BALANCE)
    )
    return pl.concat([stated, moved])


@cache
def day_sums() -> tuple[pl.Expr, ...]:
    """Return the totals of BALANCE_DAYS over steps."""
    days = pl.col("days")
    return (
        (pl.col("balance") * days).sum().alias("balanceDays"),
        pl.col("balance").min().alias("minBalance"),
        days.filter(_KNOWN).sum().alias("knownDays"),
        days.filter(pl.col("balance") < 0).sum().alias("negativeDays"),
    )


def day_parts() -> tuple[pl.Expr, ...]:
    """Return what each of `balance_rows` adds to `day_sums`."""
    days, represents = pl.col("days"), pl.col("represents")
    return (
        pl.when(_KNOWN).then(_CLOSES * days).alias("balance_days_part"),
        pl.when(_KNOWN & represents).then(days).alias("known_days_part"),
        pl.when((pl.col("balance") < 0) & represents).then(days).alias("negative_days_part"),
    )


def least_part(period: tuple[str, ...]) -> pl.Expr:
    """Return the balances on the first day of a period's lowest balance; null on other `balance_rows`."""
    least = pl.col("balance") == pl.col("balance").min().over(period)
    day = pl.col("date").filter(least).min().over(period)
    return pl.when(pl.col("date") == day).then(_CLOSES).alias("least_part")


def _sum_if_all_known(balance: pl.Expr) -> pl.Expr:
    return pl.when(balance.is_not_null().all()).then(balance.sum())


BALANCE_DAYS = (
    Total("balanceDays", "AUD days", pl.col("balance_days_part"), meaning="balance times days, over the known days"),
    Total(
        "minBalance",
        "AUD",
        pl.col("least_part"),
        complete=True,
        meaning="the lowest balance at the end of a known day",
    ),
    Total(
        "knownDays",
        "days",
        pl.col("known_days_part"),
        meaning="days at whose end the balance of each cash account seen so far was known",
    ),
    Total("negativeDays", "days", pl.col("negative_days_part"), meaning="known days that ended below zero"),
)
BALANCES = (
    Total(
        "openingBalance",
        "AUD",
        pl.col("opening_part"),
        complete=True,
        meaning="balance of the cash accounts at the start of the month: the previous month's closing balance, and the "
        "opening balances of accounts first seen in this month; null when an account's is unknown",
    ),
    Total(
        "closingBalance",
        "AUD",
        pl.col("closing_part"),
        complete=True,
        meaning="balance of the cash accounts seen so far at the end; null when an account's is unknown",
    ),
    *BALANCE_DAYS,
)
MEAN_BALANCE = Derived(
    "meanBalance",
    "AUD",
    ("balanceDays", "knownDays"),
    pl.col("balanceDays") / pl.when(pl.col("knownDays") != 0).then("knownDays"),
    "balance at the end of a day, on average over the known days: balanceDays / knownDays",
)
_NAMES = tuple(total.name for total in BALANCES)


def all_accounts_by_month() -> Source:
    return Source(
        rows=ALL_ACCOUNTS.parts_by_month,
        totals=BALANCES,
        summed=lambda facts: facts.cached(ALL_ACCOUNTS.by_month).lazy().select(BY_CUSTOMER, "month", *_NAMES),
    )


def each_account_by_month() -> Source:
    account = uuid_text("account_id").alias("accountId")
    return Source(
        rows=lambda facts: EACH_ACCOUNT.parts_by_month(facts).with_columns(account),
        totals=BALANCES,
        summed=lambda facts: facts.cached(EACH_ACCOUNT.by_month).lazy().select(BY_CUSTOMER, account, "month", *_NAMES),
    )
