"""A business or person of the portfolio as tables for a data scientist, with the truth beside every row."""

from dataclasses import asdict

import polars as pl

from pipelines.synthetic.world.model import LABELLED, Business, Person
from pipelines.vocabulary.schemas import MONEY

_CUSTOMER = pl.Schema({"customer": pl.UInt32()})  # number in the portfolio, from 0
TRANSACTIONS = pl.Schema(
    {
        **_CUSTOMER,
        "abn": pl.String(),
        "account_number": pl.String(),
        "bank": pl.String(),
        "account_type": pl.String(),
        **LABELLED,
    }
)
CUSTOMERS = pl.Schema(
    {
        **_CUSTOMER,
        "abn": pl.String(),
        "name": pl.String(),
        "trade": pl.String(),
        "state": pl.String(),
        "condition": pl.String(),
        "related": pl.String(),  # separated by "; "
        "applied_on": pl.Date(),
        "lookalikes": pl.String(),  # separated by "; "
        "missed_wages": pl.UInt32(),
        "defaults": pl.Boolean(),  # within 12 months after the window
        "default_probability": pl.Float64(),  # the true one
        "strength": pl.Float64(),  # this and all below: `Latents`
        "leverage": pl.Float64(),
        "volatility": pl.Float64(),
        "prudence": pl.Float64(),
        "shock": pl.Float64(),
        "shock_at": pl.Float64(),
        "shock_months": pl.Float64(),
    }
)
ACCOUNTS = pl.Schema(
    {
        **_CUSTOMER,
        "account_number": pl.String(),
        "bsb": pl.String(),
        "account_name": pl.String(),
        "bank": pl.String(),
        "account_type": pl.String(),
        "credit_limit": pl.String(),
        "rows": pl.UInt32(),
    }
)
FACILITIES = pl.Schema(  # `Facility`, which explains the columns
    {
        **_CUSTOMER,
        "number": pl.UInt32(),
        "lender": pl.String(),
        "product": pl.String(),
        "funded_on": pl.Date(),
        "amount": MONEY,
        "to_repay": MONEY,
        "repayment": MONEY,
        "schedule": pl.String(),
        "remaining_before": MONEY,
        "withheld": MONEY,
        "remaining": MONEY,
        "days_past_due": pl.Int32(),
        "status": pl.String(),
    }
)
PEOPLE = pl.Schema(
    {**_CUSTOMER, "abn": pl.String(), "name": pl.String(), "situation": pl.String(), "state": pl.String()}
)
INCOMES = pl.Schema(
    {
        **_CUSTOMER,
        "payer": pl.String(),  # the `counterparty` of its transactions
        "kind": pl.String(),
        "period": pl.String(),
        "payments": pl.UInt32(),
        "missed": pl.UInt32(),
    }
)


def transactions(number: int, business: Business | Person) -> pl.DataFrame:
    """Return all rows of all accounts (schema TRANSACTIONS), account by account in statement order."""
    return pl.concat(
        account.transactions.select(
            pl.lit(number, pl.UInt32).alias("customer"),
            pl.lit(business.abn).alias("abn"),
            pl.lit(account.account_number).alias("account_number"),
            pl.lit(account.bank_name).alias("bank"),
            pl.lit(account.account_type).alias("account_type"),
            *LABELLED,
        )
        for account in business.accounts
    )


def training_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what the training command reads of TRANSACTIONS, without rows that were sent a second time."""
    return rows.filter(pl.col("injected").ne_missing("duplicate")).select(
        "date",
        "description",
        "amount",
        "customer",
        label="category",
        context_bank="bank",
        context_account_type="account_type",
    )


def customer(number: int, business: Business) -> pl.DataFrame:
    """Return one row (schema CUSTOMERS)."""
    outcome = business.outcome
    row = {
        "customer": number,
        **{name: getattr(business, name) for name in ("abn", "name", "trade", "state", "condition")},
        "related": "; ".join(business.related),
        "applied_on": business.applied_on,
        "lookalikes": "; ".join(business.lookalikes),
        "missed_wages": business.missed_wages,
        "defaults": outcome.defaults,
        "default_probability": outcome.probability,
        **asdict(outcome.latents),
    }
    return pl.DataFrame([row], schema=CUSTOMERS)


def accounts(number: int, business: Business | Person) -> pl.DataFrame:
    """Return a row for each account (schema ACCOUNTS)."""
    rows = [
        {
            "customer": number,
            "account_number": account.account_number,
            "bsb": account.bsb,
            "account_name": account.account_name,
            "bank": account.bank_name,
            "account_type": account.account_type,
            "credit_limit": account.credit_limit,
            "rows": account.transactions.height,
        }
        for account in business.accounts
    ]
    return pl.DataFrame(rows, schema=ACCOUNTS)


def facilities(number: int, business: Business) -> pl.DataFrame:
    """Return a row for each facility (schema FACILITIES)."""
    rows = [{"customer": number, **asdict(facility)} for facility in business.facilities]
    return pl.DataFrame(rows, schema=FACILITIES)


def person(number: int, one: Person) -> pl.DataFrame:
    """Return one row (schema PEOPLE)."""
    row = {"customer": number, **{name: getattr(one, name) for name in ("abn", "name", "situation", "state")}}
    return pl.DataFrame([row], schema=PEOPLE)


def incomes(number: int, one: Person) -> pl.DataFrame:
    """Return a row for each regular payer (schema INCOMES)."""
    return pl.DataFrame([{"customer": number, **asdict(income)} for income in one.incomes], schema=INCOMES)
