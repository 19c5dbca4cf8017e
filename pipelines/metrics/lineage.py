"""Trace a metric's value back to the transactions behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import partial, reduce
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, contributions, no_figure
from pipelines.metrics.balances import days_seen
from pipelines.metrics.compute import cause_of, values
from pipelines.metrics.definition import (
    DECIMAL,
    MONTHLY,
    Arithmetic,
    Balances,
    Groups,
    History,
    Metrics,
    Months,
    Transactions,
    Where,
    Window,
    window_in_words,
)
from pipelines.metrics.outcome import CAUSES, SCALE
from pipelines.metrics.registry import METRICS, select_with_inputs
from pipelines.metrics.rows import KEYS, is_met, read_rows, row_value, with_direction
from pipelines.metrics.windows import Edge, dates, edges, list_edges, month_edges, periods

Inputs: TypeAlias = Mapping[str, Trace | Constant]
Values: TypeAlias = Mapping[str, Constant]

_UNIT = Decimal(1).scaleb(-SCALE)
_DIGITS = 80  # enough for the product of any two values


def explain(facts: Facts, slug: str, metrics: Metrics = METRICS) -> Trace:
    """Explain where the metric's value comes from. An unavailable metric is a formula without inputs that says why.

    Args:
        facts: of the one customer.

    Raises:
        NotFound: there is no such metric, or no such customer.
    """
    if slug not in metrics or facts.customers.is_empty():
        raise no_figure([slug])
    needed = select_with_inputs([slug], metrics)
    [outcomes] = values(facts, needed).to_dicts()
    return _Explaining(facts, needed, outcomes).explain_metric(slug)


class _Explaining:
    """Traces metrics of one customer. `outcomes`: the customer's row of `compute.values`."""

    def __init__(self, facts: Facts, metrics: Metrics, outcomes: Mapping[str, Any]) -> None:
        self.facts = facts
        self.metrics = metrics
        self.outcomes = outcomes
        self.periods = periods(facts)

    def explain_metric(self, slug: str) -> Trace:
        return replace(self._explain_value(slug), format=self.metrics[slug].format)

    def _explain_value(self, slug: str) -> Trace:  # noqa: PLR0911  one return per case
        if cause := self.outcomes[cause_of(slug)]:
            return Formula(f"unavailable: {CAUSES[cause]}", {}, lambda _: None)
        match self.metrics[slug].definition:
            case Transactions(aggregate=aggregate) as definition if aggregate in MONTHLY:
                return self.explain_months(definition)
            case Transactions() as definition:
                return self.explain_transactions(definition)
            case Balances() as definition:
                return self.explain_balances(definition)
            case Groups() as definition:
                return self.explain_groups(definition)
            case History(figure=figure):
                return self.explain_history(figure)
            case definition:
                return self.explain_arithmetic(definition)

    def explain_arithmetic(self, definition: Arithmetic) -> Formula:
        inputs: dict[str, Trace | Constant] = {
            operand: Decimal(operand) if DECIMAL.fullmatch(operand) else self.explain_metric(operand)
            for operand in definition.operands
        }
        words = f" {_SIGNS[definition.operation]} ".join(definition.operands)
        return Formula(words, inputs, partial(_calculate, definition))

    # Rows

    def select_rows(self, where: Where, since: Edge, until: Edge) -> pl.LazyFrame:
        day = pl.col("date")
        rows = read_rows(self.facts, [where]).lazy()
        return rows.filter(is_met(where), day >= self.find_date(since), day < self.find_date(until))

    def find_date(self, edge: Edge) -> date:
        day: date = dates(list_edges([edge]), self.periods)["date"].item()
        return day

    def rows_in_window(self, definition: Transactions | Groups) -> pl.LazyFrame:
        measure = definition.measure if isinstance(definition, Transactions) else "amount"
        return self.select_rows(with_direction(definition.where, measure), *edges(definition.window))

    def explain_transactions(self, definition: Transactions) -> Trace:  # noqa: PLR0911  one return per case
        rows, value = self.rows_in_window(definition), row_value(definition.measure)
        total, every_row = Sum(contributions(rows, value)), Sum(contributions(rows, pl.lit(1)))
        match definition.aggregate:
            case "sum":
                return total
            case "count":
                return every_row
            case "mean":
                return _quotient("sum / count", {"sum": total, "count": every_row})
            case "share":
                assert definition.of is not None
                return _quotient("part / whole", {"part": total, "whole": self.sum_whole(definition, definition.of)})
            case "largest_share":
                assert definition.by is not None
                whole = self.sum_whole(definition, definition.of or definition.where)
                keyed = (
                    rows.with_columns(key=KEYS[definition.by], value=value)
                    .drop_nulls("key")
                    .collect(engine="in-memory")
                )
                sums = keyed.group_by("key", maintain_order=True).agg(pl.col("value").sum())
                key = sums.sort("value", descending=True, maintain_order=True)["key"].head(1)
                largest = Sum(contributions(keyed.lazy().filter(pl.col("key").is_in(key.implode())), pl.col("value")))
                return _quotient("largest / whole", {"largest": largest, "whole": whole})
            case "distinct":
                assert definition.by is not None
                return _count_keys(rows.with_columns(key=KEYS[definition.by]))
            case "days_since":
                last = rows.tail(1).collect(engine="in-memory")
                until = self.find_date(edges(definition.window)[1]).toordinal() - 1
                inputs = {
                    "until": date.fromordinal(until),
                    "date": last["date"][0],
                    "rows": Sum(contributions(last.lazy(), pl.lit(1))),
                }
                return Formula("days from the `date` of the last such row to `until`", inputs, _days_between)
            case "min":
                return Sum(contributions(rows.sort(value).head(1), value))
            case "max":
                return Sum(contributions(rows.sort(value).tail(1), value))
            case _:
                ordered = rows.sort(value).collect(engine="in-memory")
                lower, upper = (ordered.height - 1) // 2, ordered.height // 2
                middles = {"lower": lower, "upper": upper}
                inputs = {name: Sum(contributions(ordered[at].lazy(), value)) for name, at in middles.items()}
                return Formula("mean of the two in the middle", inputs, lambda values: _round(_total(values) / 2))

    def sum_whole(self, definition: Transactions, whole: Where) -> Sum:
        rows = self.select_rows(with_direction(whole, definition.measure), *edges(definition.window))
        return Sum(contributions(rows, row_value(definition.measure)))

    def explain_months(self, definition: Transactions) -> Formula:
        """Return a formula with an input for each complete month, the oldest first, named like `2026-03`."""
        assert isinstance(definition.window, Months)
        where, at = with_direction(definition.where, definition.measure), month_edges(definition.window)
        inputs: dict[str, Trace | Constant] = {}
        for newer, older in reversed(list(pairwise(at))):
            if self.find_date(older) < self.find_date(newer):
                rows = self.select_rows(where, older, newer)
                inputs[f"{self.find_date(older):%Y-%m}"] = Sum(contributions(rows, row_value(definition.measure)))
        words = f"{definition.aggregate.replace('_', ' ')} of {window_in_words(definition.window)}"
        return Formula(words, inputs, partial(_apply_monthly, definition))

    def explain_groups(self, definition: Groups) -> Sum:
        key = KEYS["facility" if definition.source == "facilities" else "series"]
        rows = self.rows_in_window(definition).with_columns(key=key).drop_nulls("key")
        if definition.aggregate == "count":
            return _count_keys(rows)
        spans = rows.with_columns(start=pl.col("date").min().over("key"), end=pl.col("date").max().over("key")).collect(
            engine="in-memory"
        )
        days = spans.select(pl.col("start").unique().sort())["start"]
        at_once = [spans.filter(pl.col("start") <= day, pl.col("end") >= day) for day in days]
        most = max(at_once, key=lambda running: running["key"].n_unique(), default=spans)
        return _count_keys(most.lazy())

    def explain_history(self, figure: str) -> Formula:
        [figures] = self.periods.to_dicts()
        first, last = figures["first_date"], figures["data_through"]
        match figure:
            case "days":
                words = "days from the first to the last row, both counted"
                return Formula(
                    words, {"first": first, "last": last}, lambda values: _days(values["first"], values["last"]) + 1
                )
            case "days_behind":
                words = "days from the last row to the day of computing"
                inputs = {"last": last, "asOf": self.facts.as_of}
                return Formula(words, inputs, lambda values: max(_days(values["last"], values["asOf"]), 0))
            case _:
                words = "calendar months from `start` to before `end`: those that the history covers"
                inputs = {"start": figures["months_start"], "end": figures["months_end"]}
                return Formula(words, inputs, lambda values: max(_months(values["start"], values["end"]), 0))

    # Balances

    def explain_balances(self, definition: Balances) -> Trace:  # noqa: PLR0911  one return per case
        days = self.days_in_window(definition.window)
        balance, totals = pl.col("closing_balance"), days.group_by("date").agg(pl.col("closing_balance").sum())
        beyond = self.count_days(days.filter(balance < -pl.col("credit_limit").fill_null(0)))
        match definition.aggregate:
            case "mean":
                inputs: Inputs = {"balances": _by_row(days, balance), "days": totals.height}
                return _quotient("the balances of all days / days", inputs)
            case "min" | "max":
                ordered = totals.sort("closing_balance", "date", descending=definition.aggregate == "max")
                return _by_row(days.filter(pl.col("date") == ordered["date"][0]), balance)
            case "last":
                return _by_row(days.filter(pl.col("date") == days["date"].max()), balance)
            case "days_below":
                below = totals.filter(pl.col("closing_balance") < pl.lit(definition.threshold, pl.Decimal(38, SCALE)))
                return self.count_days(days.filter(pl.col("date").is_in(below["date"].implode())))
            case "days_beyond_limit":
                return beyond
            case "share_short" | "longest_short" | "days_since_short":
                return self.explain_short_days(definition, days, totals)
            case "share_beyond_limit":
                return _quotient("days / days known", {"days": beyond, "known": totals.height})
            case _:
                return _slope_of_balances(days, totals)

    def explain_short_days(self, definition: Balances, days: pl.DataFrame, totals: pl.DataFrame) -> Trace:
        assert definition.usual is not None
        assert definition.threshold is not None
        seen = self.periods.select(days_seen(definition.window)).item()
        rows = self.select_rows(with_direction(Where(external=True), definition.usual), *edges(definition.window))
        moved = Sum(contributions(rows, row_value(definition.usual)))
        enough = pl.lit(definition.threshold * moved.value, pl.Decimal(38, SCALE))
        short = totals.filter(pl.col("closing_balance") * seen < enough)
        last = self.find_date(edges(definition.window)[1]).toordinal() - 1
        match definition.aggregate:
            case "longest_short":
                nth = pl.col("date").rank("ordinal")
                spell = (pl.col("date").dt.epoch("d") - nth).alias("spell")
                spells = short.sort("date").group_by(spell, maintain_order=True).agg("date")["date"]
                nth_longest = [(days.len(), nth) for nth, days in enumerate(spells)]
                counted_days = spells[max(nth_longest)[1]] if len(spells) else short["date"]
            case "days_since_short" if not short.is_empty():
                inputs: Inputs = {"date": short["date"].sort()[-1], "until": date.fromordinal(last)}
                return Formula("days from `date`, the last short day, to `until`", inputs, _days_between)
            case "days_since_short":
                counted_days = totals["date"]
            case _:
                counted_days = short["date"]
        counted = self.count_days(days.filter(pl.col("date").is_in(counted_days.implode())))
        if definition.aggregate != "share_short":
            return counted
        return _quotient("days / days known", {"days": counted, "known": totals.height})

    def days_in_window(self, window: Window) -> pl.DataFrame:
        """Return one row per account and day of the window, from the account's first row on.

        `account_id, date`, and `transaction_id, closing_balance, credit_limit` of the row that states the day's
        balance.
        """
        since, until = (self.find_date(edge) for edge in edges(window))
        end = pl.col("date") + pl.duration(days=pl.col("days_held"))
        return (
            self.facts.derived_closings.with_columns(date=pl.date_ranges("date", end, closed="left"))
            .explode("date")
            .filter(pl.col("date") >= since, pl.col("date") < until)
        )

    def count_days(self, days: pl.DataFrame) -> Sum:
        """Count each day once, by the row of one account."""
        return _by_row(days.sort("date", "account_id").unique("date", keep="first", maintain_order=True), pl.lit(1))


