"""The invariants that must hold after every fault. Each is a named check that yields the violations it finds.

They look from outside: HTTP answers, SQL, the lake's files, the receiver's log, the processes' logs. All hold for a
service that has drained; those under `@always` hold while it works, too, and are also checked then. A new part of the
product adds its check here, under `@invariant`; every scenario and every fault then tests it.
"""

import hashlib
import hmac
import json
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, func, select

from api.webhooks.listen import Received
from storage.core.database import Reading
from storage.core.models import (
    LIVE,
    BatchState,
    DeliveryStatus,
    Flow,
    api_keys,
    attempts,
    batches,
    customers,
    deliveries,
    events,
    jobs,
    segments,
    subscriptions,
)
from tests.faults.ledger import Row
from tests.faults.lender import Lender
from tests.faults.world import RUNS_END_WITHIN_S, World, live_jobs, open_deliveries, sha256

TERMINAL = ("Completed", "CompletedWithErrors", "Failed")
EVENTS_OF = {
    "Completed": {"job.completed", "job.enrichment.completed"},
    "CompletedWithErrors": {"job.completed", "job.enrichment.completed"},
    "Failed": {"job.failed", "job.enrichment.failed"},
}
SIGNATURE = "x-service-webhook-signature"
ASKED_AT: Final[Mapping[str, str]] = {
    Flow.ENRICHMENT: "/v1/customer/{}/transactions",
    Flow.REPORT_REFRESH: "/v1/customer/{}/reports/refresh",
}


@dataclass(frozen=True)
class Aftermath:
    """One client's scenario after all work has ended, and the service in which it happened."""

    world: World
    lender: Lender


Check = Callable[[Aftermath], Iterator[str]]
CHECKS: dict[str, Check] = {}
AT_ANY_MOMENT: dict[str, Check] = {}


def invariant(check: Check) -> Check:
    CHECKS[check.__name__] = check
    return check


def always(check: Check) -> Check:
    """Register an invariant that is also checked while the scenario runs."""
    AT_ANY_MOMENT[check.__name__] = check
    return invariant(check)


def violations(after: Aftermath) -> list[str]:
    """Return all violations, each with the name of its check."""
    return [f"{name}: {found}" for name, check in CHECKS.items() for found in _find_violations(check, after)]


def violations_now(aftermath: Aftermath) -> list[str]:
    """Return the violations of invariants that hold at every moment."""
    return [f"{name}: {found}" for name, check in AT_ANY_MOMENT.items() for found in _find_violations(check, aftermath)]


def _find_violations(check: Check, after: Aftermath) -> list[str]:
    """Return the violations that a check finds. An answer that the check can't interpret is one too."""
    try:
        return list(check(after))
    except AssertionError as error:
        return [f"it could not be checked: {error}"]


@invariant
def nothing_stays_in_progress(after: Aftermath) -> Iterator[str]:
    """There is no live job, unsent delivery or open batch, and therefore no refresh that outlived its lease."""
    with after.world.store.db.reading() as r:
        yield from (f"job {job} has not ended" for job in live_jobs(r))
        yield from (f"delivery {delivery} has not ended" for delivery in open_deliveries(r))
        left = select(func.count()).where(
            batches.c.state == BatchState.OPEN, batches.c.lease_expires_at < datetime.now(UTC)
        )
        if count := r.execute(left).scalar_one():
            yield f"{count} batches are open beyond their lease"


@invariant
def no_dagster_run_stays_in_progress(after: Aftermath) -> Iterator[str]:
    """Each run ends even if its worker or the daemon died, at the latest when Dagster gives up an unstarted run."""
    for run_id, for_s in after.world.runs_under_way().items():
        if for_s > RUNS_END_WITHIN_S:
            yield f"run {run_id} is under way, {for_s:.0f} s after everything was done"


