"""Lineage of the risk report: every figure explained by bands, readings, and through metrics by transactions."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipelines.figures import unreconciled
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula, Trace, below, no_figure
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS, values, with_inputs
from pipelines.metrics import unreconciled as behind_metrics
from pipelines.metrics.lineage import explain
from pipelines.reports.risk.confidence import PARTS, Part
from pipelines.reports.risk.integrity import explain as explain_integrity
from pipelines.reports.risk.rating import margin_of
from pipelines.reports.risk.resting import explain_value
from pipelines.risk_models.evidence import EVIDENCE, evidence
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Feature, Scorecard

Data = Mapping[str, Any]


def explain_risk(facts: Facts, data: Data, path: tuple[str, ...]) -> Trace:
    """Explain a figure of the report; the inputs of a formula are below it in the path.

    Args:
        facts: of the one customer, in the context that the report was computed in.
        data: the report's data, as printed.
        path: segments of a JSON Pointer.

    Raises:
        NotFound: there is no such figure.
    """
    return _Explaining(facts, data).figure(path)


class _Explaining:
    """Explains figures of one customer's report."""

    def __init__(self, facts: Facts, data: Data) -> None:
        self.facts, self.data = facts, data
        self.scorecard = _scorecard(facts)
        self.readings: dict[str, Decimal | None] = {each["metric"]: each["reading"] for each in data["drivers"]}

    def figure(self, path: tuple[str, ...]) -> Trace:  # noqa: PLR0911  one each
        match path:
            case ("value", *rest):
                return below(self._probability("the estimated probability of the points", {}, self._value, rest), rest)
            case ("interval", "low" | "high" as side, *rest):
                return below(self._bound(side, rest), rest)
            case ("pdConfidenceScore", *rest):
                return below(self._confidence(), rest)
            case ("drivers", place, name, *rest):
                return below(self._driver(self._listed("drivers", place), name), rest)
            case ("sensitivity", place, *names) if names:
                return self._change(self._listed("sensitivity", place), names)
            case ("integrity", *inside):
                return explain_integrity(self.facts, self.data["integrity"], inside)
            case ("unreconciled", *inside):
                return unreconciled.explain_section(self.facts, self.data["unreconciled"], inside, self._share)
        raise no_figure(path)

    def _share(self, figure: tuple[str, ...]) -> Trace:
        if figure == ("value",):
            read = (feature for feature in self.scorecard.features if self.readings[feature.metric] is not None)
            return explain_value({feature: behind_metrics.explain(self.facts, feature.metric) for feature in read})
        return behind_metrics.explain(self.facts, self._listed("drivers", figure[1])["metric"])

    def _listed(self, name: str, place: str) -> Data:
        listed = self.data[name]
        if not place.isascii() or not place.isdigit() or int(place) >= len(listed):
            raise no_figure([name, place])
        item: Data = listed[int(place)]
        return item

    def _probability(
        self, words: str, extra: Mapping[str, Trace | Constant], apply: Any, further: Sequence[str]
    ) -> Formula:
        """Return a formula over all drivers' points. Only the driver first in `further` is traced: there are many."""
        link = self.scorecard.link
        points = {
            feature.metric: self._points(feature, followed=feature.metric in further[:1])
            for feature in self.scorecard.features
        }
        constants = {"evenPoints": link.even, "doublingPoints": link.doubling}
        described = f"{words}: odds 2 ^ ((evenPoints − points) / doublingPoints), points being the sum of all drivers'"
        return Formula(described, {**points, **extra, **constants}, apply)

    def _total(self, given: Mapping[str, Constant]) -> Decimal:
        return sum((_decimal(given[feature.metric]) for feature in self.scorecard.features), Decimal(0))

    def _value(self, given: Mapping[str, Constant]) -> Decimal:
        return self.scorecard.link.value(self._total(given))

    def _bound(self, side: str, further: Sequence[str]) -> Formula:
        sign = 1 if side == "low" else -1

        def apply(given: Mapping[str, Constant]) -> Decimal:
            margin = margin_of(_decimal(given["pdConfidenceScore"]), self.scorecard)
            return self.scorecard.link.value(self._total(given) + sign * margin)

        words = f"the value at {'more' if sign > 0 else 'fewer'} points, by a margin that grows as confidence falls"
        return self._probability(words, {"pdConfidenceScore": self._confidence()}, apply, further)

    def _points(self, feature: Feature, *, followed: bool = True) -> Formula:
        reading = self._reading(feature.metric) if followed else self.readings[feature.metric]
        return Formula(
            _banded_words(feature),
            {"reading": reading},
            lambda given: feature.points_of(_optional(given["reading"])),
        )

    def _reading(self, slug: str) -> Trace | None:
        return None if self.readings[slug] is None else explain(self.facts, slug)

    def _driver(self, driver: Data, name: str) -> Trace:
        feature = self._feature(driver["metric"])
        match name:
            case "points":
                return self._points(feature)
            case "maxPoints":
                return _constant("the points of the best band", feature.most)
            case "reading" if driver["reading"] is not None:
                return explain(self.facts, feature.metric)
            case "peerPercentile" if driver["peerPercentile"] is not None:
                return self._percentile(driver)
        raise no_figure(["drivers", feature.metric, name])

    def _percentile(self, driver: Data) -> Formula:
        """Explain a peer percentile.

        Raises:
            NotFound: the peers are no longer known.
        """
        quantiles = self._quantiles(driver["metric"])
        reached = int(driver["peerPercentile"])
        around = {f"percentile{place}": quantiles[place] for place in (reached, reached + 1) if place < len(quantiles)}
        return Formula(
            "the highest percentile of the client's own customers whose reading this one reaches",
            {"reading": self._reading(driver["metric"]), **around},
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

    def _confidence(self) -> Formula:
        row = evidence(self.facts).row(0, named=True)
        parts = {part.name: self._part(part, row) for part in PARTS}
        if row["data_through"] is None:
            return Formula("none without transactions", {"transactions": 0}, lambda _: Decimal(0))
        return Formula(
            "the points of all reasons for confidence, added up",
            parts,
            lambda given: sum((_decimal(each) for each in given.values()), Decimal(0)),
        )

    def _part(self, part: Part, row: Data) -> Formula:
        return Formula(part.words, {name: self._evidence(name, row) for name in part.of}, part.recompute)

    def _evidence(self, name: str, row: Data) -> Trace | Constant:
        match name:
            case "proven" | "categorised":
                return EVIDENCE.explain(self.facts, row, (name,)) if row[name] is not None else None
            case "points_in_all":
                return self.scorecard.most
            case "points_readable":
                return sum((f.most for f in self.scorecard.features if self.readings[f.metric] is not None), Decimal(0))
            case "days_behind":
                return None if row["data_through"] is None else max(0, (self.facts.as_of - row["data_through"]).days)
        value = values(self.facts, with_inputs([name], METRICS))[name].item()
        return None if value is None else explain(self.facts, name)

    def _change(self, change: Data, names: list[str]) -> Trace:
        match names:
            case ("from", *rest) if change["from"] is not None:
                return below(explain(self.facts, change["metric"]), rest)
            case ("to", *rest):
                return below(self._limit(change), rest)
            case ("also", "from", *rest) if change["also"] and change["also"]["from"] is not None:
                return below(explain(self.facts, change["also"]["metric"]), rest)
            case ("also", "to", *rest) if change["also"]:
                return below(self._limit(change["also"]), rest)
            case ("pointsGained", *rest):
                return below(self._gained(change), rest)
        raise no_figure(["sensitivity", *names])

    def _limit(self, change: Data) -> Formula:
        return _constant("the nearest reading that falls in the band", change["to"])

    def _gained(self, change: Data) -> Formula:
        changes = [change, *([change["also"]] if change["also"] else [])]
        features = {f"points of {each['metric']}": self._feature(each["metric"]) for each in changes}
        now = {name: self._points(feature) for name, feature in features.items()}
        then = {f"{each['metric']} at": each["to"] for each in changes}

        def apply(given: Mapping[str, Constant]) -> Decimal:
            gains = (
                feature.points_of(_decimal(given[f"{feature.metric} at"])) - _decimal(given[name])
                for name, feature in features.items()
            )
            return sum(gains, Decimal(0))

        return Formula("points at the readings reached, less the points now", {**now, **then}, apply)

    def _feature(self, slug: str) -> Feature:
        return next(feature for feature in self.scorecard.features if feature.metric == slug)


def _scorecard(facts: Facts) -> Scorecard:
    number = facts.customers[BY_CUSTOMER].item()
    portfolios = (portfolio for portfolio in facts.context.portfolios if number in portfolio.customers)
    return next((portfolio.scorecard for portfolio in portfolios if portfolio.scorecard), DEFAULT)


def _banded_words(feature: Feature) -> str:
    sign = "≥" if feature.more_is_better else "≤"
    bands = ", ".join(f"{band.points} at {sign} {band.limit}" for band in feature.bands if band.limit is not None)
    return f"points: {bands}; else {feature.bands[-1].points}; {feature.missing} without a reading"


def _constant(words: str, value: Constant) -> Formula:
    return Formula(words, {"value": value}, lambda given: given["value"])


def _decimal(value: Constant) -> Decimal:
    assert isinstance(value, Decimal | int)
    return Decimal(value)


def _optional(value: Constant) -> Decimal | None:
    return None if value is None else _decimal(value)
