"""Cash flow by month: money in, money out and balances, for the customer and account by account."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER, is_partial_month, list_months
from pipelines.figures.tables import Column, Table
from pipelines.reports.aggregate.balances import (
    MEAN_BALANCE,
    account_history,
    all_accounts_by_month,
    each_account_by_month,
)
from pipelines.reports.aggregate.flows import NET, by_account_and_month, by_month, flows
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import uuid_text

MONTH = Column("month", "month", meaning="its first day")
PARTIAL = Column("partial", "boolean", meaning="the history starts or ends within the month")
ACCOUNT = Column("accountId", "text", meaning="as in `account_summary`")


def months(facts: Facts) -> pl.DataFrame:
    """Return a row per customer and calendar month of the history, including months without rows.

    `partial`: the history starts or ends within the month.
    """
    return facts.history.lazy().pipe(list_months).with_columns(partial=is_partial_month()).pipe(collect)


def account_months(facts: Facts) -> pl.LazyFrame:
    """Return `months` of each account, from its own first to its own last row."""
    months_of_accounts = facts.cached(account_history).lazy().pipe(list_months)
    return months_of_accounts.select(
        BY_CUSTOMER, "month", accountId=uuid_text("account_id"), partial=is_partial_month()
    )


def add_no_keys(frame: pl.LazyFrame, _: Facts) -> pl.LazyFrame:
    return frame


def add_account_id(frame: pl.LazyFrame, _: Facts) -> pl.LazyFrame:
    return frame.with_columns(accountId=uuid_text("account_id"))


CASH_FLOW = Table(
    id="monthly_cash_flow",
    name="Monthly cash flow",
    hierarchy="customer",
    type="time_series",
    meaning="A row for each calendar month from the first to the last row, including months without rows. Flows are "
    "those of all accounts, balances those of cash accounts: cards and loans state what is owed.",
    keys=(MONTH,),
    details=(PARTIAL,),
    listed=lambda facts: facts.cached(months).lazy().select(BY_CUSTOMER, "month", "partial"),
    sources=(all_accounts_by_month(), flows(add_no_keys, ("month",), by_month, finer=False)),
    derived=(MEAN_BALANCE, NET),
    hidden=("balanceDays",),
    order=("month",),
)
ACCOUNT_CASH_FLOW = Table(
    id="account_cash_flow",
    name="Monthly cash flow by account",
    hierarchy="account",
    type="time_series",
    meaning="The same for each account, from its own first to its own last row, so that its figures don't depend on "
    "other accounts. Cards and loans have no balances here.",
    keys=(ACCOUNT, MONTH),
    details=(PARTIAL,),
    listed=account_months,
    sources=(
        each_account_by_month(),
        flows(add_account_id, ("accountId", "month"), by_account_and_month, finer=False),
    ),
    derived=(MEAN_BALANCE, NET),
    hidden=("balanceDays",),
    order=("accountId", "month"),
)
