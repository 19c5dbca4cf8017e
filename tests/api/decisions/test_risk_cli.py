"""`tidemark risk …`: what it prints, stores and refuses."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from api.cli import app
from api.core.commands.console import opened_store
from pipelines.scorecards import judging, scorecard_file
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Link, Scorecard
from pipelines.vocabulary.errors import TidemarkError
from pipelines.vocabulary.taxonomy import VERSION
from storage.customers import customers
from tests.storage.values import commit, customers_of_a_bucket

pytestmark = pytest.mark.service  # whole commands over whole files: many seconds

CUSTOMERS = 70  # enough of them default for a fit, but too few for more folds than the least
AS_OF = date(2025, 6, 30)
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def portfolio(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Businesses without descriptions; those with low balances or large loans default more often."""
    draws = np.random.default_rng(8)
    rows, outcomes = list[str](), ["customer,asOf,defaulted,loan"]
    for number in range(CUSTOMERS):
        cushion = draws.normal()
        odds = -1 - 2 * cushion + 2 * (number % 7 - 3)
        outcomes.append(f"c{number},{AS_OF},{int(draws.random() < 1 / (1 + np.exp(-odds)))},{number % 7}")
        balance = 3000 + 1500 * cushion
        for week in range(30):
            for amount in (400 + 40 * draws.normal(), -400 - 40 * draws.normal()):
                balance += amount
                rows.append(f"c{number},1,{AS_OF - timedelta(weeks=30 - week)},,{amount:.2f},{balance:.2f}")
    folder = tmp_path_factory.mktemp("portfolio")
    (folder / "rows.csv").write_text("\n".join(["customer,account,date,description,amount,balance", *rows]))
    (folder / "outcomes.csv").write_text("\n".join([*outcomes, f"stranger,{AS_OF},0,1"]))
    return folder / "rows.csv", folder / "outcomes.csv"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run_refused(*arguments: str | Path) -> str:
    """Return the single line of a refusal."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, TidemarkError), result.output
    return result.exception.detail


def test_default_scores_are_printed_without_a_home(portfolio: tuple[Path, Path], home: Path) -> None:
    rows, outcomes = portfolio
    result = CliRunner().invoke(app, ["risk", "score", "--transactions", str(rows), "--outcomes", str(outcomes)])
    scores = pl.read_csv(result.stdout.encode())
    assert scores.columns == ["customer", "asOf", "defaulted", "points", "value"]
    assert scores.height == CUSTOMERS
    assert scores["value"].is_between(0, 1).all()
    assert "1 without transactions; expected evidence: balances, months; AUC 0." in result.stderr
    assert run("risk", "score", "--transactions", rows, "--outcomes", outcomes)["auc"] > 0.5
    assert not home.exists()


def test_from_two_files_to_a_model_in_use_and_back(
    portfolio: tuple[Path, Path], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, outcomes = portfolio
    files = ("--transactions", rows, "--outcomes", outcomes)
    fitted = run("risk", "fit", *files, "--out", tmp_path / "model.json", "--name", "spring")
    assert not home.exists()
    assert (fitted["cases"], fitted["withoutTransactions"], fitted["calibration"]) == (CUSTOMERS, 1, "client")
    assert fitted["auc"] > 0.6
    assert fitted["comparison"]["better"]
    assert [each["cases"] for each in fitted["calibrationTable"]] == [CUSTOMERS // 10] * 10
    expects = ("--expects", "balances", "--client", str(uuid4()), "--outcomes", str(outcomes))
    assert "is for files" in CliRunner().invoke(app, ["risk", "fit", *expects]).output

    client = run("clients", "create", "Harbour Lending")["clientId"]
    assert "don't have these metrics" in run_refused("risk", "activate", tmp_path / "model.json", "--client", client)

    monkeypatch.setattr(judging, "MIN_LOWER", 2)  # no fit is better; by chance, one in ten would be
    retained = run("risk", "fit", *files, "--registry-only", "--synthetic", "--client", client)
    assert retained["calibration"] == "synthetic"
    assert retained["summary"].startswith("of ") or "change their rating" in retained["summary"]
    compared = run("risk", "compare", retained["modelId"], "--client", client)
    assert (compared["customers"], compared["who"]) == (0, [])
    assert not retained["comparison"]["better"]
    assert "not better than the recalibrated" in run_refused(
        "risk", "activate", retained["modelId"], "--client", client
    )
    activated = run("risk", "activate", retained["modelId"], "--client", client, "--anyway", "a pilot")
    assert activated["usedFor"] == client
    blank = CliRunner().invoke(app, ["risk", "activate", retained["modelId"], "--client", client, "--anyway", " "])
    assert blank.exit_code == 2
    [entry] = [each for each in run("audit", "list") if each["action"] == "RiskModel.Activated"]
    assert entry["resource"]["anyway"] == "a pilot"
    assert entry["resource"]["comparison"].startswith("not better than the recalibrated")
    model, default = run("risk", "models")
    assert (model["modelId"], model["usedFor"], model["name"]) == (retained["modelId"], [client], "fitted")
    assert model["better"] is False
    assert (default["name"], default["usedFor"], default["better"]) == ("default", [], None)  # used until now
    assert run("risk", "drift", "--client", client) == {"readings": [], "outcomes": None}  # it has no customers
    pinned = run("risk", "pin", "--client", client, "--previous")["modelId"]
    assert pinned == default["modelId"]
    run("risk", "pin", "--client", client, "--previous")
    assert run("risk", "deactivate", "--client", client)["modelId"] == retained["modelId"]
    assert [each["usedFor"] for each in run("risk", "models")] == [[], []]
    assert run_refused("risk", "deactivate", "--client", client) == "The client has no active risk model."
    trail = {entry["action"] for entry in run("audit", "list")}
    assert {"RiskModel.Fitted", "RiskModel.Activated", "RiskModel.Pinned", "RiskModel.Deactivated"} <= trail


def test_calibration_is_judged_without_ranks(portfolio: tuple[Path, Path]) -> None:
    rows, outcomes = portfolio
    found = run("risk", "calibrate", "--transactions", rows, "--outcomes", outcomes)
    assert found["comparison"]["against"] == "uncalibrated default scorecard"
    assert found["comparison"]["aucChange"] is None
    assert found["slopes"] == 1


def test_quality_is_printed_for_people(portfolio: tuple[Path, Path]) -> None:
    rows, outcomes = portfolio
    files = ("--transactions", str(rows), "--outcomes", str(outcomes))
    printed = CliRunner().invoke(app, ["risk", "calibrate", *files]).stdout
    shown = dict(line.split(maxsplit=1) for line in printed.splitlines() if len(line.split()) > 1)
    assert shown["slopes"].strip() == "1"
    assert re.fullmatch(r"0\.\d+–[01]\.\d+", shown["aucInterval"].strip())


@pytest.mark.usefixtures("home")
def test_expected_evidence_is_stated_for_a_client() -> None:
    client = run("clients", "create", "Harbour Lending")["clientId"]
    assert run("risk", "expect", "--client", client)["expects"] == "words, balances, accounts, months"
    assert run("risk", "expect", "--client", client, "months", "balances")["expects"] == "balances, months"
    assert "Client.EvidenceExpected" in {entry["action"] for entry in run("audit", "list")}
    for wrong in ("word", "", " "):
        assert CliRunner().invoke(app, ["risk", "expect", "--client", client, wrong]).exit_code == 2
    assert run("risk", "expect", "--client", client)["expects"] == "balances, months"


@pytest.mark.usefixtures("home")
def test_garbage_is_refused_in_one_line(portfolio: tuple[Path, Path], tmp_path: Path) -> None:
    rows, _ = portfolio
    client = run("clients", "create", "Harbour Lending")["clientId"]
    one_class = tmp_path / "one.csv"
    one_class.write_text(f"customer,asOf,defaulted\nc1,{AS_OF},0\nc2,{AS_OF},0\n")
    fit = ("risk", "fit", "--outcomes", one_class)
    assert "all 2 cases were repaid" in run_refused(*fit, "--transactions", rows)
    assert "No customer of the outcomes has a transaction" in run_refused(*fit, "--client", client)
    assert "can't be read" in run_refused("risk", "fit", "--outcomes", tmp_path / "none.csv", "--transactions", rows)
    assert "no column" in run_refused("risk", "fit", "--outcomes", rows, "--transactions", rows)
    (tmp_path / "model.json").write_text("{}")
    assert "can't be used" in run_refused("risk", "activate", tmp_path / "model.json", "--client", client)
    assert CliRunner().invoke(app, list(map(str, fit))).exit_code == 2  # neither files nor a client


def two_customers() -> tuple[list[str], str]:
    """Store two customers with four transactions each; return their ids and their client's."""
    with opened_store() as store:
        numbers = customers_of_a_bucket(store, 2, NOW)
        commit(store, dict.fromkeys(numbers, 4), NOW)
        with store.db.reading() as r:
            ids = [str(each) for each in customers.ids_of(r, numbers).values()]
            return ids, str(customers.clients_of(r, numbers)[numbers[0]])


