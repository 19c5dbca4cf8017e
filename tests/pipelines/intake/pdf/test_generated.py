"""Generated statements of every layout that may be looked at come out as they were printed."""

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.layout.layouts import layouts
from pipelines.intake.pdf.page.result import Verdict
from pipelines.synthetic.pdf import LAYOUTS, PrintedAccount, statement_pdf

SEEDS = (11, 12)
PROVED = (Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL)


def without_spaces(text: str) -> str:
    return "".join(text.split())


def balances_printed(account: PrintedAccount) -> list[int]:
    return [n for n, row in enumerate(account.rows) if row.balance is not None]


@pytest.mark.service  # draws and reads whole statements
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_generated_statement_is_read_as_printed(layout: str, seed: int) -> None:
    made = statement_pdf(layout, seed, rows=40)
    found = extract(made.content)
    slugs = {bank.name: bank.slug for bank in layouts()}
    assert found.refusal is None
    assert found.pages == made.pages
    assert len(found.statements) == len(made.accounts)
    for account, statement in zip(made.accounts, found.statements, strict=True):
        read, true = statement.entries, account.rows
        assert [(entry.date, entry.amount) for entry in read] == [(row.date, row.amount) for row in true]
        assert [without_spaces(entry.description) for entry in read] == [
            without_spaces(row.description) for row in true
        ]
        assert [entry.boxes[0].page for entry in read] == [row.page for row in true]
        for n in balances_printed(account):
            assert read[n].balance == true[n].balance
        assert statement.verdict in PROVED or "closing" not in account.shown
        assert statement.kind is account.kind
        assert statement.bank == slugs.get(LAYOUTS[layout].bank_name), "banks with a layout file are recognised"
        assert "account_number" not in account.shown or statement.account_number == account.account_number
        assert "bsb" not in account.shown or statement.bsb == account.bsb
        assert "opening" not in account.shown or statement.opening_balance == account.opening
        assert "closing" not in account.shown or statement.closing_balance == account.closing
