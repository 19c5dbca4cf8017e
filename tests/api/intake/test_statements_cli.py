"""`tidemark statements extract`: read PDF files without a service."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from api.cli import app
from api.intake.commands import statements
from pipelines.synthetic.pdf import statement_pdf
from tests.isolation import hostile
from tests.pipelines.intake.pdf.drawing import HEADING, four_rows
from tests.pipelines.intake.pdf.drawing import statement as drawn_statement

pytestmark = pytest.mark.service  # a child process for each file

MADE = statement_pdf("westpac", 7, rows=30)
CARD = statement_pdf("cba_card", 3, rows=12)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def file(name: str, content: bytes = MADE.content) -> str:
    Path(name).write_bytes(content)
    return name


def ran(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["statements", "extract", *arguments], terminal_width=100, input=given)


def extract_as_json(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
    result = ran(*arguments, "--json")
    assert result.exit_code == status, result.output
    statements: list[dict[str, Any]] = json.loads(result.stdout, parse_float=Decimal)
    return statements


def table(*arguments: str) -> list[dict[str, str]]:
    result = ran(*arguments, "--csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_json_contains_everything_that_was_read(home: Path) -> None:
    (one,) = extract_as_json(file("march.pdf"))
    (account,), (statement,) = MADE.accounts, one["statements"]
    assert (one["file"], one["pages"], one["refusal"]) == ("march.pdf", MADE.pages, None)
    assert (statement["bsb"], statement["accountNumber"]) == (account.bsb, account.account_number)
    assert (statement["openingBalance"], statement["closingBalance"]) == (account.opening, account.closing)
    assert statement["verdict"] == "reconciled"
    amounts = [(row["date"], row["amount"]) for row in statement["entries"]]
    assert amounts == [(str(row.date), row.amount) for row in account.rows]
    assert all(row["boxes"][0]["page"] for row in statement["entries"])
    assert not home.exists()


def test_the_table_shows_the_rows_and_how_many_are_proved() -> None:
    result = ran(file("march.pdf"))
    (account,) = MADE.accounts
    assert result.exit_code == 0
    for words in (
        "march.pdf",
        "Westpac",
        f"xxxx{account.account_number[-4:]}",
        "reconciled",
        f"{account.opening:,.2f}",
    ):
        assert words in result.stdout
    assert account.account_number not in result.stdout


def test_rows_as_csv_can_be_analysed() -> None:
    rows = table(file("march.pdf"))
    assert list(rows[0]) == list(statements.COLUMNS)
    assert [Decimal(row["amount"]) for row in rows] == [row.amount for row in MADE.rows]
    assert {row["verdict"] for row in rows} == {"reconciled"}
    Path("rows.csv").write_text(ran("march.pdf", "--csv").stdout)
    analysed = CliRunner().invoke(app, ["analyse", "rows.csv", "--json"])
    (read,) = json.loads(analysed.stdout)["files"]
    (account,) = read["accounts"]
    assert (read["rows"], read["rejected"]) == (len(MADE.rows), 0)
    assert account["accountNumberMasked"] == f"xxxx{MADE.accounts[0].account_number[-4:]}"


def test_the_currency_is_stated_by_the_statement_or_declared_by_the_user() -> None:
    stated = four_rows(drawn_statement().line((45, "Currency: INR")).line(*HEADING)).finish()
    names = [file("mumbai.pdf", stated), file("march.pdf")]
    assert [row["currency"] for row in table(names[0])] == ["INR"] * 4
    assert {row["currency"] for row in table(names[1])} == {""}
    assert {row["currency"] for row in table("--currency", "inr", *names)} == {"INR"}
    mumbai, march = extract_as_json("--currency", "AUD", *names, status=1)
    assert (mumbai["refusal"], mumbai["statements"]) == ("unsupported_currency", [])
    assert march["statements"][0]["currency"] == "AUD"
    assert "assumed" in ran(names[1]).stdout
    assert ran("--currency", "DOLLAR", names[1]).exit_code == 2


def test_an_ambiguous_currency_sign_takes_the_declared_currency_but_never_aud() -> None:
    shared = four_rows(drawn_statement().line((45, "Currency: Rupees")).line(*HEADING)).finish()
    name = file("lahore.pdf", shared)
    assert {row["currency"] for row in table(name)} == {"XXX"}
    assert {row["currency"] for row in table("--currency", "PKR", name)} == {"PKR"}
    (refused,) = extract_as_json("--currency", "AUD", name, status=1)
    assert refused["refusal"] == "unsupported_currency"


def test_only_the_last_digits_of_a_card_are_shown() -> None:
    name = file("card.pdf", CARD.content)
    number = CARD.accounts[0].account_number
    (one,) = extract_as_json(name)
    assert one["statements"][0]["accountNumber"] == f"xxxx{number[-4:]}"
    assert all(row["account_number"] == f"xxxx{number[-4:]}" for row in table(name))


def test_a_refused_file_does_not_affect_the_others() -> None:
    names = [file("long.pdf", hostile.pages(500)), file("march.pdf"), file("empty.pdf", b"")]
    long, march, empty = extract_as_json(*names, status=1)
    assert [each["refusal"] for each in (long, march, empty)] == ["too_many_pages", None, "corrupt"]
    as_csv = ran(*names, "--csv")
    assert as_csv.exit_code == 1
    assert len(list(csv.DictReader(io.StringIO(as_csv.stdout)))) == len(MADE.rows)
    assert "empty.pdf: corrupt" in as_csv.stderr
    shown = ran(*names)
    assert shown.exit_code == 1
    assert "too_many_pages" in shown.stdout
    assert "reconciled" in shown.stdout


def test_a_password_from_a_file() -> None:
    name = file("locked.pdf", hostile.encrypt_pdf(MADE.content, owner="of the bank", user="19850612"))
    Path("password").write_text("19850612\n")
    Path("other").write_text("19850613\n")
    assert extract_as_json(name, status=1)[0]["refusal"] == "encrypted"
    assert extract_as_json(name, "--password-file", "other", status=1)[0]["refusal"] == "wrong_password"
    assert extract_as_json(name, "--password-file", "password")[0]["refusal"] is None


def test_a_password_is_asked_for_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    name = file("locked.pdf", hostile.encrypt_pdf(MADE.content, owner="of the bank", user="19850612"))
    monkeypatch.setattr("api.intake.commands.statements._is_interactive", lambda: True)
    result = ran(name, "--csv", given="19850612\n")
    assert result.exit_code == 0
    assert "Password of locked.pdf" in result.stderr
    assert "19850612" not in result.output
    assert result.stdout.count(",reconciled\n") == len(MADE.rows)


def test_pages_are_drawn_on_request(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    names = [file("march.pdf"), file("other/march.pdf", statement_pdf("westpac", 8, pages=2).content)]
    assert ran(*names, "--explain", "drawn/here").exit_code == 0
    drawn = sorted(path.name for path in (tmp_path / "drawn/here").iterdir())
    ones = [f"1-march-{page:03}.png" for page in range(1, MADE.pages + 1)]
    assert drawn == [*ones, "2-march-001.png", "2-march-002.png"]
    with Image.open(tmp_path / "drawn/here" / drawn[0]) as picture:
        assert min(picture.size) > 500
        assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 2


def test_control_characters_in_names_are_escaped() -> None:
    name = file("[red]\x1b[31m\nmarch.pdf", b"")
    shown = ran(name)
    assert "\x1b" not in shown.stdout
    assert "[red]" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--csv"], 2),
        (["march.pdf", "--csv", "--json"], 2),
        (["march.pdf", "--password", "x"], 2),
        (["nothing.pdf"], 1),
        (["march.pdf", "--password-file", "nothing"], 1),
        (["march.pdf", "--explain", "march.pdf"], 1),
    ],
)
def test_unusable_options_and_files_are_refused(arguments: list[str], status: int) -> None:
    file("march.pdf")
    result = ran(*arguments)
    assert result.exit_code == status
    assert result.stdout == ""


def test_the_help_shows_an_example() -> None:
    assert "Example" in ran("--help").stdout
