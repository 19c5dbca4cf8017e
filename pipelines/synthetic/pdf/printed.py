"""A generated statement: the file, and what it says."""

from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.intake.pdf.page.result import Kind


@dataclass(frozen=True)
class PrintedRow:
    """One transaction as printed. A negative amount is money out, or a larger debt."""

    value_date: date | None  # where the layout has a column for it
    date: date
    description: str  # its lines joined by one space
    amount: Decimal
    balance: Decimal | None  # null where none is printed on the row
    page: int  # from 1


@dataclass(frozen=True)
class PrintedAccount:
    """One account's statement. All details are true; those in `shown` can be read on the paper, too."""

    bank_name: str
    account_name: str
    bsb: str  # six digits
    account_number: str  # digits
    account_type: str
    kind: Kind
    period_start: date
    period_end: date
    opening: Decimal
    closing: Decimal
    rows: tuple[PrintedRow, ...]  # oldest first; by section where a layout has sections
    shown: AbstractSet[str]


@dataclass(frozen=True)
class PrintedStatement:
    """A file, with the truth about every account in it."""

    content: bytes
    layout: str
    pages: int
    accounts: tuple[PrintedAccount, ...]

    @property
    def rows(self) -> tuple[PrintedRow, ...]:
        return tuple(row for account in self.accounts for row in account.rows)

    def truth(self) -> dict[str, Any]:
        """Return everything but the file as plain JSON values, with days and money as text."""
        accounts = [_plain(asdict(account)) for account in self.accounts]
        return {"layout": self.layout, "pages": self.pages, "accounts": accounts}


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case frozenset():
            return sorted(value)
        case date() | Decimal():
            return str(value)
        case _:
            return value
