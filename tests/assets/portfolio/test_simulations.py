"""A simulation computes a client's customers in slices, and has the same result as simulating each alone."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from dagster import RunRequest, SkipReason, build_sensor_context

from assets.portfolio import portfolio_jobs as work
from assets.portfolio.kinds import day_end
from assets.reports import reports as slicing
from pipelines.decisions.canonical import canonical
from pipelines.monitoring import Observations, Ruleset, check_document, simulated, simulation, snapshots
from storage.core.models import JobStatus
from storage.core.store import Store
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import attributes, rulesets
from storage.monitoring.attributes import NewAttribute
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Request
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import SIMULATION, NewPortfolioJob, PortfolioJob
from tests.assets.conftest import FillStore
from tests.assets.lender import Lender

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

FIRST, LAST = date(2026, 1, 1), date(2026, 3, 31)
ABNS = ("51824753556", "53004085616", "83914571673", "33102417032")


def document(**also: Any) -> dict[str, Any]:
    """Return a ruleset with two rules. OUT: more than 100 went out in 10 days. RISKY: the score is below 500."""
    spent = {
        "slug": "spent",
        "name": "Spent",
        "meaning": "What went out.",
        "unit": "AUD",
        "format": "currency",
        "direction": "neutral",
        "definition": {"source": "transactions", "window": {"days": 10}, "measure": "money_out", "aggregate": "sum"},
    }
    rules = [
        {"code": "OUT", "message": "Much went out.", "condition": {"moreThan": [{"metric": "spent"}, "100"]}},
        {"code": "RISKY", "message": "Risky.", "condition": {"lessThan": [{"attribute": "score"}, "500"]}},
    ]
    read = [{"name": "score", "kind": "decimal"}]
    return {"slug": "spending", "name": "Spending", "active": False, "attributes": read} | {
        "metrics": [spent],
        "rules": rules,
        **also,
    }


def sound(reported: Mapping[str, Any]) -> Ruleset:
    found = check_document(reported)
    assert found.ruleset is not None, found.faults
    return found.ruleset


class Portfolio:
    """Four customers: the first spends much in January and March, the second in March, the third little.

    The last has no rows.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        first = Lender(store, ABNS[0])
        self.client_id = first.customer.client_id
        self.lenders = [first, *(Lender(store, abn, self.client_id) for abn in ABNS[1:])]
        for nth, rows in enumerate(
            (
                ((date(2026, 1, 5), "-150"), (date(2026, 2, 1), "-1"), (date(2026, 3, 5), "-150")),
                ((date(2025, 12, 1), "-1"), (date(2026, 3, 9), "-101")),
                ((date(2026, 2, 9), "-5"),),
            )
        ):
            self.submit(nth, *rows)

    def submit(self, nth: int, *rows: tuple[date, str]) -> None:
        items = [{"date": str(day), "description": f"SHOP {day}", "amount": amount} for day, amount in rows]
        self.lenders[nth].submit(*items)
        self.lenders[nth].end_all()

    def number(self, nth: int) -> int:
        return self.lenders[nth].customer.number

    def id(self, nth: int) -> UUID:
        return self.lenders[nth].customer.customer_id

    def score(self, nth: int, value: int | None, at: datetime) -> None:
        with self.store.db.writing() as w:
            given = {"score": None if value is None else NewAttribute(Decimal(value))}
            attributes.put(w, self.lenders[nth].customer, given, "test", at)

    def ruleset(self, **also: Any) -> StoredRuleset:
        with self.store.db.writing() as w:
            return rulesets.create(w, self.client_id, sound(document(**also)), "test", datetime.now(UTC))

    def ask(self, of: StoredRuleset, **asked: Any) -> Job:
        with self.store.db.writing() as w:
            usual: dict[str, Any] = {"first": FIRST, "last": LAST}
            return portfolio_jobs.request(w, new(of, Request(**usual | asked)), "test", datetime.now(UTC))

    def simulation(self, job: Job) -> PortfolioJob:
        with self.store.db.reading() as r:
            return portfolio_jobs.get(r, SIMULATION, self.client_id, job.job_id)

    def run(self, job: Job) -> Any:
        done = work.run(self.store, job.job_id, lambda: datetime.now(UTC))
        with self.store.db.reading() as r:
            return portfolio_jobs.read_result(r, done)

    def firings(self, job: Job) -> list[tuple[int, date, str]]:
        with self.store.db.reading() as r:
            listing = portfolio_jobs.read_listing(r, self.simulation(job))
        return [
            row[:3] for frame in portfolio_jobs.read_rows(self.store.lake, listing, None) for row in frame.iter_rows()
        ]


