"""Diagnose a Tidemark: problems, their severity, and what to do about each.

The doctor repairs nothing. It writes only a probe into the lake, a copy of a damaged log and, with `deep`, the result
of the integrity check. What a healthy service resolves by itself within its usual time is not reported. Home, key and
database are checked first, because without them nothing else can be checked.
"""

import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import starmap
from pathlib import Path
from uuid import uuid4

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from pipelines.vocabulary.errors import Corrupt
from storage.core import brokers, leases, vault_keys
from storage.core.database import Database, Reading
from storage.core.models import LIVE, BatchState, batches, jobs, locations, ruleset_evaluation_requests
from storage.core.models import subscriptions as all_subscriptions
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store, open_lake
from storage.core.vault import Vault
from storage.customers import summaries
from storage.operations import automations, integrity, retention, sqlite_check
from storage.operations.automations import Automation
from storage.operations.integrity import Damage
from storage.webhooks import outbox, subscriptions
from storage.webhooks.subscriptions import Subscription, open_secret

# These thresholds are our judgement.
LITTLE_SPACE, HARDLY_ANY_SPACE = 5 * 2**30, 2**30  # bytes
QUICK_CHECK_WITHIN_S = 30.0
CLOCKS_DIFFER_BY = timedelta(minutes=1)
BATCH_OVERDUE = timedelta(minutes=2)  # since the lease expired, without its jobs going to another batch
BATCH_STUCK = timedelta(hours=1)  # longer than a run may take
JOB_OVERDUE = timedelta(minutes=15)
DELIVERY_OVERDUE = timedelta(minutes=10)
EVALUATION_OVERDUE = timedelta(hours=1)
PASS_OVERDUE = timedelta(days=30)


class Severity(StrEnum):
    ERROR = "error"  # something doesn't work, or data is at risk: act now
    WARNING = "warning"  # act soon
    NOTE = "note"  # good to know


@dataclass(frozen=True)
class Finding:
    severity: Severity
    about: str
    problem: str
    remedy: str

    @property
    def needs_the_operator(self) -> bool:
        return self.severity is not Severity.NOTE


error = partial(Finding, Severity.ERROR)
warning = partial(Finding, Severity.WARNING)
note = partial(Finding, Severity.NOTE)


def examine(settings: Settings, clock: Callable[[], datetime], *, deep: bool = False) -> list[Finding]:
    """Return all findings, the worst first. With `deep`, every file of the lake is read."""
    severities = list(Severity)
    return sorted(_findings(settings, clock, deep), key=lambda finding: severities.index(finding.severity))


def _findings(settings: Settings, clock: Callable[[], datetime], deep: bool) -> Iterator[Finding]:
    if not settings.home.is_dir():
        yield error("home", f"{settings.home} does not exist", "name the home with --home or TIDEMARK_HOME")
        return
    yield from _check_home(settings)
    yield from _check_lake(settings.lake, clock())
    key_findings = _check_master_key(settings)
    yield from key_findings
    yield from _check_log(settings)
    db = Database(settings.database)
    database_findings = list(_check_database(settings, db))
    yield from database_findings
    if not any(finding.severity is Severity.ERROR for finding in (*key_findings, *database_findings)):
        store = Store(settings, db, open_lake(settings, db), vault_keys.open_vault(db, settings))
        yield from _check_store(store, clock, deep)
    db.close()


def _check_store(store: Store, clock: Callable[[], datetime], deep: bool) -> Iterator[Finding]:
    """Check everything that needs a working database."""
    if deep:
        integrity.check(store, clock, afresh=True)
        yield from _check_orphans(store, clock())
        yield from _check_summaries(store.db)
    if store.settings.has_bucket and (problem := store.lake.try_writing()) is not None:
        remedy = "check its address, the bucket's name, and the rights of the access key"
        yield error("lake", f"{store.settings.lake_url}: {problem}", remedy)
    now = leases.clock(store.db)
    with store.db.reading() as r:
        yield from _check_clocks(r, now, clock())
        yield from _check_secrets(r, store.settings)
        yield from _check_jobs(r, now)
        yield from _check_fleet(r, store.settings, now)
        yield from _check_batches(r, now)
        yield from _check_deliveries(r, now)
        yield from _check_ruleset_evaluations(r, now)
        yield from starmap(_report_stopped, automations.find_stopped(r).items())
        yield from map(_report_paused, subscriptions.find_paused(r))
        yield from _check_retention(r, now - store.settings.retention)
        yield from map(_report_damage, integrity.read_damages(r))
        yield from _check_last_pass(r, now)


