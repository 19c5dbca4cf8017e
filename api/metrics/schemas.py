"""Metrics as they are shown: their definitions, and their readings for a customer."""

from datetime import date
from typing import Any
from uuid import UUID

from pydantic import Field

from api.core.schemas.common import Counts, View
from pipelines.metrics.definition import Direction, Format, Unit


class MetricView(View):
    metric_id: UUID = Field(description="Never changes.")
    slug: str = Field(description="Names the metric in policies and rulesets.")
    name: str = Field(description="For people.")
    meaning: str = Field(description="What it measures, in words.")
    unit: Unit = Field(description="Unit of a reading.")
    format: Format = Field(description="How people read a value: as percent, 0.12 is 12 %.")
    direction: Direction = Field(description="Which readings are better for the customer.")
    window: str = Field(description="The period it covers, in words.")
    history_days: int = Field(description="Days from the first to the last row that a reading needs.")
    history_months: int = Field(description="Complete calendar months that a reading needs.")
    fresh_days: int | None = Field(description="How old the last row may be, in days; null: any age.")
    definition: Any = Field(description="The definition, as data.")


class MetricListView(Counts):
    metrics: list[MetricView] = Field(description="In the registry's order.")


class ReadingView(View):
    metric_id: UUID
    slug: str = Field(description="Names the metric in policies and rulesets.")
    value: float | None = Field(description="In the metric's unit. Null: unavailable.")
    cause: str | None = Field(description="Why it is unavailable.")


class ReadingsView(View):
    as_of: date = Field(description="Business day of the readings.")
    data_through: date | None = Field(description="Date of the last transaction; null without any.")
    data_version: int = Field(description="Version of the customer's transactions.")
    metrics_version: int = Field(description="Version of the metrics' definitions and formulas.")
    metrics: list[ReadingView] = Field(description="In the registry's order.")
