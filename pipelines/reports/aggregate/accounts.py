"""Accounts over all their history, and transfers between them."""

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT, reported_details
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Source, Table, Total
from pipelines.reports.aggregate.balances import account_history
from pipelines.reports.aggregate.cash_flow import add_account_id
from pipelines.reports.aggregate.flows import (
    COUNTS,
    MONEY_IN,
    MONEY_OUT,
    NET,
    TRANSACTIONS,
    TRANSFERS,
    by_account_and_month,
    flows,
)
from pipelines.vocabulary.report_values import uuid_text


def last_stated_balances(facts: Facts) -> pl.LazyFrame:
    """Return the last balance stated by each account that states any, with its sign as stated."""
    stated = facts.stated_closings.lazy().drop_nulls("closing_balance")
    last = pl.col("closing_balance", "transaction_id").max_by("date")
    return stated.group_by(BY_ACCOUNT).agg(last, pl.col("date").max()).with_columns(accountId=uuid_text("account_id"))


def accounts(facts: Facts) -> pl.LazyFrame:
    stated = last_stated_balances(facts).select(*BY_ACCOUNT, closingBalanceDate="date")
    return (
        facts.accounts.lazy()
        .join(facts.cached(account_history).lazy(), on=BY_ACCOUNT, how="left", validate="1:1")
        .join(stated, on=BY_ACCOUNT, how="left", validate="1:1")
        .select(
            BY_CUSTOMER,
            *reported_details(),
            "closingBalanceDate",
            firstDate="first_date",
            lastDate="data_through",
        )
    )


ACCOUNTS = Table(
    id="account_summary",
    name="Accounts",
    hierarchy="account",
    type="summary",
    meaning="Every account over all its history.",
    keys=(Column("accountId", "text", meaning="the account"),),
    details=(
        Column("accountName", "text", meaning="as sent last"),
        Column("bankName", "text", meaning="as sent last"),
        Column("accountNumberMasked", "text", meaning="the last four characters of its number"),
        Column("accountType", "text", meaning="transaction, savings, credit_card, loan, term_deposit, other"),
        Column("firstDate", "date", meaning="of its first row"),
        Column("lastDate", "date", meaning="of its last row"),
        Column("closingBalanceDate", "date", meaning="when `closingBalance` was stated"),
    ),
    listed=accounts,
    sources=(
        flows(
            add_account_id,
            ("accountId",),
            by_account_and_month,
            (TRANSACTIONS, MONEY_IN, MONEY_OUT, *TRANSFERS, *COUNTS),
        ),
        Source(
            last_stated_balances,
            (
                Total(
                    "closingBalance",
                    "AUD",
                    pl.col("closing_balance"),
                    complete=True,
                    meaning="the last balance stated, with its sign as stated; null when none was",
                ),
            ),
        ),
    ),
    derived=(NET,),
    order=("accountId",),
)


def own_transfers(facts: Facts) -> pl.LazyFrame:
    """Return each own transfer once, with its accounts: its debit, or a credit whose debit was not found."""
    moved = facts.rows.lazy().filter(words.is_own_transfer(), pl.col("amount") != 0)
    pair = (BY_CUSTOMER, "transfer_pair_id")
    is_paired = pl.col("transfer_pair_id").is_not_null()
    received = pl.when(is_paired).then(pl.col("account_id").filter(words.is_credit()).min().over(pair))
    return (
        moved.with_columns(
            source=pl.when(words.is_debit()).then("account_id"),
            target=pl.when(words.is_debit()).then(received).otherwise("account_id"),
        )
        .filter(words.is_debit() | ~(is_paired & words.is_debit().any().over(pair)))
        .with_columns(
            fromAccountId=uuid_text("source"),
            toAccountId=uuid_text("target"),
            relatedParty=pl.col("category").eq_missing("related_entity"),
        )
    )


OWN_TRANSFERS = Table(
    id="own_transfers",
    name="Transfers between own accounts",
    hierarchy="account",
    type="summary",
    meaning="Money that is neither income nor cost because it stays with the customer or its declared related parties. "
    "A transfer whose two sides were both found counts once; for others, the account on the other side is not known.",
    keys=(
        Column("fromAccountId", "text", meaning="account that the money left; null: not among the accounts supplied"),
        Column("toAccountId", "text", meaning="account that the money reached; null: not among the accounts supplied"),
        Column("relatedParty", "boolean", meaning="to or from a declared related party"),
    ),
    sources=(
        Source(
            own_transfers,
            (
                Total("transferCount", "count", pl.lit(1), meaning="transfers"),
                Total("amount", "AUD", pl.col("amount").abs(), meaning="money moved"),
            ),
        ),
    ),
    order=("fromAccountId", "toAccountId", "relatedParty"),
)
