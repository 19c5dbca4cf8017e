"""Make a file, and the truth about it, from a layout and a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from random import Random

from pipelines.synthetic.pdf.blocks import Details
from pipelines.synthetic.pdf.layout import PdfLayout, paper_texts
from pipelines.synthetic.pdf.material import AccountPostings, draw_account, draw_loan
from pipelines.synthetic.pdf.paper import PAGE, PAGES, Paper, PrintVariant
from pipelines.synthetic.pdf.print_variants import STRESSES, draw_print_variant
from pipelines.synthetic.pdf.printed import PrintedAccount, PrintedRow, PrintedStatement
from pipelines.synthetic.pdf.table import Line, Part, Table, hide_balances, take_section
from pipelines.synthetic.pdf.tampering import FORGERIES, provable
from pipelines.synthetic.world.model import Role
from pipelines.synthetic.world.styles import style_of

ROWS_PER_PAGE = 70  # no layout prints more
USUAL_ROWS = (12, 120)
_ROLES: Mapping[str, Role] = {"credit_card": "card"}


@dataclass(frozen=True)
class Order:
    """What a file should be."""

    layout: str
    seed: int
    pages: int | None
    rows: int | None
    stress: str | None
    forgery: str | None

    def rng(self, about: str) -> Random:
        return Random(f"{self.layout}/{self.seed}/{about}")

    def until(self) -> date:
        """Return the last day, which in every third file is soon after New Year's Day."""
        rng = self.rng("until")
        year = rng.randrange(2021, 2026)
        return (
            date(year, 1, rng.randrange(4, 28))
            if rng.random() < 0.34
            else date(year, 2, 1) + timedelta(days=rng.randrange(330))
        )


def print_statement(order: Order, layout: PdfLayout) -> PrintedStatement:
    """Return the file that was ordered, with the number of rows ordered or as many as fill the pages ordered."""
    if order.pages is not None:
        return _draw_statement(order, layout, _fill_pages(order, layout, order.pages))
    return _draw_statement(
        order, layout, _draw_accounts(order, layout, order.rows or order.rng("rows").randint(*USUAL_ROWS))
    )


