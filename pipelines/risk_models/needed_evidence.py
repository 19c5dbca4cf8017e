"""Which evidence a reading needs: kind, side and accounts of rows, a period, and what else may not be missing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Literal

from pipelines.metrics.definition import (
    Arithmetic,
    Balances,
    Days,
    Definition,
    Groups,
    History,
    Metric,
    Metrics,
    Months,
    Transactions,
    Where,
    Window,
)
from pipelines.scorecards.expected import Expected

YEAR = 365  # days; also the period of readings that read all history
_MONTHS_IN_YEAR = 12
_COUNTED = ("count", "per month")
_COMPARING = ("monthly_slope", "monthly_volatility")
_BY_MEANING = ("counterparty", "lender", "category", "series", "facility")
Kind = Literal["balances", "rows", "history"]
Side = Literal["credit", "debit"] | None


@dataclass(frozen=True)
class NeededEvidence:
    """The evidence that a reading needs.

    Attributes:
        kind: days of proven `balances`, categorised `rows`, or any rows (`history`).
        side: which rows; None: both.
        account_types: the rows of which accounts; empty: all.
        since, until: how many days before the customer's last row the period begins and ends.
        by_meaning: the reading depends on what payments are for.
        beyond_revenue: it depends on more than which rows are revenue.
        counts_bad_rows: it counts rows of which a single one matters.
        trusts_texts: it would be better if debits that it reads had other texts.
        compares_periods: it compares parts of the period with each other, as a trend does.
    """

    kind: Kind
    side: Side = None
    account_types: frozenset[str] = frozenset()
    since: int = 0
    until: int = 0
    by_meaning: bool = False
    beyond_revenue: bool = False
    counts_bad_rows: bool = False
    trusts_texts: bool = False
    compares_periods: bool = False

    def is_expected(self, expected: Expected) -> bool:
        if self.kind == "balances":
            return expected.balances
        return expected.words or not self.beyond_revenue


LAST_YEAR = NeededEvidence("rows", since=YEAR)


def find_needed_evidence(metric: Metric, among: Metrics) -> NeededEvidence:
    """Return the evidence that a metric needs: all that its inputs need, or only the balances if any needs balances."""
    parts = list(_needs_of_inputs(metric, among))
    balances = [part for part in parts if part.kind == "balances"]
    need = reduce(_combine_needs, balances or parts)
    periods = {(part.since, part.until) for part in parts if part.kind == "rows"}
    reads_bad_rows = metric.direction == "lower_is_better" and need.beyond_revenue
    return replace(
        need,
        counts_bad_rows=reads_bad_rows and metric.unit in _COUNTED,
        trusts_texts=reads_bad_rows and need.side != "credit",
        compares_periods=need.compares_periods or (need.kind == "rows" and len(periods) > 1),
    )


def _needs_of_inputs(metric: Metric, among: Metrics) -> Iterator[NeededEvidence]:
    match metric.definition:
        case Arithmetic(inputs=inputs):
            for slug in inputs:
                yield from _needs_of_inputs(among[slug], among)
            if not inputs:
                yield NeededEvidence("history")
        case History():
            yield NeededEvidence("history")
        case Balances(window=window):
            yield NeededEvidence("balances", None, frozenset(), *_ages(window))
        case definition:
            yield _need_of_rows(definition)


@lru_cache(maxsize=1_000)
def _need_of_rows(definition: Transactions | Groups) -> NeededEvidence:
    """Return the evidence needed by a metric of rows, including the rows that it divides by."""
    wheres = [definition.where]
    grouping: Any = "facility" if isinstance(definition, Groups) else definition.by
    if isinstance(definition, Transactions):
        wheres += [definition.of] if definition.of else []
    by_meaning = grouping in _BY_MEANING or any(_filters_by_meaning(each) for each in wheres)
    needs_words = by_meaning or any(each.external is not None for each in wheres)
    return NeededEvidence(
        "rows" if needs_words else "history",
        _common_side({_side(definition, each) for each in wheres}),
        frozenset(kind for each in wheres for kind in each.account_types),
        *_ages(definition.window),
        by_meaning,
        by_meaning and (grouping in _BY_MEANING or not all(_names_revenue(each) for each in wheres)),
        compares_periods=definition.aggregate in _COMPARING,
    )


def _side(definition: Definition, where: Where) -> Side:
    measure = getattr(definition, "measure", "amount")
    side = {"money_in": "credit", "money_out": "debit"}.get(measure, where.direction)
    return side if side in ("credit", "debit") else None


def _common_side(sides: set[Side]) -> Side:
    return next(iter(sides)) if len(sides) == 1 else None


def _ages(window: Window) -> tuple[int, int]:
    match window:
        case Days(days=days, offset=offset):
            return offset + days, offset
        case Months(months=months, offset=offset):
            return (offset + months) * YEAR // _MONTHS_IN_YEAR, offset * YEAR // _MONTHS_IN_YEAR
        case None:
            return YEAR, 0


def _combine_needs(one: NeededEvidence, other: NeededEvidence) -> NeededEvidence:
    if "history" in (one.kind, other.kind) and one.kind != other.kind:
        return other if one.kind == "history" else one
    kinds = one.account_types | other.account_types
    return replace(
        one,
        side=_common_side({one.side, other.side}),
        account_types=kinds if one.account_types and other.account_types else frozenset(),
        since=max(one.since, other.since),
        until=min(one.until, other.until),
        by_meaning=one.by_meaning or other.by_meaning,
        beyond_revenue=one.beyond_revenue or other.beyond_revenue,
        compares_periods=one.compares_periods or other.compares_periods,
    )


def _filters_by_meaning(where: Where) -> bool:
    """Return whether the filter depends on what a row is for, not only on its day, amount, account and balance."""
    plain = ("direction", "external", "account_types", "unreconciled", "at_least", "at_most")
    return where.model_copy(update=dict.fromkeys(plain)) != Where().model_copy(update=dict.fromkeys(plain))


def _names_revenue(where: Where) -> bool:
    return where.groups == ("revenue",) or not _filters_by_meaning(where)
