"""Lineage of the risk report: explain every figure by bands and readings, and these through metrics by transactions."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from functools import cached_property
from typing import Any

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.context import ClientPortfolio
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula, Trace, find_input, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import without_findings
from pipelines.metrics import METRICS, select_with_inputs, values
from pipelines.metrics import unreconciled as behind_metrics
from pipelines.metrics.lineage import explain
from pipelines.reports.risk.confidence import LIMITS, PARTS, Part, limit
from pipelines.reports.risk.events import explain_event
from pipelines.reports.risk.integrity import explain as explain_integrity
from pipelines.reports.risk.rating import EVIDENCE as BY_EVIDENCE
from pipelines.reports.risk.rating import lowest_value, unknown_points
from pipelines.reports.risk.unreconciled import explain_value
from pipelines.risk_models.coverage import explain_coverage, explain_documented
from pipelines.risk_models.evidence import EVIDENCE, evidence
from pipelines.risk_models.needed_evidence import find_needed_evidence
from pipelines.risk_models.readings import facts_for_readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Feature
from pipelines.vocabulary.report_values import RATIO

Data = Mapping[str, Any]


def explain_risk(facts: Facts, data: Data, path: tuple[str, ...]) -> Trace:
    """Explain a figure of the report; the inputs of a formula are below it in the path.

    Args:
        facts: of the one customer, in the context that the report was computed in.
        data: the report's data.
        path: segments of a JSON Pointer.

    Raises:
        NotFound: there is no such figure.
    """
    return _Explaining(facts, data).explain_figure(path)


class _Explaining:
    """Explains figures of one customer's report."""

    def __init__(self, facts: Facts, data: Data) -> None:
        self.all_facts, self.data = facts, data
        self.portfolio = _portfolio(facts)
        self.scorecard, self.expected = self.portfolio.scorecard or DEFAULT, self.portfolio.expected
        self.readings: dict[str, Decimal | None] = {each["metric"]: each["reading"] for each in data["drivers"]}
        self.coverage: dict[str, Decimal | None] = {each["metric"]: each["coverage"] for each in data["drivers"]}

    @cached_property
    def facts(self) -> Facts:
        """The facts that the rating reads. To find the open findings takes most of the time, and many figures need no
        facts.
        """
        return without_findings(self.all_facts) or self.all_facts

    def explain_figure(self, path: tuple[str, ...]) -> Trace:  # noqa: PLR0911  one return per case
        match path:
            case ("value", *rest) | ("interval", "high", *rest):
                return find_input(
                    self._explain_lifted_value(rest)
                    if self._is_lifted()
                    else self._explain_value_before_ceilings(rest),
                    rest,
                )
            case ("valueBeforeCeilings", *rest):
                return find_input(self._explain_value_before_ceilings(rest), rest)
            case ("covered", *rest):
                return find_input(self._explain_covered(rest), rest)
            case ("interval", "low", *rest):
                return find_input(self._explain_lowest_value(rest), rest)
            case ("pdConfidenceScore", *rest):
                return find_input(self._explain_confidence(), rest)
            case ("drivers", place, name, *rest):
                return find_input(self._explain_driver(self._find_item("drivers", place), name), rest)
            case ("sensitivity", place, *names) if names:
                return self._explain_change(self._find_item("sensitivity", place), names)
            case ("events", place, *inside):
                return explain_event(self.all_facts, self._find_item("events", place), tuple(inside))
            case ("integrity", *inside):
                return explain_integrity(self.all_facts, self.data["integrity"], inside)
            case ("unreconciled", *inside):
                return unreconciled.explain_section(
                    self.all_facts, self.data["unreconciled"], inside, self._explain_share
                )
        raise no_figure(path)

    def _explain_share(self, figure: tuple[str, ...]) -> Trace:
        if figure == ("value",):
            read = (feature for feature in self.scorecard.features if self.readings[feature.metric] is not None)
            return explain_value({feature: behind_metrics.explain(self.facts, feature.metric) for feature in read})
        return behind_metrics.explain(self.facts, self._find_item("drivers", figure[1])["metric"])

    def _find_item(self, name: str, place: str) -> Data:
        listed = self.data[name]
        if not place.isascii() or not place.isdigit() or int(place) >= len(listed):
            raise no_figure([name, place])
        item: Data = listed[int(place)]
        return item

    def _is_lifted(self) -> bool:
        return bool(self.data["value"] != self.data["valueBeforeCeilings"])

    def _explain_lifted_value(self, further: Sequence[str]) -> Formula:
        """Explain a value that a ceiling raised to the lowest value of its rating."""
        inputs = {
            "valueBeforeCeilings": self._explain_value_before_ceilings(further[1:]),
            "lowestValue": self.data["value"],
        }
        words = f"the lowest value of rating {self.data['rating']}, limited by {', '.join(self.data['limitedBy'])}"
        return Formula(words, inputs, lambda given: max(_decimal(each) for each in given.values()))

    def _explain_value_before_ceilings(self, further: Sequence[str]) -> Formula:
        return self._probability("the estimated probability of the points", {}, self._value, further)

    def _probability(
        self, words: str, extra: Mapping[str, Trace | Constant], apply: Any, further: Sequence[str]
    ) -> Formula:
        """Return a formula over all drivers' points. To save time, only the driver first in `further` is traced."""
        link = self.scorecard.link
        points = {
            feature.metric: self._explain_points(feature, followed=feature.metric in further[:1])
            for feature in self.scorecard.features
            if self.coverage[feature.metric] is not None
        }
        constants = {"evenPoints": link.even, "doublingPoints": link.doubling, **self._scale()}
        described = (
            f"{words}: odds 2 ^ ((evenPoints − points) / doublingPoints), points being mostPoints × the sum of all "
            "drivers' points / expectedPoints"
        )
        return Formula(described, {**points, **extra, **constants}, apply)

    def _scale(self) -> dict[str, Decimal]:
        expected = (each.max_points for each in self.scorecard.features if self.coverage[each.metric] is not None)
        return {"mostPoints": self.scorecard.max_points, "expectedPoints": sum(expected, Decimal(0))}

    def _total(self, given: Mapping[str, Constant]) -> Decimal:
        earned = (_decimal(given[each.metric]) for each in self.scorecard.features if each.metric in given)
        return self.scorecard.scale_earned(sum(earned, Decimal(0)), _decimal(given["expectedPoints"]))

    def _value(self, given: Mapping[str, Constant]) -> Decimal:
        return self.scorecard.link.value(self._total(given))

    def _explain_covered(self, further: Sequence[str]) -> Formula:
        """Explain the share of the expected points that is covered; only the driver first in `further` is traced."""
        expected = {
            each.metric: each.max_points for each in self.scorecard.features if self.coverage[each.metric] is not None
        }
        traced = {
            f"coverage of {slug}": self._explain_coverage(slug)
            if f"coverage of {slug}" in further[:1]
            else self.coverage[slug]
            for slug in expected
        }

        def apply(given: Mapping[str, Constant]) -> Decimal:
            covered = sum(
                (most * _decimal(given[f"coverage of {slug}"]) for slug, most in expected.items()), Decimal(0)
            )
            whole = sum(expected.values(), Decimal(0))
            return (covered / whole).quantize(Decimal("0.0001"), ROUND_DOWN) if whole else Decimal(0)

        words = "the sum of each driver's maximum points times its coverage / the sum of all drivers' maximum points"
        return Formula(words, traced, apply)

    def _explain_coverage(self, slug: str) -> Formula:
        return explain_coverage(self.facts, find_needed_evidence(METRICS[slug], METRICS), self.expected)

    def _explain_lowest_value(self, further: Sequence[str]) -> Formula:
        value, lasting = self.data["value"], self._lowest_by_events()

        def apply(given: Mapping[str, Constant]) -> Decimal:
            unknown = unknown_points(_decimal(given["covered"]), self.scorecard)
            return min(max(self.scorecard.link.value(self._total(given) + unknown), lasting), value)

        words = "the value if all that is not covered earned its maximum points, mostPoints × (1 − covered)"
        return self._probability(words, {"covered": self._explain_covered(further[1:])}, apply, further)

    def _lowest_by_events(self) -> Decimal:
        """Return the lowest value that the ceiling by events allows, which holds even with all evidence."""
        by_event = self.scorecard.calibration != "client" and any(
            each != BY_EVIDENCE for each in self.data["limitedBy"]
        )
        return lowest_value(self.data["rating"]) if by_event else Decimal(0)

    def _explain_points(self, feature: Feature, *, followed: bool = True) -> Formula:
        slug = feature.metric
        if self.coverage[slug] is None:
            return _constant("no points: its evidence is not expected", Decimal(0))
        inputs: dict[str, Trace | Constant] = {
            "reading": self._explain_reading(slug) if followed else self.readings[slug],
            "coverage": self._explain_coverage(slug) if followed else self.coverage[slug],
        }
        return Formula(
            _banded_words(feature),
            inputs,
            lambda given: feature.points_of(_optional(given["reading"]), _decimal(given["coverage"])),
            format="decimal",  # not that of the metric whose name they have among the value's inputs
        )

    def _explain_reading(self, slug: str) -> Trace | None:
        return None if self.readings[slug] is None else explain(self._facts_for_readings, slug)

    @cached_property
    def _facts_for_readings(self) -> Facts:
        return facts_for_readings(self.facts, self.expected)

    def _explain_driver(self, driver: Data, name: str) -> Trace:
        feature = self._feature(driver["metric"])
        match name:
            case "points":
                return self._explain_points(feature)
            case "maxPoints":
                return _constant("the points of the best band", driver["maxPoints"])
            case "coverage" if driver["coverage"] is not None:
                return self._explain_coverage(feature.metric)
            case "reading" if driver["reading"] is not None:
                return explain(self._facts_for_readings, feature.metric)
            case "peerPercentile" if driver["peerPercentile"] is not None:
                return self._explain_percentile(driver)
        raise no_figure(["drivers", feature.metric, name])

    def _explain_percentile(self, driver: Data) -> Formula:
        """Explain a peer percentile.

        Raises:
            NotFound: the peers are no longer known.
        """
        quantiles = self._quantiles(driver["metric"])
        reached = int(driver["peerPercentile"])
        around = {f"percentile{place}": quantiles[place] for place in (reached, reached + 1) if place < len(quantiles)}
        return Formula(
            "the highest percentile of the client's own customers whose reading this one reaches",
            {"reading": self._explain_reading(driver["metric"]), **around},
            lambda given: max(
                (
                    int(name.removeprefix("percentile"))
                    for name in around
                    if _decimal(given[name]) <= _decimal(given["reading"])
                ),
                default=None,
            ),
        )

    def _quantiles(self, slug: str) -> Sequence[Decimal]:
        number = self.facts.customers[BY_CUSTOMER].item()
        for portfolio in self.facts.context.portfolios:
            if number in portfolio.customers and portfolio.peers is not None:
                for metric, quantiles in portfolio.peers.iter_rows():
                    if metric == slug:
                        return list(quantiles)
        raise no_figure(["drivers", slug, "peerPercentile"])

    def _explain_confidence(self) -> Formula:
        row = evidence(self.facts).row(0, named=True)
        if row["data_through"] is None:
            return Formula("0 without transactions", {"transactions": 0}, lambda _: Decimal(0))
        parts = {part.name: self._explain_part(part, row) for part in PARTS}
        limits = {f"limit by {name}": self._explain_limit_by(name, row) for name in LIMITS}

        def apply(given: Mapping[str, Constant]) -> Decimal:
            points = sum((_decimal(given[name]) for name in parts), Decimal(0))
            return min(points, *(_decimal(given[name]) for name in limits))

        return Formula("the sum of the parts' points, but no more than any limit", {**parts, **limits}, apply)

    def _explain_limit_by(self, name: str, row: Data) -> Formula:
        def apply(given: Mapping[str, Constant]) -> Constant:
            found: Constant = pl.select(limit(pl.lit(given[name], RATIO))).item()
            return found

        return Formula("100 × the share", {name: self._explain_evidence(name, row)}, apply)

    def _explain_part(self, part: Part, row: Data) -> Formula:
        return Formula(part.words, {name: self._explain_evidence(name, row) for name in part.inputs}, part.recompute)

    def _explain_evidence(self, name: str, row: Data) -> Trace | Constant:
        match name:
            case "proven" | "reconciled":
                return EVIDENCE.explain(self.facts, row, (name,)) if row[name] is not None else None
            case "covered":
                return self._explain_covered(())
            case "documented":
                return explain_documented(self.facts, self.expected)
            case "days_behind":
                return max(0, (self.facts.as_of - row["data_through"]).days)
        value = values(self._facts_for_readings, select_with_inputs([name], METRICS))[name].item()
        return None if value is None else explain(self._facts_for_readings, name)

    def _explain_change(self, change: Data, names: list[str]) -> Trace:
        match names:
            case ("from", *rest) if change["from"] is not None:
                return find_input(explain(self._facts_for_readings, change["metric"]), rest)
            case ("to", *rest):
                return find_input(self._explain_limit(change), rest)
            case ("also", "from", *rest) if change["also"] and change["also"]["from"] is not None:
                return find_input(explain(self._facts_for_readings, change["also"]["metric"]), rest)
            case ("also", "to", *rest) if change["also"]:
                return find_input(self._explain_limit(change["also"]), rest)
            case ("pointsGained", *rest):
                return find_input(self._explain_gain(change), rest)
        raise no_figure(["sensitivity", *names])

    def _explain_limit(self, change: Data) -> Formula:
        return _constant("a round reading that earns enough", change["to"])

    def _explain_gain(self, change: Data) -> Formula:
        changes = [change, *([change["also"]] if change["also"] else [])]
        features = {f"points of {each['metric']}": self._feature(each["metric"]) for each in changes}
        now = {name: self._explain_points(feature) for name, feature in features.items()}
        then = {f"{each['metric']} at": each["to"] for each in changes}

        def apply(given: Mapping[str, Constant]) -> Decimal:
            gains = (
                feature.points_of(_decimal(given[f"{feature.metric} at"]), self.coverage[feature.metric] or Decimal(0))
                - _decimal(given[name])
                for name, feature in features.items()
            )
            return sum(gains, Decimal(0))

        return Formula("points at the new readings, less the points now", {**now, **then}, apply)

    def _feature(self, slug: str) -> Feature:
        return next(feature for feature in self.scorecard.features if feature.metric == slug)


def _portfolio(facts: Facts) -> ClientPortfolio:
    number = facts.customers[BY_CUSTOMER].item()
    portfolios = (portfolio for portfolio in facts.context.portfolios if number in portfolio.customers)
    return next(portfolios, ClientPortfolio(frozenset({number})))


def _banded_words(feature: Feature) -> str:
    sign = "≥" if feature.more_is_better else "≤"
    bands = ", ".join(f"{band.points} at {sign} {band.limit}" for band in feature.bands if band.limit is not None)
    between = "" if feature.stepped else ", in a straight line between them"
    known = f"{bands}{between}; else {feature.bands[-1].points}; {feature.missing} without a reading"
    return f"points times coverage: {known}; what is not covered earns no more than without a reading"


def _constant(words: str, value: Constant) -> Formula:
    return Formula(words, {"value": value}, lambda given: given["value"])


def _decimal(value: Constant) -> Decimal:
    assert isinstance(value, Decimal | int)
    return Decimal(value)


def _optional(value: Constant) -> Decimal | None:
    return None if value is None else _decimal(value)