def _fill_pages(order: Order, layout: PdfLayout, pages: int) -> list[AccountPostings]:
    """Draw accounts whose rows fill a number of pages, with room for what is printed after the rows."""
    materials = _draw_accounts(order, layout, pages * ROWS_PER_PAGE)
    sheets, places, _ = _compose(order, layout, materials)
    last = max(1, pages - (len(sheets.sheets) - places[-1][-1]))  # page with rows
    count = sum(page <= last for pages_of_part in places for page in pages_of_part)
    for fewer in accumulate(range(count)):
        materials = [account.truncate(max(1, (count - fewer) // len(materials))) for account in materials]
        if len(_compose(order, layout, materials)[0].sheets) <= pages:
            break
    return materials


def _draw_accounts(order: Order, layout: PdfLayout, count: int) -> list[AccountPostings]:
    """Draw one account with its postings, or several with the same holder and branch."""
    rng, until = order.rng("material"), order.until()
    accounts = max(1, len(layout.accounts))
    if layout.account_type == "loan":
        return [draw_loan(layout.bsb_prefix, count, until, rng)]
    style, role = style_of(layout.style), _ROLES.get(layout.account_type, "main")
    prefix = layout.bsb_prefix or style.bsb_prefix
    materials = [draw_account(style, prefix, role, max(1, count // accounts), until, rng) for _ in range(accounts)]
    return [replace(account, holder=materials[0].holder, bsb=materials[0].bsb) for account in materials]


def _draw_statement(order: Order, layout: PdfLayout, materials: Sequence[AccountPostings]) -> PrintedStatement:
    paper, places, parts = _compose(order, layout, materials)
    accounts = [
        _account(layout, n, part, account, pages)
        for n, (part, account, pages) in enumerate(zip(parts, materials, places, strict=True))
    ]
    content = paper.to_pdf(layout.producer, parts[0].end + timedelta(days=1), order.rng("pieces"))
    return PrintedStatement(content, order.layout, len(paper.sheets), tuple(accounts))


def _compose(
    order: Order, layout: PdfLayout, materials: Sequence[AccountPostings]
) -> tuple[Paper, list[list[int]], Sequence[Part]]:
    """Return the sheets, the page of each row of each part, and the parts."""
    variant = _variant(order, layout)
    paper = Paper(variant, layout.size, layout.spacing)
    parts = _parts(order, layout, materials, variant)
    places = Table(layout, paper, variant, order.rng("table")).print(parts)
    return paper, places, parts


def _variant(order: Order, layout: PdfLayout) -> PrintVariant:
    variant = draw_print_variant(layout, order.rng("wear"))
    if order.pages is not None and order.pages < 3:
        variant = replace(variant, fee_table=False, small_print=False)  # they might take more
    return STRESSES[order.stress](variant, order.rng("stress")) if order.stress else variant


def _parts(order: Order, layout: PdfLayout, materials: Sequence[AccountPostings], variant: PrintVariant) -> list[Part]:
    rng = order.rng("period")
    first = min(account.postings[0].day for account in materials)
    last = max(account.postings[-1].day for account in materials)
    start, end = first - timedelta(days=rng.randrange(4)), last + timedelta(days=rng.randrange(4))
    described = [_describe_account(order, layout, account, start, end) for account in materials]
    together = {f"{name}_{n}": value for n, details in enumerate(described) for name, value in details.items()}
    titles = [account.title for account in layout.accounts] or [None]
    return [
        Part(
            described={**together, **details},
            start=start,
            end=end,
            opening=account.opening,
            closing=_closing_balance(account),
            lines=_lines(order if account is materials[0] else replace(order, forgery=None), layout, account, variant),
            title=title,
        )
        for details, account, title in zip(described, materials, titles, strict=True)
    ]


def _describe_account(order: Order, layout: PdfLayout, account: AccountPostings, start: date, end: date) -> Details:
    """Return the details by the names that layouts use for them."""
    ins = sum((row.amount for row in account.postings if row.amount > 0), Decimal())
    outs = -sum((row.amount for row in account.postings if row.amount < 0), Decimal())
    number, money = account.number, layout.money
    return {
        "name": account.holder.name,
        "street": account.holder.street,
        "suburb": account.holder.suburb,
        "bsb": f"{account.bsb[:3]}-{account.bsb[3:]}",
        "bsb_spaced": f"{account.bsb[:2]} {account.bsb[2:]}",
        "bsb_6": account.bsb,
        "number": number,
        "number_dashed": f"{number[:-5]}-{number[-5:]}",
        "number_in_fours": " ".join(number[n : n + 4] for n in range(0, len(number), 4)),
        "number_in_threes": " ".join(number[n : n + 3] for n in range(0, len(number), 3)),
        "start": start,
        "end": end,
        "issued": end + timedelta(days=1),
        "due": end + timedelta(days=21),
        "opening": money.write_summary_amount(account.opening),
        "closing": money.write_summary_amount(_closing_balance(account)),
        "credits": f"{ins:,.2f}",
        "debits": f"{outs:,.2f}",
        "limit": f"{account.credit_limit:,.2f}",
        "least": f"{max(Decimal(25), -_closing_balance(account) / 50):,.2f}",
        "nth": 3 + order.seed % 40,
        "rows": len(account.postings),
        "page": PAGE,
        "pages": PAGES,
    }


def _closing_balance(account: AccountPostings) -> Decimal:
    return account.opening + sum((row.amount for row in account.postings), Decimal())


def _lines(order: Order, layout: PdfLayout, account: AccountPostings, variant: PrintVariant) -> Sequence[Line]:
    """Return the rows as they will be printed, in that order."""
    lines = _lines_with_balances(layout, account)
    if variant.balances_shown < 1:
        lines = hide_balances(lines, variant.balances_shown, order.rng("balances"))
    if order.forgery:
        between = "closing" in layout.shown
        lines = FORGERIES[order.forgery](lines, provable(lines, between_balances=between), order.rng("forgery"))
    return lines[::-1] if layout.newest_first else lines


def _lines_with_balances(layout: PdfLayout, account: AccountPostings) -> list[Line]:
    lines, balance = list[Line](), account.opening
    days = [row.day for row in account.postings]
    for row, next_day in zip(account.postings, [*days[1:], None], strict=True):
        balance += row.amount
        shown = layout.balances == "each" or (layout.balances == "day" and row.day != next_day)
        lines.append(
            Line(row.day, row.value_day, row.rail, _type_text(row.rail), row.description, row.amount, balance, shown)
        )
    return lines


def _type_text(rail: str) -> str:
    return next((kind for kind, starts in paper_texts().kinds.items() if rail.startswith(starts)), "Funds transfer")


def _account(layout: PdfLayout, n: int, part: Part, account: AccountPostings, pages: Sequence[int]) -> PrintedAccount:
    types = [account.type for account in layout.accounts] or [layout.account_type]
    rows = [_row(layout, line, page) for line, page in zip(_as_printed(layout, part.lines), pages, strict=True)]
    return PrintedAccount(
        bank_name=layout.bank_name,
        account_name=account.holder.name,
        bsb=account.bsb,
        account_number=account.number,
        account_type=types[n],
        kind=layout.kind,
        period_start=part.start,
        period_end=part.end,
        opening=part.opening,
        closing=part.closing,
        rows=tuple(rows[::-1] if layout.newest_first else rows),
        shown=layout.shown,
    )


def _as_printed(layout: PdfLayout, lines: Sequence[Line]) -> Sequence[Line]:
    """Return the rows section by section, if there are sections."""
    left, in_sections = list(lines), list[Line]()
    for section in layout.sections:
        own, left = take_section(section, left)
        in_sections += own
    return in_sections or lines


def _row(layout: PdfLayout, line: Line, page: int) -> PrintedRow:
    holds = {column.holds for column in layout.columns}
    return PrintedRow(
        date=line.day,
        value_date=line.value_day if "value_date" in holds else None,
        description=f"{line.type_text} {line.description}" if "type" in holds else line.description,
        amount=line.amount,
        balance=line.balance if line.balance_shown else None,
        page=page,
    )
