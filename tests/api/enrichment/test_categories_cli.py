"""`tidemark categorise` and `tidemark categories …`: what they print, store and refuse."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from api import cli
from api.cli import app
from pipelines.enrichment.learned import model_file
from pipelines.vocabulary.errors import TidemarkError
from pipelines.vocabulary.taxonomy import VERSION
from storage.core.settings import Settings
from tests.assets.lender import COFFEE, Lender
from tests.conftest import open_store
from tests.pipelines.enrichment.learned.examples import table

pytestmark = pytest.mark.service  # whole commands over whole files: many seconds

STATEMENT = (
    "Date,Description,Amount,Balance\n"
    '2025-01-03,EFTPOS BUNNINGS 0441 SYDNEY NSWAU,"-1,120.50",3\n'
    "04/01/2025,MONTHLY ACCOUNT FEE,-10.00,2\n"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    table(400).write_csv(path)
    return path


def run(*arguments: str | Path) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run_refused(*arguments: str | Path) -> str:
    """Return the one line of a refusal."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, TidemarkError), result.output
    return result.exception.detail


def in_taxonomy(labels: Path) -> Path:
    """Return the same file with categories as labels."""
    slugs = {"food": "meals", "motor": "vehicle_maintenance", "office": "office_supplies", "takings": "card_settlement"}
    pl.read_csv(labels, infer_schema=False).with_columns(pl.col("label").replace(slugs)).write_csv(labels)
    return labels