@invariant
def acknowledged_resources_can_be_read_and_have_ended(after: Aftermath) -> Iterator[str]:
    """Every resource answered with 201 or 202 can be read, and every job has ended."""
    for location in after.lender.ledger.acknowledged_locations():
        answer = after.lender.call("GET", location)
        if answer.status_code != 200:
            yield f"{location} answers {answer.status_code}"
        elif location.startswith("/v1/jobs/") and answer.json()["data"]["status"] not in TERMINAL:
            yield f"{location} is {answer.json()['data']['status']}"


@invariant
def visible_rows_are_the_submitted_ones(after: Aftermath) -> Iterator[str]:
    """Every accepted row is visible once, and no other row is, whatever requests were repeated."""
    for customer_id, accounts in after.lender.ledger.rows.items():
        visible = after.lender.transactions(customer_id)
        if repeated := [each for each, n in Counter(row["transactionId"] for row in visible).items() if n > 1]:
            yield f"customer {customer_id}: transaction ids stand twice: {repeated[:3]}"
        shown: defaultdict[str, Counter[Row]] = defaultdict(Counter)
        for row in visible:
            shown[row["account"]["accountNumberMasked"][-4:]][Row.of(row)] += 1
        for account_number, expected in accounts.items():
            found = shown.pop(account_number[-4:], Counter())
            if missing := expected - found:
                yield f"customer {customer_id}: {missing.total()} rows are missing, as {next(iter(missing))}"
            if surplus := found - expected:
                yield f"customer {customer_id}: {surplus.total()} rows too many, as {next(iter(surplus))}"
        if shown:
            yield f"customer {customer_id}: rows of accounts that were never submitted: {list(shown)}"


@invariant
def a_job_is_completed_if_and_only_if_its_rows_are_visible(after: Aftermath) -> Iterator[str]:
    """A completed job shows all its rows, a failed or retracted one none, and visible rows belong to ended jobs."""
    for customer_id in after.lender.ledger.rows:
        rows_of = Counter(row["jobId"] for row in after.lender.transactions(customer_id))
        retractions = after.lender.data("GET", "/v1/jobs", customerId=customer_id, flow="Withdrawal")["jobs"]
        retracted = {job["withdraws"] for job in retractions if job["status"] == "Completed"}
        for job in after.lender.data("GET", "/v1/jobs", customerId=customer_id, flow="Enrichment")["jobs"]:
            visible = rows_of.pop(job["jobId"], 0)
            completed = job["status"] in ("Completed", "CompletedWithErrors")
            promised = job["enrichedCount"] if completed and job["jobId"] not in retracted else 0
            if visible != promised:
                yield f"job {job['jobId']} is {job['status']} with {promised} rows, of which {visible} are visible"
            if (
                completed
                and job["totalReceivedTransactions"] != job["totalProcessedTransactions"] + job["rejectedCount"]
            ):
                yield f"job {job['jobId']}: counts don't add up: {job}"
        if rows_of:
            yield f"rows are visible of unknown jobs {list(rows_of)}"


@invariant
def each_job_has_its_events_once(after: Aftermath) -> Iterator[str]:
    """Each job has one event for each stage and kind; a refresh has none."""
    with after.world.store.db.reading() as r:
        kinds: defaultdict[UUID, list[str]] = defaultdict(list)
        for job_id, kind in r.execute(select(events.c.job_id, events.c.event_type)):
            kinds[job_id].append(kind)
        for job in r.execute(
            select(jobs.c.job_id, jobs.c.flow, jobs.c.status).where(
                _mine(after, jobs.c.client_id), jobs.c.status.not_in(LIVE)
            )
        ):
            expected = EVENTS_OF[job.status] if job.flow == Flow.ENRICHMENT else set()
            if sorted(kinds[job.job_id]) != sorted(expected):
                yield f"job {job.job_id} ({job.flow}, {job.status}) has the events {kinds[job.job_id]}"