@pytest.mark.usefixtures("home")
def test_changed_ratings_are_shown_before_a_model_is_activated(tmp_path: Path) -> None:
    ids, client = two_customers()
    then = {feature.metric: {"limits": [], "shares": [0, 1], "coverage": None} for feature in DEFAULT.features[:2]}
    facts = {"reference": then, "taxonomy": VERSION - 1}
    easy = Scorecard("easy", "1", "client", DEFAULT.features, Link(Decimal(-900), Decimal(10)), facts)
    (tmp_path / "easy.json").write_bytes(scorecard_file.dumps(easy))
    found = run("risk", "compare", tmp_path / "easy.json", "--client", client)
    assert found["customers"] == 2
    assert found["summary"].startswith(f"{len(found['who'])} of 2 change their rating")
    assert {each["customerId"] for each in found["who"]} <= set(ids)
    assert "not compared" in run_refused("risk", "activate", tmp_path / "easy.json", "--client", client)
    activated = run("risk", "activate", tmp_path / "easy.json", "--client", client, "--anyway", "a test")
    assert activated["summary"] == found["summary"]
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("\n".join(["customer,asOf,defaulted", *(f"{one},2026-07-01,1" for one in ids)]))
    listed = CliRunner().invoke(app, ["risk", "models"])
    assert f"It was fitted with version {VERSION - 1} of the taxonomy" in listed.stderr
    drifted = run("risk", "drift", "--client", client, "--outcomes", outcomes)
    assert len(drifted["readings"]) == 2
    assert (drifted["outcomes"]["predicted"], drifted["outcomes"]["moved"]) == (0, True)


@pytest.mark.usefixtures("home")
def test_stored_transactions_are_found_by_customer_id(tmp_path: Path) -> None:
    ids, client = two_customers()
    named = [*ids, str(uuid4()), "nobody"]
    (tmp_path / "outcomes.csv").write_text(
        "\n".join(["customer,asOf,defaulted", *(f"{one},2026-07-01,0" for one in named)])
    )
    result = CliRunner().invoke(app, ["risk", "fit", "--outcomes", str(tmp_path / "outcomes.csv"), "--client", client])
    assert isinstance(result.exception, TidemarkError)
    assert "all 2 cases were repaid" in result.exception.detail
    assert "2 of 4 cases are left out" in result.stderr
