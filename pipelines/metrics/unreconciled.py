"""How much of a reading rests on rows of statements that don't reconcile: `figures.unreconciled`, for metrics.

What a metric reads is said by its filters and windows. So what stands behind it is told by metrics as well, all in one
pass: of each filter the size of its rows, and that of those which are unreconciled. Money counts by amount; what counts
rows, days or groups goes by rows. Arithmetic rests on all that stands behind its operands, a share on its part and its
whole. Of balances it can't be told here which rows state them: they rest on all rows of the window, by rows.
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
from pipelines.metrics.rows import sided


def shares(facts: Facts, slugs: Sequence[str], among: Metrics = METRICS) -> pl.DataFrame:
    """Every customer of the facts: `customer_number`, and of each metric the share (0 to 1) of what stands behind its
    value; null where no row does.
    """
    behind = _Behind(slugs, among)
    each = (behind.share(slug).alias(slug) for slug in slugs)
    return values(facts, behind.metrics).select(BY_CUSTOMER, *each)


def explain(facts: Facts, slug: str, among: Metrics = METRICS) -> Formula:
    """Where a metric's share comes from. `facts`: of the one customer."""
    behind = _Behind([slug], among)
    return unreconciled.of_sums(
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
    """The metrics that tell the sizes behind other metrics."""

    slugs: Sequence[str]
    among: Metrics

    @cached_property
    def _sums(self) -> Mapping[str, Sequence[Transactions]]:
        return {slug: list(_sums(self.among[slug], self.among)) for slug in self.slugs}

    @cached_property
    def _named(self) -> Mapping[Transactions, str]:
        every = dict.fromkeys(each for sums in self._sums.values() for each in sums)
        return {each: f"behind_{nth}" for nth, each in enumerate(every)}

    @cached_property
    def metrics(self) -> Metrics:
        """Two for each sum: that of its unreconciled rows, and that of all."""
        both = (
            each
            for definition, slug in self._named.items()
            for each in (_metric(slug, definition), _metric(_unreconciled(slug), _of_unreconciled(definition)))
        )
        return {each.slug: each for each in both}

    def units(self, slug: str) -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
        """By unit, the slugs of the sums of unreconciled rows behind a metric, and of those of all rows."""
        of: dict[str, list[str]] = {}
        for each in self._sums[slug]:
            of.setdefault("count" if each.aggregate == "count" else "AUD", []).append(self._named[each])
        return {unit: ([_unreconciled(each) for each in every], every) for unit, every in of.items()}

    def share(self, slug: str) -> pl.Expr:
        each = (
            unreconciled.share(pl.sum_horizontal(part), pl.sum_horizontal(everything))
            for part, everything in self.units(slug).values()
        )
        return pl.max_horizontal(pl.lit(None, unreconciled.SIZE), *each)


def _unreconciled(slug: str) -> str:
    return f"unreconciled_{slug}"


def _metric(slug: str, definition: Transactions) -> Metric:
    return Metric(
        slug=slug, name=slug, meaning=slug, unit="AUD", format="decimal", direction="neutral", definition=definition
    )


def _of_unreconciled(definition: Transactions) -> Transactions:
    where = definition.where.model_copy(update={"unreconciled": True})
    return definition.model_copy(update={"where": where})


def _sums(metric: Metric, among: Metrics) -> Iterator[Transactions]:
    """Of each filter that stands behind a metric the size of its rows."""
    match metric.definition:
        case Arithmetic(inputs=inputs):
            for slug in inputs:
                yield from _sums(among[slug], among)
        case Transactions() as read:
            counts = read.measure == "rows" or read.aggregate in {"count", "distinct", "days_since"}
            for where in filter(None, (read.where, read.of)):
                yield _sum(sided(where, read.measure), read.window, counts=counts)
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