def test_a_file_is_categorised_without_a_home(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "statement.csv"
    file.write_text(STATEMENT)
    result = CliRunner().invoke(app, ["categorise", str(file)])
    assert "2 of 2 rows categorised, AUD assumed, signs assumed" in " ".join(result.stderr.split())
    rows = pl.read_csv(result.stdout.encode())
    assert rows.columns == [
        "date",
        "description",
        "amount",
        "currency",
        "category",
        "confidence",
        "source",
        "counterparty",
    ]
    assert rows["category"].to_list() == ["materials", "bank_fees"]
    assert rows["amount"].to_list() == [-1120.50, -10.0]
    assert run("categorise", file)[0]["category"] == "materials"
    assert not home.exists()


def test_a_model_with_other_labels_decides_without_rules(tmp_path: Path, labels: Path) -> None:
    run("categories", "train", "--labels", labels, "--out", tmp_path / "model.npz")
    rows = run("categorise", labels, "--model", tmp_path / "model.npz")
    assert {row["source"] for row in rows} == {"learned"}
    assert {row["category"] for row in rows} == {"food", "motor", "office", "takings"}


@pytest.mark.usefixtures("home")
def test_from_training_to_use_and_back(labels: Path) -> None:
    client = run("clients", "create", "Harbour Lending")["clientId"]
    trained = run("categories", "train", "--labels", in_taxonomy(labels), "--client", client)
    assert trained["rows"] == 400
    assert trained["accuracy"] > 0.8
    (retained,) = run("categories", "list")
    assert (retained["modelId"], retained["usedFor"]) == (trained["modelId"], [])
    run("categories", "activate", trained["modelId"], "--client", client)
    assert run("categories", "list")[0]["usedFor"] == [client]
    run("categories", "deactivate", "--client", client)
    assert run("categories", "list")[0]["usedFor"] == []
    assert "No learned model is active" in run_refused("categories", "deactivate", "--client", client)
    actions = {entry["action"] for entry in run("audit", "list")}
    assert {"Model.Trained", "Model.Activated", "Model.Deactivated"} <= actions


@pytest.mark.usefixtures("home")
def test_activating_a_file_stores_it(tmp_path: Path, labels: Path) -> None:
    run("categories", "train", "--labels", in_taxonomy(labels), "--out", tmp_path / "model.npz")
    assert run("categories", "list") == []
    run("categories", "activate", tmp_path / "model.npz")
    assert run("categories", "list")[0]["usedFor"] == ["all"]


@pytest.mark.usefixtures("home")
def test_model_of_another_version_of_the_taxonomy_gets_a_warning(tmp_path: Path, labels: Path) -> None:
    trained = run("categories", "train", "--labels", in_taxonomy(labels), "--out", tmp_path / "model.npz")
    assert trained["taxonomy"] == VERSION
    model = model_file.loads((tmp_path / "model.npz").read_bytes())
    older = replace(model, facts={**model.facts, "taxonomy": VERSION - 1})
    (tmp_path / "older.npz").write_bytes(model_file.dumps(older))
    for arguments in (["activate", str(tmp_path / "older.npz")], ["list"]):
        result = CliRunner().invoke(app, ["categories", *arguments])
        assert f"It was fitted with version {VERSION - 1} of the taxonomy" in result.stderr


@pytest.mark.usefixtures("home")
def test_model_is_activated_only_if_submissions_fill_its_columns(labels: Path) -> None:
    table = pl.read_csv(in_taxonomy(labels), infer_schema=False)
    table.with_columns(context_team=pl.lit("Roads"), customer_id=pl.lit("c-1")).write_csv(labels)
    trained = run("categories", "train", "--labels", labels)
    assert trained["columns"] == ["context_bank", "context_team"]
    message = run_refused("categories", "activate", trained["modelId"])
    assert "no stored transaction has: context_team." in message
    store = open_store(Settings())
    Lender(store).submit_and_end({**COFFEE, "context_team": "Parks"})
    store.close()
    impact = run("categories", "activate", trained["modelId"])["impact"]
    assert (impact["customers"], impact["transactions"]) == (1, 1), "shown before it takes effect"
    assert run("categories", "list")[0]["usedFor"] == ["all"]


def test_customers_that_train_nothing_are_counted_apart(labels: Path) -> None:
    table = pl.read_csv(labels, infer_schema=False)
    customers = pl.Series("customer", [f"c{number % 20}" for number in range(table.height)])
    table.with_columns(customers).write_csv(labels)
    measured = run("categories", "evaluate", "--labels", labels, "--split-date", "2025-03-10")
    assert measured["new_customers"] == 4
    assert measured["model"]["new_customers"] > 0.5
    early = table.filter(pl.col("date") < "2025-03-10").height
    assert measured["trained_rows"] == round(early * 16 / 20)


@pytest.mark.usefixtures("home")
def test_a_model_with_other_labels_is_not_activated(labels: Path) -> None:
    trained = run("categories", "train", "--labels", labels)
    assert "not all categories" in run_refused("categories", "activate", trained["modelId"])
    assert run("categories", "list")[0]["usedFor"] == []


def test_evaluation_compares_the_model_with_the_baseline(labels: Path) -> None:
    measured = run("categories", "evaluate", "--labels", labels, "--split-date", "2025-03-10")
    assert measured["trained_rows"] + measured["tested_rows"] == 400
    assert (
        {"accuracy", "seen", "unseen", "new_customers", "macro_f1"}
        == set(measured["model"])
        == set(measured["baseline"])
    )
    assert 0 < len(measured["bins"]) <= 10
    shown = CliRunner().invoke(app, ["categories", "evaluate", "--labels", str(labels)])
    assert all(
        word in shown.stdout for word in ("learned model", "baseline", "unseen", "macro-F1", "calibration error")
    )


def test_random_labels_get_a_warning(tmp_path: Path, labels: Path) -> None:
    garbage = tmp_path / "garbage.csv"
    pl.read_csv(labels, infer_schema=False).with_columns(pl.col("label").shuffle(seed=1)).write_csv(garbage)
    for arguments in (["train", "--out", str(tmp_path / "m.npz")], ["evaluate"]):
        result = CliRunner().invoke(app, ["categories", *arguments, "--labels", str(garbage)])
        assert result.exit_code == 0
        assert "no better than always choosing the most common label" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is not a CSV file"),
        ("date,description,amount\n2025-01-01,A,1\n", "no column label"),
        ("date,description,amount,label\n", "no rows"),
        ("date,description,amount,label\n2025-13-01,A,1.00,x\n", "1 rows have no date that can be read"),
        ("date,description,amount,label\n2025-01-01,A,one,x\n", "1 rows have no amount that can be read"),
        ("date,description,amount,label\n2025-01-01,A,99999999999999999,x\n", "no amount that can be read"),
        ("date,description,amount,label\n2025-01-01,A,1.00, \n", "1 rows have no label"),
        ("date,description,amount,label\n" + "2025-01-01,A,1.00,x\n" * 30, "every row has the same label"),
        ("date,description,amount,label\n2025-01-01,A,1.00,x\n", "too few"),
        ("date,description,amount,label\n" + "".join(f"2025-01-01,A,1.00,x{n}\n" for n in range(30)), "one of its own"),
    ],
)
def test_garbage_is_refused_with_its_reason(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "garbage.csv"
    file.write_text(content)
    for command in ("train", "evaluate"):
        line = run_refused("categories", command, "--labels", file)
        assert reason in line
        assert "\n" not in line


def test_a_few_unreadable_rows_are_left_out_and_named(tmp_path: Path, labels: Path) -> None:
    with labels.open("a") as file:
        file.write("2025-02-30,NOBODY,1.00,food,ANZ\n")
    result = CliRunner().invoke(app, ["categories", "train", "--labels", str(labels), "--out", str(tmp_path / "m.npz")])
    assert result.exit_code == 0
    message = " ".join(result.stderr.split())
    assert "1 row left out: unreadable" in message
    assert "line 402: date can't be read: '2025-02-30'" in message


def test_steps_of_training_and_evaluation_are_shown(tmp_path: Path, labels: Path) -> None:
    for arguments in (["train", "--out", str(tmp_path / "m.npz")], ["evaluate"]):
        result = CliRunner().invoke(app, ["categories", *arguments, "--labels", str(labels)])
        assert "training the model, part 1 of" in result.stderr
        assert ("training the baseline" in result.stderr) == (arguments == ["evaluate"])


def test_what_is_trained_on_is_categorised(tmp_path: Path, labels: Path, subtests: pytest.Subtests) -> None:
    """Each change is one that a bank's export may not have."""
    day, amount = pl.col("date"), pl.col("amount")
    changes = {
        "in the future": day.str.replace("2025", "2099").alias("date"),
        "before 1970": day.str.replace("2025", "1965").alias("date"),
        "three decimals": (amount + "4").alias("amount"),
        "a long description": (pl.col("description") + " X" * 600).alias("description"),
        "balances that are none": pl.lit("n/a").alias("balance"),
        "several currencies": pl.when(amount.str.starts_with("-"))
        .then(pl.lit("GBP"))
        .otherwise(pl.lit("USD"))
        .alias("currency"),
        "a status": pl.lit("declined").alias("status"),
        "two more amounts": pl.lit("5.00").alias("debit"),
    }
    table = pl.read_csv(labels, infer_schema=False)
    for number, (name, change) in enumerate(changes.items()):
        file = tmp_path / f"{number}.csv"
        table.with_columns(change).write_csv(file)
        with subtests.test(name):
            run("categories", "train", "--labels", file, "--out", tmp_path / "model.npz")
            assert len(run("categorise", file)) == table.height


def test_unreadable_rows_of_a_file_for_training_are_listed_and_the_others_categorised(labels: Path) -> None:
    with labels.open("a") as file:
        file.write("2025-02-30,NOBODY,1.00,food,ANZ\n2025-02-03,NOBODY,1.00,,ANZ\n")
    result = CliRunner().invoke(app, ["categorise", str(labels)])
    message = " ".join(result.stderr.split())
    assert "401 of 402 rows categorised" in message  # a label is not needed
    assert "line 402: date can't be read: '2025-02-30'" in message
    assert pl.read_csv(result.stdout.encode()).height == 401


def test_file_for_training_of_which_more_than_a_tenth_cannot_be_read_is_refused(labels: Path) -> None:
    with labels.open("a") as file:
        file.write("2025-02-30,NOBODY,1.00,food,ANZ\n" * 45)
    assert "45 rows have no date that can be read, the first on line 402" in run_refused("categorise", labels)


def test_export_without_a_row_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "declined.csv"
    file.write_text("Date,Description,Amount,Status\n2025-01-03,SHOP,-5.00,declined\n2025-01-04,SHOP,-5.00,declined\n")
    result = CliRunner().invoke(app, ["categorise", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no row of" in " ".join(result.stderr.split())


def test_rows_that_cannot_be_read_are_named_and_the_others_categorised(tmp_path: Path) -> None:
    file = tmp_path / "statement.csv"
    file.write_text(STATEMENT + "2025-02-30,A,1.00,1\n" + "2025-02-03,A,1.00,1\n" * 30)
    result = CliRunner().invoke(app, ["categorise", str(file)])
    assert pl.read_csv(result.stdout.encode()).height == 32
    assert "line 4: date must be a date" in " ".join(result.stderr.split())


def test_the_stated_currency_is_used_and_formulas_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "card.csv"
    file.write_text("Date,Description,Amount (GBP)\n2025-01-03,=1+1,5.00\n2025-01-04,PAYMENT THANK YOU,-9.00\n")
    rows = pl.read_csv(CliRunner().invoke(app, ["categorise", str(file)]).stdout.encode())
    assert rows["description"].to_list() == ["'=1+1", "PAYMENT THANK YOU"]
    assert rows["amount"].to_list() == [-5.0, 9.0]
    assert set(rows["currency"]) == {"GBP"}


def test_a_missing_file_and_a_file_that_is_not_a_model_are_refused(tmp_path: Path, labels: Path) -> None:
    missing = CliRunner().invoke(app, ["categorise", str(tmp_path / "nothing.csv")])
    assert (missing.exit_code, "can't be read" in missing.stderr) == (1, True)
    assert "not a model" in run_refused("categorise", labels, "--model", labels)


def test_every_command_shows_an_example() -> None:
    for command in (["categorise"], *(["categories", each] for each in ("train", "evaluate", "list", "activate"))):
        assert "Example" in CliRunner().invoke(app, [*command, "--help"]).stdout


def test_a_refusal_is_one_line_and_exit_status_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tidemark", "categorise", str(tmp_path / "nothing.csv")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert len(capfd.readouterr().err.splitlines()) == 1
