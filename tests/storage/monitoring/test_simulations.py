"""Simulations as they are stored: what was asked for comes back as it was, and is found by whom it belongs to."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import polars as pl
import pytest

from pipelines.monitoring import Listed, Ruleset, checked
from pipelines.monitoring.simulation import FIRINGS
from pipelines.vocabulary.errors import Corrupt, NotFound
from storage.core.models import Flow, JobStatus
from storage.core.paging import Page
from storage.core.store import Store
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import rulesets, simulations
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Request
from storage.portfolio import portfolio_jobs
from tests.storage.examples import a_client, a_customer

NOW = datetime(2026, 7, 1, 2, 15, tzinfo=UTC)
ASKED = Request(date(2026, 1, 1), date(2026, 6, 30), (UUID(int=1), UUID(int=2)), '{"slug":"some"}')
RULE = {"code": "LONG", "message": "Long.", "condition": {"moreThan": [{"metric": "history_days"}, "5"]}}


def ruleset(**also: object) -> Ruleset:
    found = checked({"slug": "some", "name": "Some", "rules": [RULE], **also})
    assert found.ruleset is not None, found.faults
    return found.ruleset


class Asked:
    """A client's ruleset with a simulation."""

    def __init__(self, store: Store) -> None:
        self.client_id = a_client(store, NOW)
        with store.db.writing() as w:
            self.ruleset: StoredRuleset = rulesets.create(w, self.client_id, ruleset(), "test", NOW)
            self.job: Job = simulations.request(w, self.ruleset, ASKED, "somebody", NOW)


@pytest.fixture
def asked(store: Store) -> Asked:
    return Asked(store)


def test_what_was_asked_for_comes_back(store: Store, asked: Asked) -> None:
    with store.db.reading() as r:
        found = simulations.get(r, asked.client_id, asked.job.job_id)
        assert found == simulations.with_id(r, asked.job.job_id)
        assert simulations.result(r, found) is None
    assert (found.request, found.version, found.created_by) == (ASKED, 1, "somebody")
    assert (found.status, found.is_done, found.customers_total) == (JobStatus.QUEUED, False, None)
    assert (asked.job.flow, asked.job.customer_id) == (Flow.RULESET_SIMULATION, None)


@pytest.mark.parametrize("of", [Request(date(2026, 1, 1), date(2026, 1, 1)), ASKED])
def test_a_request_is_the_same_read_back(of: Request) -> None:
    assert Request.of_json(of.as_json()) == of


def test_another_clients_is_not_found(store: Store, asked: Asked) -> None:
    with store.db.reading() as r, pytest.raises(NotFound, match="no simulation"):
        simulations.get(r, a_client(store, NOW), asked.job.job_id)
    with store.db.reading() as r, pytest.raises(NotFound):
        simulations.with_id(r, uuid4())


def test_the_newest_comes_first(store: Store, asked: Asked) -> None:
    with store.db.writing() as w:
        later = simulations.request(w, asked.ruleset, ASKED, "test", NOW + timedelta(minutes=1))
    with store.db.reading() as r:
        assert [each.job_id for each in simulations.find(r, asked.ruleset).items] == [later.job_id, asked.job.job_id]
        second = simulations.find(r, asked.ruleset, Page(2, 1))
        assert ([each.job_id for each in second.items], second.total) == ([asked.job.job_id], 2)
        assert [job.job_id for job in portfolio_jobs.waiting(r, Flow.RULESET_SIMULATION)][-2:] == [
            asked.job.job_id,
            later.job_id,
        ]


def test_what_was_sent_along_is_simulated_else_the_version(store: Store, asked: Asked) -> None:
    sent = ruleset(name="Other")
    with store.db.writing() as w:
        text = sent.model_dump_json(by_alias=True)
        with_document = simulations.request(w, asked.ruleset, Request(NOW.date(), NOW.date(), None, text), "test", NOW)
        without = simulations.request(w, asked.ruleset, Request(NOW.date(), NOW.date()), "test", NOW)
        rulesets.replace(w, asked.ruleset, ruleset(name="Newer"), "test", NOW)
    with store.db.reading() as r:
        names = [
            simulations.simulated_ruleset(r, simulations.with_id(r, job.job_id)).name
            for job in (with_document, without)
        ]
    assert names == ["Other", "Some"]


def test_the_firings_are_named_when_it_ends_and_not_before(store: Store, asked: Asked) -> None:
    rows = [(number, date(2026, 2, number), "LONG", "[]") for number in (1, 2, 3)]
    frame = pl.DataFrame(rows, schema=FIRINGS, orient="row")
    with store.db.reading() as r:
        simulation = simulations.with_id(r, asked.job.job_id)
    stored = store.lake.put_frame(simulations.path_of(simulation), frame)
    with store.db.writing() as w:
        simulations.begin(w, simulation, 3, NOW)
        simulations.count_done(w, simulation, 2)
    with store.db.writing() as w:
        simulations.end(w, store.lake, simulation, {"events": 3}, (stored, 3), 1, NOW)
    with store.db.reading() as r:
        done = simulations.with_id(r, asked.job.job_id)
        file = simulations.firings(r, done)
        assert simulations.result(r, done) == {"events": 3}
    assert (done.status, done.customers_total, done.customers_done, done.customers_failed) == (
        JobStatus.COMPLETED_WITH_ERRORS,
        3,
        2,
        1,
    )
    [page] = simulations.listed(store.lake, file, Page(2, 2))
    assert page["customer_number"].to_list() == [3]
    path = store.lake.root / file.path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Corrupt):
        list(simulations.listed(type(store.lake)(store.lake.root), file, None))


def test_whom_it_looks_at(store: Store, asked: Asked) -> None:
    """Nobody without transactions, however they are named."""
    customer = a_customer(store, asked.client_id, NOW)
    of = ruleset(appliesTo={"customers": [str(customer.customer_id)]})
    assert isinstance(of.applies_to, Listed)
    with store.db.reading() as r:
        assert simulations.customers_of(r, simulations.with_id(r, asked.job.job_id), of) == []


def test_what_failed_says_why(store: Store, asked: Asked) -> None:
    with store.db.reading() as r:
        simulation = simulations.with_id(r, asked.job.job_id)
    with store.db.writing() as w:
        error = {"code": "Simulation.Stopped", "message": "The run was stopped."}
        portfolio_jobs.fail(w, simulation.client_id, simulation.job_id, error, NOW)
    with store.db.reading() as r:
        job = jobs.get(r, asked.client_id, asked.job.job_id)
        assert portfolio_jobs.waiting(r, Flow.RULESET_SIMULATION) == []
    assert (job.status, job.error and job.error["code"]) == (JobStatus.FAILED, "Simulation.Stopped")
