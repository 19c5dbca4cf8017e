"""Split payments into series: whole groups first, then parts of the groups that are not one series.

A group is all payments between one account and one counterparty in one direction. It is tried as a whole first,
however its amounts change: a rent that rises is one series. If its dates are not one series, or payments are left over,
its parts are tried: bands of amounts with a gap between them (a wage and an allowance), then single amounts (a
subscription among purchases), and last the rest, where a smaller share must be explained. Payments that one pass takes
are not available to the next, so one counterparty can have several series.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import polars as pl

from pipelines.enrichment.calendars import Calendar
from pipelines.enrichment.recurrence.dates import Flags, Floats, Integers
from pipelines.enrichment.recurrence.evidence import (
    IS_DAILY,
    TOLERANCE_DAYS,
    Candidates,
    Demands,
    find_best_fits,
    measure_nearness,
)
from pipelines.enrichment.recurrence.runs import Runs, starts_run
from pipelines.enrichment.recurrence.schedules import SCHEDULES, find_nearest_due

# The numbers are our judgement.
BAND_GAP = 1.3  # a band ends where the next larger amount is more than this many times the one before
DOUBLE_STRAYS = 2  # days beyond the tolerance within which an equal amount counts as a doubled payment
MIN_TO_ALTERNATE = 2  # payments of each amount before alternating amounts count as two series
MIN_SINGLE = 0.9  # parts of a counterparty's payments are rejoined if this share of due dates is paid once
TRIES = 4  # times that a group is tried, each time with the payments left

PAYMENTS = pl.Schema(
    {
        "row": pl.UInt32(),
        "group": pl.UInt32(),
        "received_seq": pl.Int64(),
        "position": pl.UInt32(),
        "day": pl.Date(),
        "calendar": Calendar,  # of the branch's state
        "cents": pl.Int64(),  # size, positive
        "in_person": pl.Boolean(),  # bought in person: a shop's trading days are not a schedule
    }
)
MEMBERS = pl.Schema(
    {
        "row": pl.UInt32(),
        "series_number": pl.UInt32(),  # number of the series
        "schedule": pl.UInt8(),
        "anchor": pl.Int32(),
        "slot": pl.Int32(),
        "due": pl.Date(),
        "late": pl.Int32(),
        "nth": pl.UInt32(),  # 0 for the slot's payment, 1 and above for its doubles
    }
)
_SAME_DATES = ("group", "schedule", "anchor")
_ALTERNATING = np.array([schedule.name in ("weekly", "fortnightly", "twice_monthly") for schedule in SCHEDULES])


@dataclass(frozen=True)
class Pass:
    """One pass of the search: how groups are split into candidates, and what a series needs in it.

    `cut`: only groups that are split into several candidates are tried, because a group in one piece is tried as a
    whole in another pass. `merged`: payments whose amounts alternate may be one series. `payments`: the fewest payments
    of a candidate.
    """

    demands: Demands
    cut: bool = True
    merged: bool = True
    payments: int = 2


WHOLE = Pass(Demands(share=0.6), cut=False, merged=False)
BANDS = Pass(Demands(share=0.5, same_size=0.0), merged=False)
SINGLE_AMOUNTS = Pass(Demands(share=0.7, same_size=0.0), payments=3)
REST = Pass(Demands(share=0.3, score=6.0), cut=False)


@dataclass(frozen=True)
class Payments:
    """Schema PAYMENTS as arrays, sorted by group and day. A payment is identified by its place."""

    row: Integers
    group: Integers
    received_seq: Integers
    position: Integers
    day: Integers
    calendar: Integers
    cents: Integers
    in_person: Flags

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        small = pl.col("day", "calendar").to_physical().cast(pl.Int32)
        in_order = frame.with_columns(pl.col("group").cast(pl.Int64), small).sort("group", "day", "calendar")
        return cls(*(in_order[name].to_numpy() for name in PAYMENTS))

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Taken:
    """Payments (by place) that one pass took, with the columns of MEMBERS, sorted by candidate and place."""

    place: Integers
    candidate: Integers
    schedule: Integers
    anchor: Integers
    slot: Integers
    due: Integers
    late: Integers
    nth: Integers

    def __len__(self) -> int:
        return len(self.place)

    def where(self, retained: Flags | Integers) -> "Taken":
        return Taken(*(getattr(self, field.name)[retained] for field in fields(self)))


def find_members(frame: pl.DataFrame) -> pl.DataFrame:
    """Find the payments (schema PAYMENTS) that belong to series: schema MEMBERS, by series, slot and nth."""
    if frame.is_empty():
        return pl.DataFrame(schema=MEMBERS)
    payments = Payments.from_frame(frame)
    left, whole = _search_repeatedly(payments, np.arange(len(payments)), WHOLE)
    bands, amounts = _number_parts(payments, left)
    of_bands = _take_series(payments, left, bands, BANDS)
    left = _drop_taken(payments, left, of_bands)
    of_amounts = _take_series(payments, left, amounts, SINGLE_AMOUNTS)
    _, rest = _search_repeatedly(payments, _drop_taken(payments, left, of_amounts), REST)
    return _number_series(payments, [*whole, of_bands, of_amounts, *rest])


def _search_repeatedly(payments: Payments, left: Integers, search_pass: Pass) -> tuple[Integers, list[Taken]]:
    """Repeat a pass over groups in which it found a series. Return the payments left, and those taken each time."""
    found = [_take_series(payments, left, payments.group, search_pass)]
    left = _drop_taken(payments, left, found[-1])
    while len(found[-1]) and len(found) < TRIES:
        gave = np.isin(payments.group[left], payments.group[found[-1].place])
        found.append(_take_series(payments, left[gave], payments.group, search_pass))
        left = _drop_taken(payments, left, found[-1])
    return left, found


def _drop_taken(payments: Payments, left: Integers, taken: Taken) -> Integers:
    gone = np.zeros(len(payments), np.bool_)
    gone[taken.place] = True
    return left[~gone[left]]


def _number_parts(payments: Payments, left: Integers) -> tuple[Integers, Integers]:
    """Return for each payment the number of its band and that of its amount; 0 for payments that are not left.

    A band is a run of amounts in a group without a wide gap between them.
    """
    order = left[np.lexsort((payments.cents[left], payments.group[left]))]
    group, cents = payments.group[order], payments.cents[order]
    wide = starts_run(group)
    wide[1:] |= cents[1:] > cents[:-1] * BAND_GAP
    bands, amounts = np.zeros_like(payments.group), np.zeros_like(payments.group)
    bands[order], amounts[order] = np.cumsum(wide), np.cumsum(starts_run(group, cents))
    return bands, amounts


def _take_series(payments: Payments, left: Integers, numbers: Integers, search_pass: Pass) -> Taken:
    """Find series among the places left, and return their payments. `numbers`: the candidate of each payment."""
    places = _order_candidates(payments, left, numbers, search_pass)
    runs = Runs.starting(starts_run(numbers[places]))
    fits = find_best_fits(_select_candidates(payments, places, runs), search_pass.demands)
    chosen = places[runs.places(fits.candidate)]
    lengths = runs.lengths[fits.candidate]
    schedule, anchor = np.repeat(fits.schedule, lengths), np.repeat(fits.anchor, lengths)
    slot, due = find_nearest_due(schedule, payments.day[chosen], anchor)
    late = measure_nearness(payments.day[chosen], due, payments.calendar[chosen])
    placed = Taken(chosen, numbers[chosen], schedule, anchor, slot, due, late, np.zeros_like(slot))
    taken = _choose_payments(payments, placed)
    return taken if search_pass.merged else taken.where(~_is_two_series(payments, taken))


def _order_candidates(payments: Payments, left: Integers, numbers: Integers, search_pass: Pass) -> Integers:
    """Return the places of the candidates that a pass examines, one candidate after the other."""
    number = numbers[left]
    sizes = np.bincount(number)
    examined = sizes >= search_pass.payments
    if search_pass.cut:
        group = np.zeros_like(sizes)
        group[number] = payments.group[left]
        pieces = np.bincount(group[sizes > 0])
        examined &= pieces[group] > 1
    retained = examined[number]
    in_order = number[retained] << 32 | left[retained]
    return (np.sort(in_order) if search_pass.cut else in_order) & 0xFFFFFFFF  # groups are already in order


def _select_candidates(payments: Payments, places: Integers, runs: Runs) -> Candidates:
    return Candidates(
        runs, payments.day[places], payments.calendar[places], payments.cents[places], payments.in_person[places]
    )


def _choose_payments(payments: Payments, placed: Taken) -> Taken:
    """Choose for every slot the payment that is nearest in time, then in size, and its doubles (`nth` above 0).

    Doubles have the same size as the payment, except in daily series.
    """
    in_reach = placed.where(placed.late <= TOLERANCE_DAYS[placed.schedule] + DOUBLE_STRAYS)
    slots = Runs.starting(starts_run(in_reach.candidate, in_reach.slot))
    in_turn = in_reach.where(_order_within_slots(payments, in_reach, slots, placed))
    cents, first = payments.cents[in_turn.place], slots.spread(slots.starts)
    paid = in_turn.late[first] <= TOLERANCE_DAYS[in_turn.schedule]
    alike = IS_DAILY[in_turn.schedule] | (cents == cents[first])
    return replace(in_turn, nth=np.arange(len(first)) - first).where(paid & alike)


def _order_within_slots(payments: Payments, in_reach: Taken, slots: Runs, placed: Taken) -> Integers:
    """Return the payments' order, with those that share a slot sorted by nearness in time, then in size."""
    order = np.arange(len(in_reach))
    shared = np.flatnonzero(slots.spread(slots.lengths > 1))
    several = in_reach.where(shared)
    place, cents = several.place, payments.cents[several.place]
    off = np.abs(cents - _usual_cents(payments, several, placed))
    sent = payments.position[place], payments.received_seq[place]
    turns = np.lexsort((*sent, payments.day[place], cents, off, several.late, several.slot, several.candidate))
    order[shared] = shared[turns]
    return order


