"""How much of a metric's value rests on rows of statements that don't reconcile: `figures.unreconciled`, for metrics.

A metric's filters and windows say which rows it reads. So the sizes of these rows are computed as metrics as well, all
in one pass: for each filter the size of all rows and of the unreconciled ones. Money counts by amount; metrics that
count rows, days or groups go by rows. Arithmetic uses all rows behind its operands, a share those of its part and its
whole. It is not known here which rows state a balance, so a balance counts all rows of its window.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Formula, Sum
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.compute import values
from pipelines.metrics.definition import (
    EVERY_ROW,
    Arithmetic,
    Balances,
    Groups,
    History,
    Metric,
    Metrics,
    Transactions,
    Where,
    Window,
)
from pipelines.metrics.lineage import explain as explained
from pipelines.metrics.registry import METRICS
from pipelines.metrics.rows import with_direction


def shares(facts: Facts, slugs: Sequence[str], among: Metrics = METRICS) -> pl.DataFrame:
    """Return `customer_number` and, for each metric, the share (0 to 1) of the rows behind it that are unreconciled.

    Null where no row is behind the value.
    """
    behind = _Behind(slugs, among)
    columns = (behind.share(slug).alias(slug) for slug in slugs)
    return values(facts, behind.metrics).select(BY_CUSTOMER, *columns)


def explain(facts: Facts, slug: str, among: Metrics = METRICS) -> Formula:
    """Explain a metric's share. `facts`: of the one customer."""
    behind = _Behind([slug], among)
    return unreconciled.share_formula(
        {
            unit: (_contributions(facts, behind, part), _contributions(facts, behind, everything))
            for unit, (part, everything) in behind.units(slug).items()
        }
    )


def _contributions(facts: Facts, behind: "_Behind", slugs: Sequence[str]) -> pl.DataFrame:
    traced = (explained(facts, slug, behind.metrics) for slug in slugs)
    return pl.concat(each.contributions for each in traced if isinstance(each, Sum))


@dataclass(frozen=True)
class _Behind:
    """Metrics that give the sizes of the rows behind other metrics."""

    slugs: Sequence[str]
    among: Metrics

    @cached_property
    def _sums(self) -> Mapping[str, Sequence[Transactions]]:
        return {slug: list(_sums(self.among[slug], self.among)) for slug in self.slugs}

    @cached_property
    def _slug_by_sum(self) -> Mapping[Transactions, str]:
        every = dict.fromkeys(each for sums in self._sums.values() for each in sums)
        return {each: f"behind_{nth}" for nth, each in enumerate(every)}

    @cached_property
    def metrics(self) -> Metrics:
        """Two metrics for each sum: its unreconciled rows, and all its rows."""
        both = (
            each
            for definition, slug in self._slug_by_sum.items()
            for each in (_metric(slug, definition), _metric(_unreconciled_slug(slug), _select_unreconciled(definition)))
        )
        return {each.slug: each for each in both}

    def units(self, slug: str) -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
        """Return by unit the slugs of the sums of unreconciled rows behind a metric, and of those of all rows."""
        by_unit: dict[str, list[str]] = {}
        for definition in self._sums[slug]:
            unit = "count" if definition.aggregate == "count" else "AUD"
            by_unit.setdefault(unit, []).append(self._slug_by_sum[definition])
        return {unit: ([_unreconciled_slug(each) for each in every], every) for unit, every in by_unit.items()}

    def share(self, slug: str) -> pl.Expr:
        shares = (
            unreconciled.share(pl.sum_horizontal(part), pl.sum_horizontal(everything))
            for part, everything in self.units(slug).values()
        )
        return pl.max_horizontal(pl.lit(None, unreconciled.SIZE), *shares)


def _unreconciled_slug(slug: str) -> str:
    return f"unreconciled_{slug}"


def _metric(slug: str, definition: Transactions) -> Metric:
    return Metric(
        slug=slug, name=slug, meaning=slug, unit="AUD", format="decimal", direction="neutral", definition=definition
    )


def _select_unreconciled(definition: Transactions) -> Transactions:
    where = definition.where.model_copy(update={"unreconciled": True})
    return definition.model_copy(update={"where": where})


def _sums(metric: Metric, among: Metrics) -> Iterator[Transactions]:
    """Yield, for each filter behind a metric, the size of its rows."""
    match metric.definition:
        case Arithmetic(inputs=inputs):
            for slug in inputs:
                yield from _sums(among[slug], among)
        case Transactions() as read:
            counts = read.measure == "rows" or read.aggregate in {"count", "distinct", "days_since"}
            for where in filter(None, (read.where, read.of)):
                yield _sum(with_direction(where, read.measure), read.window, counts=counts)
        case Groups(source=source, where=where, window=window):
            key = "facility" if source == "facilities" else "recurring"
            yield _sum(where.model_copy(update={key: True}), window, counts=True)
        case Balances(window=window):
            yield _sum(EVERY_ROW, window, counts=True)
        case History():
            return


def _sum(where: Where, window: Window, *, counts: bool) -> Transactions:
    aggregate, measure = ("count", "amount") if counts else ("sum", "size")
    return Transactions(source="transactions", where=where, window=window, measure=measure, aggregate=aggregate)
