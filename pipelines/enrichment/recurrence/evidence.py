"""Decide which schedule the dates of a candidate follow, if any.

A **candidate** is a set of payments that may be one series; it is judged by its distinct days. For every schedule and
its best anchor, two explanations of these days are compared:

- by chance: the likeliest of three Poisson processes (see `chance`);
- by the schedule: each slot is paid with probability p. A payment is on time (on its due date, or if that is closed,
  on the business day before or after it) with probability t, else uniformly distributed over the other days within the
  tolerance. The days left over are a Poisson process of the same shape.

The score is the logarithm of the likelihood ratio of the second to the first, less the cost of choosing the schedule
and its anchor among all. With n days, m of them paid slots out of K, e on time and x = n - m left over:

    score = m log p + (K-m) log(1-p) + e log t + (m-e) log((1-t) / 2T) - C + x log(x/n) + m - R m/n - log(anchors S)

where T is the tolerance in days, C the sum over slots of log(dates that count as on time), R the sum over days of
log(rate on such a day), S the number of schedules; p and t are estimated as (m+½)/(K+1) and (e+½)/(m+1).

Sources: the likelihood ratio against a Poisson process as the test of a schedule, Neyman and Pearson (1933); the
estimator, Krichevsky and Trofimov (1981); the cost of a hypothesis in nats, the two-part code of Rissanen (1978).
"""

from dataclasses import dataclass
from math import log

import numpy as np

from pipelines.enrichment.recurrence.anchors import Days, find_best_anchors
from pipelines.enrichment.recurrence.chance import log_rates_by_chance, x_log
from pipelines.enrichment.recurrence.dates import (
    Flags,
    Floats,
    Integers,
    business_day_number,
    count_on_time_dates,
    is_open,
    last_open,
    look_up_calendar_day,
    next_open,
)
from pipelines.enrichment.recurrence.runs import Runs, starts_run
from pipelines.enrichment.recurrence.schedules import DAILY, NO_ANCHOR, SCHEDULES, TWICE_MONTHLY, find_nearest_due

# The thresholds are our judgement.
MIN_SCORE = 4.0  # odds of 55 to 1 after the cost of the hypothesis
MIN_COVERAGE = 0.6  # share of slots that are paid
MIN_TWICE_COVERAGE = 0.8  # with less, a monthly series and other payments are a likelier explanation
CROWDED = 0.7  # payments outside the schedule narrow the usual gap by their share; this factor allows for more of them
MIN_ON_TIME = 0.6  # share of the payments required that must be on time
MIN_DAILY_COVERAGE = 0.9  # with less, these are a shop's trading days rather than agreed payments
DAILY_SHARE = 0.6  # five of seven: the takings of a weekend may settle as separate payments on Monday
YEARLY_LEAST_DAYS = 300
SAME_SIZE = 0.9  # smallest amount over largest
_NO_GAP = 1 << 30  # days

# One value per schedule, in the order of SCHEDULES.
TOLERANCE_DAYS = np.array([schedule.tolerance_days for schedule in SCHEDULES], np.int32)
IS_DAILY = np.array([schedule.name == DAILY for schedule in SCHEDULES])
_IS_YEARLY = np.array([schedule.period == "yearly" for schedule in SCHEDULES])
_DAYS = np.array([schedule.days for schedule in SCHEDULES])
_MIN_PAYMENTS = np.array([schedule.least for schedule in SCHEDULES])
_COST = np.log([schedule.anchors * len(SCHEDULES) for schedule in SCHEDULES])
_OWN_COVERAGE = {DAILY: MIN_DAILY_COVERAGE, TWICE_MONTHLY: MIN_TWICE_COVERAGE}


@dataclass(frozen=True)
class Demands:
    """What a pass of the search requires of a candidate.

    `share`: the share of the candidate's payments that the schedule must explain. `gap`: the widest usual gap between
    days, as a multiple of the schedule's days. `same_size`: added to the score if all payments have about the same size
    and none was made in person, because that is far more common among agreed payments. `score`: the least score.
    `coverage`: the share of slots that must be paid, except for schedules in _OWN_COVERAGE, which are more easily
    mistaken for others.
    """

    share: float
    gap: float = 1.7
    same_size: float = log(20)
    score: float = MIN_SCORE
    coverage: float = MIN_COVERAGE

    @property
    def shares(self) -> Floats:
        """The required share per schedule."""
        return np.where(IS_DAILY, min(self.share, DAILY_SHARE), self.share)

    @property
    def coverages(self) -> Floats:
        """The required share of slots paid per schedule."""
        return np.array([_OWN_COVERAGE.get(schedule.name, self.coverage) for schedule in SCHEDULES])


