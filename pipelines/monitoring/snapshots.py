"""Snapshots of past days: on which days a customer has to be evaluated, and the facts of these days, each treated as a
customer of its own.

Windows end at a customer's last row. So between two days with rows a snapshot changes only if a rule reads the number
of days since the last row, a metric becomes stale, the baseline's day comes, or an attribute changes. On all other days
it would equal the one before.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

import polars as pl

from pipelines.decisions.readings import Attribute, Value
from pipelines.figures.accounts import BY_ACCOUNT, describe_accounts
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER, age, days_behind
from pipelines.metrics.definition import History, Metrics
from pipelines.metrics.rows import COLUMNS
from pipelines.metrics.sources import ALL_DAYS
from pipelines.monitoring.ruleset import Ruleset, SinceAttribute, SinceDate, day_of
from pipelines.vocabulary.schemas import posted

SNAPSHOT_ROWS = (
    500_000  # computed at once, counting a row once for each of its snapshots; limits memory (our judgement)
)

_A_CUSTOMER = 2**32  # factor of the customer number in a key of customer and day; larger than any day's number

SNAPSHOTS = pl.Schema({"snapshot": pl.Int64(), BY_CUSTOMER: pl.Int64(), "date": pl.Date(), "until": pl.Date()})
"""A customer on the day `date`, unchanged until the day before `until`. `snapshot` counts from 0, in this order."""


@dataclass(frozen=True)
class Day:
    """A day of a simulation. `at`: the time at which attributes are read, the day's end or now."""

    date: date
    at: datetime


@dataclass(frozen=True)
class AttributeChange:
    """A change of an attribute. `value`: null if it was removed."""

    set_at: datetime
    value: Value | None
    expires_at: datetime | None


AttributeHistories = Mapping[int, Mapping[str, Sequence[AttributeChange]]]
"""Customer number → attribute's name → all its changes in order, at least one."""


def attribute_at(changes: Sequence[AttributeChange], at: datetime) -> Attribute:
    """Return the attribute as it was at `at`, or as it is now if it was not set yet.

    The caller reads the attributes of all days at one later time. So an attribute that had not expired at `at` is
    returned without its expiry, and one that had keeps it.
    """
    by_then = [each for each in changes if each.set_at <= at]
    stated = (by_then or changes)[-1]
    expired = stated.expires_at is not None and stated.expires_at <= at
    return Attribute(stated.value, stated.expires_at if expired else None)


# Days


def snapshots(
    rows: pl.DataFrame, ruleset: Ruleset, metrics: Metrics, past: AttributeHistories, days: Sequence[Day]
) -> pl.DataFrame:
    """Return SNAPSHOTS of the customers with posted rows, from their first one or the first day on, whichever is later.

    Args:
        rows: transactions that were not retracted, in SORT_KEY's order.
        metrics: all metrics that the ruleset reads, with their inputs.
        days: every day of the simulation, in order.
    """
    first, last = days[0].date, days[-1].date
    by_then = rows.lazy().filter(pl.col("date") <= last)
    posted_days, stated_days = (
        some.select(BY_CUSTOMER, "date").unique() for some in (by_then.filter(posted()), by_then)
    )
    begun = posted_days.group_by(BY_CUSTOMER).agg(begin=pl.max_horizontal(pl.col("date").min(), pl.lit(first)))
    attribute_days = pl.LazyFrame(
        list(_attribute_days(ruleset, past, days)), {BY_CUSTOMER: pl.Int64(), "date": pl.Date()}, orient="row"
    )
    all_days = [
        begun.select(BY_CUSTOMER, date="begin"),
        stated_days,  # a row that is not posted may state details of its account
        attribute_days,
        *(_stale_days(posted_days, behind) for behind in {each.fresh_days for each in metrics.values()} - {None}),
        *_common_days(ruleset, metrics, begun, last),
    ]
    until = pl.col("date").shift(-1).over(BY_CUSTOMER).fill_null(pl.lit(last) + pl.duration(days=1))
    return (
        pl.concat(all_days)
        .unique()
        .join(begun, on=BY_CUSTOMER, validate="m:1")
        .filter(pl.col("date") >= pl.col("begin"), pl.col("date") <= last)
        .sort(BY_CUSTOMER, "date")
        .with_columns(until=until, snapshot=pl.int_range(pl.len(), dtype=pl.Int64))
        .select(SNAPSHOTS.names())
        .collect(engine="in-memory")
    )