@invariant
def each_event_has_one_delivery_per_subscription(after: Aftermath) -> Iterator[str]:
    """Each subscription from before the job has one delivery, attempted or cancelled; there is no other delivery."""
    with after.world.store.db.reading() as r:
        counted = select(deliveries.c.event_id, deliveries.c.subscription_id, func.count()).group_by(
            deliveries.c.event_id, deliveries.c.subscription_id
        )
        rows = {(event, subscription): n for event, subscription, n in r.execute(counted)}
        yield from (f"event and subscription {pair} have {n} deliveries" for pair, n in rows.items() if n > 1)
        promised = after.lender.ledger.job_ids()
        for subscription in after.lender.ledger.subscriptions:
            later = [UUID(job) for job in promised[subscription.before_jobs :]]
            due = select(events.c.event_id).where(
                events.c.job_id.in_(later), events.c.event_type == subscription.event_type
            )
            for event_id in r.execute(due).scalars():
                if (event_id, UUID(subscription.subscription_id)) not in rows:
                    yield f"event {event_id} has no delivery for {subscription.subscription_id}"
        yield from _unattempted_deliveries(r)
        yield from _misdirected_deliveries(r)


def _misdirected_deliveries(r: Reading) -> Iterator[str]:
    """Yield deliveries to a subscription of another event type or client."""
    sent = select(events.c.event_id, events.c.event_type, subscriptions.c.subscription_id).where(
        deliveries.c.event_id == events.c.event_id,
        deliveries.c.subscription_id == subscriptions.c.subscription_id,
        (events.c.event_type != subscriptions.c.event_type) | (events.c.client_id != subscriptions.c.client_id),
    )
    for event_id, event_type, subscription_id in r.execute(sent):
        yield f"event {event_id} ({event_type}) has a delivery for {subscription_id}, which did not ask for it"


def _unattempted_deliveries(r: Reading) -> Iterator[str]:
    tried = select(attempts.c.delivery_id)
    ended = deliveries.c.status.in_((DeliveryStatus.DELIVERED, DeliveryStatus.FAILED))
    for delivery_id in r.execute(select(deliveries.c.delivery_id).where(ended, deliveries.c.delivery_id.not_in(tried))):
        yield f"delivery {delivery_id} has ended without an attempt"


@invariant
def receivers_got_the_stored_bytes(after: Aftermath) -> Iterator[str]:
    """Every attempt delivered the stored bytes with a valid signature, and no delivered event is missing."""
    with after.world.store.db.reading() as r:
        retained = {
            str(row.event_id): bytes(row.body)
            for row in r.execute(select(events).where(_mine(after, events.c.client_id)))
        }
        done = select(deliveries.c.subscription_id, deliveries.c.event_id)
        delivered = r.execute(done.where(deliveries.c.status == DeliveryStatus.DELIVERED)).all()
    for subscription in after.lender.ledger.subscriptions:
        got = [each for each in after.world.receiver.received if each.path == subscription.path]
        for each in got:
            event_id = json.loads(each.body)["eventId"]
            if retained.get(event_id) != each.body:
                yield f"event {event_id} was sent with other bytes than were kept"
            if not _verifies(each, subscription.secret):
                yield f"event {event_id} was sent with a signature that does not verify"
        heard = {UUID(json.loads(each.body)["eventId"]) for each in got}
        recorded = {event for whose, event in delivered if str(whose) == subscription.subscription_id}
        yield from (f"event {event} counts as delivered and was not received" for event in recorded - heard)


