"""Generated statements: the truth about them adds up, and another PDF reader finds it on the pages."""

import hashlib
import json
import subprocess
import sys
from functools import cache
from io import BytesIO
from itertools import pairwise

import pdfplumber
import pytest

from pipelines.intake.pdf.page.result import Kind
from pipelines.synthetic.pdf import (
    EVERY_LAYOUT,
    FORGERIES,
    HELD_OUT,
    LAYOUTS,
    STRESSES,
    PrintedAccount,
    PrintedStatement,
    forgeries_of,
    statement_pdf,
)
from pipelines.vocabulary.schemas import ACCOUNT_TYPES

every_layout = pytest.mark.parametrize("layout", EVERY_LAYOUT)
pytestmark = pytest.mark.slow  # hundreds of papers are drawn, only to test the generator of synthetic data


def remove_spaces(text: str) -> str:
    return "".join(text.split())


def characters(content: bytes) -> list[str]:
    """Return each page's characters in the order of the file, without blanks."""
    with pdfplumber.open(BytesIO(content)) as file:
        return [remove_spaces("".join(char["text"] for char in page.chars)) for page in file.pages]


@cache
def draw_statement(layout: str, seed: int) -> tuple[PrintedStatement, list[str]]:
    """Draw a statement of 24 rows; return it with the characters of its pages."""
    made = statement_pdf(layout, seed, rows=24)
    return made, characters(made.content)


def figures(account: PrintedAccount) -> list[tuple[object, ...]]:
    return [(row.date, row.amount, row.balance) for row in account.rows]


@every_layout
def test_the_rows_lead_from_the_opening_to_the_closing_balance(layout: str) -> None:
    for seed in (1, 2):
        for account in statement_pdf(layout, seed).accounts:
            assert account.rows
            assert account.opening + sum(row.amount for row in account.rows) == account.closing
            assert all(account.period_start <= row.date <= account.period_end for row in account.rows)
            assert all(row.amount for row in account.rows)


@every_layout
def test_every_printed_balance_follows_from_the_rows_before_it(layout: str) -> None:
    for account in statement_pdf(layout, 1).accounts:
        balance = account.opening
        for row in account.rows:
            balance += row.amount
            assert row.balance in (None, balance)


@every_layout
def test_rows_are_listed_oldest_first_unless_there_are_sections(layout: str) -> None:
    for account in statement_pdf(layout, 2).accounts:
        days = [row.date for row in account.rows]
        assert EVERY_LAYOUT[layout].sections or days == sorted(days)


@every_layout
def test_each_row_is_on_its_page(layout: str) -> None:
    for seed in (1, 2):
        made, pages = draw_statement(layout, seed)
        assert len(pages) == made.pages
        for row in made.rows:
            page = pages[row.page - 1]
            assert all(word in page for word in row.description.split())
            assert f"{abs(row.amount):,.2f}" in page
            assert row.balance is None or f"{abs(row.balance):,.2f}" in page


@every_layout
def test_what_is_shown_of_the_account_is_on_the_first_pages(layout: str) -> None:
    made, pages = draw_statement(layout, 2)
    text = "".join(pages).casefold()
    for account in made.accounts:
        assert remove_spaces(account.account_name).casefold() in text
        assert account.account_number in text.replace("-", "")
        assert "opening" not in account.shown or f"{abs(account.opening):,.2f}" in text
        assert "closing" not in account.shown or f"{abs(account.closing):,.2f}" in text
        assert "bsb" not in account.shown or account.bsb in text.replace("-", "")


@every_layout
def test_a_file_has_the_pages_or_the_rows_that_were_asked_for(layout: str) -> None:
    assert [statement_pdf(layout, 3, pages=pages).pages for pages in (1, 2, 9)] == [1, 2, 9]
    assert len(statement_pdf(layout, 3, rows=50).rows) == 50


def test_a_file_may_have_two_hundred_pages() -> None:
    made = statement_pdf("nab", 5, pages=200)
    assert made.pages == 200
    assert {row.page for row in made.rows} == set(range(1, 201))


