"""What the synthetic portfolio is made of: businesses, their accounts, and labelled transactions."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple, get_args

import polars as pl

from pipelines.vocabulary.schemas import MONEY, SeriesPeriod

Lookalike = Literal[
    "disputed_bill",
    "timing_dishonour",
    "employee_garnishee",
    "creditor_dividend",
    "tax_interest_once",
    "insolvency_trade",
    "returned_deposit",
    "overpaid_invoice",
    "cash_pooling",
    "lasting_equity",
    "recent_grant",
    "recent_claim",
    "recent_asset_sale",
    "refinanced",
    "money_held",
]
"""Something honest that looks like trouble or like window dressing (`circumstances.yaml` explains each)."""

# One account's rows in statement order: what a client would send, then the truth about each row.
LABELLED = pl.Schema(
    {
        "date": pl.Date(),  # posting date
        "description": pl.String(),
        "amount": MONEY,  # negative leaves the account
        "balance": MONEY,  # after the row
        "transaction_id": pl.String(),  # the client's id; null for banks whose exports carry none
        "submission": pl.UInt8(),  # which submission of the account brings the row, from 0
        "category": pl.String(),  # a slug of the taxonomy
        "counterparty": pl.String(),  # canonical name; null for the bank itself, cash and the business's own accounts
        "transfer_pair": pl.UInt32(),  # shared by the two legs of an own transfer; unique within the business
        "series": pl.UInt32(),  # of payments that recur, three at least; unique within the business
        "series_period": SeriesPeriod,
        "facility": pl.UInt32(),  # of what is borrowed: also on takings that a lender keeps a share of
        "held_out": pl.Boolean(),  # the counterparty or the bank's wording is kept away from training
        # The first row after removed ones (`gap`, `…_deleted`); a row sent a second time (`duplicate`) or printed a
        # second time (`row_repeated`); a row with a wrong sign.
        "injected": pl.Enum(
            ("gap", "duplicate", "row_deleted", "week_deleted", "month_deleted", "row_repeated", "sign_flipped")
        ),
        "lookalike": pl.Enum(get_args(Lookalike)),  # of what honest lookalike the row is a part
    }
)

Role = Literal["main", "second", "savings", "tax", "card"]
"""What an account is for: trading, trading at another bank, money put aside, tax put aside, credit card."""

Part = Literal["train", "test", "calibration"]
"""A part of a portfolio. Held-out brands and banks never occur in `train`, and wherever possible in `test`."""

Condition = Literal["sound", "start_up", "distressed", "failing"]
IncomeKind = Literal["wages", "benefit", "pension", "rent", "contract_revenue", "regular"]
FacilityStatus = Literal["active", "in_arrears", "defaulted", "repaid", "renewed"]


@dataclass(frozen=True, eq=False)
class SyntheticAccount:
    """A bank account as a client submits it, with its labelled rows (`LABELLED`)."""

    account_name: str
    bsb: str
    account_number: str
    bank_name: str
    account_type: str
    credit_limit: str | None  # AUD with two decimals
    transactions: pl.DataFrame


@dataclass(frozen=True)
class Facility:
    """A loan or other credit, with its true state at the window's end. Amounts are AUD.

    `remaining` = `remaining_before` + what funding in the window added − what rows of the facility repaid
    (returned ones don't) − what `withheld` from takings repaid.
    """

    number: int  # the `facility` of its rows
    lender: str
    product: str
    funded_on: date
    amount: Decimal  # lent, or the limit of revolving credit
    to_repay: Decimal  # in all, interest included; for revolving credit: what was drawn
    repayment: Decimal  # a usual one
    schedule: str  # a value of SeriesPeriod, `split_settlement`, or `on_collection` for invoices
    remaining_before: Decimal  # at the window's start
    withheld: Decimal  # kept back from takings within the window
    remaining: Decimal  # at the window's end
    days_past_due: int  # of the oldest instalment that was due and not paid
    status: FacilityStatus


@dataclass(frozen=True)
class Latents:
    """The hidden causes of everything that happens to a business (`risk`)."""

    strength: float  # of the business's earnings; standard normal
    leverage: float  # share of turnover that goes into debt service
    volatility: float  # standard deviation of the logarithm of takings
    prudence: float  # of the owner, 0–1
    shock: float  # share of turnover that an event took away; 0 without one
    shock_at: float  # when, as a share of the window
    shock_months: float  # how long it lasts


@dataclass(frozen=True)
class Outcome:
    """Whether the business is 90 days or more past due on a facility within 12 months after the window."""

    defaults: bool
    probability: float  # the true one; `defaults` is drawn with it
    latents: Latents


@dataclass(frozen=True, eq=False)
class Business:
    """A made-up Australian small business. Its ABN is random, with valid check digits."""

    abn: str
    name: str
    trade: str
    state: str
    accounts: tuple[SyntheticAccount, ...]
    condition: Condition
    related: tuple[str, ...]  # names of companies and trusts of the same people
    facilities: tuple[Facility, ...]
    outcome: Outcome
    applied_on: date  # the day of its credit application; statements end then or a few days later
    lookalikes: tuple[Lookalike, ...]  # that occur in its rows, in alphabetical order
    missed_wages: int  # payments of wages that were not made within a week of their day
    not_supplied: str | None = None  # number of an account that the lender never sees


@dataclass(frozen=True)
class Income:
    """A payer that pays a person again and again."""

    payer: str  # canonical name: the `counterparty` of its rows
    kind: IncomeKind
    period: str  # weekly, fortnightly, monthly, quarterly or irregular
    payments: int
    missed: int  # due dates without payment


@dataclass(frozen=True, eq=False)
class Person:
    """A made-up person with a personal account. Only credits of `incomes` are regular income."""

    abn: str
    name: str
    situation: str  # of people.yaml
    state: str
    accounts: tuple[SyntheticAccount, ...]
    incomes: tuple[Income, ...]


class Party(NamedTuple):
    """Who pays or is paid, by the name that statements print."""

    name: str
    place: str = ""  # suburb of the terminal, or a web merchant's address
    region: str = ""  # its state or foreign country
    code: str = ""  # BPAY biller code or direct-entry user id
    brand: str = ""  # canonical name
    person: bool = False


class Series(NamedTuple):
    """A recurring payment: its name within the business, and how often it comes."""

    name: str
    period: str  # a value of SeriesPeriod


class Movement(NamedTuple):
    """A planned movement of money, which the ledger posts or refuses."""

    day: int
    cents: int  # negative leaves the account
    rail: str  # a key of every bank style's narratives
    party: Party
    reference: str
    category: str
    role: Role = "main"
    series: Series | None = None
    facility: int = 0  # number of the facility; 0: none
    owed: int = 0  # change in cents of what is owed on the facility, or to the people whose money the business holds
    lookalike: Lookalike | None = None


class LedgerEntry(NamedTuple):
    """A movement in an account's ledger, with the balance after it and its true transfer pair."""

    movement: Movement
    balance: int
    pair: int | None = None
    other: str = ""  # number of the own account on the other side


NOBODY = Party("")


def dollars(cents: int) -> Decimal:
    """Return cents as dollars with two decimals."""
    return Decimal(cents).scaleb(-2)
