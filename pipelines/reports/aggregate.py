"""Aggregate: the customer's money in tables.

Own transfers are no income and no cost: `moneyIn`, `moneyOut`, `net` and their counts leave them out, and they stand
beside in `transfersIn` and `transfersOut` (in the category table: rows marked `ownTransfer`). Outgoing money is
printed as a positive amount; `net` is in minus out. `revenue` is net of refunds and chargebacks. A month that the
history touches but does not fill is marked `partial`; a month without rows is listed with zeros.

The tables are declared once, in TABLES: a table's rows are a list of structs in a column named by its id, since one
Polars column can't hold tables of different shapes. `tables_gathered` puts declaration and rows together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce

import polars as pl

from pipelines import schemas
from pipelines.reports import words
from pipelines.reports.accounts import BY_ACCOUNT, cash_balances, closing_balances, described, printed_details
from pipelines.reports.figures import listed
from pipelines.reports.periods import BY_CUSTOMER, booked_month, customers, is_partial_month, months_of

BY_MONTH = (BY_CUSTOMER, "month")


@dataclass(frozen=True)
class Column:
    """`unit` is `AUD` (two decimals), `count`, `date`, `month` (its first day), `boolean` or `text`."""

    name: str
    unit: str


@dataclass(frozen=True)
class Table:
    """`hierarchy`: what a row is about (`customer`, `category`, `account`); `type`: `time_series` or `summary`.

    `rows` turns posted rows into `customer_number` and the declared columns; `order` is a total key of them.
    """

    id: str
    name: str
    hierarchy: str
    type: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    rows: Callable[[pl.LazyFrame], pl.LazyFrame]

    def nested(self, posted: pl.LazyFrame) -> pl.LazyFrame:
        """One row per customer: its rows of this table, in the column named by the table's id."""
        declared = (column.name for column in self.columns)
        return self.rows(posted).select(BY_CUSTOMER, *declared).pipe(listed, self.id, self.order)

    def as_data(self, values: object) -> dict[str, object]:
        """The table as the report prints it."""
        columns = [{"name": column.name, "unit": column.unit} for column in self.columns]
        about = {"id": self.id, "name": self.name, "hierarchy": self.hierarchy, "type": self.type}
        return {**about, "columns": columns, "values": values}


def aggregate_report(transactions: pl.LazyFrame, as_of: date) -> pl.LazyFrame:  # noqa: ARG001 - every report's signature
    """TRANSACTIONS → one row per customer: a list column per table of TABLES, empty without posted rows.

    Nothing here depends on the day of computation.
    """
    posted = transactions.filter(schemas.posted())
    each = (table.nested(posted) for table in TABLES)
    tables = reduce(_beside, each, customers(transactions))
    return tables.with_columns(pl.col(table.id).fill_null([]) for table in TABLES).sort(BY_CUSTOMER)


def _beside(left: pl.LazyFrame, right: pl.LazyFrame) -> pl.LazyFrame:
    return left.join(right, on=BY_CUSTOMER, how="left", validate="1:1")


def tables_gathered(row: Mapping[str, object]) -> dict[str, object]:
    """A row's columns that are tables of TABLES → one member `tables`; other members stay as they are."""
    tables = [table.as_data(row[table.id]) for table in TABLES if table.id in row]
    others = {name: value for name, value in row.items() if name not in TABLE_IDS}
    return {**others, "tables": tables} if tables else others


def money_flows() -> dict[str, pl.Expr]:
    """The sums and counts that every table tells, per group."""
    external = words.is_external()
    return {
        "moneyIn": words.money_in().filter(external).sum(),
        "moneyOut": words.money_out().filter(external).sum(),
        "net": pl.col("amount").filter(external).sum(),
        "transfersIn": words.money_in().filter(~external).sum(),
        "transfersOut": words.money_out().filter(~external).sum(),
        "creditCount": (words.is_credit() & external).sum(),
        "debitCount": (words.is_debit() & external).sum(),
    }