@dataclass(frozen=True)
class Candidates:
    """Payments sorted by candidate, then by day."""

    runs: Runs  # the runs of payments, one per candidate
    day: Integers
    calendar: Integers  # of the branch's state
    cents: Integers  # size, positive
    in_person: Flags


@dataclass(frozen=True)
class Measures:
    """Facts about each candidate that don't depend on a schedule."""

    payments: Integers
    in_person: Integers  # payments made in person
    same_size: Flags
    days: Integers
    span: Integers  # days from the first payment to the last
    open_span: Integers  # business days from the first to the last, both included
    gap: Floats  # the median gap from day to day


@dataclass(frozen=True)
class Trials:
    """Pairs of candidate and schedule (place in SCHEDULES), with the best anchor and the number of days that fit it."""

    candidate: Integers
    schedule: Integers
    anchor: Integers
    votes: Integers

    def where(self, retained: Flags | Integers) -> "Trials":
        return Trials(self.candidate[retained], self.schedule[retained], self.anchor[retained], self.votes[retained])


_NO_TRIALS = Trials(*(np.empty(0, kind) for kind in (np.int64, np.uint8, np.int32, np.int64)))


@dataclass(frozen=True)
class Record:
    """How well the payments of each trial kept to the schedule."""

    paid: Integers  # slots paid
    on_time: Integers  # slots paid on time
    slots: Integers  # from the first slot paid to the last
    log_choices: Floats  # sum over the slots paid of log(dates that count as on time)


def find_best_fits(candidates: Candidates, demands: Demands) -> Trials:
    """Return the candidates that follow a schedule, in order, each with the schedule that scores best."""
    days = _distinct_days(candidates)
    sizes = _measure_candidates(candidates, days)
    able = _may_follow(sizes, demands)
    if not able.any():
        return _NO_TRIALS
    trials = _list_trials(days, able)
    trials = trials.where(_has_enough_votes(trials, sizes, demands))
    trials, record = _record_payments(trials, days)
    score = _score_trials(trials, record, days)
    equal = sizes.same_size & (sizes.in_person == 0)
    score += np.where(equal[trials.candidate], demands.same_size, 0.0)
    fit = np.flatnonzero(_is_series(trials, record, sizes, demands) & (score >= demands.score))
    return _keep_best(trials.where(fit), score[fit])


def measure_nearness(day: Integers, due: Integers, calendar: Integers) -> Integers:
    """Return how many days each payment is off the nearest date that counts as on time; 0 is on time.

    These dates are the due date and, if that is a closed day, the business days of settlement and of the state before
    and after it.
    """
    late: Integers = np.abs(day - due)
    moved = np.flatnonzero(look_up_calendar_day(count_on_time_dates(), due, calendar) > 1)
    paid, agreed, state = day[moved], due[moved], calendar[moved]
    rolled = (next_open(agreed), last_open(agreed), next_open(agreed, state), last_open(agreed, state))
    for date in rolled:
        late[moved] = np.minimum(late[moved], np.abs(paid - date))
    return late


def _distinct_days(candidates: Candidates) -> Days:
    """Return the distinct days of each candidate. The calendar of a day is that of its first payment."""
    starts = np.zeros(len(candidates.day), np.bool_)
    starts[candidates.runs.starts] = True
    distinct = starts | starts_run(candidates.day)
    runs = Runs.starting(starts[distinct])
    return Days.of_candidates(runs, candidates.day[distinct], candidates.calendar[distinct])


def _measure_candidates(candidates: Candidates, days: Days) -> Measures:
    first, last = days.day[days.runs.starts], days.day[days.runs.last]
    least, most = candidates.runs.min(candidates.cents), candidates.runs.max(candidates.cents)
    return Measures(
        payments=candidates.runs.lengths,
        in_person=candidates.runs.sum(candidates.in_person.astype(np.int64)),
        same_size=least >= most * SAME_SIZE,
        days=days.runs.lengths,
        span=last - first,
        open_span=business_day_number(last) - business_day_number(first) + is_open(first),
        gap=_usual_gap(days),
    )