def _by_row(days: pl.DataFrame, part: pl.Expr) -> Sum:
    """Sum `part` over the days, as contributions of the rows that state the days' balances."""
    parts = days.sort("date", "account_id").with_columns(part=part.cast(pl.Decimal(38, 2)))
    by_row = parts.group_by("transaction_id", maintain_order=True).agg(pl.col("part").sum())
    return Sum(contributions(by_row.lazy(), pl.col("part")))


def _count_keys(rows: pl.LazyFrame) -> Sum:
    """Count each value of `key` once, by its first row."""
    first_rows = rows.drop_nulls("key").unique("key", keep="first", maintain_order=True)
    return Sum(contributions(first_rows, pl.lit(1)))


def _slope_of_balances(known: pl.DataFrame, totals: pl.DataFrame) -> Formula:
    """Return the slope of daily balances as a formula, with days numbered 0, 1, 2 … from the first known one."""
    start = known["date"].min()
    nth = (pl.col("date") - start).dt.total_days()
    numbers = totals.select(nth)["date"].to_list()
    inputs: Inputs = {
        "balances": _by_row(known, pl.col("closing_balance")),
        "balancesTimesDay": _by_row(known, pl.col("closing_balance") * nth),
        "days": len(numbers),
        "sumOfDays": sum(numbers),
        "sumOfSquares": sum(number * number for number in numbers),
    }
    words = "30 × (days × balancesTimesDay − sumOfDays × balances) / (days × sumOfSquares − sumOfDays²)"
    return Formula(words, inputs, _apply_slope)


