"""`tidemark report`: the stored reports on the terminal, as JSON, as a page and as PDF."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from api import cli
from api.cli import app
from api.reports import browser
from api.reports.commands import report_output
from api.reports.commands.report_output import fill_lines
from storage.core.settings import Settings
from storage.core.store import Store
from tests.assets.lender import RENT, SALE, Lender, run_refreshes
from tests.conftest import open_store
from tests.waiting import until


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A home for all tests of the command, which only reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_HOME", str(tmp_path_factory.mktemp("home")))
        opened = open_store(Settings())
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def lender(store: Store) -> Lender:
    """A lender with a customer whose reports are computed."""
    made = Lender(store)
    made.submit_and_end(RENT, SALE)
    made.ask_for_reports()
    run_refreshes(made)
    return made


def run(lender: Lender, *arguments: str) -> Result:
    result = CliRunner().invoke(app, ["report", str(lender.customer.customer_id), *arguments])
    assert result.exit_code == 0, result.output
    return result


def run_refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that the command prints on standard error."""
    monkeypatch.setattr(sys, "argv", ["tidemark", "report", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    return line


def test_the_terminal_shows_the_summary(lender: Lender) -> None:
    text = run(lender).stdout
    for words in ("Completeness", "Risk rating", "(indicative)", "Confidence in the risk figure", "3 Mar 2026"):
        assert words in text


def test_no_fact_is_broken_at_the_end_of_a_line() -> None:
    facts = [
        "[dim]As of[/] 30 Nov 2026",
        "[dim]Data through[/] 30 Nov 2026",
        "[dim]Computed[/] 30 Nov 2026, 19:05 AEDT",
    ]
    assert fill_lines(facts, 46) == ["[dim]As of[/] 30 Nov 2026  [dim]Data through[/] 30 Nov 2026", facts[2]]
    assert fill_lines(facts, 45) == ["[dim]As of[/] 30 Nov 2026  [dim]Data through[/] 30 Nov 2026", facts[2]]
    assert fill_lines(facts, 41) == facts
    assert fill_lines(facts, 10) == facts
    assert fill_lines(facts, 200) == ["  ".join(facts)]
    assert fill_lines([], 80) == []


@pytest.mark.parametrize("width", [60, 80, 100])
def test_times_are_whole_on_a_narrow_terminal(lender: Lender, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(report_output.out, "width", width)
    lines = run(lender).stdout.splitlines()
    [computed] = [line for line in lines if "Computed" in line]
    assert re.search(r"Computed \d+ \w{3} \d{4}, \d\d:\d\d \w+", computed)


def test_a_report_that_is_not_computed_yet_is_reported(store: Store) -> None:
    lender = Lender(store)
    assert "The risk report has not been computed yet." in run(lender).stdout


def test_json_is_the_bundle_of_the_api(lender: Lender) -> None:
    reported = json.loads(run(lender, "--json").stdout)
    assert list(reported) == ["completeness", "risk", "aggregate"]
    assert {each["status"] for each in reported.values()} == {"ready"}
    assert reported["risk"]["data"]["rating"] in "ABCDE"


def test_the_page_is_written_with_the_same_figures(lender: Lender, tmp_path: Path) -> None:
    reported = json.loads(run(lender, "--json").stdout)
    result = run(lender, "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert f"{reported['completeness']['data']['summary']['completenessScore']} / 100" in page
    assert "$812.40" in page
    assert str(lender.customer.customer_id) in page
    assert result.stdout == ""


def test_a_page_that_cannot_be_written_is_reported_in_one_line(
    lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "missing" / "page.html"
    line = run_refused(monkeypatch, capfd, str(lender.customer.customer_id), "--html", str(nowhere))
    assert line == f"tidemark: {nowhere} can't be written: No such file or directory."


@pytest.mark.usefixtures("store")
def test_an_unknown_customer_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_refused(monkeypatch, capfd, str(uuid4())) == "tidemark: There is no customer with this id."


def test_without_a_browser_the_error_says_what_to_install(
    lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    line = run_refused(monkeypatch, capfd, str(lender.customer.customer_id), "--pdf", str(tmp_path / "page.pdf"))
    assert "install one (on Debian and Ubuntu: apt install chromium)" in line
    assert not (tmp_path / "page.pdf").exists()


def test_a_browser_that_never_ends_is_ended(
    lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stuck = tmp_path / "chromium"
    stuck.write_text(f"#!/bin/sh\n/bin/sleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "WITHIN_S", 2)  # time enough for the shell to start its child
    line = run_refused(monkeypatch, capfd, str(lender.customer.customer_id), "--pdf", str(tmp_path / "page.pdf"))
    assert "did not print within 2 s" in line
    until(lambda: not alive(int((tmp_path / "child").read_text())))


def alive(process: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.service
@pytest.mark.skipif(
    browser.find_browser() is None, reason="install Chromium or Chrome (apt install chromium) to run this"
)
def test_the_page_is_printed_to_pdf(lender: Lender, tmp_path: Path) -> None:
    run(lender, "--pdf", str(tmp_path / "page.pdf"))
    printed = (tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert b"/MarkInfo" in printed  # tagged: a screen reader finds its headings and tables
    assert printed.rstrip().endswith(b"%%EOF")
