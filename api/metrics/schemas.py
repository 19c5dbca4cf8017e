"""Metrics as they are shown: what each means, and what they read of a customer."""

from datetime import date
from typing import Any, ClassVar
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, View

EXAMPLE_METRIC: dict[str, Any] = {
    "metricId": "2c9d1c3e-5a54-5c0c-9a2a-8d6f4d3c2b1a",
    "slug": "debt_service_to_revenue_180d",
    "name": "Debt service to revenue, 180 days",
    "meaning": "Repayments, interest and fees to lenders as a share of revenue.",
    "unit": "ratio",
    "format": "percent",
    "direction": "lower_is_better",
    "window": "180 days",
    "historyDays": 30,
    "historyMonths": 0,
    "freshDays": None,
    "definition": {
        "source": "metrics",
        "operation": "ratio",
        "operands": ["seen_debt_service_180d", "seen_revenue_180d"],
    },
}
EXAMPLE_READING: dict[str, Any] = {
    "metricId": EXAMPLE_METRIC["metricId"],
    "slug": EXAMPLE_METRIC["slug"],
    "value": 0.1832,
    "cause": None,
}


class MetricView(View):
    EXAMPLE: ClassVar = EXAMPLE_METRIC

    metric_id: UUID = Field(description="Never changes.")
    slug: str
    name: str
    meaning: str
    unit: str
    format: str = Field(description="How to print a reading: integer, decimal, percent, currency or days.")
    direction: str = Field(description="higher_is_better, lower_is_better or neutral.")
    window: str = Field(description="What time it looks at, in words.")
    history_days: int = Field(description="Least history, from the first to the last row, for a reading.")
    history_months: int = Field(description="Least complete calendar months for a reading.")
    fresh_days: int | None = Field(description="How many days the last row may lie back. Null: any.")
    definition: Any = Field(description="How it is made, as data.")


class MetricListView(Counts):
    EXAMPLE: ClassVar = {"metrics": [EXAMPLE_METRIC], **Counts.EXAMPLE}

    metrics: list[MetricView]


class ReadingView(View):
    EXAMPLE: ClassVar = EXAMPLE_READING

    metric_id: UUID
    slug: str
    value: float | None = Field(description="In the metric's unit. Null: unavailable.")
    cause: str | None = Field(description="Why it is unavailable.")


class ReadingsView(View):
    EXAMPLE: ClassVar = {
        "asOf": "2026-07-01",
        "dataThrough": "2026-06-30",
        "dataVersion": 4,
        "metricsVersion": 1,
        "metrics": [EXAMPLE_READING],
    }

    as_of: date
    data_through: date | None
    data_version: int
    metrics_version: int
    metrics: list[ReadingView]