def _apply_slope(values: Values) -> Decimal:
    n, x, xx, y, xy = (
        _decimal(values[name]) for name in ("days", "sumOfDays", "sumOfSquares", "balances", "balancesTimesDay")
    )
    with localcontext(prec=_DIGITS):
        return _round(30 * (n * xy - x * y) / (n * xx - x * x))


def _quotient(words: str, inputs: Inputs) -> Formula:
    """Divide the first input by the second."""
    return Formula(words, inputs, lambda values: _divide(*map(_decimal, values.values())))


def _divide(left: Decimal, right: Decimal) -> Decimal:
    with localcontext(prec=_DIGITS):
        return _round(left / right)


def _round(value: Decimal) -> Decimal:
    with localcontext(prec=_DIGITS):
        return value.quantize(_UNIT, ROUND_HALF_EVEN)


def _decimal(value: Constant) -> Decimal:
    assert isinstance(value, Decimal | int)
    return Decimal(value)


def _total(values: Values) -> Decimal:
    return sum(map(_decimal, values.values()), Decimal(0))


def _days(first: Constant, last: Constant) -> int:
    assert isinstance(first, date)
    assert isinstance(last, date)
    return (last - first).days


def _months(start: Constant, end: Constant) -> int:
    assert isinstance(start, date)
    assert isinstance(end, date)
    return (end.year - start.year) * 12 + end.month - start.month


