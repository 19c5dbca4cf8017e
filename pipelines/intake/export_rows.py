"""The contents of an export as plain data, which pass from a child process to its parent.

Nothing here may import Polars: it starts threads, and a process with several threads can't confine itself.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlainRow:
    """A row as printed, with dates and amounts in the API's notation where they could be read. Nothing is masked."""

    line: int
    date: str | None
    description: str | None
    amount: str | None
    balance: str | None
    transactionId: str | None  # noqa: N815 - named as in LANDED
    currency: str | None
    valueDate: str | None  # noqa: N815
    status: str | None
    extra: str | None


@dataclass(frozen=True)
class PlainAccount:
    """The fields that identify an account, as in the file."""

    customer: str | None
    account_name: str | None
    bsb: str | None
    account_number: str | None
    bank_name: str | None
    account_type: str | None


@dataclass(frozen=True)
class PlainRows:
    """Some rows of the file's nth account, in order."""

    account: PlainAccount
    number: int
    rows: tuple[PlainRow, ...]


@dataclass(frozen=True)
class PlainRefusal:
    """A line that is not a row, though it looks like one."""

    line: int
    code: str
    message: str
