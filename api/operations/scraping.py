"""The service's metrics in Prometheus's text format, counted by SQL when they are scraped.

They are counts and ages only: no client, customer, URL or id. A result is reused for ten seconds.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from storage.webhooks.delivery_figures import Load

Label = TypeVar("Label", bound=tuple[str, ...])

GOOD_FOR_S = 10.0  # the endpoint needs no key, so frequent requests must be cheap


class Scrape:
    """Returns the text, computed again when it is too old. Not thread-safe."""

    def __init__(self, load: Callable[[], Load], clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._made_at: float | None = None
        self._text = b""

    def __call__(self) -> bytes:
        now = self._clock()
        if self._made_at is None or now - self._made_at >= GOOD_FOR_S:
            self._text, self._made_at = as_text(self._load()), now
        return self._text


def as_text(load: Load) -> bytes:
    """Return the metrics in version 0.0.4 of the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gauges(load))
    return generate_latest(registry)


class _Gauges(Collector):
    """The load as gauges."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield _gauge(
            "tidemark_webhook_deliveries",
            "Webhook deliveries that have not ended, by state; paused: due, but the subscription is paused.",
            ["state"],
            {(state,): count for state, count in self._load.deliveries.items()},
        )
        yield GaugeMetricFamily(
            "tidemark_webhook_oldest_due_seconds",
            "For how long the oldest delivery has been due, paused subscriptions left out; 0 when none is.",
            value=self._load.oldest_due_s,
        )
        yield _gauge(
            "tidemark_webhook_attempts_last_hour",
            "Attempts at deliveries that began within the last hour, by outcome.",
            ["outcome"],
            {(outcome,): count for outcome, count in self._load.attempts_last_hour.items()},
        )
        yield GaugeMetricFamily(
            "tidemark_webhook_paused_subscriptions",
            "Subscriptions that are paused, after failures or by hand.",
            value=self._load.paused_subscriptions,
        )
        yield _gauge(
            "tidemark_jobs", "Jobs that have not ended, by flow and status.", ["flow", "status"], self._load.jobs
        )
        yield _gauge(
            "tidemark_oldest_job_seconds",
            "For how long the oldest unfinished job has waited or run, by flow; 0 when there is none.",
            ["flow"],
            {(flow,): age for flow, age in self._load.oldest_job_s.items()},
        )


def _gauge(name: str, meaning: str, labels: list[str], values: Mapping[Label, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for label, value in values.items():
        family.add_metric(label, value)
    return family
