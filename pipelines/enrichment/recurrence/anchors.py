"""Find the anchor that fits most days of a candidate, for one schedule at a time.

Every payment votes for the anchors of all due dates that it may have been for: its own day, and the closed days next
to it, from which it may have been moved. Its own day has more weight, so that a few moved payments don't elect a
Saturday, yet many of them still elect the true anchor. Votes are counted in a table with one row per anchor and one
column per candidate, for some candidates at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from pipelines.enrichment.recurrence.dates import (
    Flags,
    Integers,
    due_count,
    first_due,
    look_up_calendar_day,
    look_up_day,
)
from pipelines.enrichment.recurrence.runs import Runs, ranges
from pipelines.enrichment.recurrence.schedules import NO_ANCHOR, SCHEDULES, TWICE_MONTHLY, anchors_by_day

ON_DATE, MOVED_FROM = 3, 2  # weights of a vote (our judgement)
APART = (10, 20)  # days of the month between the two payments of a twice-monthly series
TABLE_CELLS = 1 << 18  # of one table of votes, so that it fits in the processor's cache


@dataclass(frozen=True)
class Days:
    """Distinct days, sorted by candidate, and the due dates that a payment on each may have been for."""

    runs: Runs  # the runs of days, one per candidate
    day: Integers
    calendar: Integers  # of the branch's state
    first_due: Integers
    due_count: Integers

    @classmethod
    def of_candidates(cls, runs: Runs, day: Integers, calendar: Integers) -> Self:
        return cls(
            runs,
            day,
            calendar,
            look_up_calendar_day(first_due(), day, calendar),
            look_up_calendar_day(due_count(), day, calendar),
        )


def find_best_anchors(number: int, days: Days, candidates: Integers) -> tuple[Integers, Integers]:
    """Return each candidate's best anchor for a schedule, and how many of its days fit it.

    `number` is the schedule's place in SCHEDULES. The anchor is NO_ANCHOR if no day fits any.
    """
    anchors, votes = np.empty(len(candidates), np.int32), np.empty(len(candidates), np.int64)
    for table in _split_into_tables(len(candidates), height=_height(number)):
        on_date, moved = _count_votes(number, days, candidates[table])
        weights = ON_DATE * on_date + MOVED_FROM * moved
        anchors[table], votes[table] = _choose_anchors(SCHEDULES[number].name, on_date + moved, weights)
    return anchors, votes


def _split_into_tables(candidates: int, height: int) -> Iterator[slice]:
    step = max(1, TABLE_CELLS // height)
    return (slice(first, min(first + step, candidates)) for first in range(0, candidates, step))


def _count_votes(number: int, days: Days, candidates: Integers) -> tuple[Integers, Integers]:
    """Return two tables of votes: for due dates on the payment's own day, and for those it may have been moved from."""
    places, width = days.runs.places(candidates), len(candidates)
    column = np.repeat(np.arange(width), days.runs.lengths[candidates])
    several = np.flatnonzero(days.due_count[places] > 1)
    beside, count = places[several], days.due_count[places[several]]
    due = ranges(days.first_due[beside], count)
    other = np.flatnonzero(due != np.repeat(days.day[beside], count))
    moved = _count_named_anchors(number, due[other], np.repeat(column[several], count)[other], width)
    return _count_named_anchors(number, days.day[places], column, width), moved


def _count_named_anchors(number: int, due: Integers, column: Integers, width: int) -> Integers:
    """Count how many of the due dates belong to each anchor: anchors × candidates."""
    named = look_up_day(anchors_by_day(number), due) - NO_ANCHOR  # row 0 is for days without an anchor
    cells, height = named * width + column, _height(number) + 1
    return np.bincount(cells, minlength=height * width).reshape(height, width)[1:]


@cache
def _height(number: int) -> int:
    """Return the number of rows in a schedule's table, one per anchor."""
    return int(anchors_by_day(number).max()) + 1


def _choose_anchors(schedule: str, votes: Integers, weights: Integers) -> tuple[Integers, Integers]:
    """Return the anchor with the most weight in each column, and its votes."""
    first, first_votes = _find_heaviest(votes, weights)
    if schedule != TWICE_MONTHLY:
        return first, first_votes
    apart = np.abs(np.arange(len(votes))[:, None] - first)
    in_reach = (apart >= APART[0]) & (apart <= APART[1])
    second, second_votes = _find_heaviest(votes, np.where(in_reach, weights, 0))
    pair = np.minimum(first, second) * 32 + np.maximum(first, second)
    return np.where(second == NO_ANCHOR, NO_ANCHOR, pair), first_votes + second_votes


def _find_heaviest(votes: Integers, weights: Integers) -> tuple[Integers, Integers]:
    """Return the row with the most weight in each column, and its votes.

    Of equally heavy rows, the middle one is returned, because it is the closest to the others.
    """
    row, columns = weights.argmax(axis=0), np.arange(weights.shape[1])
    most = weights[row, columns]
    heaviest: Flags = weights == most
    tied = np.flatnonzero(heaviest.sum(axis=0) > 1)
    nth = np.cumsum(heaviest[:, tied], axis=0)
    row[tied] = np.argmax(nth == (nth[-1] + 1) // 2, axis=0)
    return np.where(most > 0, row, NO_ANCHOR), votes[row, columns]