def _verifies(received: Received, secret: str) -> bool:
    digest = hmac.new(b64decode(secret), received.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(received.headers.get(SIGNATURE, ""), f"sha256={digest}")


@invariant
def no_other_client_can_read_it(after: Aftermath) -> Iterator[str]:
    """Every path that answered this client is a 404 for another client, whose own lists are empty."""
    stranger = after.world.stranger
    reached = {entry.path for entry in after.lender.ledger.entries if entry.status == 200} | set(
        after.lender.ledger.acknowledged_locations()
    )
    for path in sorted(path for path in reached if _names_something(path)):
        if (status := stranger.call("GET", path).status_code) not in (404, 405):
            yield f"another client's GET {path} is answered {status}"
    for path in ("/v1/customers", "/v1/jobs", "/v1/transactions", "/v1/webhooks/subscriptions"):
        if (total := stranger.data("GET", path)["totalCount"]) != 0:
            yield f"another client's GET {path} lists {total}"


def _names_something(path: str) -> bool:
    return any(len(part) == 36 and part.count("-") == 4 for part in path.split("/"))


@always
def at_most_one_refresh_is_live(after: Aftermath) -> Iterator[str]:
    """At most one refresh of a customer is live."""
    with after.world.store.db.reading() as r:
        live = select(jobs.c.customer_number).where(jobs.c.flow == Flow.REPORT_REFRESH, jobs.c.status.in_(LIVE))
        several = live.group_by(jobs.c.customer_number).having(func.count() > 1)
        yield from (f"customer {number} has several live refreshes" for number in r.execute(several).scalars())


@invariant
def requests_with_a_key_were_done_once(after: Aftermath) -> Iterator[str]:
    """Each customer, submission and refresh that a lender requested with a key exists once, despite repetitions."""
    if not after.lender.sends_keys:
        return
    asked, done = after.lender.ledger.count_keys_by_path(), _count_done(after)
    for path in sorted(asked | done):
        if asked[path] != done[path]:
            yield f"{path} was asked for under {asked[path]} keys and done {done[path]} times"


def _count_done(after: Aftermath) -> Counter[str]:
    """Count the client's resources by the path that creates them."""
    mine = select(func.count()).where(_mine(after, customers.c.client_id))
    by_flow = select(customers.c.customer_id, jobs.c.flow, func.count()).join_from(jobs, customers)
    asked = by_flow.where(_mine(after, jobs.c.client_id), jobs.c.flow.in_(ASKED_AT))
    with after.world.store.db.reading() as r:
        done = Counter({"/v1/customer": r.execute(mine).scalar_one()})
        for customer_id, flow, n in r.execute(asked.group_by(customers.c.customer_id, jobs.c.flow)):
            done[ASKED_AT[flow].format(customer_id)] = n
    return done


@invariant
def every_named_file_is_intact(after: Aftermath) -> Iterator[str]:
    """Each file exists and has the SHA-256 that the database names."""
    with after.world.store.db.reading() as r:
        landed = select(jobs.c.landing_path, jobs.c.landing_sha256).where(jobs.c.landing_path.is_not(None))
        named = [*r.execute(select(segments.c.path, segments.c.sha256)), *r.execute(landed)]
    for path, digest in named:
        file = after.world.settings.lake / path
        if not file.exists():
            yield f"{path} is missing"
        elif sha256(file) != digest:
            yield f"{path} is not what was written"


@invariant
def no_answer_was_an_unexpected_error(after: Aftermath) -> Iterator[str]:
    """A failing store is answered with 503; a 500 with this code is an unexpected exception."""
    for entry in after.lender.ledger.entries:
        if entry.code == "Service.Failure":
            yield f"{entry.method} {entry.path} was answered with an unforeseen failure"


@invariant
def no_log_holds_a_secret(after: Aftermath) -> Iterator[str]:
    """No log and no record of Dagster holds a key, secret, full account number or ABN."""
    home = after.world.home
    written = {*home.glob("**/*.log"), *(path for path in home.glob("dagster/**/*") if path.is_file())}
    secrets = {secret.encode() for secret in after.lender.secrets_shown}
    for path in written:
        content = path.read_bytes()
        yield from (f"{path.name} holds {secret[:4]!r}…" for secret in secrets if secret in content)


def _mine(after: Aftermath, client_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    key_hash = hashlib.sha256(after.lender.key.encode()).digest()
    return client_id.in_(select(api_keys.c.client_id).where(api_keys.c.key_hash == key_hash))
