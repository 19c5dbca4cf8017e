"""Metrics: the figures that reports, policies and monitoring share, each named, defined as data, and computed once.

`registry.yaml` lists them; `definition` is the language; `compute` reads them off for one customer or ten thousand in
one pass; `lineage` finds the way back to the transactions.
"""

from pipelines.metrics.compute import READINGS, cause_of, readings, values
from pipelines.metrics.definition import Metric, Metrics
from pipelines.metrics.lineage import explain
from pipelines.metrics.registry import METRICS, with_inputs

VERSION = 2  # raised with every change that can move a value

__all__ = [
    "METRICS",
    "READINGS",
    "VERSION",
    "Metric",
    "Metrics",
    "cause_of",
    "explain",
    "readings",
    "values",
    "with_inputs",
]
