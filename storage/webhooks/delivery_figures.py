"""Count deliveries: of one webhook subscription for its client, or of all for the operator, with unfinished jobs.

Everything is counted on request, from the indexes of open deliveries, attempts and unfinished jobs. A subscription's
summary leaves out attempts of tests, because their failures say nothing about the receiver in normal use.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from sqlalchemy import ColumnElement, and_, false, func, select, text

from storage.core.database import Reading
from storage.core.models import LIVE, DeliveryStatus, Flow, attempts, deliveries, jobs, subscriptions
from storage.webhooks import outbox
from storage.webhooks.conditions import is_open
from storage.webhooks.delivery_log import ANSWERED
from storage.webhooks.subscriptions import Subscription

PERIODS: Mapping[str, timedelta] = MappingProxyType({"24h": timedelta(hours=24), "7d": timedelta(days=7)})
LAST_HOUR = timedelta(hours=1)
PAUSED = "paused"  # the state of a due delivery whose subscription is paused
STATES = (DeliveryStatus.DUE, DeliveryStatus.SENDING, DeliveryStatus.RETRYING, PAUSED)

COUNTED = attempts.c.is_test == false()
LIVE_JOBS = text("jobs.status IN ('Queued', 'Running')")  # literals, so that both databases use the partial index


@dataclass(frozen=True)
class Period:
    """Counts of the attempts that began in a period. Durations are nearest-rank percentiles over all of them, in ms."""

    period: str
    since: datetime
    attempts: int
    delivered: int
    failed: int
    by_error: Mapping[str, int]  # `delivery_log.ANSWERED` for a response that is not a 2xx
    by_status_code: Mapping[int, int]  # of failed attempts with a response
    duration_p50_ms: int | None
    duration_p95_ms: int | None


@dataclass(frozen=True)
class Summary:
    """A subscription's open deliveries and recent attempts."""

    subscription: Subscription
    waiting: int  # due or being sent
    retrying: int
    oldest_waiting_at: datetime | None  # since when the oldest is due
    periods: Sequence[Period]


@dataclass(frozen=True)
class Load:
    """The open work, and the work done within the last hour: counts, and ages in seconds."""

    deliveries: Mapping[str, int]  # by STATES
    oldest_due_s: float
    attempts_last_hour: Mapping[str, int]  # delivered, failed
    paused_subscriptions: int
    jobs: Mapping[tuple[str, str], int]  # unfinished ones by flow and status
    oldest_job_s: Mapping[str, float]  # unfinished, by flow


def read_summary(r: Reading, subscription: Subscription, now: datetime) -> Summary:
    """Return the summary of a subscription as of now."""
    selected = deliveries.c.subscription_id == subscription.subscription_id
    counts = select(deliveries.c.status, func.count(), func.min(deliveries.c.due_at)).where(is_open(), selected)
    by_status = {status: (count, since) for status, count, since in r.execute(counts.group_by(deliveries.c.status))}
    none = (0, None)
    due, sending = (by_status.get(status, none) for status in (DeliveryStatus.DUE, DeliveryStatus.SENDING))
    return Summary(
        subscription=subscription,
        waiting=due[0] + sending[0],
        retrying=by_status.get(DeliveryStatus.RETRYING, none)[0],
        oldest_waiting_at=due[1],
        periods=[_read_period(r, subscription.subscription_id, name, now - ago) for name, ago in PERIODS.items()],
    )


