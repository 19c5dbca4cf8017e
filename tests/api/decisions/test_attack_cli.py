"""`tidemark attack …`: what it prints and refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import app
from pipelines.attacks.registry import attacks, lookalikes

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
    assert "invoice_circle" in output("invoice_circle", "--list")


@pytest.mark.parametrize(
    "arguments", [("--synthetic", "no_such_attack"), (), ("--synthetic", "--transactions", "x.csv")]
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


@pytest.mark.service  # as above
def test_table_fits_a_terminal() -> None:
    printed = output("--synthetic", "--customers", "1", "round_trip_related", "supplier_with_similar_name")
    assert "round_trip_related" in printed
    assert "supplier_with_similar_name" in printed
    assert max(map(len, printed.splitlines())) <= 80
