"""`tidemark policies backtest`: requested on the command line, computed by a run, shown and written to a file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from api.cli import app
from assets.portfolio import portfolio_jobs as work
from pipelines.decisions import Policy
from storage.core.settings import Settings
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import NewCustomer
from storage.decisions import policies
from storage.monitoring import attributes
from storage.monitoring.attributes import NewAttribute
from storage.portfolio import portfolio_jobs
from tests.api.portfolio.test_backtests import DOCUMENT, stricter
from tests.conftest import open_store
from tests.waiting import again_and_again

NEEDED = ("--input", "amount=50000", "--input", "secured=true")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    opened = open_store(Settings())
    yield opened
    opened.close()


@pytest.fixture
def client(store: Store) -> UUID:
    """A client with a policy of two versions, the first published, and customers with scores 400 and 600."""
    made = invoke("clients", "create", "Harbour Lending", "--json")
    client_id, now = UUID(json.loads(made.stdout)["clientId"]), datetime.now(UTC)
    with store.db.writing() as w:
        for document in (DOCUMENT, stricter("700")):
            policies.save_draft(w, client_id, Policy.model_validate({"slug": "line", **document}), [], "test", now)
        policies.publish(w, policies.get(w, client_id, "line"), 1, "test", now)
        for abn, score in (("51824753556", 400), ("53004085616", 600)):
            customer = customers.create(w, client_id, NewCustomer(abn, abn_checksum_valid=True), "test", now).customer
            attributes.put(w, customer, {"score": NewAttribute(Decimal(score))}, "test", now)
    return client_id


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def run_backtest(client: UUID, *arguments: str | Path) -> Result:
    return invoke("policies", "backtest", "line", "--client", str(client), *arguments)


@contextmanager
def working(store: Store) -> Iterator[None]:
    def work_off() -> None:
        with store.db.reading() as r:
            waiting = portfolio_jobs.find_waiting(r)
        for job in waiting:
            work.run(store, job.job_id, lambda: datetime.now(UTC))

    with again_and_again(work_off, every_s=0.05):
        yield


def test_versions_are_compared_and_the_page_is_written(store: Store, client: UUID, tmp_path: Path) -> None:
    with store.db.reading() as r:
        numbers = customers.find(r, client).items
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text(f"customer,defaulted\n{numbers[0].customer_id},1\n{numbers[1].customer_id},no\nnobody,1\n")
    page = tmp_path / "page.html"
    with working(store):
        result = run_backtest(client, *NEEDED, "--outcomes", outcomes, "--page", page, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert (found["version"], found["againstVersion"], found["knowsOutcomes"]) == (2, 1, True)
    assert found["days"][0]["outcomeChanged"] == 1
    assert sum(each["before"]["judged"] for each in found["days"][0]["outcomes"]) == 2
    assert "ignored 1 of 3 outcomes" in result.stderr
    assert "version 2 against version 1" in page.read_text()


def test_outcomes_of_each_day_are_printed(store: Store, client: UUID) -> None:
    with working(store):
        result = run_backtest(client, *NEEDED, "--as-of", "2026-03-31", "--as-of", "2026-06-30", "--known-then")
    assert result.exit_code == 0, result.output
    assert "As of 2026-03-31: 2 customers, 0 with another outcome" in result.stdout
    assert result.stdout.count("indeterminate") == 2
    assert "Before: version 1. After: version 2." in result.stdout


def test_changed_customers_are_printed_with_the_rules(store: Store, client: UUID) -> None:
    with store.db.reading() as r:
        [changed] = [
            each for each in customers.find(r, client).items if attributes.read_current(r, each)[0].value == 600
        ]
    for narrowed in ((), ("--customer", changed.customer_id), ("--attribute", "score=600")):
        with working(store):
            result = run_backtest(client, *NEEDED, *map(str, narrowed))
        assert result.exit_code == 0, result.output
        assert f"{1 if narrowed else 2} customers, 1 with another outcome" in result.stdout
        line = result.stdout.splitlines()[-1].split()
        assert line == [str(changed.customer_id), "proceed", "blocked", "SCORE"]


def test_a_missing_input_is_named(client: UUID) -> None:
    result = run_backtest(client, "--input", "secured=true")
    assert "/inputs/amount" in result.stdout


def test_a_policy_with_one_version_can_not_be_compared(store: Store, client: UUID) -> None:
    only = Policy.model_validate({"slug": "new", **DOCUMENT})
    with store.db.writing() as w:
        policies.save_draft(w, client, only, [], "test", datetime.now(UTC))
    result = invoke("policies", "backtest", "new", "--client", str(client), *NEEDED)
    assert "There is only version 1: push a new draft" in str(result.exception)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ("borrower,bad\nA,1\n", "there is no column customer, defaulted"),
        ("customer,defaulted\nA,perhaps\n", "the defaulted can't be read, first in row 2: 'perhaps'"),
        ("customer,defaulted\n", "there are no rows"),
    ],
)
def test_outcomes_that_can_not_be_read_are_refused(client: UUID, tmp_path: Path, content: str, reported: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    refusal = str(run_backtest(client, *NEEDED, "--outcomes", path).exception)
    assert reported in refusal
    assert "known outcomes (columns customer,defaulted)" in refusal
    assert "risk model" not in refusal


def test_without_waiting_the_job_is_printed(store: Store, client: UUID) -> None:
    result = run_backtest(client, *NEEDED, "--no-wait", "--json")
    with store.db.reading() as r:
        [job] = portfolio_jobs.find_waiting(r)
    assert json.loads(result.stdout) == {"jobId": str(job.job_id), "status": "Queued"}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--against", "best"), "--against must be a version's number"),
        (("--as-of", "March"), "--as-of must be a day"),
        (("--input", "amount"), "--input must be name=value"),
        (("--attribute", "score"), "--attribute must be name=value"),
        ((*NEEDED, "--attribute", "score=high"), "An attribute can't have this value"),
        ((*NEEDED, "--customer", str(UUID(int=1))), "Some customers are unknown"),
        ((), "A declared input is missing"),
        (("--version", "9"), "no such version"),
    ],
)
def test_invalid_requests_are_refused(client: UUID, arguments: tuple[str, ...], reported: str) -> None:
    result = run_backtest(client, *arguments)
    assert result.exit_code != 0
    assert reported in f"{result.output} {result.exception}"
