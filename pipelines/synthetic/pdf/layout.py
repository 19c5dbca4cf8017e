"""The words in which a bank's statement is described: what stands where, and how dates and money are written.

Lengths are points; texts in braces are details of the account (`told`).
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple

from pipelines.intake.pdf.page.result import Kind
from pipelines.synthetic.pdf.paper import Font

Holds = Literal["date", "value_date", "type", "description", "debit", "credit", "amount", "sign", "balance"]
FIGURES: frozenset[Holds] = frozenset({"debit", "credit", "amount", "balance"})
ALL_DETAILS = frozenset(
    {"bank_name", "account_name", "bsb", "account_number", "period_start", "period_end", "opening", "closing"}
)


class Column(NamedTuple):
    holds: Holds
    heading: str  # of one line or two
    at: float  # left edge of words, right edge of figures
    width: float = 0  # of words


class Block(NamedTuple):
    """Labels and their values: below one another, or across with each value under its label."""

    x: float
    y: float
    lines: tuple[tuple[str, str], ...]  # a line without a label is its value alone
    value_at: float = 0  # right edge of the values, or how far labels stand apart across; 0: value follows its label
    size: float = 9
    bold: bool = False
    across: bool = False
    capitals: bool = False


class Section(NamedTuple):
    """Rows under a title which tells what they are."""

    title: str
    total: str
    takes: tuple[str, ...]  # beginnings of rails; empty: all that is left


@dataclass(frozen=True)
class Money:
    """How figures are written, money in (or in credit) first."""

    debit: str = "{}"
    credit: str = "{}"
    amount: tuple[str, str] = ("{}", "-{}")
    balance: tuple[str, str] = ("{}", "-{}")
    summary: tuple[str, str] = ("${}", "-${}")

    def of_balance(self, value: Decimal) -> str:
        return _written(self.balance, value)

    def of_amount(self, value: Decimal) -> str:
        return _written(self.amount, value)

    def in_summary(self, value: Decimal) -> str:
        return _written(self.summary, value)


def _written(forms: tuple[str, str], value: Decimal) -> str:
    return forms[value < 0].format(f"{abs(value):,.2f}")


@dataclass(frozen=True)
class PdfLayout:
    """One kind of document of one bank."""

    bank_name: str
    style: str  # the bank of `styles` whose wordings it prints
    columns: tuple[Column, ...]
    front: tuple[Block, ...]  # of the first page
    head: tuple[Block, ...]  # of every later page
    imprint: str
    money: Money = Money()
    bsb_prefix: str = ""  # the style's, where it prints wordings of its own bank
    account_type: str = "transaction"
    kind: Kind = Kind.STATEMENT
    date_format: str = "%d/%m/%Y"
    edge_date_format: str = ""  # of the opening and closing rows, where they differ
    capitals: bool = False  # of dates
    table_at: float = 330  # on the first page
    later_table_at: float = 110
    size: float = 8.5
    leading: float = 11
    gap: float = 4  # between rows
    fonts: tuple[Font, ...] = ("Helvetica", "Times-Roman")
    spacing: float = 0  # between letters
    balances: Literal["each", "day", "none"] = "each"
    amount_on: Literal["first", "last"] = "first"
    breaks: tuple[str, ...] = ()  # words that begin a new line of the description
    opening_row: str = ""
    closing_row: str = ""
    totals_row: str = ""  # debits and credits of the period, after the closing row
    carried: str = ""  # at the foot of a page that isn't the last
    brought: str = ""  # at the head of the next
    carries_totals: bool = False
    year_rows: bool = False
    date_on_first_row: bool = False  # a day's date stands on its first row only
    day_headings: str = ""  # a date's format: rows stand under their day
    leaders: bool = False
    blank: str = ""  # an invisible word in empty cells
    newest_first: bool = False
    sections: tuple[Section, ...] = ()
    account_titles: tuple[tuple[Block, str], ...] = ()  # one account each, with its type; flows in the table
    shown: frozenset[str] = ALL_DETAILS
    producer: str = "OpenText Output Transformation Engine"
    adverts: tuple[str, ...] = ()
    end: tuple[Block, ...] = ()  # below the table

    def dated(self, day: date, *, edge: bool = False) -> str:
        text = day.strftime((edge and self.edge_date_format) or self.date_format)
        return text.upper() if self.capitals else text
