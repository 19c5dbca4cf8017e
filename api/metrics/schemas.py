"""Metrics as they are shown: what each means, and what they read of a customer."""

from datetime import date
from typing import Any
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, View


class MetricView(View):
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
    metrics: list[MetricView]


class ReadingView(View):
    metric_id: UUID
    slug: str
    value: float | None = Field(description="In the metric's unit. Null: unavailable.")
    cause: str | None = Field(description="Why it is unavailable.")


class ReadingsView(View):
    as_of: date
    data_through: date | None
    data_version: int
    metrics_version: int
    metrics: list[ReadingView]
