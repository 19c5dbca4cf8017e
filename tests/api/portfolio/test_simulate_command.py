"""`tidemark rulesets simulate`: requested on the command line, computed by a run, shown and written to a file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import app
from assets.portfolio import portfolio_jobs as work
from pipelines.monitoring import check_document
from pipelines.vocabulary.errors import InvalidRequest
from storage.core.settings import Settings
from storage.core.store import Store
from storage.monitoring import rulesets
from storage.monitoring.simulations import Request
from storage.portfolio import portfolio_jobs
from tests.api.portfolio.test_simulations import document
from tests.assets.lender import Lender
from tests.conftest import open_store
from tests.waiting import again_and_again


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    opened = open_store(Settings())
    yield opened
    opened.close()


@pytest.fixture
def lender(store: Store) -> Lender:
    """A lender with a ruleset `spending`, and a customer that spent 150 forty days ago and little ten days ago."""
    lender, today = Lender(store), datetime.now(store.settings.zone).date()
    rows = ((40, "-150.00"), (10, "-20.00"))
    lender.submit(*({"date": str(today - timedelta(days=ago)), "description": "SHOP", "amount": a} for ago, a in rows))
    lender.end_all()
    ruleset = check_document(document("spending")).ruleset
    assert ruleset is not None
    with store.db.writing() as w:
        rulesets.create(w, lender.customer.client_id, ruleset, "test", datetime.now(UTC))
    return lender


def run_simulation(lender: Lender, what: str | Path, *arguments: str | Path) -> Result:
    client = str(lender.customer.client_id)
    return CliRunner().invoke(app, ["rulesets", "simulate", str(what), "--client", client, *map(str, arguments)])


@contextmanager
def run_waiting_jobs(store: Store) -> Iterator[None]:
    def work_off() -> None:
        with store.db.reading() as r:
            waiting = portfolio_jobs.find_waiting(r)
        for job in waiting:
            work.run(store, job.job_id, lambda: datetime.now(UTC))

    with again_and_again(work_off, every_s=0.05):
        yield


def test_a_ruleset_is_simulated_and_the_page_is_written(store: Store, lender: Lender, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with run_waiting_jobs(store):
        result = run_simulation(lender, "spending", "--page", page, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["ofDocument"], found["result"]["events"], found["result"]["customersFired"]) == (False, 1, 1)
    assert "Spending &amp; &lt;more&gt;" in page.read_text()


def test_months_rules_and_customers_are_printed(store: Store, lender: Lender) -> None:
    first = datetime.now(store.settings.zone).date() - timedelta(days=60)
    with run_waiting_jobs(store):
        result = run_simulation(lender, "spending", "--from", str(first))
    assert result.exit_code == 0, result.output
    assert f"From {first} to " in result.stdout
    assert "1 event for 1 customer of 1; 0 on the first day." in " ".join(result.stdout.split())
    bars = [line.split() for line in result.stdout.splitlines() if "█" in line]
    assert [(bar[-2], bar[-1]) for bar in bars] == [("█" * 40, "1")]
    assert str(lender.customer.customer_id) in result.stdout
    assert "SPENT 1×" in result.stdout


def test_a_file_is_saved_as_an_inactive_ruleset_and_simulated(store: Store, lender: Lender, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(document("new", more_than="10") | {"active": True}))
    with run_waiting_jobs(store):
        result = run_simulation(lender, file, "--json")
    assert result.exit_code == 0, result.output
    assert "Saved the ruleset new, switched off." in result.stderr
    assert json.loads(result.stdout)["result"]["events"] == 1
    with store.db.reading() as r:
        stored = rulesets.with_slug(r, lender.customer.client_id, "new")
        [job] = portfolio_jobs.find(r, stored.ruleset_id).items
    assert (stored.active, Request.from_json(job.request).document is not None) == (False, True)


def test_only_the_named_customers_are_simulated(lender: Lender) -> None:
    result = run_simulation(lender, "spending", "--customer", str(UUID(int=1)), "--no-wait")
    assert "/customerIds/0" in result.stdout
    assert result.exit_code != 0


def test_without_waiting_the_job_of_a_simulation_is_printed(lender: Lender) -> None:
    result = run_simulation(lender, "spending", "--no-wait", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "Queued"


def test_an_invalid_day_is_refused(lender: Lender) -> None:
    assert "--from must be a day" in run_simulation(lender, "spending", "--from", "March").stderr


def test_a_day_too_long_ago_is_refused(lender: Lender) -> None:
    result = run_simulation(lender, "spending", "--to", "0001-01-01")
    assert isinstance(result.exception, InvalidRequest)
    assert result.exception.code == "Simulation.InvalidDays"
