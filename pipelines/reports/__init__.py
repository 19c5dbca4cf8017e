"""The three reports of a customer: how much is known (completeness), how risky it looks (risk), what happened
(aggregate).

Each report is one pure function from many customers' facts to one JSON text per customer: one pass serves one customer
or thousands, and a customer's report never depends on the other customers in the frame. The caller chooses the rows
(for a replay: only those known then); reports use the posted ones dated up to `as_of`, the day that age is measured
from.

`explain` leads from a figure of a customer's report to the transactions behind it (`figures.lineage`).

Increase a report's `VERSION`, in its package, with every change that can change a figure or that adds a table.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import polars as pl

from pipelines.enrichment import calendars
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Explain, Trace, no_figure
from pipelines.reports import aggregate, completeness, risk
from pipelines.reports.aggregate import aggregate_report, compute_table, explain_aggregate
from pipelines.reports.completeness import completeness_report, explain_completeness
from pipelines.reports.risk import explain_risk, risk_report
from pipelines.vocabulary.schemas import TRANSACTIONS

__all__ = ["REPORTS", "Report", "load"]


@dataclass(frozen=True)
class Report:
    """A kind of report.

    `compute`: facts → one row per customer, sorted by `customer_number`: that, and `data`, the report as the exact text
    of a JSON object. Money, ratios and scores are numbers of fixed scale, days are ISO dates.

    `explain`: facts of one customer, its `data` as reported, and the segments of a JSON Pointer into it → the figure's
    lineage. Raises NotFound.

    `compute_part`: facts of one customer and such segments → the part of `data` that `explain` needs for the figure,
    with numbers as decimals; None if it needs the whole.
    """

    kind: str
    version: int
    compute: Callable[[Facts], pl.DataFrame]
    explain: Explain
    compute_part: Callable[[Facts, tuple[str, ...]], Mapping[str, Any] | None] = lambda _facts, _path: None

    def compute_text(self, facts: Facts) -> str | None:
        """Return one customer's `data`; None if there is nothing to report on."""
        texts = self.compute(facts)["data"]
        return texts[0] if len(texts) else None

    def trace(
        self, facts: Facts, path: tuple[str, ...], read_text: Callable[[Facts], str | None] | None = None
    ) -> Trace:
        """Return the lineage of one customer's figure at the segments of a JSON Pointer.

        Args:
            read_text: returns what `compute_text` returns, for callers that may have it already.

        Raises:
            NotFound: there is no such figure, or it has no value.
        """
        try:
            data = self.compute_part(facts, path)
            if data is None:
                data = json.loads((read_text or self.compute_text)(facts) or "{}", parse_float=Decimal)
            return self.explain(facts, data, path)
        except (KeyError, IndexError, ValueError):
            raise no_figure(path) from None


REPORTS: Mapping[str, Report] = MappingProxyType(
    {
        "completeness": Report("completeness", completeness.VERSION, completeness_report, explain_completeness),
        "risk": Report("risk", risk.VERSION, risk_report, explain_risk),
        "aggregate": Report("aggregate", aggregate.VERSION, aggregate_report, explain_aggregate, compute_table),
    }
)


def load() -> None:
    """Load what reports would otherwise load when they first need it, which takes a second."""
    import scipy.sparse.csgraph  # noqa: F401, PLC0415  # used where loans are inferred

    calendars.business_days()
    nobody = Facts(pl.DataFrame(schema=TRANSACTIONS), date.min)
    for report in REPORTS.values():
        report.compute(nobody)