def _usual_cents(payments: Payments, several: Taken, placed: Taken) -> Floats:
    """Return for each payment the median amount of its candidate."""
    alike = placed.where(np.isin(placed.candidate, several.candidate))
    cents = payments.cents[alike.place]
    ordered = cents[np.lexsort((cents, alike.candidate))]
    runs = Runs.starting(starts_run(alike.candidate))
    median = (ordered[runs.starts + (runs.lengths - 1) // 2] + ordered[runs.starts + runs.lengths // 2]) / 2
    usual: Floats = median[np.searchsorted(alike.candidate[runs.starts], several.candidate)]
    return usual


def _is_two_series(payments: Payments, taken: Taken) -> Flags:
    """Return whether a payment's candidate is two series in turn: every other payment has another size."""
    turns = taken.where(_ALTERNATING[taken.schedule] & (taken.nth == 0))
    odd = turns.slot % 2 == 1
    order = np.lexsort((odd, turns.candidate))
    candidate, cents = turns.candidate[order], payments.cents[turns.place[order]]
    sides = Runs.starting(starts_run(candidate, odd[order]))
    least, most, enough = sides.min(cents), sides.max(cents), sides.lengths >= MIN_TO_ALTERNATE
    candidate_by_side = candidate[sides.starts]
    both = (candidate_by_side[1:] == candidate_by_side[:-1]) & enough[1:] & enough[:-1]
    apart = (most[1:] < least[:-1]) | (most[:-1] < least[1:])
    return np.isin(taken.candidate, candidate_by_side[1:][both & apart])


def _concatenate(*taken: Taken) -> Taken:
    return Taken(*(np.concatenate([getattr(each, field.name) for each in taken]) for field in fields(Taken)))


def _number_series(payments: Payments, found: list[Taken]) -> pl.DataFrame:
    """Return what the passes took as schema MEMBERS, with the series numbered one pass after the other."""
    taken = _concatenate(*found)
    taken_in = np.repeat(np.arange(len(found)), [len(each) for each in found])
    starts = starts_run(taken_in, taken.candidate)
    rows = {field.name: getattr(taken, field.name) for field in fields(Taken)}
    rows |= {"row": payments.row[taken.place], "group": payments.group[taken.place], "series_number": np.cumsum(starts)}
    series = pl.DataFrame({name: rows[name][starts] for name in ("series_number", *_SAME_DATES)})
    return (
        pl.DataFrame(rows)
        .pipe(_rejoin_series, series)
        .select(pl.col(name).cast(kind) for name, kind in MEMBERS.items())
    )


def _rejoin_series(rows: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Join series of one counterparty with the same due dates that are hardly ever both paid.

    They are one series with amounts so far apart that it was taken for two.
    """
    alike = series.filter(pl.struct(_SAME_DATES).is_duplicated())
    if alike.is_empty():
        return rows
    paid = pl.col("nth") == 0
    is_single = pl.col("slot").filter(paid).n_unique().over(_SAME_DATES) >= paid.sum().over(_SAME_DATES) * MIN_SINGLE
    one = pl.when(is_single).then(pl.col("series_number").min().over(_SAME_DATES)).otherwise("series_number")
    turn = pl.int_range(pl.len(), dtype=pl.Int64).over("series_number", "slot", order_by=("nth", "part"))
    joined = (
        rows.join(alike, on="series_number", how="semi")
        .with_columns(series_number=one, part="series_number")
        .with_columns(nth=turn)
        .sort("series_number", "slot", "nth")
        .drop("part")
    )
    return pl.concat([rows.join(alike, on="series_number", how="anti", maintain_order="left"), joined])
