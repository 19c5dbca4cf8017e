"""Find how regularly a payer pays, however many payments are missing.

Two rhythms are tried. **On dates**: all payments are compared with the schedules of `recurrence`. The same score as for
series excludes chance, but half of the usual coverage suffices: somebody who works every other week and is always paid
on a Friday is paid weekly, on Fridays. **Irregular**: where no schedule fits, as with invoices or several shifts
a week, the period is the shortest one that has a payment in most of its turns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import polars as pl

from pipelines.enrichment.recurrence.dates import Flags, Integers, next_open
from pipelines.enrichment.recurrence.evidence import (
    TOLERANCE_DAYS,
    Candidates,
    Demands,
    Trials,
    find_best_fits,
    measure_nearness,
)
from pipelines.enrichment.recurrence.runs import Runs, starts_run
from pipelines.enrichment.recurrence.schedules import NO_ANCHOR, SCHEDULES, find_nearest_due, list_due_dates
from pipelines.vocabulary.schemas import SeriesPeriod

# The numbers are our judgement.
TOLERANT = Demands(share=0.6, gap=4.0, coverage=0.3)
PATIENCE_DAYS = 92  # a payer that is silent for longer has stopped, however long its gaps were before
# Days of a period, and the least number of its turns that have a payment.
IRREGULAR = {"weekly": (7.0, 8), "fortnightly": (14.0, 6), "monthly": (365.25 / 12, 4)}
MIN_TURNS = 0.75  # share of the turns of an irregular period that have a payment
CHUNK_ROWS = 250_000  # payments of whole payers that are searched at once, to bound memory

CADENCES = pl.Schema(
    {
        "number": pl.UInt32(),  # of the payer
        "period": SeriesPeriod,
        "anchor": pl.String(),  # the day that payments fall on, in words; null: irregular
        "due_dates": pl.UInt32(),  # from the first payment to the last, or to the account's last day while it runs
        "dates_paid": pl.UInt32(),  # due dates with a payment
        "longest_gap": pl.UInt32(),  # most due dates in a row without a payment, between two payments
        "next_date": pl.Date(),  # null: the payer has stopped
    }
)
_SCHEDULE_OF = {schedule.name: place for place, schedule in enumerate(SCHEDULES)}
_OVER_AFTER = np.array([schedule.over_after for schedule in SCHEDULES])
_DAYS = np.array([schedule.days for schedule in SCHEDULES])
_IS_YEARLY = np.array([schedule.period == "yearly" for schedule in SCHEDULES])
_PERIODS = pl.Series([schedule.period for schedule in SCHEDULES], dtype=SeriesPeriod)


@dataclass(frozen=True)
class Payments:
    """Payments of some payers, sorted by payer and day."""

    runs: Runs  # the runs of payments, one per payer
    number: Integers
    day: Integers
    calendar: Integers
    cents: Integers
    through: Integers

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        number, cents = (frame[name].cast(pl.Int64).to_numpy() for name in ("number", "cents"))
        day, calendar, through = (
            frame[name].to_physical().cast(pl.Int32).to_numpy() for name in ("day", "calendar", "through")
        )
        return cls(Runs.starting(starts_run(number)), number, day, calendar, cents, through)

    def where(self, payers: Integers) -> Self:
        """Return the payments of these payers, given by their places."""
        places = self.runs.places(payers)
        columns = (self.number, self.day, self.calendar, self.cents, self.through)
        return type(self)(Runs.of_lengths(self.runs.lengths[payers]), *(column[places] for column in columns))


class Slots(NamedTuple):
    """The due dates (or turns) that were paid, by payer: first, last, how many, and the most unpaid ones in a row."""

    first: Integers
    last: Integers
    paid: Integers
    longest_gap: Integers

    @classmethod
    def from_payments(cls, payer: Integers, slot: Integers) -> Self:
        """Count slots once each. `payer`, `slot`: of payments sorted by both; every payer has one."""
        is_first = starts_run(payer, slot)
        slot, runs = slot[is_first], Runs.starting(starts_run(payer[is_first]))
        gap = np.diff(slot, prepend=slot[:1]) - 1
        gap[runs.starts] = 0
        return cls(slot[runs.starts], slot[runs.last], runs.lengths, runs.max(gap))


class Cadences(NamedTuple):
    """Cadences as arrays, one place per payer: CADENCES with the place in SCHEDULES, and NO_ANCHOR where irregular."""

    number: Integers
    schedule: Integers
    anchor: Integers
    due_dates: Integers
    dates_paid: Integers
    longest_gap: Integers
    following: Integers
    goes_on: Flags


def find_cadences(payments: pl.DataFrame) -> pl.DataFrame:
    """Return CADENCES of the payers that pay regularly.

    Args:
        payments: sorted by `number` (UInt32) and `day` (Date), with `calendar` (Calendar), `cents` (positive), and
            `through` (the account's last day).
    """
    found = [cadences for piece in _split(payments) for cadences in _try_rhythms(Payments.from_frame(piece))]
    return _build_frame(Cadences(*map(np.concatenate, zip(*found, strict=True)))) if found else CADENCES.to_frame()


def _split(payments: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the payments of some payers at a time."""
    starts = np.flatnonzero(starts_run(payments["number"].to_numpy()))
    firsts = starts[starts_run(starts // CHUNK_ROWS)].tolist()
    for first, end in zip(firsts, [*firsts[1:], payments.height], strict=True):
        yield payments.slice(first, end - first)


def _try_rhythms(payments: Payments) -> Iterator[Cadences]:
    """Yield the cadences of payers that keep to a schedule, then of the others, by the shortest period that fits."""
    fits = _fit_schedules(payments)
    yield _find_dated(payments, fits)
    is_left = np.ones(len(payments.runs), np.bool_)
    is_left[fits.candidate] = False
    for period, (days, least) in IRREGULAR.items():
        left = np.flatnonzero(is_left)
        if not len(left):
            return
        cadences, often = _find_turns(payments.where(left), period, days, least)
        is_left[left[often]] = False
        yield cadences


def _fit_schedules(payments: Payments) -> Trials:
    in_person = np.zeros(len(payments.day), np.bool_)
    candidates = Candidates(payments.runs, payments.day, payments.calendar, payments.cents, in_person)
    fits = find_best_fits(candidates, TOLERANT)
    return fits.where(~_IS_YEARLY[fits.schedule])  # nobody lives on it


def _find_dated(payments: Payments, fits: Trials) -> Cadences:
    last, slots = payments.runs.last[fits.candidate], _find_paid_slots(payments, fits)
    passed, goes_on = _find_passed(fits, payments.through[last], slots)
    return Cadences(
        payments.number[last],
        fits.schedule,
        fits.anchor,
        np.where(goes_on, passed, slots.last) - slots.first + 1,
        slots.paid,
        slots.longest_gap,
        next_open(list_due_dates(fits.schedule, passed + 1, fits.anchor)),
        goes_on,
    )


def _find_paid_slots(payments: Payments, fits: Trials) -> Slots:
    places, lengths = payments.runs.places(fits.candidate), payments.runs.lengths[fits.candidate]
    fit, day = np.repeat(np.arange(len(lengths)), lengths), payments.day[places]
    slot, due = find_nearest_due(fits.schedule[fit], day, fits.anchor[fit])
    near = measure_nearness(day, due, payments.calendar[places]) <= TOLERANCE_DAYS[fits.schedule[fit]]
    return Slots.from_payments(fit[near], slot[near])


def _find_passed(fits: Trials, through: Integers, slots: Slots) -> tuple[Integers, Flags]:
    """Return the last slot whose payment is no longer awaited, and whether the payer still pays.

    A payer has stopped once more due dates have passed since its last payment than a series may miss, and more than it
    ever missed in a row before.
    """
    schedule = fits.schedule
    awaited = through - TOLERANCE_DAYS[schedule] - 1
    slot, due = find_nearest_due(schedule, awaited, fits.anchor)
    passed = np.maximum(slot - (next_open(due) > awaited), slots.last)
    patience = np.minimum(slots.longest_gap, PATIENCE_DAYS // _DAYS[schedule])
    return passed, passed - slots.last <= np.maximum(_OVER_AFTER[schedule] - 1, patience)


def _find_turns(payments: Payments, period: str, days: float, least: int) -> tuple[Cadences, Flags]:
    """Return the cadences of payers that pay in most periods of this length in days, and which payers these are.

    Turns are centred on whole periods after the first payment, so that a monthly payment has one turn each, however
    long the months are.
    """
    runs, last = payments.runs, payments.day[payments.runs.last]
    since = payments.day - runs.spread(payments.day[runs.starts])
    slots = Slots.from_payments(runs.numbers(), (since / days + 0.5).astype(np.int64))
    often = (slots.paid >= least) & (slots.paid >= (slots.last + 1) * MIN_TURNS)
    silent = np.floor((payments.through[runs.last] - last) / days)
    every = Cadences(
        payments.number[runs.last],
        np.full(len(runs), _SCHEDULE_OF[period]),
        np.full(len(runs), NO_ANCHOR),
        slots.last + 1,
        slots.paid,
        slots.longest_gap,
        last + np.ceil((silent + 1) * days).astype(np.int32),
        silent <= np.minimum(slots.longest_gap, PATIENCE_DAYS // days) + 1,
    )
    return Cadences(*(getattr(every, name)[often] for name in Cadences._fields)), often


def _build_frame(found: Cadences) -> pl.DataFrame:
    columns = found._asdict() | {"following": found.following.astype(np.int32)}
    next_date = pl.when("goes_on").then(pl.col("following").cast(pl.Date))
    described = pl.DataFrame(columns).with_columns(
        period=_PERIODS.gather(found.schedule), anchor=_describe_anchors(found), next_date=next_date
    )
    return described.select(pl.col(name).cast(kind) for name, kind in CADENCES.items())


def _describe_anchors(found: Cadences) -> pl.Series:
    """Return each anchor in words. There are few distinct ones, so they are described one by one."""
    distinct, place = np.unique(np.stack([found.schedule, found.anchor]), axis=1, return_inverse=True)
    words = [
        None if anchor == NO_ANCHOR else SCHEDULES[schedule].words(anchor) for schedule, anchor in distinct.T.tolist()
    ]
    return pl.Series(words, dtype=pl.String).gather(place.ravel())
