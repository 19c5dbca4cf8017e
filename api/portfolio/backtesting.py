"""Turn a sent backtest into a portfolio job, and the job's result into responses and a page."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import polars as pl

from api.customers.schemas.attributes import plain_value
from api.decisions import deciding
from api.portfolio import portfolio_jobs
from api.portfolio.portfolio_jobs import SHOWN_ON_THE_PAGE, first_rows, require_known
from api.portfolio.schemas.backtests import PUBLISHED, SentBacktest
from pipelines.decisions import Policy, Value, kinds_by_name
from pipelines.decisions.backtest import AFTER, BEFORE, KNOWN_OUTCOMES
from pipelines.decisions.backtest.coverage import describe_coverage
from pipelines.decisions.backtest.page import About, page
from pipelines.decisions.plan import every_metric
from pipelines.pages.wording import day, quantity, reading, title
from pipelines.vocabulary.errors import InvalidRequest
from storage.core.database import Reading
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import backtests, policies
from storage.decisions.backtests import Against, Knowledge, Request
from storage.decisions.policies import PolicyVersion, StoredPolicy
from storage.portfolio import portfolio_jobs as stored_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, Listing, NewPortfolioJob, PortfolioJob

UNKNOWN_CUSTOMER = "Backtest.UnknownCustomer"
REFUSES = (
    *(UNKNOWN_CUSTOMER, "Backtest.DayToCome", "Backtest.InvalidFilter", "Backtest.SameVersion"),
    *("DecisionPolicy.MissingInputs", "DecisionPolicy.UnknownInputs", "DecisionPolicy.InvalidInputs"),
    "Backtest.CustomerTwice",
)


def new_job(r: Reading, policy: StoredPolicy, sent: SentBacktest, today: date) -> NewPortfolioJob:
    """Return the job of a sent backtest of the policy.

    Raises:
        NotFound: there is no such version.
        InvalidRequest: an unknown customer, a day in the future, a version compared with itself, or wrong inputs.
    """
    version = policies.newest(r, policy) if sent.version is None else policies.version(r, policy, sent.version)
    other = _other(r, policy, sent)
    days = tuple(sorted(sent.as_of or [today]))
    if days[-1] > today:
        raise InvalidRequest("Backtest.DayToCome", "A day is in the future.")
    if other is not None and other.version == version.version:
        raise InvalidRequest("Backtest.SameVersion", "A version can't be compared with itself.")
    against = Against.VERSION if other is not None else Against(str(sent.against))
    only = None if sent.customer_ids is None else tuple(sent.customer_ids)
    require_known(r, policy.client_id, only or (), UNKNOWN_CUSTOMER, "/customerIds/{nth}")
    request = Request(
        against,
        None if other is None else other.version,
        days,
        Knowledge(sent.knowledge),
        _inputs(version, other, sent),
        only,
        _attributes(sent.attributes),
    )
    outcomes = _known_outcomes(r, policy.client_id, sent)
    return NewPortfolioJob(BACKTEST, policy.client_id, policy.policy_id, version.version, request.as_json(), outcomes)


def _other(r: Reading, policy: StoredPolicy, sent: SentBacktest) -> PolicyVersion | None:
    if sent.against in (Against.RECORDED, Against.CHALLENGER):
        return None
    return policies.version(r, policy, None if sent.against == PUBLISHED else int(sent.against))


def _inputs(version: PolicyVersion, other: PolicyVersion | None, sent: SentBacktest) -> Mapping[str, Value]:
    """Return the inputs of both versions. No input is required against recorded decisions, which have their own."""
    given = sent.inputs or {}
    declared = kinds_by_name(version.policy.declared_inputs)
    if other is None:
        return deciding.read_inputs({name: kind for name, kind in declared.items() if name in given}, given)
    others = kinds_by_name(other.policy.declared_inputs)
    if any(declared.get(name, kind) != kind for name, kind in others.items()):
        raise InvalidRequest("DecisionPolicy.InvalidInputs", "The two versions declare an input with different kinds.")
    return deciding.read_inputs(others | declared, given)


def _attributes(sent: Mapping[str, Any] | None) -> Mapping[str, Value] | None:
    try:
        return None if sent is None else {name: plain_value(value) for name, value in sent.items()}
    except ValueError:
        raise InvalidRequest("Backtest.InvalidFilter", "An attribute can't have this value.") from None


def _known_outcomes(r: Reading, client_id: UUID, sent: SentBacktest) -> pl.DataFrame | None:
    """Return the sent outcomes as KNOWN_OUTCOMES.

    Raises:
        InvalidRequest: a customer is unknown, or listed twice.
    """
    if not sent.outcomes:
        return None
    ids = [each.customer_id for each in sent.outcomes]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("Backtest.CustomerTwice", "A customer is listed twice in outcomes.")
    numbers = require_known(r, client_id, ids, UNKNOWN_CUSTOMER, "/outcomes/{nth}/customerId")
    columns = {
        "customer_number": [numbers[each] for each in ids],
        "defaulted": [each.defaulted for each in sent.outcomes],
    }
    return pl.DataFrame(columns, schema=KNOWN_OUTCOMES)


# Results


def describe(job: PortfolioJob) -> dict[str, Any]:
    """Return the public fields that a backtest has in lists."""
    request = Request.from_json(job.request)
    return portfolio_jobs.describe(job, request.customers) | {
        "against": request.against,
        "againstVersion": request.other_version,
        "asOf": request.days,
        "knowledge": request.knowledge,
        "inputs": request.inputs,
        "attributes": request.attributes,
        "knowsOutcomes": job.has_attachment,
    }


def describe_result(r: Reading, job: PortfolioJob) -> dict[str, Any]:
    """Return the public fields of a backtest with its result, if it has one."""
    days = stored_jobs.read_result(r, job)
    coverage = None if days is None else {side: describe_coverage(days, side) for side in (BEFORE, AFTER)}
    return {**describe(job), "days": days, "coverage": coverage}


def describe_version_coverage(r: Reading, policy: StoredPolicy, version: int) -> dict[str, Any]:
    """Return the coverage of a version by the newest finished backtest in which it decided."""
    job_id = backtests.latest_of_version(r, policy.policy_id, version)
    if job_id is None:
        return {"version": version, "backtestId": None, "asOf": [], "coverage": None}
    job = stored_jobs.get(r, BACKTEST, policy.client_id, job_id)
    side = AFTER if job.version == version else BEFORE
    coverage = describe_coverage(stored_jobs.read_result(r, job), side)
    return {"version": version, "backtestId": job_id, "asOf": Request.from_json(job.request).days, "coverage": coverage}


def describe_change(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the public fields of a changed customer, from a row of the lake."""
    return {
        "customerId": UUID(bytes=row["customer_id"]),
        "asOf": row["as_of"],
        "change": row["change"],
        "before": row["before"],
        "after": row["after"],
        "beforeStep": row["before_step"],
        "afterStep": row["after_step"],
        "beforeRules": row["before_rules"],
        "afterRules": row["after_rules"],
        "changedBy": row["changed_by"],
        "limits": row["limits"],
        "defaulted": row["defaulted"],
    }


