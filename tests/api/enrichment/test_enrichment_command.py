"""`tidemark enrichment`: compare versions from stored, replaced or computed values."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from api import cli
from api.cli import app
from assets.enrichment import transactions
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION, Enriched, enrich
from storage.core.models import customers
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment import commit
from tests.assets.lender import COFFEE, RENT, SALE, Lender
from tests.conftest import open_store

pytestmark = pytest.mark.service  # whole commands over whole files: many seconds

OLD, NEW = ENRICHMENT_VERSION - 1, ENRICHMENT_VERSION


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    opened = open_store(Settings())
    yield opened
    opened.close()


def older(*arguments: Any, **named: Any) -> Enriched:
    """Enrich as an older version, which categorised coffee as a transfer."""
    enriched = enrich(*arguments, **named)
    coffee = pl.col("description") == "COFFEE"
    rows = enriched.transactions.with_columns(
        category=pl.when(coffee).then(pl.lit("own_transfer")).otherwise("category"),
        category_group=pl.when(coffee).then(pl.lit("transfer")).otherwise("category_group"),
        enrichment_version=pl.lit(OLD, pl.UInt32()),
        read_by=pl.lit("the program of the older version"),
    )
    return dataclasses.replace(enriched, transactions=rows)


@pytest.fixture
def lender(store: Store) -> Lender:
    """A lender whose customer's rows were enriched by the older version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "enrich", older)
        patch.setattr(commit, "ENRICHMENT_VERSION", OLD)
        made = Lender(store)
        made.submit_and_end(RENT, COFFEE)
    return made


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["enrichment", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def compare_versions(*arguments: str, before: int = OLD, after: int = NEW) -> Any:
    return json.loads(run("diff", "--from", str(before), "--to", str(after), "--json", *arguments))


def test_the_current_version_is_computed_and_nothing_is_written(lender: Lender) -> None:
    held = lender.rows()
    impact = compare_versions()
    assert (impact["customers"], impact["skipped"], impact["transactions"]) == (1, 0, 2)
    [moved] = impact["moved"]
    assert (moved["from"], moved["count"], moved["dollars"]) == ("own_transfer", 1, 4.5)
    [example] = impact["examples"]
    assert example["customerId"] == str(lender.customer.customer_id)
    assert (example["description"], example["amount"]) == ("COFFEE", -4.5)
    assert lender.rows() == held


def test_a_replaced_value_is_still_compared(lender: Lender) -> None:
    lender.submit_and_end(SALE)
    assert lender.customer.enrichment_version == NEW
    impact = compare_versions()
    assert (impact["transactions"], impact["onlyUnderOne"]) == (2, 1)
    assert [moved["from"] for moved in impact["moved"]] == ["own_transfer"]


def test_customers_not_stored_under_both_versions_are_left_out_and_counted(store: Store, lender: Lender) -> None:
    newcomer = Lender(store)
    newcomer.submit_and_end(COFFEE)
    impact = compare_versions()
    assert (impact["customers"], impact["skipped"]) == (1, 1)
    assert compare_versions("--client", str(lender.customer.client_id))["skipped"] == 0
    sampled = compare_versions("--sample", "1")
    assert sampled["customers"] + sampled["skipped"] == 1


@pytest.mark.usefixtures("lender")
def test_the_comparison_is_printed_as_tables() -> None:
    text = run("diff", "--from", str(OLD), "--to", str(NEW))
    assert f"Version {OLD} → {NEW}: 2 transactions of 1 customer" in text
    assert "Customers that change" in text
    for words in ("Categories moved", "own_transfer", "Figures of the reports", "Largest examples", "COFFEE"):
        assert words in text


@pytest.mark.usefixtures("lender")
def test_an_unknown_version_is_refused_with_the_stored_ones(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tidemark", "enrichment", "diff", "--from", "77", "--to", str(NEW), "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "Versions 77 and" in line
    assert f"version {OLD} (1 customer)" in line


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Own rules by which coffee is software."""
    names = tmp_path / "rules" / "counterparties"
    names.mkdir(parents=True)
    (names / "mine.yaml").write_text("software:\n  Coffee: [COFFEE]\n")
    return tmp_path / "rules"


def category_of_coffee(lender: Lender) -> str:
    [category] = [row["category"] for row in lender.rows() if row["description"] == "COFFEE"]
    return str(category)


def test_own_rules_take_effect_only_after_activation(store: Store, rules: Path) -> None:
    lender, bystander = Lender(store), Lender(store)
    for each in (lender, bystander):
        each.submit_and_end(RENT, COFFEE)
    with store.db.writing() as w:
        w.execute(update(customers).values(name="Harbour Café"))
    client = str(lender.customer.client_id)
    impact = json.loads(run("diff", "--rules", str(rules), "--client", client, "--json"))
    assert [(moved["to"], moved["count"]) for moved in impact["moved"]] == [("software", 1)]
    [changed] = impact["changedCustomers"]
    assert (changed["customerName"], changed["moved"], changed["dollars"]) == ("Harbour Café", 1, 4.5)
    before = category_of_coffee(lender)
    shown = run("activate", str(rules), "--client", client)
    assert shown.index("Harbour Café") < shown.index("fingerprint")
    assert category_of_coffee(lender) == before
    lender.end_all()
    assert (category_of_coffee(lender), category_of_coffee(bystander)) == ("software", before)
    lender.submit_and_end(SALE)
    assert category_of_coffee(lender) == "software"
    gone = json.loads(run("deactivate", "--client", client, "--json"))
    assert [moved["from"] for moved in gone["impact"]["moved"]] == ["software"]
    lender.end_all()
    assert category_of_coffee(lender) == before
    again = json.loads(run("activate", "1", "--client", client, "--sample", "0", "--json"))
    assert (again["version"], again["impact"]) == (1, None)
    [listed] = json.loads(run("rules", "--json"))
    assert (listed["version"], listed["inUse"]) == (1, True)
    audited = CliRunner().invoke(app, ["audit", "list", "--json"]).stdout
    assert {"OwnRules.Activated", "OwnRules.Deactivated"} <= {entry["action"] for entry in json.loads(audited)}


def test_own_rules_are_compared_on_files_without_a_home(tmp_path: Path, rules: Path) -> None:
    file = tmp_path / "statement.csv"
    file.write_text("Date,Description,Amount\n2026-03-02,COFFEE,-4.50\n2026-03-03,RENT,-900.00\n")
    impact = json.loads(run("diff", str(file), "--rules", str(rules), "--json"))
    assert [(moved["to"], moved["count"]) for moved in impact["moved"]] == [("software", 1)]
    assert [each["customerName"] for each in impact["changedCustomers"]] == ["statement"]
    assert "--rules" in CliRunner().invoke(app, ["enrichment", "diff", str(file)]).output


@pytest.mark.usefixtures("store")
def test_releases_are_listed_with_the_fingerprint_of_the_current_rules() -> None:
    result = CliRunner().invoke(app, ["enrichment", "releases", "--json"])
    reported = json.loads(result.stdout)
    assert [release["version"] for release in reported["releases"]] == list(range(1, len(reported["releases"]) + 1))
    assert reported["released"] == (reported["fingerprint"] == reported["releases"][-1]["fingerprint"])
    assert result.exit_code == (0 if reported["released"] else 1)