def new(of: StoredRuleset, request: Request) -> NewPortfolioJob:
    return NewPortfolioJob(SIMULATION, of.client_id, of.ruleset_id, of.version, request.as_json())


@pytest.fixture
def portfolio(fill_store: FillStore) -> Portfolio:
    return fill_store(Portfolio)


def test_the_result_says_which_rules_would_have_fired_for_which_customers(portfolio: Portfolio) -> None:
    job = portfolio.ask(portfolio.ruleset())
    result = portfolio.run(job)
    assert portfolio.firings(job) == [
        (portfolio.number(0), date(2026, 1, 5), "OUT"),
        (portfolio.number(0), date(2026, 3, 5), "OUT"),
        (portfolio.number(1), date(2026, 3, 9), "OUT"),
    ]
    assert [(each["month"], each["events"]) for each in result["months"]] == [
        ("2026-01-01", 1),
        ("2026-02-01", 0),
        ("2026-03-01", 2),
    ]
    assert [each["customerId"] for each in result["byCustomer"]] == [str(portfolio.id(0)), str(portfolio.id(1))]
    out, risky = result["rules"]
    assert (out["fired"], out["customers"], out["daysUnknown"]) == (3, 2, 0)
    days = (LAST - date(2026, 1, 4)).days + 90 + (LAST - date(2026, 2, 8)).days
    assert (risky["daysObserved"], risky["daysUnknown"]) == (days, days)
    assert risky["causes"] == [{"kind": "attribute", "name": "score", "cause": "not_set", "days": days}]
    done = portfolio.simulation(job)
    assert (done.status, done.customers_total, done.customers_done) == (JobStatus.COMPLETED, 3, 3)


