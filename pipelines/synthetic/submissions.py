"""What a client would send for a business: bodies of `POST /v1/customer/{customerId}/transactions`.

Money is text with two decimals, which is exact in every JSON library. Labels are left out.
"""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import count as upwards
from typing import Any

import polars as pl

from pipelines.synthetic.portfolio import business
from pipelines.synthetic.world.model import Business, SyntheticAccount

MAX_ROWS = 50_000  # of one submission
_OPENING = Decimal("25000.00")  # of the account in `plain_rows`


def submissions(customer: Business, after: date | None = None, through: date | None = None) -> Iterator[dict[str, Any]]:
    """Yield bodies in the order of sending: account by account, in parts of at most `MAX_ROWS` rows.

    Only rows after the day `after` and up to the day `through` are sent, if these are given: first a history, say, and
    then day by day.
    """
    for account in customer.accounts:
        for rows in account.transactions.filter(_days(after, through)).partition_by("submission", maintain_order=True):
            for part in rows.iter_slices(MAX_ROWS):
                yield {**_account_fields(account), "transactions": items(part)}


def _days(after: date | None, through: date | None) -> pl.Expr:
    later = pl.lit(value=True) if after is None else pl.col("date") > after
    return later if through is None else later & (pl.col("date") <= through)


def items(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows as transaction items: `date`, `description`, `amount`, `balance` and an id if the bank gives one."""
    columns = rows.select(
        pl.col("date").dt.to_string("%Y-%m-%d"),
        "description",
        pl.col("amount", "balance").cast(pl.String),
        pl.col("transaction_id").alias("transactionId"),
    )
    if rows["transaction_id"].null_count():
        columns = columns.drop("transactionId")
    return columns.to_dicts()


def plain_rows(count: int, seed: int, until: date) -> list[dict[str, Any]]:
    """Return `count` items of one busy account up to `until`, with balances from 25,000.00 on, without client ids.

    They are the trading-account rows of as many businesses as it takes, in order of date: for load tests, where the
    number of rows matters and what happened doesn't.
    """
    rows = _latest(count, seed, until)
    chained = rows.with_columns(balance=pl.col("amount").cum_sum() + _OPENING, transaction_id=pl.lit(None, pl.String))
    return items(chained)


def _latest(count: int, seed: int, until: date) -> pl.DataFrame:
    parts: list[pl.DataFrame] = []
    for n in upwards():
        parts.append(business(n, 12, seed, until).accounts[0].transactions)
        if sum(part.height for part in parts) >= count:
            break
    return pl.concat(parts).sort("date", maintain_order=True).tail(count)


def _account_fields(account: SyntheticAccount) -> dict[str, str]:
    fields = {
        "accountName": account.account_name,
        "bsb": account.bsb,
        "accountNumber": account.account_number,
        "bankName": account.bank_name,
        "accountType": account.account_type,
        "creditLimit": account.credit_limit,
    }
    return {name: value for name, value in fields.items() if value is not None}