def _stale_days(posted_days: pl.LazyFrame, fresh_days: int | None) -> pl.LazyFrame:
    """Return the days on which the last row has become too old."""
    old = pl.col("date") + pl.duration(days=(fresh_days or 0) + 1)
    newer = pl.col("date").shift(-1).over(BY_CUSTOMER, order_by="date")
    return posted_days.filter(newer.is_null() | (newer > old)).with_columns(old)


def _common_days(ruleset: Ruleset, metrics: Metrics, begun: pl.LazyFrame, last: date) -> Iterator[pl.LazyFrame]:
    """Yield the days on which something changes for all customers: the baseline's day, or every day."""
    if ruleset.baseline is not None and isinstance(ruleset.baseline.since, SinceDate):
        yield begun.select(BY_CUSTOMER, date=pl.lit(ruleset.baseline.since.date))
    if any(
        isinstance(each.definition, History) and each.definition.figure == "days_behind" for each in metrics.values()
    ):
        yield begun.select(BY_CUSTOMER, date=pl.date_ranges("begin", pl.lit(last))).explode("date")


def _attribute_days(ruleset: Ruleset, past: AttributeHistories, days: Sequence[Day]) -> Iterator[tuple[int, date]]:
    """Yield the days on which an attribute is set, removed or expires, and the baselines' days that attributes name."""
    since = ruleset.baseline.since if ruleset.baseline is not None else None
    named = since.attribute if isinstance(since, SinceAttribute) else None
    ends = [day.at for day in days]
    for number, attributes in past.items():
        times = [time for changes in attributes.values() for each in changes for time in (each.set_at, each.expires_at)]
        places = {bisect_left(ends, time) for time in times if time is not None}
        yield from ((number, days[place].date) for place in places if place < len(days))
        yield from ((number, day) for each in attributes.get(named or "", ()) if (day := day_of(each.value)))


# Facts