def test_slices_of_any_size_give_the_same_result(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    of = portfolio.ruleset()
    portfolio.score(2, 400, datetime(2026, 2, 15, tzinfo=UTC))
    portfolio.score(2, 600, datetime(2026, 3, 15, tzinfo=UTC))
    whole = portfolio.ask(of)
    result = portfolio.run(whole)
    monkeypatch.setattr(slicing, "SLICE_ROWS", 1)
    monkeypatch.setattr(snapshots, "SNAPSHOT_ROWS", 1)
    monkeypatch.setattr(simulation, "MAX_SNAPSHOTS", 1)
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    sliced = portfolio.ask(of)
    assert portfolio.run(sliced) == result
    assert portfolio.firings(sliced) == portfolio.firings(whole)


def test_four_runs_at_once_have_the_result_of_one(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    of = portfolio.ruleset()
    whole = portfolio.run(alone := portfolio.ask(of))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    shared = portfolio.ask(of)
    with ThreadPoolExecutor(4) as runs:
        list(runs.map(portfolio.run, [shared] * 4))
    assert portfolio.simulation(shared).status is JobStatus.COMPLETED
    assert portfolio.run(shared) == whole
    assert portfolio.firings(shared) == portfolio.firings(alone)


def test_attributes_have_their_past_values_and_before_the_first_change_its_value(portfolio: Portfolio) -> None:
    """Days end in the service's time zone: midnight in Sydney is the afternoon before in UTC."""
    of = portfolio.ruleset()
    portfolio.score(0, 700, datetime(2026, 2, 9, 12, 59, tzinfo=UTC))  # the last minute of the 9th
    portfolio.score(0, 400, datetime(2026, 2, 20, 13, 1, tzinfo=UTC))  # the first of the 21st
    portfolio.score(
        1, 400, datetime(2026, 6, 1, tzinfo=UTC)
    )  # after the simulated days, so this value applies to all of them
    job = portfolio.ask(of)
    portfolio.run(job)
    assert [each for each in portfolio.firings(job) if each[2] == "RISKY"] == [
        (portfolio.number(0), date(2026, 1, 5), "RISKY"),
        (portfolio.number(0), date(2026, 2, 21), "RISKY"),
        (portfolio.number(1), FIRST, "RISKY"),
    ]


def test_only_customers_that_the_ruleset_lists_and_the_request_names_are_simulated(portfolio: Portfolio) -> None:
    of = portfolio.ruleset(appliesTo={"customers": [str(portfolio.id(0)), str(portfolio.id(2))]})
    job = portfolio.ask(of, customers=(portfolio.id(1), portfolio.id(2)))
    result = portfolio.run(job)
    assert (portfolio.simulation(job).customers_total, result["customers"], result["events"]) == (1, 1, 0)


def test_the_document_in_the_request_is_simulated(portfolio: Portfolio) -> None:
    tried = document()
    tried["rules"][0]["condition"]["moreThan"][1] = "100.50"
    job = portfolio.ask(portfolio.ruleset(), document=canonical(sound(tried)))
    portfolio.run(job)
    assert [number for number, _, _ in portfolio.firings(job)] == [
        portfolio.number(0),
        portfolio.number(0),
        portfolio.number(1),
    ]
    tried["rules"][0]["condition"]["moreThan"][1] = "120"
    job = portfolio.ask(portfolio.ruleset(slug="other"), document=canonical(sound(tried)))
    portfolio.run(job)
    assert [number for number, _, _ in portfolio.firings(job)] == [portfolio.number(0), portfolio.number(0)]


def test_a_customer_whose_file_is_damaged_is_left_out(portfolio: Portfolio) -> None:
    job = portfolio.ask(portfolio.ruleset())
    with portfolio.store.db.reading() as r:
        [place] = transactions.current_locations(r, [portfolio.number(0)])
    path = portfolio.store.lake.root / place.path
    path.write_bytes(path.read_bytes()[:-9])
    result = portfolio.run(job)
    done = portfolio.simulation(job)
    assert (done.status, done.customers_failed, done.customers_done) == (JobStatus.COMPLETED_WITH_ERRORS, 1, 2)
    assert result["events"] == 1


def test_a_customer_who_cannot_be_computed_is_left_out(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    real, bad = simulation.simulate, portfolio.number(1)

    def fail_for_bad(of: Any, rows: Any, *rest: Any) -> Any:
        if bad in rows["customer_number"].to_list():
            raise ValueError
        return real(of, rows, *rest)

    monkeypatch.setattr(simulation, "simulate", fail_for_bad)
    job = portfolio.ask(portfolio.ruleset())
    result = portfolio.run(job)
    done = portfolio.simulation(job)
    assert (done.status, done.customers_failed, done.customers_done) == (JobStatus.COMPLETED_WITH_ERRORS, 1, 2)
    assert result["events"] == 2


@pytest.mark.parametrize("step", ["begin", "list_slices", "put_rows", "record", "read_tallies", "end"])
def test_a_run_that_was_killed_is_resumed(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Wherever it was killed, the result is the same in the end, and no customer counts twice."""
    of = portfolio.ruleset()
    wanted = portfolio.run(portfolio.ask(of))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    job = portfolio.ask(of)
    with monkeypatch.context() as patched:
        patched.setattr(portfolio_jobs, step, _kill)
        patched.setattr(portfolio_jobs, "fail", lambda *_: None)  # a killed process can't report its failure
        with pytest.raises(KeyboardInterrupt):
            portfolio.run(job)
    assert not portfolio.simulation(job).is_done
    assert portfolio.run(job) == wanted
    done = portfolio.simulation(job)
    assert (done.status, done.customers_done) == (JobStatus.COMPLETED, 3)


def _kill(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_run_that_is_stopped_fails_its_job(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    job = portfolio.ask(portfolio.ruleset())
    monkeypatch.setattr(portfolio_jobs, "record", _kill)
    with pytest.raises(KeyboardInterrupt):
        portfolio.run(job)
    with portfolio.store.db.reading() as r:
        ended = jobs.get(r, portfolio.client_id, job.job_id)
    assert (ended.status, ended.error and ended.error["code"]) == (JobStatus.FAILED, "Simulation.Stopped")


def test_an_ended_job_is_left_unchanged(portfolio: Portfolio) -> None:
    job = portfolio.ask(portfolio.ruleset())
    result = portfolio.run(job)
    done = portfolio.simulation(job)
    assert portfolio.run(job) == result
    assert portfolio.simulation(job) == done


@pytest.mark.parametrize(
    ("where", "at_once", "read"), [(work, "MIN_SLICE_CUSTOMERS", 3), (simulation, "MAX_SNAPSHOTS", 2)]
)
def test_more_firings_than_are_listed_are_counted(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch, where: ModuleType, at_once: str, read: int
) -> None:
    """A slice makes no records for firings that aren't listed, but doesn't know how many the other slices list."""
    ruleset = portfolio.ruleset()
    everything = portfolio.ask(ruleset)
    result = portfolio.run(everything)
    described, describe = list[int](), Observations.describe_firings

    def note_and_describe(self: Observations, number: int, *of: Any) -> dict[str, Any]:
        described.append(number)
        return describe(self, number, *of)

    monkeypatch.setattr(Observations, "describe_firings", note_and_describe)
    monkeypatch.setattr(where, at_once, 1)
    monkeypatch.setattr(simulation, "MAX_FIRINGS", 2)
    monkeypatch.setattr(simulated, "MAX_FIRINGS", 2)
    monkeypatch.setitem(portfolio_jobs.KINDS, SIMULATION.flow, replace(SIMULATION, most_listed=2))
    job = portfolio.ask(ruleset)
    assert portfolio.run(job) == result | {"firings": 3, "firingsListed": 2}
    assert portfolio.firings(job) == portfolio.firings(everything)[:2]
    assert len(described) == read


def test_a_client_without_customers_gets_an_empty_result(store: Store) -> None:
    lender = Lender(store)
    with store.db.writing() as w:
        of = rulesets.create(w, lender.customer.client_id, sound(document()), "test", datetime.now(UTC))
        job = portfolio_jobs.request(w, new(of, Request(FIRST, LAST)), "test", datetime.now(UTC))
    done = work.run(store, job.job_id, lambda: datetime.now(UTC))
    assert (done.status, done.customers_total) == (JobStatus.COMPLETED, 0)
    with store.db.reading() as r:
        result = portfolio_jobs.read_result(r, done)
    assert (result["customers"], result["events"], result["byCustomer"]) == (0, 0, [])


def test_requested_jobs_start_in_order_of_receipt(portfolio: Portfolio) -> None:
    of = portfolio.ruleset()
    asked = [portfolio.ask(of) for _ in range(2)]
    found = work.requested_portfolio_jobs_sensor(build_sensor_context(), store=portfolio.store)
    assert isinstance(found, list)
    assert [each.run_key for each in found if isinstance(each, RunRequest)] == [
        f"RulesetSimulation {job.job_id} 0" for job in asked
    ]
    for job in asked:
        portfolio.run(job)
    assert isinstance(work.requested_portfolio_jobs_sensor(build_sensor_context(), store=portfolio.store), SkipReason)


def test_days_end_with_the_business_day_and_never_after_now(store: Store) -> None:
    now = datetime(2026, 3, 31, 3, 0, tzinfo=UTC)
    zone = store.settings.zone
    assert day_end(date(2026, 3, 30), zone, now) == datetime(2026, 3, 30, 13, 0, tzinfo=UTC)
    assert day_end(date(2026, 3, 31), zone, now) == now
