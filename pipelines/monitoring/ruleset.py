"""A ruleset as a document: which rules watch a customer after the loan is written, and what they read.

It uses the conditions, metrics and attributes of decision policies, and is read just as strictly. So a condition can be
copied between a policy and a ruleset.

    rules:
      - code: DISHONOURS
        message: Three or more dishonours in 180 days.
        severity: critical
        condition: {atLeast: [{metric: dishonours_180d}, "3"]}

`docs/how-to/monitoring.md` explains the parts; `checking` finds faults that a schema can't; `planning` plans the
evaluation.

The docstrings of these models are the descriptions in `docs/reference/ruleset.schema.json`, which authors see in their
editors.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import BeforeValidator, Discriminator, Field, Tag

from pipelines.decisions.policy import POLICY_SLUG, Code, Condition, DeclaredAttribute, Name, Sentence, Title
from pipelines.metrics import METRICS
from pipelines.metrics.definition import MAX_DAYS, NAMESPACE, Metric, Metrics, Slug, Strict

MAX_RULES = 50
MAX_CUSTOMERS = 10_000  # listed by a ruleset
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


def day_of(text: object) -> date | None:
    """Return the day that a text states as `YYYY-MM-DD`; None if it states none."""
    if not isinstance(text, str) or not _ISO_DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _parse_day(given: object) -> date:
    if (day := day_of(given)) is None:
        raise ValueError('a day is written as text, such as "2026-03-01"')
    return day


Day: TypeAlias = Annotated[date, BeforeValidator(_parse_day)]


# Customers it applies to


class Listed(Strict):
    customers: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MAX_CUSTOMERS)]


class Filtered(Strict):
    """Customers for whom the condition is true. It may read only attributes."""

    where: Condition


def _form_of_applies_to(given: object) -> str:
    """Return which form the value has."""
    if isinstance(given, Listed | Filtered):
        return next(iter(type(given).model_fields))
    if isinstance(given, dict):
        return str(next(iter(given))) if len(given) == 1 else "an object of one key"
    return "all"


AppliesTo: TypeAlias = Annotated[
    Annotated[Literal["all"], Tag("all")] | Annotated[Listed, Tag("customers")] | Annotated[Filtered, Tag("where")],
    Discriminator(_form_of_applies_to),
]


# Baselines


class SinceDate(Strict):
    date: Day


class SinceAttribute(Strict):
    """The attribute states the day as text, `YYYY-MM-DD`."""

    attribute: Name


def _form_of_since(given: object) -> str:
    if isinstance(given, SinceDate | SinceAttribute):
        return next(iter(type(given).model_fields))
    return str(next(iter(given))) if isinstance(given, dict) and len(given) == 1 else "an object of one key"


Since: TypeAlias = Annotated[
    Annotated[SinceDate, Tag("date")] | Annotated[SinceAttribute, Tag("attribute")], Discriminator(_form_of_since)
]


class BaselineMetric(Strict):
    """The metric `of` as of the baseline day; conditions read it by `slug` like any metric."""

    slug: Slug
    of: Slug


class Baseline(Strict):
    """Metrics as of a day, from rows dated up to it: one day for all customers, or each customer's own."""

    since: Since
    metrics: Annotated[tuple[BaselineMetric, ...], Field(min_length=1, max_length=50)]


# The ruleset


class MonitoringRule(Strict):
    """A rule that fires when its condition becomes true. It can fire again after the condition was false, or after
    `repeatAfterDays` while it stays true.
    """

    code: Code
    message: Sentence
    severity: Severity = "warning"
    condition: Condition
    repeat_after_days: Annotated[int, Field(ge=1, le=MAX_DAYS)] | None = None
    recommended_actions: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()


class Ruleset(Strict):
    """Rules that watch customers. `mutedWhile`: customers for whom this condition is true are not evaluated; it may
    read only attributes.
    """

    slug: Annotated[str, Field(pattern=f"^{POLICY_SLUG}$")]
    name: Title
    notes: Annotated[str, Field(max_length=5_000)] = ""
    active: bool = True
    applies_to: AppliesTo = "all"
    muted_while: Condition | None = None
    attributes: Annotated[tuple[DeclaredAttribute, ...], Field(max_length=100)] = ()
    metrics: Annotated[tuple[Metric, ...], Field(max_length=100)] = ()
    baseline: Baseline | None = None
    rules: Annotated[tuple[MonitoringRule, ...], Field(min_length=1, max_length=MAX_RULES)]

    @property
    def every_metric(self) -> Metrics:
        """The registry's metrics, and the ruleset's own."""
        return {**METRICS, **self.own_metrics}

    @property
    def own_metrics(self) -> Metrics:
        return {metric.slug: metric for metric in self.metrics}

    @property
    def baselines(self) -> Mapping[str, str]:
        """The metric that each baseline metric reads, by the baseline metric's slug."""
        return {} if self.baseline is None else {each.slug: each.of for each in self.baseline.metrics}

    def metric_id(self, slug: str) -> UUID:
        """Return the registry's id of a metric, or for the ruleset's own metric an id unique to this ruleset."""
        own = slug in self.own_metrics
        return uuid5(NAMESPACE, f"ruleset/{self.slug}/{slug}") if own else METRICS[slug].id

    def rule(self, code: str) -> MonitoringRule:
        return next(rule for rule in self.rules if rule.code == code)


for _recursive in (Filtered, MonitoringRule, Ruleset):
    _recursive.model_rebuild()