class FactsOfDays(Facts):
    """Snapshots as if they were customers: each has the rows of its customer up to its day, as of that day.

    Snapshots of one customer share its rows and its accounts' days. Only what running totals can't compute
    repeats the rows for each snapshot, and then only those within `reach`: otherwise a customer of 400,000 rows that is
    evaluated on every day of a year would be read 365 times.
    """

    shares_rows = True

    def __init__(self, plain: Facts, snapshots: pl.DataFrame, reach: int = ALL_DAYS) -> None:
        """
        Args:
            plain: facts of at least these snapshots' customers, as of the last snapshot's day or later.
            snapshots: `snapshot`, its customer and `date`; sorted by snapshot, customers in their order.
            reach: days before a snapshot's last row whose single rows are read (`sources.reach`).
        """
        super().__init__(plain.transactions, plain.as_of)
        self._snapshots = snapshots
        self._plain = plain
        self._reach = reach

    def as_of_days(self, days: pl.DataFrame) -> "FactsOfDays":
        """Return the facts of some snapshots as of earlier days.

        Args:
            days: the snapshot's number in the column BY_CUSTOMER, and `date`, which is not after the snapshot's day.
        """
        snapshots = self._snapshots.select("snapshot", BY_CUSTOMER)
        dated = snapshots.join(
            days.select("date", snapshot=BY_CUSTOMER), on="snapshot", validate="1:1", maintain_order="left"
        )
        return FactsOfDays(self._plain, dated, self._reach)

    @cached_property
    def customers(self) -> pl.DataFrame:
        return self._snapshots.select(pl.col("snapshot").alias(BY_CUSTOMER))

    @property
    def whole(self) -> Facts:
        return self._plain

    @property
    def shared_rows(self) -> pl.DataFrame:
        return self._plain.rows

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Rows as in Facts, once for each snapshot, but only what metrics read and only within reach."""
        return self._repeat_for_snapshots(self.shared_rows.select(COLUMNS), self._reach).with_columns(age=age())

    @cached_property
    def accounts(self) -> pl.DataFrame:
        stated = self._repeat_for_snapshots(self._plain.stated_details)
        return describe_accounts(stated.lazy()).sort(BY_ACCOUNT).collect(engine="in-memory")

    @cached_property
    def stated_closings(self) -> pl.DataFrame:
        """Closing balances by day, each from that day's rows alone."""
        return self._repeat_for_snapshots(self._plain.cached(closings_by_day)).sort(*BY_ACCOUNT, "date")

    def _repeat_for_snapshots(self, shared: pl.DataFrame, reach: int = ALL_DAYS) -> pl.DataFrame:
        """Repeat rows, sorted by customer and `date`, for each snapshot at which they are known."""
        known = self._snapshots.with_columns(*find_spans(shared, self._snapshots, reach))
        places = known.select("snapshot", row=pl.int_ranges("start", "end")).explode("row", empty_as_null=False)
        return shared[places["row"]].with_columns(places["snapshot"].set_sorted().alias(BY_CUSTOMER))

    @cached_property
    def history(self) -> pl.DataFrame:
        """As in Facts, with `as_of` (the snapshot's day) and `place` (the index of its customer in `shared_rows`)."""
        days, known = self.shared_rows["date"], self._spans.filter(pl.col("start") < pl.col("end"))
        return known.select(
            pl.col("snapshot").alias(BY_CUSTOMER),
            first_date=days.gather(known["start"]),
            data_through=days.gather(known["end"] - 1),
            as_of="date",
            place="place",
        )

    @property
    def days_behind(self) -> pl.Expr:
        return days_behind(pl.col("as_of"))

    @property
    def place(self) -> pl.Expr:
        return pl.col("place")

    @cached_property
    def _spans(self) -> pl.DataFrame:
        customers = self.shared_rows[BY_CUSTOMER].unique(maintain_order=True).set_sorted()
        place = customers.search_sorted(self._snapshots[BY_CUSTOMER], side="left").cast(pl.Int64).alias("place")
        return self._snapshots.with_columns(place, *find_spans(self.shared_rows, self._snapshots))


def split_snapshots(plain: Facts, snapshots: pl.DataFrame, reach: int, *, balances: bool) -> Iterable[pl.DataFrame]:
    """Divide snapshots into parts that fit into memory when each snapshot has its own rows.

    Args:
        reach: days whose single rows are read, as in `FactsOfDays`.
        balances: whether accounts' days are read.
    """
    shared = [(plain.rows, reach)] if reach else []
    shared += [(plain.cached(closings_by_day), ALL_DAYS)] if balances else []
    sizes = pl.Series([1], dtype=pl.Int64).new_from_index(0, snapshots.height)
    for rows, days in shared:
        start, end = find_spans(rows, snapshots, days)
        sizes += end - start
    parts = ((sizes.cum_sum() - 1) // SNAPSHOT_ROWS).alias("part")
    return snapshots.with_columns(parts).partition_by("part", maintain_order=True, include_key=False)


def closings_by_day(facts: Facts) -> pl.DataFrame:
    """Return `Facts.stated_closings`, sorted by customer and day."""
    return facts.stated_closings.sort(BY_CUSTOMER, "date")


def find_spans(rows: pl.DataFrame, snapshots: pl.DataFrame, reach: int = ALL_DAYS) -> tuple[pl.Series, pl.Series]:
    """Return for each snapshot the range of its customer's rows up to its day: `start`, and `end`, which is excluded.

    Only rows within `reach` days before the last one are included.
    """
    customer, day = pl.col(BY_CUSTOMER) * _A_CUSTOMER, pl.col("date").to_physical().cast(pl.Int64)
    ordered = rows.select(key=customer + day)["key"].set_sorted()
    bounds = snapshots.select(start=customer, end=customer + day + 1)
    start, end = (ordered.search_sorted(bounds[name], side="left").cast(pl.Int64) for name in ("start", "end"))
    if ordered.len():
        reached = ordered.search_sorted(ordered.gather((end - 1).clip(lower_bound=0)) - reach, side="left")
        start = pl.select(pl.max_horizontal(start, reached.cast(pl.Int64))).to_series()
    return start.alias("start"), end.alias("end")
