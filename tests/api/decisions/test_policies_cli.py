"""`tidemark policies …`: from a file to a published policy and back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import app
from api.core.schemas.examples import example
from api.decisions.schemas.policies import SentPolicy
from pipelines.decisions import examples
from pipelines.vocabulary.errors import TidemarkError
from tests.conftest import prepare_home

parametrize = pytest.mark.parametrize
DOCUMENT: dict[str, Any] = {"slug": "overdraft", **example(SentPolicy)}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def client(home: Path) -> str:
    prepare_home(home)
    return str(run("clients", "create", "Harbour Lending")["clientId"])


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["policies", *map(str, arguments)])


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run_refused(*arguments: str | Path) -> tuple[str, str]:
    """Return what is printed, and the one line of the refusal."""
    result = invoke(*arguments)
    assert isinstance(result.exception, TidemarkError), result.output
    return result.stdout, result.exception.detail


def write_policy(folder: Path, **changes: object) -> Path:
    file = folder / "policy.yaml"
    file.write_text(yaml.safe_dump(DOCUMENT | changes, allow_unicode=True))
    return file


def lenient(folder: Path) -> Path:
    cap = {
        "code": "SCORE",
        "message": "No more than the score.",
        "value": {"attribute": "score"},
        "onUnavailable": "ignore",
    }
    [limit] = DOCUMENT["limits"]
    return write_policy(folder, limits=[limit | {"caps": [cap]}], attributes=[{"name": "score", "kind": "decimal"}])


def test_from_a_file_to_a_published_policy_and_back(client: str, tmp_path: Path) -> None:
    file = write_policy(tmp_path)
    of_client = ("--client", client)
    draft = run("policies", "push", file, *of_client)
    assert (draft["slug"], draft["version"], draft["state"]) == ("overdraft", 1, "draft")
    assert run("policies", "push", file, *of_client)["version"] == 1
    assert run("policies", "push", file, *of_client, "--publish")["state"] == "published"
    changed = run("policies", "push", write_policy(tmp_path, notes="Stricter."), *of_client)
    assert (changed["version"], changed["state"]) == (2, "draft")
    reported = run("policies", "diff", "overdraft", *of_client)
    assert (reported["from"], reported["to"], len(reported["changes"])) == (1, 2, 1)
    assert run("policies", "publish", "overdraft", *of_client)["version"] == 2
    assert "do not differ" in invoke("diff", "overdraft", *of_client).stdout

    pulled = tmp_path / "pulled.yaml"
    assert invoke("pull", "overdraft", *of_client, "--version", "1", "--out", pulled).exit_code == 0
    assert (
        run("policies", "check", pulled)["fingerprint"]
        == run("policies", "check", write_policy(tmp_path))["fingerprint"]
    )
    assert invoke("pull", "overdraft", *of_client).stdout.startswith("slug: overdraft\nname: Overdraft review\n")
    as_json = tmp_path / "pulled.json"
    as_json.write_text(invoke("pull", "overdraft", *of_client, "--json").stdout)
    assert run("policies", "push", as_json, *of_client)["version"] == 2

    for _ in range(2):
        assert run("policies", "archive", "overdraft", *of_client)["isArchived"] is True
    assert run("policies", "list", *of_client)[0]["isArchived"] is True
    assert run_refused("push", file, *of_client)[1] == "The decision policy is archived."
    assert run("policies", "unarchive", "overdraft", *of_client)["isArchived"] is False
    trail = [each["action"] for each in run("audit", "list") if each["action"].startswith("Policy.")]
    assert sorted(trail) == sorted(
        f"Policy.{what}" for what in ("Saved", "Published", "Saved", "Published", "Archived", "Unarchived")
    )


def test_every_policy_is_listed_with_its_newest_version(client: str, tmp_path: Path) -> None:
    assert run("policies", "list") == []
    run("policies", "push", write_policy(tmp_path), "--client", client, "--publish")
    run("policies", "push", write_policy(tmp_path, slug="second"), "--client", client)
    run("policies", "push", write_policy(tmp_path, notes="Next."), "--client", client)
    found = [(each["slug"], each["version"], each["state"]) for each in run("policies", "list")]
    assert found == [("overdraft", 2, "draft"), ("second", 1, "draft")]
    assert {each["clientId"] for each in run("policies", "list", "--client", client)} == {client}


def test_all_faults_of_a_file_are_listed(client: str, tmp_path: Path) -> None:
    file = write_policy(tmp_path, defaultOutcome="perhaps", colour="red")
    result = invoke("check", file, "--json")
    assert {fault["pointer"] for fault in json.loads(result.stdout)["faults"]} == {"/defaultOutcome", "/colour"}
    assert isinstance(result.exception, TidemarkError)
    listed, line = run_refused("push", file, "--client", client)
    assert line == "The policy has 2 faults."
    assert "/defaultOutcome" in listed
    assert run("policies", "list") == []


def test_checking_needs_no_server(tmp_path: Path, home: Path) -> None:
    assert "Nothing is wrong" in invoke("check", write_policy(tmp_path)).output
    assert not home.exists()


def test_a_slug_that_is_also_a_path_is_reserved(client: str, tmp_path: Path) -> None:
    listed, _ = run_refused("push", write_policy(tmp_path, slug="schema"), "--client", client, "--json")
    assert [fault["code"] for fault in json.loads(listed)] == ["DecisionPolicy.ReservedSlug"]


def test_warnings_must_be_acknowledged(client: str, tmp_path: Path) -> None:
    file = lenient(tmp_path)
    [warning] = run("policies", "check", file)["warnings"]
    printed, line = run_refused("push", file, "--client", client, "--json")
    assert [each["code"] for each in json.loads(printed)] == [warning["code"]]
    assert line == "The policy has 1 warning to acknowledge by code and pointer."
    assert run("policies", "push", file, "--client", client, "--acknowledge", warning["code"])["version"] == 1


@parametrize(
    "content", [b"", b"\xff\xfe", b"- 1", b"{", b"a: &a [*a]", b"slug: \x00", b'slug: "\\ud800"', b"[" * 100_000]
)
def test_a_file_that_is_not_a_policy_is_refused(client: str, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes(content)
    for command in (("check", file), ("push", file, "--client", client)):
        assert run_refused(*command)[1]


def test_unknown_policies_and_versions_are_reported_in_one_line(client: str, tmp_path: Path) -> None:
    assert "can't be read" in run_refused("check", tmp_path / "none.yaml")[1]
    for command in ("publish", "pull", "archive", "unarchive", "diff"):
        assert run_refused(command, "none", "--client", client)[1] == "There is no decision policy with this slug."
    stranger = "00000000-0000-4000-8000-000000000000"
    assert run_refused("push", write_policy(tmp_path), "--client", stranger)[1] == "There is no client with this id."
    assert run_refused("list", "--client", stranger)[1] == "There is no client with this id."
    without = run("clients", "create", "Other", "--no-decision-policies")["clientId"]
    for arguments in (("push", write_policy(tmp_path)), ("list",)):
        assert "not enabled" in run_refused(*arguments, "--client", without)[1]
    run("policies", "push", write_policy(tmp_path), "--client", client)
    assert "no such version" in run_refused("publish", "overdraft", "--client", client, "--version", "2")[1]


def test_the_examples_can_be_written_and_pushed(client: str, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "policies"
    found = run("policies", "examples", "--write", folder)
    assert [each["slug"] for each in found] == sorted(examples.load())
    for file in sorted(folder.iterdir()):
        warnings = {each["code"] for each in run("policies", "check", file)["warnings"]}
        accepted = [word for code in sorted(warnings) for word in ("--acknowledge", code)]
        assert run("policies", "push", file, "--client", client, "--publish", *accepted)["state"] == "published"
    assert len(run("policies", "list")) == len(found)
    (tmp_path / "file").write_text("")
    assert "can't be made" in run_refused("examples", "--write", tmp_path / "file" / "x")[1]


def test_the_statement_describes_published_policies(client: str, tmp_path: Path) -> None:
    run("policies", "push", write_policy(tmp_path), "--client", client, "--publish")
    run("policies", "push", write_policy(tmp_path, slug="draft", name="Never published"), "--client", client)
    markdown = invoke("adm-statement", "--client", client)
    assert markdown.exit_code == 0, markdown.output
    assert "Overdraft review" in markdown.stdout
    assert "Never published" not in markdown.stdout
    assert "Overdraft review" in json.dumps(run("policies", "adm-statement", "--client", client))


def test_the_schema_is_printed() -> None:
    printed = json.loads(invoke("schema").stdout)
    assert printed["$schema"].startswith("https://json-schema.org/")
