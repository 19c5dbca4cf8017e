"""The three reports of a customer: what is known (completeness), how it looks (risk), what happened (aggregate).

Each is one pure function from many customers' TRANSACTIONS to one row per customer, the report's `data` members as
columns: one Polars pass serves one customer or thousands, and a customer's report never depends on who else is in
the frame. Which rows go in is the caller's choice (for a replay: only those known then); reports count the posted
ones. `as_of` measures age; it selects nothing.

Raise a report's `version` with every change that can move a figure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

import polars as pl

from pipelines.reports.aggregate import aggregate_report, tables_gathered
from pipelines.reports.completeness import completeness_report
from pipelines.reports.periods import BY_CUSTOMER, data_through
from pipelines.reports.risk import risk_report

__all__ = ["REPORTS", "Report", "data_through", "rows_as_data"]


@dataclass(frozen=True)
class Report:
    """`compute`: TRANSACTIONS and the day of computation → one row per customer, sorted by `customer_number`.

    Its columns are the members of the report's `data`; see `rows_as_data` for the one exception.
    """

    kind: str
    version: int
    compute: Callable[[pl.LazyFrame, date], pl.LazyFrame]


REPORTS: Mapping[str, Report] = MappingProxyType(
    {
        "completeness": Report("completeness", 1, completeness_report),
        "risk": Report("risk", 1, risk_report),
        "aggregate": Report("aggregate", 1, aggregate_report),
    }
)


def rows_as_data(frame: pl.DataFrame) -> Iterator[tuple[int, dict[str, object]]]:
    """A computed report → `(customer_number, data)` per customer, in plain Python values for the edge to print.

    Money, ratios and scores are `Decimal` of fixed scale, days are `date`. The columns of `aggregate` are tables; here
    they become its `tables`.
    """
    for row in frame.iter_rows(named=True):
        number = row.pop(BY_CUSTOMER)
        yield number, tables_gathered(row)