def _days_between(values: Values) -> int:
    return _days(values["date"], values["until"])


def _apply_monthly(definition: Transactions, months: Values) -> Decimal:
    """Apply a monthly aggregate. The inputs are months, the oldest first."""
    sums = [_decimal(value) for value in months.values()]
    with localcontext(prec=_DIGITS):
        return _round(_MONTHLY[definition.aggregate](sums, definition))


def _mean(sums: Sequence[Decimal]) -> Decimal:
    return sum(sums, Decimal(0)) / len(sums)


def _slope(sums: Sequence[Decimal]) -> Decimal:
    middle, mean = Decimal(len(sums) - 1) / 2, _mean(sums)
    numerator = sum(((nth - middle) * (each - mean) for nth, each in enumerate(sums)), Decimal(0))
    return numerator / sum((nth - middle) ** 2 for nth in range(len(sums)))


def _volatility(sums: Sequence[Decimal]) -> Decimal:
    mean = _mean(sums)
    variance = sum(((each - mean) ** 2 for each in sums), Decimal(0)) / (len(sums) - 1)
    return variance.sqrt() / mean


def _share_below(sums: Sequence[Decimal], definition: Transactions) -> Decimal:
    assert definition.below is not None
    bound = definition.below * median(sums)
    return Decimal(sum(each < bound for each in sums)) / len(sums)


_MONTHLY: Mapping[str, Callable[[Sequence[Decimal], Transactions], Decimal]] = {
    "monthly_mean": lambda sums, _: _mean(sums),
    "monthly_median": lambda sums, _: median(sums),
    "monthly_min": lambda sums, _: min(sums),
    "monthly_slope": lambda sums, _: _slope(sums),
    "monthly_volatility": lambda sums, _: _volatility(sums),
    "monthly_share_below": _share_below,
}


def _calculate(definition: Arithmetic, values: Values) -> Decimal:
    """Apply an operation to plain decimals, like `arithmetic.calculate`."""
    operands = [_decimal(values[operand]) for operand in definition.operands]
    with localcontext(prec=_DIGITS):
        return reduce(_OPERATIONS[definition.operation], operands)


_OPERATIONS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: _round(left * right),
    "divide": _divide,
    "ratio": _divide,
    "min": min,
    "max": max,
}
_SIGNS: Mapping[str, str] = {
    "add": "+",
    "subtract": "−",
    "multiply": "×",
    "divide": "/",
    "ratio": "/",
    "min": "or, if lower,",
    "max": "or, if higher,",
}
