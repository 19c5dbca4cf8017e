"""Compare the accounts that completeness names as missing with the truth.

By its labels, a row refers to a missing account in two cases. It is one side of a movement between the business's own
accounts without a pair, because the other account was never supplied or was dropped. Or it is a movement of a loan,
whose account no portfolio supplies. A named account is right if all of its rows refer to the same missing account, and
its digits, if named, are right. An account that is named twice is right once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.reports.completeness.across import mentioning_rows
from pipelines.vocabulary.schemas import TRANSACTIONS

BETWEEN_OWN = ("own_transfer", "card_repayment", "card_advance")
OF_A_LOAN = ("term_loan_repayment", "term_loan_funding")
ROW = ("customer_number", "transaction_id")
_NAMED = ("customer_number", "maskedNumber", "name")
_MISSING = ("customer_number", "missing")


@dataclass(frozen=True)
class Named:
    """Named accounts and the truth.

    `mentioned`: the missing own accounts to which a row refers. `named`: all named accounts, each with `missing`, the
    account that it really is, or null.
    """

    mentioned: pl.DataFrame
    named: pl.DataFrame

    def matches(self) -> pl.DataFrame:
        return self.mentioned.join(self._right_mentions(), on=_MISSING, how="semi")

    def of_customers(self, customers: pl.Series) -> "Named":
        """Return only what concerns these customers."""
        concerned = pl.col("customer_number").is_in(customers.implode())
        return Named(self.mentioned.filter(concerned), self.named.filter(concerned))

    def count_right(self) -> int:
        return self._right_mentions().height

    def _right_mentions(self) -> pl.DataFrame:
        return self.named.select(_MISSING).drop_nulls().unique()


def lone_sides(enriched: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, by ROW, that are one side of a movement between own accounts without the other side."""
    lone = pl.col("true_category").is_in(BETWEEN_OWN) & pl.col("true_transfer_pair").is_null()
    return enriched.filter(lone).select(ROW)


def numbers(of_customers: Mapping[int, str]) -> pl.DataFrame:
    """Return account numbers by `customer_number`."""
    return pl.DataFrame(list(of_customers.items()), {"customer_number": pl.Int64, "missing": pl.String}, orient="row")


def name_accounts(enriched: pl.DataFrame, sides: pl.DataFrame, as_of: date) -> Named:
    """Return the accounts that completeness names in rows with known truth.

    Args:
        enriched: TRANSACTIONS with `true_category`, `true_facility` and `true_transfer_pair`.
        sides: by ROW, with `missing`, the number of the own account on the other side.
        as_of: of the report.
    """
    lent = pl.col("true_category").is_in(OF_A_LOAN) & pl.col("true_facility").is_not_null()
    loans = enriched.filter(lent).select(*ROW, missing=pl.format("loan {}", "true_facility"))
    missing = pl.concat([sides.select(*ROW, "missing"), loans])
    mentions = mentioning_rows(Facts(enriched.select(TRANSACTIONS.names()), as_of)).collect()
    account, tail = pl.col("missing"), pl.col("maskedNumber").str.strip_prefix("xx")
    one = (account.n_unique() == 1) & account.is_not_null().all()
    of_rows = mentions.join(missing, on=ROW, how="left", validate="m:1").group_by(_NAMED).agg(account.first(), one=one)
    right = pl.col("one") & (tail.is_null() | account.str.ends_with(tail))
    return Named(sides.select(_MISSING).unique(), of_rows.with_columns(missing=pl.when(right).then(account)))
