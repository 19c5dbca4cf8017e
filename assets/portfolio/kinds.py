"""What each kind of portfolio job provides: its customers, partial results for some of them, and the result for all."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import polars as pl

from pipelines.figures.tallies import Tallies
from storage.core.database import Reading
from storage.portfolio.portfolio_jobs import PartialResult, Population


class PortfolioWork(Protocol):
    """The work of one job. Each run creates it from the job alone, so that a resumed run computes the same."""

    @property
    def population(self) -> Population:
        """The customers of the job, before `narrow`."""

    def narrow(self, r: Reading, numbers: Sequence[int]) -> Sequence[int]:
        """Return those of the customers that meet the request's further conditions."""

    def compute(self, rows: pl.DataFrame, numbers: Sequence[int]) -> PartialResult:
        """Return the partial result for some customers, from all their transactions (facts.COLUMNS). Thread-safe."""

    def merge(self, parts: Iterable[Tallies]) -> Tallies:
        """Add up tallies of different customers, in any order."""

    def result(self, r: Reading, tallies: Tallies) -> object:
        """Return the result from the tallies of all customers, as data for JSON."""


def day_end(day: date, zone: ZoneInfo, now: datetime) -> datetime:
    """Return a day's end in the service's time zone, or now if that is earlier."""
    return min(datetime.combine(day + timedelta(days=1), time.min, zone).astimezone(UTC), now)