def _read_period(r: Reading, subscription_id: UUID, name: str, since: datetime) -> Period:
    selected = and_(attempts.c.subscription_id == subscription_id, attempts.c.started_at >= since, COUNTED)
    kinds = select(attempts.c.error, attempts.c.status_code, func.count()).where(selected)
    total, by_error, by_status_code = 0, Counter[str](), Counter[int]()
    for error, status_code, count in r.execute(kinds.group_by(attempts.c.error, attempts.c.status_code)):
        total += count
        if not _is_success(error, status_code):
            by_error[error or ANSWERED] += count
            by_status_code += Counter({status_code: count} if status_code is not None else {})
    failed = by_error.total()
    return Period(
        period=name,
        since=since,
        attempts=total,
        delivered=total - failed,
        failed=failed,
        by_error=dict(by_error.most_common()),
        by_status_code=dict(by_status_code.most_common()),
        duration_p50_ms=_percentile(r, selected, total, 50),
        duration_p95_ms=_percentile(r, selected, total, 95),
    )


def _is_success(error: str | None, status_code: int | None) -> bool:
    return error is None and status_code is not None and 200 <= status_code <= 299


def _percentile(r: Reading, selected: ColumnElement[bool], total: int, percent: int) -> int | None:
    """Return the nearest-rank percentile: the smallest duration that at least `percent` of attempts don't exceed."""
    if not total:
        return None
    rank = -(-total * percent // 100)
    query = select(attempts.c.duration_ms).where(selected).order_by(attempts.c.duration_ms)
    duration: int = r.execute(query.offset(rank - 1).limit(1)).scalar_one()
    return duration


def read_load(r: Reading, now: datetime) -> Load:
    """Return the load of all clients, for the operator's monitoring."""
    since = outbox.find_due_since(r)
    unfinished, oldest = _count_unfinished_jobs(r)
    return Load(
        deliveries=_count_open_deliveries(r),
        oldest_due_s=0.0 if since is None else _age_s(since, now),
        attempts_last_hour=_count_last_hour(r, now),
        paused_subscriptions=r.execute(select(func.count()).where(subscriptions.c.paused_at.is_not(None))).scalar_one(),
        jobs=unfinished,
        oldest_job_s={flow: _age_s(oldest[flow], now) if flow in oldest else 0.0 for flow in Flow},
    )


def _age_s(since: datetime, now: datetime) -> float:
    """Return an age in seconds, never negative even if the clock was set back."""
    return max(0.0, (now - since).total_seconds())


def _count_open_deliveries(r: Reading) -> dict[str, int]:
    counted = (
        select(deliveries.c.status, deliveries.c.subscription_id, func.count().label("times"))
        .where(is_open())
        .group_by(deliveries.c.status, deliveries.c.subscription_id)
        .subquery()
    )
    query = select(counted, subscriptions.c.paused_at).join(
        subscriptions, subscriptions.c.subscription_id == counted.c.subscription_id, isouter=True
    )
    counts = dict.fromkeys(STATES, 0)
    for row in r.execute(query):
        waits = row.status == DeliveryStatus.DUE and row.paused_at is not None
        counts[PAUSED if waits else row.status] += row.times
    return counts


def _count_last_hour(r: Reading, now: datetime) -> dict[str, int]:
    recent = select(attempts.c.error, attempts.c.status_code, func.count()).where(
        attempts.c.started_at >= now - LAST_HOUR
    )
    counts = {"delivered": 0, "failed": 0}
    for error, status_code, count in r.execute(recent.group_by(attempts.c.error, attempts.c.status_code)):
        counts["delivered" if _is_success(error, status_code) else "failed"] += count
    return counts


def _count_unfinished_jobs(r: Reading) -> tuple[dict[tuple[str, str], int], dict[str, datetime]]:
    """Return the numbers of unfinished jobs by flow and status (with zeros), and the oldest's time by flow."""
    query = select(jobs.c.flow, jobs.c.status, func.count(), func.min(jobs.c.created_at)).where(LIVE_JOBS)
    counts = {(str(flow), str(status)): 0 for flow in Flow for status in LIVE}
    oldest: dict[str, datetime] = {}
    for flow, status, count, since in r.execute(query.group_by(jobs.c.flow, jobs.c.status)):
        counts[flow, status] = count
        oldest[flow] = min(since, oldest.get(flow, since))
    return counts, oldest