def monthly_cash_flow(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Customer × month, from the first to the last, over all accounts."""
    revenue = pl.col("amount").filter(words.is_revenue()).sum()
    flows = posted.group_by(BY_CUSTOMER, month=booked_month()).agg(**money_flows(), revenue=revenue)
    months = history(posted).pipe(months_of)
    return (
        months.join(flows, on=BY_MONTH, how="left", validate="1:1")
        .with_columns(pl.col(*money_flows(), "revenue").fill_null(0))
        .join(month_end_balances(posted, months), on=BY_MONTH, how="left", validate="1:1")
        .with_columns(partial=is_partial_month())
    )


def history(posted: pl.LazyFrame) -> pl.LazyFrame:
    dates = pl.col("date")
    return posted.group_by(BY_CUSTOMER).agg(first_date=dates.min(), data_through=dates.max())


def month_end_balances(posted: pl.LazyFrame, months: pl.LazyFrame) -> pl.LazyFrame:
    """Customer × month: `closingBalance`, the sum over cash accounts of what they last held in or before the month.

    Null when the balance of one of them is unknown; accounts not yet seen by the month's end don't count.
    """
    last, known = pl.col("closing_balance").sort_by("date").last(), pl.col("known")
    stated = cash_balances(posted).group_by(*BY_ACCOUNT, month=booked_month()).agg(last)
    accounts = stated.select(BY_ACCOUNT).unique()
    return (
        months.join(accounts, on=BY_CUSTOMER, how="inner", validate="m:m")
        .join(
            stated.with_columns(known=pl.col("closing_balance").is_not_null()),
            on=(*BY_ACCOUNT, "month"),
            how="left",
            validate="1:1",
        )
        .sort(*BY_ACCOUNT, "month")
        .with_columns(pl.col("known", "closing_balance").forward_fill().over(BY_ACCOUNT))
        .drop_nulls("known")
        .group_by(BY_MONTH)
        .agg(closingBalance=pl.when(known.all()).then(pl.col("closing_balance").sum()))
    )


def category_by_month(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Customer × category × month; own transfers are rows of their own, marked."""
    by = (
        pl.col("category_group").alias("categoryGroup"),
        pl.col("category"),
        words.is_own_transfer().alias("ownTransfer"),
        booked_month().alias("month"),
    )
    return posted.group_by(BY_CUSTOMER, *by).agg(
        moneyIn=words.money_in().sum(),
        moneyOut=words.money_out().sum(),
        net=pl.col("amount").sum(),
        transactionCount=pl.len(),
    )


def account_summary(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Account by account over all its history; the closing balance is the last one stated, with its sign as stated."""
    last_stated = pl.col("closing_balance", "date").sort_by("date").last()
    balances = closing_balances(posted).drop_nulls().group_by(BY_ACCOUNT).agg(last_stated)
    return (
        posted.group_by(BY_ACCOUNT)
        .agg(
            **money_flows(),
            firstDate=pl.col("date").min(),
            lastDate=pl.col("date").max(),
            transactionCount=pl.len(),
        )
        .join(described(posted), on=BY_ACCOUNT, how="left", validate="1:1")
        .join(balances, on=BY_ACCOUNT, how="left", validate="1:1")
        .with_columns(*printed_details())
        .rename({"closing_balance": "closingBalance", "date": "closingBalanceDate"})
    )


FLOW_COLUMNS = (
    Column("moneyIn", "AUD"),
    Column("moneyOut", "AUD"),
    Column("net", "AUD"),
    Column("transfersIn", "AUD"),
    Column("transfersOut", "AUD"),
    Column("creditCount", "count"),
    Column("debitCount", "count"),
)
TABLES = (
    Table(
        id="monthly_cash_flow",
        name="Monthly cash flow",
        hierarchy="customer",
        type="time_series",
        columns=(
            Column("month", "month"),
            Column("partial", "boolean"),
            *FLOW_COLUMNS,
            Column("revenue", "AUD"),
            Column("closingBalance", "AUD"),
        ),
        order=("month",),
        rows=monthly_cash_flow,
    ),
    Table(
        id="category_by_month",
        name="Categories by month",
        hierarchy="category",
        type="time_series",
        columns=(
            Column("categoryGroup", "text"),
            Column("category", "text"),
            Column("ownTransfer", "boolean"),
            Column("month", "month"),
            Column("moneyIn", "AUD"),
            Column("moneyOut", "AUD"),
            Column("net", "AUD"),
            Column("transactionCount", "count"),
        ),
        order=("categoryGroup", "category", "ownTransfer", "month"),
        rows=category_by_month,
    ),
    Table(
        id="account_summary",
        name="Accounts",
        hierarchy="account",
        type="summary",
        columns=(
            Column("accountId", "text"),
            Column("accountName", "text"),
            Column("bankName", "text"),
            Column("accountNumberMasked", "text"),
            Column("accountType", "text"),
            Column("firstDate", "date"),
            Column("lastDate", "date"),
            Column("transactionCount", "count"),
            *FLOW_COLUMNS,
            Column("closingBalance", "AUD"),
            Column("closingBalanceDate", "date"),
        ),
        order=("accountId",),
        rows=account_summary,
    ),
)
TABLE_IDS = frozenset(table.id for table in TABLES)
