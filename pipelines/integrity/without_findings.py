"""Facts without the rows of open findings: what a rating reads for customers with findings that nobody resolved.

The rows are removed, and so is their effect on every later balance: the rating is what it would be if that money had
never come. Money from another account of the customer did come: its rows stay, and count as own transfers. Two
accounts that seem to be one count as one: rows that both have count once, and so does the balance. The rows of a
resolved finding count again.
"""

from functools import cached_property

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.finding import load_descriptions, open_rows
from pipelines.integrity.repeated import merge_repeated_accounts
from pipelines.vocabulary.taxonomy import TRANSFER


def undone_rows(facts: Facts) -> pl.DataFrame:
    """Return `customer_number`, `transaction_id` of the rows that a rating reads in another way, each once.

    `is_repeated`: whether another account has the row, too; `is_left_out`: whether the money never came. Both are
    removed; other rows count as own transfers.
    """
    of_kind = {undone: pl.col("finding").is_in(_codes_undone_by(undone)) for undone in _UNDONE}
    is_left_out = of_kind["all"] | (of_kind["receipts"] & (pl.col("contribution") > 0))
    rows = open_rows(facts).filter(is_left_out | of_kind["transfers"] | of_kind["account"])
    by_row = rows.group_by(BY_CUSTOMER, "transaction_id").agg(
        is_left_out=is_left_out.any(), is_repeated=of_kind["account"].any()
    )
    return by_row.sort(BY_CUSTOMER, "transaction_id")


_UNDONE = ("all", "receipts", "transfers", "account")


def _codes_undone_by(undone: str) -> list[str]:
    return [code for code, each in load_descriptions().items() if each.undone == undone]


def without_findings(facts: Facts) -> Facts | None:
    """Return the facts of the customers whose rating reads rows in another way; None if there are none."""
    undone = facts.cached(undone_rows)
    if undone.is_empty():
        return None
    repeated, others = undone.filter("is_repeated"), undone.filter(~pl.col("is_repeated"))
    merged = facts if repeated.is_empty() else merge_repeated_accounts(facts, repeated)
    return _WithoutFindings(merged, others, undone.select(BY_CUSTOMER).unique().sort(BY_CUSTOMER))


class _WithoutFindings(Facts):
    """Customers without some of their rows, and with others as own transfers."""

    def __init__(self, original: Facts, undone: pl.DataFrame, customers: pl.DataFrame) -> None:
        """Take the facts of more customers, their undone rows, and the `customers` whose rating these facts are for."""
        own = original.transactions.join(customers, on=BY_CUSTOMER, how="semi")
        left_out, transfers = undone.filter("is_left_out"), undone.filter(~pl.col("is_left_out"))
        is_transfer = pl.col("transaction_id").is_in(transfers["transaction_id"].implode())
        as_transfer = {"category": TRANSFER.slug, "category_group": TRANSFER.group, "is_transfer": True}
        read = own.join(left_out, on="transaction_id", how="anti").with_columns(
            pl.when(is_transfer).then(pl.lit(value, own.schema[name])).otherwise(name).alias(name)
            for name, value in as_transfer.items()
        )
        super().__init__(read, original.as_of, original.context)
        self._original, self._customers, self._left_out = original, customers, left_out

    @cached_property
    def customers(self) -> pl.DataFrame:
        """`customer_number` of every customer, even if all of its rows are left out."""
        return self._customers

    @cached_property
    def stated_closings(self) -> pl.DataFrame:
        """Closing balances less the sum of the rows left out up to that day.

        Days on which no row is left keep their balance.
        """
        undone = (
            self._original.rows.join(self._left_out, on="transaction_id", how="semi")
            .group_by(*BY_ACCOUNT, "date")
            .agg(undone=pl.col("amount").cast(BALANCE).sum())
            .sort(*BY_ACCOUNT, "date")
            .with_columns(pl.col("undone").cum_sum().over(BY_ACCOUNT))
        )
        closings = self._original.stated_closings.join(self._customers, on=BY_CUSTOMER, how="semi")
        last = self.history.select(BY_CUSTOMER, "data_through")
        return (
            closings.join(last, on=BY_CUSTOMER, how="inner", validate="m:1")
            .filter(pl.col("date") <= pl.col("data_through"))
            .drop("data_through")
            .sort("date")
            .join_asof(undone.sort("date"), on="date", by=BY_ACCOUNT, check_sortedness=False)
            .with_columns(pl.col("closing_balance", "moved") - pl.col("undone").fill_null(0))
            .drop("undone")
            .sort(*BY_ACCOUNT, "date")
        )
