"""Rulesets as files on the command line."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import app
from pipelines.monitoring import library
from pipelines.vocabulary.errors import TidemarkError
from storage.core import audit
from storage.core.settings import Settings
from tests.api.conftest import answering, new_client, spending_ruleset
from tests.api.worker import end_submissions, evaluate
from tests.conftest import open_store, prepare_home
from tests.root import ROOT

DOCS = ROOT / "docs" / "reference"
DOCUMENT: dict[str, Any] = spending_ruleset("spending", []) | {"appliesTo": "all"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def client(home: Path) -> str:
    prepare_home(home)
    return str(run("clients", "create", "Harbour Lending")["clientId"])


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["rulesets", *map(str, arguments)])


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run_refused(*arguments: str | Path) -> tuple[str, str]:
    """Return what is printed, and the one line of the refusal."""
    result = invoke(*arguments)
    assert isinstance(result.exception, TidemarkError), result.output
    return result.stdout, result.exception.detail


def write_ruleset(folder: Path, **changes: object) -> Path:
    file = folder / "ruleset.yaml"
    file.write_text(yaml.safe_dump(DOCUMENT | changes, allow_unicode=True))
    return file


def actions(client: str) -> list[str]:
    store = open_store(Settings())
    try:
        with store.db.reading() as r:
            entries = audit.find(r, UUID(client))
    finally:
        store.close()
    return [each.action for each in entries if each.action.startswith("Ruleset.")]


def test_from_a_file_to_a_ruleset_and_back(client: str, tmp_path: Path) -> None:
    of_client = ("--client", client)
    made = run("rulesets", "push", write_ruleset(tmp_path), *of_client)
    assert (made["slug"], made["version"], made["active"], made["rules"]) == ("spending", 1, True, 1)
    assert run("rulesets", "push", write_ruleset(tmp_path), *of_client) == made
    changed = run("rulesets", "push", write_ruleset(tmp_path, notes="Stricter.", active=False), *of_client)
    assert (changed["rulesetId"], changed["version"], changed["active"]) == (made["rulesetId"], 2, False)
    assert actions(client) == ["Ruleset.Replaced", "Ruleset.Created"]

    pulled = tmp_path / "pulled.yaml"
    assert invoke("pull", "spending", *of_client, "--version", "1", "--out", pulled).exit_code == 0
    assert run("rulesets", "push", pulled, *of_client)["version"] == 3
    document = run("rulesets", "pull", "spending", *of_client)
    assert (document["slug"], document["active"]) == ("spending", True)
    assert yaml.safe_load(invoke("pull", "spending", *of_client, "--version", "2").stdout)["notes"] == "Stricter."
    assert invoke("pull", "spending", *of_client, "--version", "9").exit_code == 2


def test_an_archived_ruleset_is_listed_on_request(client: str, tmp_path: Path) -> None:
    of_client = ("--client", client)
    run("rulesets", "push", write_ruleset(tmp_path), *of_client)
    assert run("rulesets", "archive", "spending", *of_client)["isArchived"] is True
    assert run("rulesets", "list", *of_client) == []
    [listed] = run("rulesets", "list", "--archived")
    assert (listed["slug"], listed["clientId"], listed["observed"], listed["firedNow"]) == ("spending", client, 0, 0)
    assert "archived" in run_refused("push", write_ruleset(tmp_path, name="New"), *of_client)[1]
    assert run("rulesets", "unarchive", "spending", *of_client)["isArchived"] is False
    assert [each["slug"] for each in run("rulesets", "list", *of_client)] == ["spending"]
    assert "spending" in invoke("list").stdout
    assert actions(client) == ["Ruleset.Unarchived", "Ruleset.Archived", "Ruleset.Created"]


def test_every_fault_of_a_file_is_listed(tmp_path: Path, client: str) -> None:
    faulty = write_ruleset(tmp_path, color="red", rules=[DOCUMENT["rules"][0] | {"severity": "loud"}])
    for arguments in (("check", faulty), ("push", faulty, "--client", client)):
        printed, line = run_refused(*arguments)
        assert "/color" in printed
        assert "/rules/0/severity" in printed
        assert line == "The ruleset has 2 faults."
    result = CliRunner().invoke(app, ["rulesets", "check", str(faulty), "--json"])
    reported = json.loads(result.stdout)
    assert (reported["fingerprint"], {each["pointer"] for each in reported["faults"]}) == (
        None,
        {"/color", "/rules/0/severity"},
    )
    assert run("rulesets", "list") == []


def test_checking_a_file_needs_no_server(tmp_path: Path, home: Path) -> None:
    assert "Nothing is wrong with it." in invoke("check", write_ruleset(tmp_path)).output
    as_json = tmp_path / "ruleset.json"
    as_json.write_text(json.dumps(DOCUMENT))
    [first, second] = (run("rulesets", "check", file) for file in (write_ruleset(tmp_path), as_json))
    assert first == second
    assert (len(first["fingerprint"]), first["faults"]) == (64, [])
    assert not home.exists()


def test_the_printed_schema_is_the_documented_one() -> None:
    assert invoke("schema").stdout == (DOCS / "ruleset.schema.json").read_text("utf-8")


def test_unusable_files_and_ids_are_reported_in_one_line(tmp_path: Path, client: str) -> None:
    assert "can't be read" in run_refused("check", tmp_path / "none.yaml")[1]
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff")
    assert "UTF-8" in run_refused("check", binary)[1]
    nobody = str(uuid4())
    assert "client" in run_refused("push", write_ruleset(tmp_path), "--client", nobody)[1]
    assert "client" in run_refused("list", "--client", nobody)[1]
    assert "ruleset" in run_refused("pull", "none", "--client", client)[1]
    foreign = write_ruleset(tmp_path, appliesTo={"customers": [str(uuid4())]})
    printed, _ = run_refused("push", foreign, "--client", client)
    assert "/appliesTo/customers/0" in printed


def test_a_ruleset_of_the_library_is_adopted_active_or_inactive(client: str, tmp_path: Path) -> None:
    listed = [each["slug"] for each in run("rulesets", "library")]
    assert listed == list(library.load_library())
    first, second = listed[:2]
    assert run("rulesets", "adopt", first, "--client", client)["active"] is True
    assert run("rulesets", "adopt", second, "--client", client, "--inactive")["active"] is False
    assert run("rulesets", "adopt", second, "--client", client)["active"] is True
    ours = tmp_path / "ours.yaml"
    ours.write_text(invoke("pull", first, "--client", client).stdout.replace("severity: critical", "severity: info"))
    run("rulesets", "push", ours, "--client", client)
    assert first in run_refused("adopt", first, "--client", client)[1]
    assert "library" in run_refused("adopt", "none-such", "--client", client)[1]
    assert "client" in run_refused("adopt", first, "--client", str(uuid4()))[1]

    folder = tmp_path / "new" / "rulesets"
    run("rulesets", "library", "--write", folder)
    assert {file.stem for file in folder.iterdir()} == set(listed)
    assert all(run("rulesets", "check", file)["faults"] == [] for file in folder.iterdir())


def test_matches_are_listed_newest_first(tmp_path: Path) -> None:
    store = open_store(Settings())
    try:
        with answering(store) as url:
            lender = new_client(store, url)
            customer_id = lender.new_customer()
            lender.submit_transactions(customer_id)
            end_submissions(store)
            of_client = ("--client", str(lender.client_id))
            for slug in ("first", "second"):
                run("rulesets", "push", write_ruleset(tmp_path, slug=slug), *of_client)
                evaluate(store, customer_id)
            over_http = lender.get("/v1/monitoring/matches").json()["data"]["matches"]
    finally:
        store.close()
    listed = run("rulesets", "matches", *of_client)
    assert [each["ruleset"]["slug"] for each in listed] == ["second", "first"]
    assert listed == over_http
    [one] = run("rulesets", "matches", *of_client, "--ruleset", "first", "--customer", customer_id)
    assert one == listed[1]
    assert run("rulesets", "matches", *of_client, "--limit", "1") == listed[:1]
    assert "SPENT" in invoke("matches", *of_client).stdout
    [sums] = [each for each in run("rulesets", "list", *of_client) if each["slug"] == "first"]
    assert (sums["observed"], sums["held"], sums["fired"], sums["firedNow"]) == (2, 2, 1, 1)