def _check_home(settings: Settings) -> Iterator[Finding]:
    if stat.S_IMODE(settings.home.stat().st_mode) & 0o077:
        yield warning("home", f"other users may read {settings.home}", f"chmod 700 {settings.home}")
    folders = [folder for folder in (settings.lake, settings.home) if folder.exists()]
    for folder in {folder.stat().st_dev: folder for folder in folders}.values():
        yield from _check_space(folder)


def _check_space(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < LITTLE_SPACE:
        kind = error if free < HARDLY_ANY_SPACE else warning
        yield kind("space", f"{free / 2**30:.1f} GiB are free in {folder}", "free space, or move it to a larger disk")


def _check_lake(root: Path, now: datetime) -> Iterator[Finding]:
    """Check that the lake can be written to, and that its file system's clock agrees with ours."""
    probe = root / f".doctor.{uuid4().hex}"
    try:
        probe.write_bytes(b"")
        written_at = datetime.fromtimestamp(probe.stat().st_mtime, UTC)
        probe.unlink()
    except OSError as failure:
        remedy = "mount it, or give Tidemark's user the right to write"
        yield error("lake", f"{root} can't be written to: {failure.strerror}", remedy)
        return
    if abs(written_at - now) > CLOCKS_DIFFER_BY:
        yield warning("clock", f"the clock of {root} differs from ours by {written_at - now}", "synchronise the clocks")


def _check_master_key(settings: Settings) -> list[Finding]:
    """Check the key, but never create one: with a new key, all secrets encrypted before would be lost."""
    if settings.keeps_key_file and not settings.key_file.exists():
        return [error("master key", f"{settings.key_file} is missing", "restore it, or set TIDEMARK_MASTER_KEY")]
    try:
        assert settings.master_key_bytes
    except SettingsError as problem:
        return [error("master key", str(problem), "correct it; without the key no webhook can be signed")]
    return []


def _check_database(settings: Settings, db: Database) -> Iterator[Finding]:
    if db.is_sqlite and not Path(db.url.database or "").exists():
        remedy = "restore it, or start Tidemark to create a new one"
        yield error("database", f"{db.url.database} does not exist", remedy)
        return
    try:
        current, newest = db.revisions()
    except SQLAlchemyError as failure:
        cause = str(getattr(failure, "orig", failure)).partition("\n")[0]
        yield error("database", f"it can't be used: {cause}", "start it; check TIDEMARK_DATABASE_URL")
        return
    if (file := sqlite_check.database_file(settings)) is not None:
        yield from _check_file(file)
    if current != newest:
        problem = f"its tables have revision {current or 'none'}, this program expects {newest}"
        remedy = "start this version to upgrade it; if it refuses, run the version that created it"
        yield error("database", problem, remedy)


def _check_log(settings: Settings) -> Iterator[Finding]:
    """Check SQLite's log before anything opens the database: SQLite drops what comes after a damaged page."""
    file = sqlite_check.database_file(settings)
    if file is not None and (lost := sqlite_check.count_lost_commits(file)):
        copy = sqlite_check.keep_log(file)
        problem = f"its log is damaged, and at least {lost} commits after the damage are lost"
        yield error(
            "database", problem, f"restore a backup, or send later submissions again; the log is kept as {copy}"
        )


def _check_file(database: Path) -> Iterator[Finding]:
    """Run SQLite's quick check of its file."""
    checked = sqlite_check.quick_check(database, QUICK_CHECK_WITHIN_S)
    if checked.damage is not None:
        remedy = "stop Tidemark and restore the database from a backup (docs/how-to/operations.md, Damaged files)"
        yield error("database", f"{database} is damaged: {checked.damage}", remedy)
    elif not checked.complete:
        problem = f"the check of {database} was stopped after {QUICK_CHECK_WITHIN_S:.0f} s"
        yield note("database", problem, f"at a quiet time run sqlite3 {database} 'PRAGMA quick_check'")


def _check_clocks(r: Reading, now: datetime, ours: datetime) -> Iterator[Finding]:
    newest = r.execute(select(func.max(jobs.c.created_at))).scalar()
    if newest is not None and newest - now > CLOCKS_DIFFER_BY:
        problem = f"the newest job was created at {newest:%Y-%m-%d %H:%M}Z, in the future"
        yield error("clock", problem, "set the clock right")
    if abs(now - ours) > CLOCKS_DIFFER_BY:
        yield warning("clock", f"the database's clock differs by {now - ours}", "synchronise the clocks")


def _check_secrets(r: Reading, settings: Settings) -> Iterator[Finding]:
    """Check that the master key opens the data keys, and a data key opens the newest webhook secret."""
    keys = vault_keys.read_data_keys(r)
    if not keys:
        return  # nothing was ever encrypted
    try:
        ring = vault_keys.open_ring(keys, settings)
        query = select(all_subscriptions.c.subscription_id, all_subscriptions.c.secret)
        newest = r.execute(query.order_by(all_subscriptions.c.created_at.desc()).limit(1)).first()
        if newest is not None:
            open_secret(Vault(lambda: ring), newest.subscription_id, newest.secret)
    except SettingsError as problem:
        yield error("master key", str(problem), "restore it; if it is lost, see docs/how-to/operations.md, Keys")
    except Corrupt:
        yield error("secrets", "a stored webhook secret can't be opened", "rotate the secrets of its subscriptions")
    if settings.keeps_key_file and vault_keys.find_waiting_master_key(settings) is not None:
        yield warning("master key", "its rotation was interrupted", "run tidemark secrets rotate to finish it")
    active = {key.key_id for key in keys if key.retired_at is None}
    if vault_keys.count_sealed(r).keys() - active:
        problem = "some values are still encrypted under a retired data key"
        remedy = "run tidemark secrets rotate --reseal to continue; tidemark secrets status shows what is left"
        yield note("secrets", problem, remedy)


def _check_jobs(r: Reading, now: datetime) -> Iterator[Finding]:
    live = select(func.count(), func.min(jobs.c.created_at)).where(jobs.c.status.in_(LIVE))
    waiting, oldest = r.execute(live).one()
    idle = [name for name in (leases.DISPATCHER, leases.WORKER) if not leases.is_held(r, name, now)]
    if idle:
        kind, problem = (error, f"{waiting} jobs wait and") if waiting else (note, "no job waits, but")
        yield kind("processing", f"{problem} there is no {' and no '.join(idle)}", "start it: tidemark up")
    elif oldest is not None and now - oldest > JOB_OVERDUE:
        problem = f"{waiting} jobs are unfinished, the oldest since {oldest:%Y-%m-%d %H:%M}Z"
        remedy = "check the runs in Dagster; if the load is too high, add CPU or lower the rate limit"
        yield warning("jobs", problem, remedy)


def _check_fleet(r: Reading, settings: Settings, now: datetime) -> Iterator[Finding]:
    """List the workers of a fleet, and check its broker."""
    if not settings.broker_url:
        return
    fleet = leases.list_held(r, leases.FLEET, now)
    if fleet:
        names = ", ".join(name.removeprefix(f"{leases.FLEET}/") for name in fleet)
        yield note(
            "fleet", f"{len(fleet)} workers are registered: {names}", "nothing, if these are all that should run"
        )
    if outside := len(leases.list_held(r, leases.WORKER, now)) - len(fleet):
        problem = f"{outside} workers on this database have no broker, and get no runs"
        yield warning("fleet", problem, "set TIDEMARK_BROKER_URL on their machines, and restart them")
    if (problem := brokers.find_problem(settings)) is not None:
        yield error("broker", problem, "start it; check TIDEMARK_BROKER_URL, its user and the network")


def _check_batches(r: Reading, now: datetime) -> Iterator[Finding]:
    query = select(batches).where(batches.c.state == BatchState.OPEN).order_by(batches.c.token)
    for batch in r.execute(query):
        if now - batch.lease_expires_at > BATCH_OVERDUE:
            problem = f"the lease of batch {batch.token} expired at {batch.lease_expires_at:%Y-%m-%d %H:%M}Z"
            yield warning("batches", problem, "start a dispatcher: it puts the batch's jobs into another run")
        elif now - batch.created_at > BATCH_STUCK:
            problem = f"batch {batch.token} has been open since {batch.created_at:%Y-%m-%d %H:%M}Z"
            yield warning("batches", problem, f"end its run {batch.run_id or ''} in Dagster: its jobs start again")


def _check_deliveries(r: Reading, now: datetime) -> Iterator[Finding]:
    since = outbox.find_due_since(r)
    if since is not None and now - since > DELIVERY_OVERDUE:
        problem = f"webhook deliveries have been due since {since:%Y-%m-%d %H:%M}Z"
        yield warning("deliveries", problem, "start a worker; see tidemark deliveries list")


def _check_ruleset_evaluations(r: Reading, now: datetime) -> Iterator[Finding]:
    overdue = ruleset_evaluation_requests.c.requested_at < now - EVALUATION_OVERDUE
    count, oldest = r.execute(
        select(func.count(), func.min(ruleset_evaluation_requests.c.requested_at)).where(overdue)
    ).one()
    if count:
        problem = f"{count} requested ruleset evaluations are waiting, the oldest since {oldest:%Y-%m-%d %H:%M}Z"
        remedy = "check the runs of evaluate_rulesets and of the portfolio's queue in Dagster"
        yield warning("monitoring", problem, remedy)


def _report_stopped(automation: Automation, found_at: datetime) -> Finding:
    return error(
        "automation",
        f"the {automation} should run, but is stopped, as found at {found_at:%Y-%m-%d %H:%M}Z",
        "turn it on in Dagster's pages under Automation, or restart Tidemark, which does so by itself",
    )


def _report_paused(subscription: Subscription) -> Finding:
    """Report a paused subscription: as a note if a person paused it, because that was intended."""
    by_failures = subscription.paused_by == outbox.BY_FAILURES
    kind, why = (warning, "for its failures") if by_failures else (note, f"by the {subscription.paused_by}")
    since = f"{subscription.paused_at:%Y-%m-%d %H:%M}Z"
    return kind(
        "webhooks",
        f"subscription {subscription.subscription_id} has been paused {why} since {since}",
        f"once its receiver works, run tidemark subscriptions resume {subscription.subscription_id}",
    )


def _check_retention(r: Reading, retained_since: datetime) -> Iterator[Finding]:
    overdue = locations.c.replaced_at < retained_since - retention.SWEEP_OVERDUE
    if r.execute(select(locations.c.customer_number).where(overdue).limit(1)).first() is not None:
        problem = f"versions are kept more than {retention.SWEEP_OVERDUE.days} days longer than TIDEMARK_RETENTION says"
        yield warning(
            "retention", problem, "check the clock; then turn the schedules on, and run tidemark sweep --confirm"
        )


def _check_orphans(store: Store, now: datetime) -> Iterator[Finding]:
    count, size = retention.count_orphans(store, now)
    if count:
        problem = f"the database doesn't name {count} files of the lake ({size / 2**20:.1f} MiB)"
        yield note("orphans", problem, "nothing: the next sweep removes them")


def _check_summaries(db: Database) -> Iterator[Finding]:
    if differing := sum(1 for _ in summaries.find_all_differing(db)):
        problem = f"the summaries of {differing} customers, which lists of customers show, differ from their data"
        yield error("customers", problem, "report it as a fault of Tidemark; nothing but these lists reads summaries")


def _report_damage(damage: Damage) -> Finding:
    customers = ", ".join(map(str, damage.customers)) or "no customer's current data"
    return error(
        "lake",
        f"{damage.path} is {damage.problem}, as found at {damage.found_at:%Y-%m-%d %H:%M}Z; it holds: {customers}",
        "copy this file from any backup (docs/how-to/operations.md, Damaged files), then run tidemark doctor --deep",
    )


def _check_last_pass(r: Reading, now: datetime) -> Iterator[Finding]:
    finished = integrity.find_last_finished(r)
    if finished is None or now - finished > PASS_OVERDUE:
        problem = "no check of all files has ended yet"
        if finished is not None:
            problem = f"the last check of all files ended on {finished:%Y-%m-%d}"
        yield note("lake", problem, "turn the schedules on, or run tidemark doctor --deep")
