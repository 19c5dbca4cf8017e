"""`tidemark analyse`: the three reports of files, without a service."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from api.reports.commands.report_output import hide_marks, in_currency

AS_OF = "2026-11-02"
FIRST = date(2026, 5, 1)
DAYS = 180

whole_command = pytest.mark.service  # each takes a second or more


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def history() -> Iterator[tuple[date, str, Decimal, Decimal]]:
    """Yield half a year of a café, oldest first: takings on weekdays, coffee on Mondays, rent on the first."""
    balance = Decimal("10000.00")
    for day in (FIRST + timedelta(days=each) for each in range(DAYS)):
        rows = [("Direct Credit 141000 TYRO PAYMENTS", Decimal("512.40"))] if day.weekday() < 5 else []
        rows += [("EFTPOS CAMPOS COFFEE ALEXANDRIA", Decimal("-230.15"))] if day.weekday() == 0 else []
        rows += [("RENT SHOP 4 PARADE PROPERTY", Decimal("-3100.00"))] if day.day == 1 else []
        for description, amount in rows:
            balance += amount
            yield day, description, amount, balance


ROWS = list(history())


def commonwealth(path: Path, rows: Sequence[tuple[date, str, Decimal, Decimal]]) -> str:
    """Return an export without heading, newest first."""
    lines = [f'{day:%d/%m/%Y},"{amount:+}","{what}","{balance:+}"\n' for day, what, amount, balance in reversed(rows)]
    path.write_text("".join(lines), "utf-8")
    return path.name


def plain(path: Path, customers: Sequence[str]) -> str:
    lines = [
        f"{name},1234567,{day},{what},{amount},{balance}\n" for name in customers for day, what, amount, balance in ROWS
    ]
    path.write_text("customer,account,date,description,amount,balance\n" + "".join(lines), "utf-8")
    return path.name


def run(*arguments: str) -> str:
    ran = CliRunner().invoke(app, ["analyse", *arguments, "--as-of", AS_OF], terminal_width=100)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def analyse(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"), parse_float=Decimal)
    return found


def refusal(*arguments: str) -> str:
    ran = CliRunner().invoke(app, ["analyse", *arguments, "--as-of", AS_OF])
    assert ran.exit_code == 1
    message = (
        ran.stderr.strip() if ran.exception is None or isinstance(ran.exception, SystemExit) else str(ran.exception)
    )
    assert "\n" not in message
    return message


def months(found: dict[str, Any]) -> dict[str, Decimal]:
    tables = {table["id"]: table for table in found["aggregate"]["tables"]}
    return {row["month"][:7]: row["net"] for row in tables["monthly_cash_flow"]["values"]}


def net_by_month() -> dict[str, Decimal]:
    net: dict[str, Decimal] = {}
    for day, _, amount, _ in ROWS:
        net[f"{day:%Y-%m}"] = net.get(f"{day:%Y-%m}", Decimal(0)) + amount
    return net


def test_json_contains_the_reports_and_the_counts_of_rows(tmp_path: Path, home: Path) -> None:
    found = analyse(commonwealth(tmp_path / "cheque.csv", ROWS))
    reports = {"completeness", "risk", "aggregate"}
    assert set(found) == reports | {"currency", "currencyBasis", "expects", "rejected", "files"}
    assert (found["currency"], found["currencyBasis"]) == ("AUD", "assumed")
    assert months(found) == net_by_month()
    assert found["completeness"]["summary"]["completenessScore"] > 0
    assert found["completeness"]["gaps"] == []
    assert "Risk.Uncalibrated" in [each["code"] for each in found["risk"]["errorCodes"]]
    assert found["rejected"] == []
    account = {"account": "cheque", "accountNumberMasked": None, "rows": len(ROWS)}
    assert found["files"] == [
        {
            "file": "cheque.csv",
            "accounts": [account],
            "lines": len(ROWS),
            "headings": 0,
            "noRows": [],
            "rows": len(ROWS),
            "used": len(ROWS),
            "duplicates": 0,
            "rejected": 0,
            "unused": {},
            "signs": "proved",
            "columns": "date=1,amount=2,balance=4",
            "notes": [],
        }
    ]
    assert not home.exists()


@whole_command
def test_overlapping_exports_of_one_account_are_not_counted_twice(tmp_path: Path) -> None:
    files = [commonwealth(tmp_path / "new.csv", ROWS[60:]), commonwealth(tmp_path / "old.csv", ROWS[:90])]
    found = analyse(*files)
    assert months(found) == net_by_month()
    assert [file["unused"] for file in found["files"]] == [{"already known from another file": 30}, {}]
    assert len(found["completeness"]["accounts"]) == 1


@whole_command
def test_files_that_do_not_overlap_are_one_account_on_request(tmp_path: Path) -> None:
    files = [commonwealth(tmp_path / "a.csv", ROWS[:40]), commonwealth(tmp_path / "b.csv", ROWS[100:])]
    assert len(analyse(*files)["completeness"]["accounts"]) == 2
    assert len(analyse(*files, "--one-account")["completeness"]["accounts"]) == 1


def test_score_rating_months_and_rejected_rows_are_printed(tmp_path: Path) -> None:
    file = tmp_path / "cheque.csv"
    commonwealth(file, ROWS)
    with file.open("a") as more:
        more.write('31/02/2026,"-1.00","NO SUCH DAY","+1.00"\n')
    output = run(file.name)
    assert f"cheque.csv: {len(ROWS)} of {len(ROWS) + 1} rows used, 1 account, signs proved" in output
    assert "not used: 1 refused" in output
    assert "Amounts in AUD (assumed" in output
    assert f"cheque.csv, line {len(ROWS) + 1}: date must be a date" in output
    assert "(indicative)" in output
    for words in (
        "Completeness",
        "Monthly cash flow",
        "Oct 2026",
        "Campos",
        "Top counterparties",
        "No payment bounced.",
    ):
        assert words in output


@whole_command
def test_the_page_is_written(tmp_path: Path) -> None:
    run(commonwealth(tmp_path / "cheque.csv", ROWS), "--html", "out.html", "--name", "Harbour <Coffee>")
    page = (tmp_path / "out.html").read_text("utf-8")
    assert re.search(r"<dt>Computed</dt><dd><bdi>[^<]+ AE[DS]T</bdi>", page), "in the service's time zone"
    assert page.startswith("<!")
    assert "Harbour &lt;Coffee&gt;" in page


@whole_command
def test_several_customers_are_a_line_each_unless_one_is_chosen(tmp_path: Path) -> None:
    file = plain(tmp_path / "plain.csv", ["Harbour", "Pier"])
    lines = [line.split() for line in run(file).splitlines()]
    revenue = sum(amount for _, what, amount, _ in ROWS if "TYRO" in what) / 6
    for name in ("Harbour", "Pier"):
        (shown,) = (line for line in lines if line[:1] == [name])
        assert shown[1:3] == [str(len(ROWS)), "6"]
        assert shown[-1] == f"${revenue:,.0f}"
    both = analyse(file)
    assert [each["customer"] for each in both["customers"]] == ["Harbour", "Pier"]
    chosen = analyse(file, "--customer", "Pier")
    assert {kind: chosen[kind] for kind in ("completeness", "risk")} == {
        kind: both["customers"][1][kind] for kind in ("completeness", "risk")
    }
    assert "choose one of 2" in refusal(file, "--html", "out.html")
    assert "no file names a customer Mole" in refusal(file, "--customer", "Mole")


def without_words(path: Path, customers: Sequence[str], worded: Sequence[str] = ()) -> str:
    """Write a year of sound customers; only those in `worded` have descriptions."""
    lines = []
    for name in customers:
        words = (
            ("Direct Credit 141000 TYRO PAYMENTS", "EFTPOS CAMPOS COFFEE ALEXANDRIA") if name in worded else ("", "")
        )
        for number in range(364):
            day, balance = FIRST - timedelta(days=180 - number), 9000 + 2 * number
            lines += [f"{name},1,{day},{words[0]},100.00,{balance}.00\n"]
            lines += [f"{name},1,{day},{words[1]},-98.00,{balance - 98}.00\n"]
    path.write_text("customer,account,date,description,amount,balance\n" + "".join(lines), "utf-8")
    return path.name


@whole_command
def test_expected_evidence_is_decided_from_all_customers_unless_stated(tmp_path: Path) -> None:
    file = without_words(tmp_path / "plain.csv", ["a", "b", "c"], worded=["c"])
    every = analyse(file)
    assert every["expects"] == ["balances", "months"]
    ratings = {each["customer"]: each["risk"]["rating"] for each in every["customers"]}
    assert ratings["a"] == ratings["b"] == "A"
    only = analyse(file, "--customer", "c")  # has words, but the others do not
    assert only["expects"] == ["balances", "months"]
    assert only["risk"] == every["customers"][2]["risk"]
    stated = analyse(file, "--customer", "a", "--expects", "words,balances,months")
    assert stated["expects"] == ["words", "balances", "months"]
    assert stated["risk"]["rating"] == "E"
    assert "Expected evidence: balances, months" in run(file)
    assert CliRunner().invoke(app, ["analyse", file, "--expects", "word"]).exit_code == 2


@whole_command
def test_a_customer_without_usable_rows_has_no_reports_beside_others(tmp_path: Path) -> None:
    file = plain(tmp_path / "plain.csv", ["Harbour", "Pier"])
    with (tmp_path / "plain.csv").open("a") as lines:
        lines.write("Quay,1,1960-01-01,TOO OLD,1.00,1.00\n")
    harbour, pier, quay = analyse(file)["customers"]
    assert quay == {"customer": "Quay", "completeness": None, "risk": None, "aggregate": None}
    assert harbour["risk"]["value"] == pier["risk"]["value"]


@whole_command
def test_the_apis_json_is_read(tmp_path: Path) -> None:
    items = [
        {"date": str(day), "description": what, "amount": float(amount), "balance": float(balance)}
        for day, what, amount, balance in ROWS
    ]
    body = {"bsb": "062-000", "accountNumber": "12345678", "transactions": [*items, {"description": "no date"}]}
    (tmp_path / "feed.json").write_text(json.dumps(body))
    found = analyse("feed.json")
    assert months(found) == net_by_month()
    assert found["files"][0]["accounts"][0]["accountNumberMasked"] == "xxxx5678"
    assert [(each["file"], each["line"], each["field"], each["code"]) for each in found["rejected"]] == [
        ("feed.json", len(ROWS) + 1, "date", "Transaction.Missing")
    ]


def test_unusable_files_are_one_line_and_exit_status_1(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "bad.csv").write_text("Date,Description,Amount\n31/01/1960,A,-1.00\n31/01/2026,B,1.005\n")
    assert "none.csv can't be read: No such file or directory" in refusal("none.csv")
    assert "can't be read" in refusal(str(tmp_path))
    assert "empty.csv is empty" in refusal("empty.csv")
    refused = CliRunner().invoke(app, ["analyse", "bad.csv"])
    assert refused.exit_code == 1
    assert "bad.csv, line 2: date is before 1970." in refused.stdout
    assert "bad.csv, line 3: amount has more than two decimals." in refused.stdout
    (tmp_path / "future.csv").write_text("Date,Description,Amount\n2026-11-03,A,-1.00\n")
    assert "no row of these files could be used for reports as of 2026-11-02" in refusal("future.csv")


def write_export(path: Path, amount: str = "Amount", status: str = "posted") -> str:
    """Return an export with headings, in which every third row has the status."""
    lines = [
        f"{day},{what},{amount},{balance},{status if number % 3 == 0 else 'posted'}\n"
        for number, (day, what, amount, balance) in enumerate(ROWS)
    ]
    path.write_text(f"Date,Description,{amount},Balance,Status\n" + "".join(lines), "utf-8")
    return path.name


@whole_command
def test_rows_that_are_not_posted_are_counted_and_named(tmp_path: Path) -> None:
    file = write_export(tmp_path / "card.csv", status="authorized")
    (counts,) = analyse(file)["files"]
    authorised = (len(ROWS) + 2) // 3
    assert (counts["lines"], counts["headings"], counts["rows"]) == (len(ROWS) + 1, 1, len(ROWS))
    assert counts["used"] == len(ROWS) - authorised
    assert counts["unused"] == {"not posted yet (pending or authorised)": authorised}
    shown = run(file)
    assert f"card.csv: {len(ROWS) - authorised} of {len(ROWS)} rows used" in shown
    assert f"not used: {authorised} not posted yet" in shown


def test_another_currency_is_written_in_our_texts_but_not_in_descriptions() -> None:
    data = '{"tables":[{"amount":50.00,"description":"POWERCO 50 AUD ($40)"}],"message":"$50.00 repaid to A$AP"}'
    written = in_currency(hide_marks(data, "NZD"), "NZD")
    assert written == data.replace("$50.00", "NZD 50.00")
    assert in_currency(hide_marks(data, "AUD"), "AUD") == data


@whole_command
def test_amounts_are_in_the_currency_that_the_file_states(tmp_path: Path) -> None:
    file = write_export(tmp_path / "uk.csv", "Amount (GBP)")
    found = analyse(file)
    assert (found["currency"], found["currencyBasis"]) == ("GBP", "stated")
    assert months(found) == net_by_month()
    assert '"AUD"' not in run(file, "--json")
    shown = run(file)
    assert "Amounts in GBP" in shown
    assert re.search("GBP [0-9]", shown)
    assert "$" not in shown


def test_rows_in_another_currency_than_declared_are_refused_and_never_summed(tmp_path: Path) -> None:
    file = tmp_path / "mixed.csv"
    file.write_text(
        "Date,Description,Amount,Currency\n2026-10-01,A,-1.00,AUD\n2026-10-02,B,-100.00,USD\n2026-10-03,C,-2.00,AUD\n"
    )
    assert "The rows are in several currencies: AUD (2), USD (1)" in refusal("mixed.csv")
    found = analyse("mixed.csv", "--currency", "usd")
    assert months(found) == {"2026-10": Decimal(-100)}
    assert [(each["line"], each["code"]) for each in found["rejected"]] == [
        (line, "Transaction.UnsupportedCurrency") for line in (2, 4)
    ]
    assert found["files"][0]["unused"] == {"in another currency": 2}
    refused = CliRunner().invoke(app, ["analyse", "mixed.csv", "--currency", "XXQ"])
    assert "is not a currency code of ISO 4217" in refused.output


@whole_command
def test_given_columns_can_be_saved_and_reused(tmp_path: Path) -> None:
    lines = [f"{what};{-amount};{day}\n" for day, what, amount, _ in ROWS]
    (tmp_path / "odd.csv").write_text("".join(lines), "utf-8")
    by_hand = analyse("odd.csv", "--columns", "date=3,amount=-2,description=1", "--save-columns", "odd.columns")
    assert months(by_hand) == net_by_month()
    assert by_hand["files"][0]["signs"] == "declared"
    assert months(analyse("odd.csv", "--columns-file", "odd.columns")) == net_by_month()
    assert "--columns must name the columns date and amount" in refusal("odd.csv", "--columns", "date=1")


@whole_command
def test_a_table_fits_80_columns_unless_figures_need_more(tmp_path: Path) -> None:
    for factor, most in ((100, 80), (10_000, 100)):
        lines = [f"{day},{what},{amount * factor},{balance * factor}\n" for day, what, amount, balance in ROWS]
        (tmp_path / "large.csv").write_text("Date,Description,Amount,Balance\n" + "".join(lines), "utf-8")
        shown = run("large.csv")
        assert f"${ROWS[-1][3] * factor:,.2f}" in shown
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= most


@whole_command
def test_rows_that_their_statement_does_not_prove_are_reported(tmp_path: Path) -> None:
    """The file is as `tidemark statements extract --csv` writes it."""
    verdicts = {True: "no,unreconciled", False: "yes,reconciled"}
    lines = (f"{day},{what},{amount},{balance},{verdicts[amount < 0]}\n" for day, what, amount, balance in ROWS)
    (tmp_path / "rows.csv").write_text("date,description,amount,balance,proved,verdict\n" + "".join(lines), "utf-8")
    assert "of the money moved" in (reported := run("rows.csv"))
    assert "rests on PDF statements that do not reconcile." in " ".join(reported.split())
    reports = analyse("rows.csv")
    shares = {each["row"]: each["shares"] for each in reports["aggregate"]["unreconciled"]["figures"]}
    assert shares["/tables/rolling_windows/values/0"]["moneyOut"] == 1
    assert "moneyIn" not in shares["/tables/rolling_windows/values/0"]
    assert 0 < shares["/tables/rolling_windows/values/0"]["net"] < 1


@whole_command
def test_unproved_rows_are_reported_for_each_of_several_customers(tmp_path: Path) -> None:
    doubted = [("Harbour", "no,partial"), ("Pier", "yes,reconciled")]
    lines = [f"{name},{day},{what},{amount},{says}\n" for name, says in doubted for day, what, amount, _ in ROWS]
    lines.append("Mole,soon,LUNCH,-12.00,no,partial\n")
    (tmp_path / "rows.csv").write_text("customer,date,description,amount,proved,verdict\n" + "".join(lines), "utf-8")
    reported = {line.split()[0]: line for line in run("rows.csv").splitlines() if line.strip()}
    assert "100.00 %" in reported["Harbour"]
    assert "%" not in reported["Pier"]
    assert "Mole" in reported
