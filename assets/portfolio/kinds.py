"""What a kind of portfolio job supplies: whom a job is about, what comes of some customers, and what all of it says."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import polars as pl

from pipelines.figures.tallies import Tallies
from storage.core.database import Reading
from storage.portfolio.portfolio_jobs import Part, Whom


class Work(Protocol):
    """One job's work. A run makes it anew from the job alone, so that a resumed run computes what the first would."""

    @property
    def whom(self) -> Whom:
        """Whom the job is about, before `narrowed`."""

    def narrowed(self, r: Reading, numbers: Sequence[int]) -> Sequence[int]:
        """Return those of the customers that the request is about."""

    def compute(self, rows: pl.DataFrame, numbers: Sequence[int]) -> Part:
        """Compute some customers from all their transactions (facts.COLUMNS); several threads call this."""

    def merged(self, parts: Iterable[Tallies]) -> Tallies:
        """Add up tallies of different customers, in any order."""

    def result(self, r: Reading, tallies: Tallies) -> object:
        """Return what the tallies of all customers say, as data for JSON."""


def day_end(day: date, zone: ZoneInfo, now: datetime) -> datetime:
    """Return a day's end in the business's time zone, or now where that is earlier."""
    return min(datetime.combine(day + timedelta(days=1), time.min, zone).astimezone(UTC), now)
