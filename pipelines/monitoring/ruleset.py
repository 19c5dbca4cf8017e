"""A ruleset as a document: which rules watch a customer after the loan is written, and what they read.

It is data in the words of decision policies: the same conditions over the same metrics and attributes, read strictly.
What is written on application and what is watched in life can so be copied from one to the other.

    rules:
      - code: DISHONOURS
        message: Three or more dishonours in 180 days.
        severity: critical
        condition: {atLeast: [{metric: dishonours_180d}, "3"]}

`docs/how-to/monitoring.md` says what it all means; `checking` finds the faults that a schema can't; `watching` makes
it run.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import BeforeValidator, Discriminator, Field, Tag

from pipelines.decisions.policy import POLICY_SLUG, Code, Condition, DeclaredAttribute, Name, Sentence, Title
from pipelines.metrics import METRICS
from pipelines.metrics.definition import MOST_DAYS, NAMESPACE, Metric, Metrics, Slug, Strict

MOST_RULES = 50
MOST_CUSTOMERS = 10_000  # that a ruleset may list
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


def day_of(text: object) -> date | None:
    """The day that a text names as `YYYY-MM-DD`; None if it names none."""
    if not isinstance(text, str) or not _ISO_DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _written(given: object) -> date:
    if (day := day_of(given)) is None:
        raise ValueError('a day is written as text, such as "2026-03-01"')
    return day


Day: TypeAlias = Annotated[date, BeforeValidator(_written)]


# Whom it applies to


class Listed(Strict):
    customers: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MOST_CUSTOMERS)]


class Filtered(Strict):
    """Customers of whom the condition is true. It reads attributes alone."""

    where: Condition


def _whom(given: object) -> str:
    """Which of the forms it has."""
    if isinstance(given, Listed | Filtered):
        return next(iter(type(given).model_fields))
    if isinstance(given, dict):
        return str(next(iter(given))) if len(given) == 1 else "an object of one key"
    return "all"


AppliesTo: TypeAlias = Annotated[
    Annotated[Literal["all"], Tag("all")] | Annotated[Listed, Tag("customers")] | Annotated[Filtered, Tag("where")],
    Discriminator(_whom),
]


# What it compares with


class SinceDate(Strict):
    date: Day


class SinceAttribute(Strict):
    """The attribute holds the day as text, `YYYY-MM-DD`."""

    attribute: Name


def _since(given: object) -> str:
    if isinstance(given, SinceDate | SinceAttribute):
        return next(iter(type(given).model_fields))
    return str(next(iter(given))) if isinstance(given, dict) and len(given) == 1 else "an object of one key"


Since: TypeAlias = Annotated[
    Annotated[SinceDate, Tag("date")] | Annotated[SinceAttribute, Tag("attribute")], Discriminator(_since)
]


class BaselineMetric(Strict):
    """`of`, as it stood at the baseline day; read by `slug` like any metric."""

    slug: Slug
    of: Slug


class Baseline(Strict):
    """Metrics as of a day, each customer's own or one for all: of rows dated up to it alone."""

    since: Since
    metrics: Annotated[tuple[BaselineMetric, ...], Field(min_length=1, max_length=50)]


# The ruleset


class WatchRule(Strict):
    """It fires when its condition becomes true, and can fire again once it was false, or after `rearmAfterDays` of
    staying true.
    """

    code: Code
    message: Sentence
    severity: Severity = "warning"
    condition: Condition
    rearm_after_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    recommended_actions: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()


class Ruleset(Strict):
    """`mutedWhile`: a customer of whom it is true isn't evaluated. It reads attributes alone."""

    slug: Annotated[str, Field(pattern=f"^{POLICY_SLUG}$")]
    name: Title
    notes: Annotated[str, Field(max_length=5_000)] = ""
    active: bool = True
    applies_to: AppliesTo = "all"
    muted_while: Condition | None = None
    attributes: Annotated[tuple[DeclaredAttribute, ...], Field(max_length=100)] = ()
    metrics: Annotated[tuple[Metric, ...], Field(max_length=100)] = ()
    baseline: Baseline | None = None
    rules: Annotated[tuple[WatchRule, ...], Field(min_length=1, max_length=MOST_RULES)]

    @property
    def every_metric(self) -> Metrics:
        """The registry's metrics, and the ruleset's own."""
        return {**METRICS, **self.own_metrics}

    @property
    def own_metrics(self) -> Metrics:
        return {metric.slug: metric for metric in self.metrics}

    @property
    def baselines(self) -> Mapping[str, str]:
        """What each baseline metric is a reading of, by its slug."""
        return {} if self.baseline is None else {each.slug: each.of for each in self.baseline.metrics}

    def metric_id(self, slug: str) -> UUID:
        """The registry's, or for a metric of the ruleset's own one that no other document's has."""
        own = slug in self.own_metrics
        return uuid5(NAMESPACE, f"ruleset/{self.slug}/{slug}") if own else METRICS[slug].id

    def rule(self, code: str) -> WatchRule:
        return next(rule for rule in self.rules if rule.code == code)


for _recursive in (Filtered, WatchRule, Ruleset):
    _recursive.model_rebuild()
