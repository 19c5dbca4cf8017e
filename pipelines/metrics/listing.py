"""The registry for readers: one record per metric, and the table of `docs/reference/metrics.md`."""

from collections.abc import Iterator
from typing import Any

from pipelines.metrics.definition import Metric, Metrics
from pipelines.metrics.outcome import CAUSES

_BETTER = {"higher_is_better": "higher", "lower_is_better": "lower", "neutral": "–"}
_COLUMNS = ("Name", "Slug", "Unit", "Window", "Needs", "Better", "Meaning")


def record(metric: Metric) -> dict[str, Any]:
    """Return everything about a metric, its definition as data."""
    return {
        "metricId": metric.id,
        "slug": metric.slug,
        "name": metric.name,
        "meaning": metric.meaning,
        "unit": metric.unit,
        "format": metric.format,
        "direction": metric.direction,
        "window": metric.window,
        "historyDays": metric.history_days,
        "historyMonths": metric.history_months,
        "freshDays": metric.fresh_days,
        "definition": metric.definition.model_dump(mode="json", by_alias=True, exclude_defaults=True),
    }


def as_markdown(metrics: Metrics) -> str:
    return "\n".join(_lines(metrics)) + "\n"


def _lines(metrics: Metrics) -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield f"The {len(metrics)} metrics that reports, policies and monitoring share. Generated from"
    yield "[`registry.yaml`](../../pipelines/metrics/registry.yaml), where each is defined as data, by"
    yield "`tidemark metrics list --markdown > docs/reference/metrics.md`: don't edit this file."
    yield ""
    yield "Windows in days end at the customer's last row. Complete months are calendar months that the history covers"
    yield "from their first to their last day; if fewer exist than asked for, those count. Values are decimals of four"
    yield "places, rounded half to even, and so are the inputs of arithmetic. Only volatilities use floating point."
    yield ""
    yield "A metric has a value or is unavailable, with one of these causes:"
    yield ""
    yield from (f"- `{cause}`: {words}" for cause, words in CAUSES.items())
    yield ""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for metric in metrics.values():
        better = _BETTER[metric.direction]
        cells = (metric.name, f"`{metric.slug}`", metric.unit, metric.window, _history(metric), better, metric.meaning)
        yield f"| {' | '.join(cells)} |"


def _history(metric: Metric) -> str:
    needs = [
        f"{metric.history_days} days" if metric.history_days else "",
        f"{metric.history_months} months" if metric.history_months else "",
        f"at most {metric.fresh_days} days old" if metric.fresh_days is not None else "",
    ]
    return ", ".join(filter(None, needs)) or "–"
