"""What the synthetic book is made of: businesses, their accounts, and labelled transactions."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl

from pipelines.schemas import MONEY

# One account's rows in statement order: what a client would send, then the truth about each row.
LABELLED = pl.Schema(
    {
        "date": pl.Date(),  # booking date
        "description": pl.String(),
        "amount": MONEY,  # negative leaves the account
        "balance": MONEY,  # after the row
        "transaction_id": pl.String(),  # the client's id; null for banks whose exports carry none
        "submission": pl.UInt8(),  # which submission of the account brings the row, from 0
        "category": pl.String(),  # a slug of the taxonomy
        "transfer_pair": pl.UInt32(),  # shared by the two legs of an own transfer; unique within the business
        "injected": pl.Enum(("gap", "duplicate")),  # first row after removed ones; row sent a second time
    }
)

Role = Literal["main", "second", "savings", "card"]
"""What an account is for: trading, trading at another bank, money put aside, credit card."""


@dataclass(frozen=True, eq=False)
class SandboxAccount:
    """A bank account as a client submits it, with its labelled rows (`LABELLED`)."""

    account_name: str
    bsb: str
    account_number: str
    bank_name: str
    account_type: str
    credit_limit: str | None  # AUD with two decimals
    transactions: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Business:
    """A made-up Australian small business; its ABN is random but for the check digits, which are valid."""

    abn: str
    name: str
    trade: str
    state: str
    accounts: tuple[SandboxAccount, ...]


class Party(NamedTuple):
    """Someone money moves to or from, by the name that statements print."""

    name: str
    place: str = ""  # suburb of the terminal, or a web merchant's address
    region: str = ""  # its state or foreign country
    code: str = ""  # BPAY biller code or direct-entry user id


class Movement(NamedTuple):
    """Money that should move: planned by the flows, booked (or refused) by the ledger."""

    day: int
    cents: int  # negative leaves the account
    rail: str  # a key of every bank style's narratives
    party: Party
    reference: str
    category: str
    role: Role = "main"


class Booked(NamedTuple):
    """A movement in an account's ledger, with the balance after it and its true transfer pair."""

    movement: Movement
    balance: int
    pair: int | None = None
    other: str = ""  # number of the own account on the other side
