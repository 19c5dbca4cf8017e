"""Metrics: the figures that reports, policies and monitoring share, each named, defined as data, and computed once.

`registry.yaml` lists them; `definition` is their language; `compute` computes them for one customer or ten thousand in
one pass; `lineage` traces a value back to its transactions.
"""

from pipelines.metrics.compute import READINGS, cause_of, readings, values
from pipelines.metrics.definition import Metric, Metrics
from pipelines.metrics.lineage import explain
from pipelines.metrics.registry import METRICS, select_with_inputs

VERSION = 9  # increase it with every change that can change a value

__all__ = [
    "METRICS",
    "READINGS",
    "VERSION",
    "Metric",
    "Metrics",
    "cause_of",
    "explain",
    "readings",
    "select_with_inputs",
    "values",
]