def _usual_gap(days: Days) -> Floats:
    """Return the median gap between the days of each candidate. A first day has no gap and is sorted to the end."""
    gap = np.diff(days.day, prepend=0).astype(np.int64)
    gap[days.runs.starts] = _NO_GAP
    ordered = np.sort(days.runs.numbers() << 32 | gap)
    gaps = days.runs.lengths - 1
    lower, upper = (days.runs.starts + np.maximum(middle, 0) for middle in ((gaps - 1) // 2, gaps // 2))
    return ((ordered[lower] & 0xFFFFFFFF) + (ordered[upper] & 0xFFFFFFFF)) / 2


def _may_follow(sizes: Measures, demands: Demands) -> Flags:
    """Return which schedules each candidate may follow, by cheap conditions: schedules × candidates.

    A schedule can't have more payments than slots.
    """
    days, least, shares = _DAYS[:, None], _MIN_PAYMENTS[:, None], demands.shares[:, None]
    dense = (sizes.days >= sizes.open_span * MIN_DAILY_COVERAGE) & (sizes.in_person * 2 <= sizes.payments)
    able: Flags = (sizes.days >= least) & (sizes.payments * shares <= sizes.span / days + 2)
    able &= (sizes.gap >= days * (demands.share * CROWDED)) & (sizes.gap <= days * demands.gap)
    able[IS_DAILY] &= dense
    able[_IS_YEARLY] &= sizes.span >= YEARLY_LEAST_DAYS
    return able


def _list_trials(days: Days, able: Flags) -> Trials:
    """List every schedule that a candidate may follow, with the anchor that fits most of its days."""
    schedules = np.flatnonzero(able.any(axis=1)).tolist()
    parts = [_try_schedule(number, days, np.flatnonzero(able[number])) for number in schedules]
    return Trials(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _try_schedule(number: int, days: Days, candidate: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    anchor, votes = find_best_anchors(number, days, candidate)
    return candidate, np.full(len(candidate), number, np.uint8), anchor, votes


def _has_enough_votes(trials: Trials, sizes: Measures, demands: Demands) -> Flags:
    """Return whether enough days fit the anchor exactly for the trial to be examined further."""
    share = sizes.payments[trials.candidate] * demands.shares[trials.schedule]
    wanted = np.maximum(_MIN_PAYMENTS[trials.schedule], share)
    voted: Flags = (trials.anchor != NO_ANCHOR) & (trials.votes >= wanted * MIN_ON_TIME)
    return voted


def _record_payments(trials: Trials, days: Days) -> tuple[Trials, Record]:
    """Record how well each schedule was kept. Trials without any payment near its due date are dropped."""
    places, lengths = days.runs.places(trials.candidate), days.runs.lengths[trials.candidate]
    trial = np.repeat(np.arange(len(lengths)), lengths)
    day, calendar, schedule = days.day[places], days.calendar[places], trials.schedule[trial]
    slot, due = find_nearest_due(schedule, day, trials.anchor[trial])
    late = measure_nearness(day, due, calendar)
    near = np.flatnonzero(late <= TOLERANCE_DAYS[schedule])
    slots = Runs.starting(starts_run(trial[near], slot[near]))
    first, on_time = near[slots.starts], slots.min(late[near]) == 0
    runs = Runs.starting(starts_run(trial[first]))
    record = Record(
        paid=runs.lengths,
        on_time=runs.sum(on_time.astype(np.int64)),
        slots=slot[first][runs.last] - slot[first][runs.starts] + 1,
        log_choices=runs.sum(np.log(look_up_calendar_day(count_on_time_dates(), due[first], calendar[first]))),
    )
    return trials.where(trial[first][runs.starts]), record


def _is_series(trials: Trials, record: Record, sizes: Measures, demands: Demands) -> Flags:
    candidate, schedule, paid = trials.candidate, trials.schedule, record.paid
    enough: Flags = (paid >= _MIN_PAYMENTS[schedule]) & (paid >= record.slots * demands.coverages[schedule])
    enough &= paid >= sizes.payments[candidate] * demands.shares[schedule]
    enough &= ~_IS_YEARLY[schedule] | (paid > 2) | sizes.same_size[candidate]
    return enough


def _score_trials(trials: Trials, record: Record, days: Days) -> Floats:
    """Compute the score by the formula in the module's docstring."""
    count, paid, on_time = days.runs.lengths[trials.candidate], record.paid, record.on_time
    left, strayed, unpaid = count - paid, paid - on_time, record.slots - paid
    p, t = (paid + 0.5) / (record.slots + 1), (on_time + 0.5) / (paid + 1)
    when_paid = paid * np.log(p) + unpaid * np.log(1 - p)
    spread = 2 * TOLERANCE_DAYS[trials.schedule]
    how_near = on_time * np.log(t) + strayed * np.log((1 - t) / spread) - record.log_choices
    others = x_log(left, left / count) + paid - log_rates_by_chance(trials.candidate, days) * paid / count
    return when_paid + how_near + others - _COST[trials.schedule]


def _keep_best(trials: Trials, score: Floats) -> Trials:
    order = np.lexsort((trials.schedule, -score, trials.candidate))
    return trials.where(order[starts_run(trials.candidate[order])])
