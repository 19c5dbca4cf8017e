"""`tidemark synthetic`: what it writes and refuses. Seeding a running service is tested in tests/flows."""

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from api.cli import app
from pipelines.synthetic import frames, held_out_banks, portfolio
from pipelines.synthetic.pdf import statement_pdf

GENERATE = ("synthetic", "generate", "--customers", "22", "--months", "2", "--seed", "3", "--until", "2025-06-30")
UNTIL = date(2025, 6, 30)


def generate(out: Path, *options: str) -> dict[str, object]:
    ran = CliRunner().invoke(app, [*GENERATE, "--out", str(out), "--json", *options])
    assert ran.exit_code == 0, ran.output
    summary: dict[str, object] = json.loads(ran.stdout)
    return summary


def expected_rows() -> pl.DataFrame:
    return pl.concat(frames.transactions(n, one) for n, one in enumerate(portfolio(22, 2, 3, UNTIL)))


def test_a_portfolio_is_a_folder_of_tables(tmp_path: Path) -> None:
    summary = generate(tmp_path / "portfolio")
    rows = expected_rows()
    assert {path.name for path in (tmp_path / "portfolio").iterdir()} == {
        "transactions.csv",
        "labels.csv",
        "customers.csv",
        "accounts.csv",
        "facilities.csv",
    }
    written = pl.read_csv(tmp_path / "portfolio" / "transactions.csv", schema=frames.TRANSACTIONS)
    assert written.with_columns(pl.col("description").fill_null("")).equals(rows)
    assert summary["transactions"] == rows.height
    assert summary["customers"] == pl.read_csv(tmp_path / "portfolio" / "customers.csv").height == 22
    assert summary["accounts"] == pl.read_csv(tmp_path / "portfolio" / "accounts.csv").height
    assert summary["facilities"] == pl.read_csv(tmp_path / "portfolio" / "facilities.csv").height
    labels = pl.read_csv(tmp_path / "portfolio" / "labels.csv")
    assert labels.columns == [
        "date",
        "description",
        "amount",
        "customer",
        "label",
        "context_bank",
        "context_account_type",
    ]
    assert labels.height == rows.height


def test_parquet_and_json_hold_the_same_rows(tmp_path: Path) -> None:
    generate(tmp_path / "p", "--format", "parquet")
    generate(tmp_path / "j", "--format", "json")
    rows = expected_rows()
    stored = pl.read_parquet(tmp_path / "p" / "transactions.parquet")
    assert stored.select("date", "amount", "description").equals(rows.select("date", "amount", "description"))
    lines = [json.loads(line) for line in (tmp_path / "j" / "transactions.jsonl").read_text("utf-8").splitlines()]
    assert [line["amount"] for line in lines] == rows["amount"].cast(pl.String).to_list()


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    generate(tmp_path / "a", "--faults")
    generate(tmp_path / "b", "--faults")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_portfolio_for_training_has_no_held_out_bank(tmp_path: Path) -> None:
    generate(tmp_path / "portfolio", "--part", "train")
    banks = set(pl.read_csv(tmp_path / "portfolio" / "labels.csv")["context_bank"])
    assert banks
    assert not banks & held_out_banks()


def test_lookalikes_are_labelled_and_named_beside_the_customer(tmp_path: Path) -> None:
    generate(tmp_path / "portfolio", "--lookalikes")
    rows = pl.read_csv(tmp_path / "portfolio" / "transactions.csv", schema=frames.TRANSACTIONS)
    labelled = rows.drop_nulls("lookalike")["customer"].unique().to_list()
    named = pl.read_csv(tmp_path / "portfolio" / "customers.csv").filter(pl.col("lookalikes") != "")
    assert named["customer"].sort().to_list() == sorted(labelled)
    assert len(labelled) > 5


def test_people_come_with_their_incomes(tmp_path: Path) -> None:
    summary = generate(tmp_path / "people", "--people")
    rows = pl.read_csv(tmp_path / "people" / "transactions.csv", schema=frames.TRANSACTIONS)
    incomes = pl.read_csv(tmp_path / "people" / "incomes.csv", schema=frames.INCOMES)
    assert summary["incomes"] == incomes.height > 10
    assert summary["customers"] == pl.read_csv(tmp_path / "people" / "customers.csv", schema=frames.PEOPLE).height == 22
    paid = rows.filter(pl.col("amount") > 0).select("customer", payer="counterparty").unique()
    assert incomes.join(paid, on=("customer", "payer"), how="anti").is_empty()


def test_people_with_faults_are_refused(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [*GENERATE, "--people", "--faults", "--out", str(tmp_path / "people")])
    assert ran.exit_code == 1
    assert "neither faults nor lookalikes" in ran.stderr


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    ran = CliRunner().invoke(app, [*GENERATE, "--out", str(tmp_path)])
    assert ran.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_statements_are_files_each_with_a_file_of_its_truth(tmp_path: Path) -> None:
    command = ("synthetic", "statements", "--layout", "westpac", "--files", "2", "--seed", "4", "--pages", "1")
    ran = CliRunner().invoke(app, [*command, "--out", str(tmp_path), "--json"])
    assert ran.exit_code == 0, ran.output
    assert {path.name for path in tmp_path.iterdir()} == {
        "westpac-4.pdf",
        "westpac-4.json",
        "westpac-5.pdf",
        "westpac-5.json",
    }
    made = statement_pdf("westpac", 4, pages=1)
    assert (tmp_path / "westpac-4.pdf").read_bytes() == made.content
    assert json.loads((tmp_path / "westpac-4.json").read_text("utf-8")) == made.truth()
    assert json.loads(ran.stdout)["statements"] == 2


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["synthetic", "statements", "--layout", "monopoly", "--out", str(tmp_path / "new")])
    assert ran.exit_code == 1
    assert not (tmp_path / "new").exists()


def test_production_refuses_synthetic_customers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_ENVIRONMENT", "production")
    client = "2f0c0000-0000-4000-8000-000000000000"
    with pytest.raises(SystemExit) as ended:
        app(["synthetic", "seed", "--client", client], standalone_mode=True)
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "refused in production" in line
    assert list(tmp_path.iterdir()) == []
