"""A bank's statement as data: what stands where, and how dates and money are written.

Each file of `data/layouts` is one layout. Lengths are points from the top left corner. Texts in braces are details of
the account, by the names that `statement` gives them.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Final, Literal

from pipelines.intake.pdf.page.result import Kind
from pipelines.synthetic.data_files import Folder, Record, load
from pipelines.synthetic.pdf.paper import Font

Holds = Literal["date", "value_date", "type", "description", "debit", "credit", "amount", "sign", "balance"]
FIGURES: frozenset[Holds] = frozenset({"debit", "credit", "amount", "balance"})
Detail = Literal[
    "bank_name", "account_name", "bsb", "account_number", "period_start", "period_end", "opening", "closing"
]
ALL_DETAILS: frozenset[Detail] = frozenset(
    {"bank_name", "account_name", "bsb", "account_number", "period_start", "period_end", "opening", "closing"}
)


class Column(Record, frozen=True):
    holds: Holds
    heading: str  # of one line or two
    at: float  # left edge of words, right edge of figures
    width: float = 0  # where the column holds words


class Block(Record, frozen=True):
    """Labels and their values: below one another, or across with each value under its label."""

    x: float
    y: float
    lines: tuple[str | tuple[str, str], ...]  # a value alone, or a label and its value
    value_at: float = 0  # right edge of the values (0: each follows its label), or with `across` the labels' distance
    size: float = 9
    bold: bool = False
    across: bool = False
    capitals: bool = False


class Section(Record, frozen=True):
    """Rows of one kind under a title."""

    title: str
    total: str
    takes: tuple[str, ...] = ()  # prefixes of payment rails; empty: all remaining rows


class Account(Record, frozen=True):
    """One of several accounts in a file. Its title is printed in the table, at the height that the table reached."""

    type: str
    title: Block


class Money(Record, frozen=True):
    """How figures are written; in pairs, money in (or a credit balance) is first."""

    debit: str = "{}"
    credit: str = "{}"
    amount: tuple[str, str] = ("{}", "-{}")
    balance: tuple[str, str] = ("{}", "-{}")
    summary: tuple[str, str] = ("${}", "-${}")

    def write_balance(self, value: Decimal) -> str:
        return _write_money(self.balance, value)

    def write_amount(self, value: Decimal) -> str:
        return _write_money(self.amount, value)

    def write_summary_amount(self, value: Decimal) -> str:
        return _write_money(self.summary, value)


def _write_money(forms: tuple[str, str], value: Decimal) -> str:
    return forms[value < 0].format(f"{abs(value):,.2f}")


class PdfLayout(Record, frozen=True):
    """One kind of document of one bank."""

    bank_name: str
    style: str  # the bank of `styles` whose wordings it prints
    columns: tuple[Column, ...]
    front: tuple[Block, ...]  # of the first page
    head: tuple[Block, ...]  # of every later page
    imprint: str
    money: Money = Money()
    bsb_prefix: str = ""  # empty: the style's
    account_type: str = "transaction"
    kind: Kind = Kind.STATEMENT
    date_format: str = "%d/%m/%Y"
    edge_date_format: str = ""  # of the opening and closing rows, where it differs
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
    day_headings: str = ""  # date format of headings above each day's rows
    leaders: bool = False
    blank: str = ""  # an invisible word in empty cells
    newest_first: bool = False
    sections: tuple[Section, ...] = ()
    accounts: tuple[Account, ...] = ()  # where the file has several
    hidden: frozenset[Detail] = frozenset()  # details that can't be read on the paper
    producer: str = "OpenText Output Transformation Engine"
    adverts: tuple[str, ...] = ()
    end: tuple[Block, ...] = ()  # below the table

    @property
    def shown(self) -> frozenset[Detail]:
        return ALL_DETAILS - self.hidden

    def write_date(self, day: date, *, edge: bool = False) -> str:
        text = day.strftime((edge and self.edge_date_format) or self.date_format)
        return text.upper() if self.capitals else text


class PaperTexts(Record, frozen=True):
    """The content of `paper.yaml`, which explains the fields."""

    streets: tuple[str, ...]
    kinds: dict[str, tuple[str, ...]]
    strange_headings: dict[Holds, str]
    small_print: str
    fee_table: tuple[tuple[str, str, str, str], ...]


@cache
def paper_texts() -> PaperTexts:
    return load("paper.yaml", PaperTexts)


LAYOUTS: Final[Mapping[str, PdfLayout]] = Folder(PdfLayout, "layouts")
HELD_OUT: Final[Mapping[str, PdfLayout]] = Folder(PdfLayout, "layouts_held_out")
EVERY_LAYOUT: Final[Mapping[str, PdfLayout]] = Folder(PdfLayout, "layouts", "layouts_held_out")