def render_page(store: Store, job: PortfolioJob, policy: StoredPolicy, days: Sequence[Any], changes: Listing) -> str:
    """Return the page of a finished backtest of a policy, with the first of the changed customers."""
    first = first_rows(store.lake, changes, SHOWN_ON_THE_PAGE, describe_change)
    with store.db.reading() as r:
        compared = _compared_versions(r, policy, job)
        names = customers.find_names(r, job.client_id, {row["customerId"] for row in first})
    about = _describe_backtest(
        job, compared, {str(customer_id): name for customer_id, name in names.items()}, store.settings.zone
    )
    return page(days, about, first, changes.total)


def _compared_versions(r: Reading, policy: StoredPolicy, job: PortfolioJob) -> Sequence[Policy]:
    """Return the version that is tested and, if it is compared with another version, that one."""
    other = Request.from_json(job.request).other_version
    return [policies.version(r, policy, version).policy for version in (job.version, other) if version is not None]


def name_sides(job: PortfolioJob) -> tuple[str, str]:
    """Return in words what is compared: before and after."""
    request = Request.from_json(job.request)
    before = {
        Against.VERSION: f"version {request.other_version}",
        Against.RECORDED: "what was decided",
        Against.CHALLENGER: "what was decided",
    }[request.against]
    return before, f"{'challenger, ' if request.against is Against.CHALLENGER else ''}version {job.version}"


def _describe_backtest(
    job: PortfolioJob, compared: Sequence[Policy], names: Mapping[str, str], zone: ZoneInfo
) -> About:
    request = Request.from_json(job.request)
    policy = compared[0]
    facts = tuple(_facts(job, request, policy, zone))
    messages = {rule.code: rule.message for each in reversed(compared) for step in each.steps for rule in step.rules}
    titles = dict(pair for each in reversed(compared) for pair in _titles(each))
    return About(policy.name, *name_sides(job), facts, tuple(_notices(job, request)), messages, titles, names)


def _titles(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the name and the title of each value that the policy can read."""
    for slug, metric in every_metric(policy).items():
        yield slug, metric.name
    for each in (*policy.declared_inputs, *policy.attributes):
        yield each.name, title(each.name, each.format)


def _facts(job: PortfolioJob, request: Request, policy: Policy, zone: ZoneInfo) -> Iterator[tuple[str, str]]:
    yield "As of", ", ".join(map(day, request.days))
    yield "Requested on", day(job.created_at.astimezone(zone).date())
    known = "as known at the end of each day" if request.knowledge is Knowledge.THEN else "as known now"
    yield "Transactions and attributes", known
    if request.customers is not None:
        yield "Only", quantity(len(request.customers), "customer") + " by id"
    formats = {each.name: each.format for each in policy.attributes}
    for name, value in (request.attributes or {}).items():
        yield f"Only with {title(name, formats.get(name)).lower()}", reading(value, formats.get(name))
    formats = {each.name: each.format for each in policy.declared_inputs}
    for name, value in request.inputs.items():
        yield title(name, formats.get(name)), reading(value, formats.get(name))


def _notices(job: PortfolioJob, request: Request) -> Iterator[str]:
    if job.customers_failed:
        yield f"{quantity(job.customers_failed, 'customer')} left out: their data could not be read or computed."
    if request.against is not Against.VERSION:
        yield (
            "Only customers with a recorded decision are compared, each by its last decision up to the end of the day."
        )