def test_the_same_arguments_give_the_same_bytes_in_every_process() -> None:
    here = {layout: hashlib.sha256(statement_pdf(layout, 7).content).hexdigest() for layout in EVERY_LAYOUT}
    program = (
        "import hashlib, json; from pipelines.synthetic.pdf import EVERY_LAYOUT, statement_pdf; "
        "print(json.dumps({n: hashlib.sha256(statement_pdf(n, 7).content).hexdigest() for n in EVERY_LAYOUT}))"
    )
    described = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert json.loads(described.stdout) == here
    assert len(set(here.values())) == len(here)


def test_files_of_one_layout_differ_as_files_do() -> None:
    made = [statement_pdf("westpac", seed) for seed in range(30)]
    fonts, rotations = set(), set()
    for each in made:
        with pdfplumber.open(BytesIO(each.content)) as file:
            fonts |= {char["fontname"].split("+")[-1] for char in file.pages[0].chars}
            rotations.add(file.pages[0].rotation)
    assert len(rotations) > 1
    assert {"Helvetica", "Times-Roman"} <= fonts
    assert any(each.accounts[0].period_start.year < each.accounts[0].period_end.year for each in made)
    assert len({each.pages for each in made}) > 1


@every_layout
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_changes_one_thing_only(layout: str, forgery: str) -> None:
    if forgery not in forgeries_of(EVERY_LAYOUT[layout]):
        pytest.skip("no row of it has a balance")
    true, forged = statement_pdf(layout, 9, rows=30), statement_pdf(layout, 9, rows=30, forgery=forgery)
    first, *others = zip(true.accounts, forged.accounts, strict=True)
    assert (first[0].opening, first[0].closing) == (first[1].opening, first[1].closing)
    gone, come = (set(figures(one)) - set(figures(other)) for one, other in (first, first[::-1]))
    assert (len(gone), len(come)) == ((1, 0) if forgery == "row deleted" else (1, 1))
    assert all(figures(before) == figures(after) for before, after in others)


def test_a_card_has_no_balance_to_forge() -> None:
    assert "digit of a balance changed" not in forgeries_of(LAYOUTS["cba_card"])
    with pytest.raises(ValueError, match="no balance"):
        statement_pdf("cba_card", 1, forgery="digit of a balance changed")


@pytest.mark.parametrize("stress", STRESSES)
def test_stress_changes_the_paper_and_not_what_happened(stress: str) -> None:
    changed = set()
    for layout in EVERY_LAYOUT:
        usual, hard = statement_pdf(layout, 8, rows=60), statement_pdf(layout, 8, rows=60, stress=stress)
        changed |= {layout} if usual.content != hard.content else set()
        assert [(row.date, row.amount) for row in hard.rows] == [(row.date, row.amount) for row in usual.rows]
    assert len(changed) > len(EVERY_LAYOUT) / (4 if "next page" in stress else 2)  # few rows meet a page's foot


def test_a_broken_row_ends_on_the_page_after_it_began() -> None:
    made = statement_pdf("cba", 8, pages=12, stress="rows that go on on the next page")
    pages = characters(made.content)
    broken = [row for row in made.rows if row.description.split()[-1] not in pages[row.page - 1]]
    assert broken
    assert all(row.description.split()[-1] in pages[row.page] for row in broken)


def test_what_is_held_out_is_not_among_the_others() -> None:
    assert set(HELD_OUT) == {"suncorp", "boq"}
    assert not set(HELD_OUT) & set(LAYOUTS)


@every_layout
def test_details_are_of_the_kinds_that_extraction_knows(layout: str) -> None:
    for account in statement_pdf(layout, 1).accounts:
        assert account.account_type in ACCOUNT_TYPES
        assert account.kind in Kind
        assert len(account.bsb) == 6
        assert account.shown <= set(PrintedAccount.__dataclass_fields__)


def test_some_layouts_are_newest_first_or_have_several_accounts() -> None:
    up = statement_pdf("up", 1, pages=2)
    assert [earlier.page >= later.page for earlier, later in pairwise(up.rows)] == [True] * (len(up.rows) - 1)
    both = statement_pdf("several_accounts", 1)
    assert [account.account_type for account in both.accounts] == ["transaction", "savings"]


def test_the_truth_is_plain_json() -> None:
    made: PrintedStatement = statement_pdf("home_loan", 1, rows=12)
    described = json.loads(json.dumps(made.truth()))
    account = described["accounts"][0]
    assert described["layout"] == "home_loan"
    assert account["opening"].startswith("-")
    assert account["rows"][0]["date"] == str(made.rows[0].date)
    assert len(account["rows"]) == 12
