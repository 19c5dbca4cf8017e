"""`tidemark attack …`: what it prints and refuses."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import app
from api.decisions.commands.attack import UNTIL, subject_of
from pipelines.attacks.registry import attacks, lookalikes
from pipelines.synthetic import portfolio

ROWS = """customer,account,date,description,amount,balance
c1,1,2026-01-05,Osko Deposit MEI ZHANG inv 7,5000.00,6000.00
c1,1,2026-02-05,Osko Payment to Ana Vale wages,-1000.00,5000.00
c1,1,2026-03-05,Dishonour fee,-15.00,4985.00
c2,1,2026-03-05,Interest,1.00,1.00
"""


def output(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["attack", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_all_attacks_and_lookalikes_are_described() -> None:
    described = json.loads(output("--list", "--json"))
    assert {each["slug"] for each in described} == {*attacks(), *lookalikes()}
    by_slug = {each["slug"]: each for each in described}
    assert by_slug["account_withheld"]["detectability"] == "partly"
    assert by_slug["account_withheld"]["needs"] == ["words", "accounts"]
    assert by_slug["quiet_month"]["resembles"] == "month_withheld"
    printed = output("invoice_circle", "account_withheld", "quiet_month", "--list")
    for shown in ("partly (needs words, accounts)", "parameters: turns=5, share=0.35, within=90", "of month_withheld"):
        assert shown in printed


def test_parameters_are_set_where_they_exist() -> None:
    described = json.loads(
        output(
            "round_trip", "texts_blanked", "quiet_month", "--list", "--json", "--set", "share=0.4", "--set", "days=3"
        )
    )
    parameters = {each["slug"]: each["parameters"] for each in described}
    assert (parameters["round_trip"]["share"], parameters["round_trip"]["days"]) == ("0.4", "3")
    assert parameters["texts_blanked"] == {"share": "0.4", "text": None}
    assert parameters["quiet_month"] == {}


@pytest.mark.parametrize(
    "setting", ["share=-1", "share=nan", "share=lots", "count=0", "count=9999", "first=up", "shares=1", "share", "=1"]
)
def test_wrong_parameter_is_refused(setting: str) -> None:
    refused = CliRunner().invoke(app, ["attack", "round_trip", "--list", "--set", setting])
    assert refused.exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--synthetic", "no_such_attack"),
        (),
        ("--synthetic", "--transactions", "x.csv"),
        ("--synthetic", "--expects", "word"),
        ("--synthetic", "--expects", " "),
    ],
)
def test_what_cannot_be_tried_is_refused(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["attack", *arguments]).exit_code != 0


@pytest.mark.service  # enriches and rates
def test_attacks_on_own_files(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    chosen = ("round_trip", "quiet_month", "--transactions", tmp_path / "rows.csv")
    report = json.loads(output(*chosen, "--json"))
    assert report["untouched"]["customers"] == 2
    assert [each["slug"] for each in report["attacks"]] == ["round_trip"]
    assert [each["slug"] for each in report["lookalikes"]] == ["quiet_month"]
    assert report["expects"] == ["words", "balances", "accounts"]  # decided from the file, which is short
    assert json.loads(output(*chosen, "--json", "--expects", "words,months"))["expects"] == ["words", "months"]


@pytest.mark.service  # as above
def test_plain_file_is_rated_by_what_it_has(tmp_path: Path) -> None:
    """Without descriptions, steady customers with reserves can be rated well, as `risk score` does."""
    lines = ["customer,account,date,description,amount,balance"]
    for customer in ("c1", "c2"):
        for number in range(364):
            day, balance = date(2025, 3, 3) + timedelta(days=number), 9000 + 2 * number
            lines += [f"{customer},1,{day},,100.00,{balance}.00", f"{customer},1,{day},,-98.00,{balance - 98}.00"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    report = json.loads(output("quiet_month", "--transactions", tmp_path / "rows.csv", "--json"))
    assert report["expects"] == ["balances", "months"]
    assert report["untouched"]["good"] == 1


def test_business_is_seen_on_the_day_it_applies() -> None:
    business = next(each for each in portfolio(20, 3, 5, UNTIL) if each.applied_on < UNTIL)
    applicant = subject_of(business).applicant
    assert applicant.applied_on == business.applied_on
    assert applicant.ledger["date"].max() <= business.applied_on  # pyrefly: ignore[unsupported-operation]


@pytest.mark.service  # as above
def test_table_fits_a_terminal() -> None:
    printed = output("--synthetic", "--customers", "1", "round_trip_related", "supplier_with_similar_name")
    assert "round_trip_related" in printed
    assert "supplier_with_similar_name" in printed
    assert "Expected evidence: words, balances, accounts, months" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.service  # as above
def test_parameters_that_contradict_each_other_are_refused_in_one_line() -> None:
    impossible = ("round_trip_delayed", "--synthetic", "--customers", "1", "--set", "least_days=365")
    refused = CliRunner().invoke(app, ["attack", *impossible])
    assert isinstance(refused.exception, SystemExit)
    assert "no customer can be changed with least_days=365" in refused.stderr
