"""The stored request of a simulation is read back unchanged, and determines the ruleset and the customers."""

from datetime import UTC, date, datetime
from uuid import UUID

import pytest

from pipelines.monitoring import Ruleset, check_document
from storage.core.store import Store
from storage.monitoring import rulesets, simulations
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Request
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import SIMULATION, NewPortfolioJob, PortfolioJob
from tests.storage.examples import a_client, a_customer

NOW = datetime(2026, 7, 1, 2, 15, tzinfo=UTC)
DAY = date(2026, 1, 1)
RULE = {"code": "LONG", "message": "Long.", "condition": {"moreThan": [{"metric": "history_days"}, "5"]}}


def ruleset(**also: object) -> Ruleset:
    found = check_document({"slug": "some", "name": "Some", "rules": [RULE], **also})
    assert found.ruleset is not None, found.faults
    return found.ruleset


def create_ruleset(store: Store) -> StoredRuleset:
    client_id = a_client(store, NOW)
    with store.db.writing() as w:
        return rulesets.create(w, client_id, ruleset(), "test", NOW)


def request_simulation(store: Store, of: StoredRuleset, request: Request) -> PortfolioJob:
    new = NewPortfolioJob(SIMULATION, of.client_id, of.ruleset_id, of.version, request.as_json())
    with store.db.writing() as w:
        return portfolio_jobs.get_of_any_client(w, portfolio_jobs.request(w, new, "test", NOW).job_id)


@pytest.mark.parametrize(
    "of", [Request(DAY, DAY), Request(DAY, date(2026, 6, 30), (UUID(int=1), UUID(int=2)), '{"slug":"some"}')]
)
def test_a_request_is_read_back_unchanged(of: Request) -> None:
    assert Request.from_json(of.as_json()) == of


def test_the_document_in_the_request_is_simulated_else_the_stored_version(store: Store) -> None:
    of, text = create_ruleset(store), ruleset(name="Other").model_dump_json(by_alias=True)
    jobs = [
        request_simulation(store, of, Request(DAY, DAY, None, text)),
        request_simulation(store, of, Request(DAY, DAY)),
    ]
    with store.db.writing() as w:
        rulesets.replace(w, of, ruleset(name="Newer"), "test", NOW)
    with store.db.reading() as r:
        assert [simulations.simulated_ruleset(r, job).name for job in jobs] == ["Other", "Some"]


def test_only_customers_that_are_named_and_listed_are_simulated(store: Store) -> None:
    of, (one, other, third) = create_ruleset(store), (UUID(int=1), UUID(int=2), UUID(int=3))
    everybody, named = (
        request_simulation(store, of, Request(DAY, DAY)),
        request_simulation(store, of, Request(DAY, DAY, (one, other))),
    )
    listing = ruleset(appliesTo={"customers": [str(other), str(third)]})
    assert simulations.population(everybody, ruleset()).named is None
    assert simulations.population(everybody, listing).named == {other, third}
    assert simulations.population(named, listing).named == {other}


def test_customers_without_transactions_are_not_simulated(store: Store) -> None:
    of = create_ruleset(store)
    customer = a_customer(store, of.client_id, NOW)
    job = request_simulation(store, of, Request(DAY, DAY, (customer.customer_id,)))
    with store.db.reading() as r:
        assert portfolio_jobs.find_customers(r, simulations.population(job, ruleset())) == []
