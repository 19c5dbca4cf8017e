"""Detect rows that were supplied twice: as two accounts, or in several submissions of one account.

It happens by mistake (the account has two numbers, or comes from two sources), or on purpose.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.agreement import select_agreeing
from pipelines.figures.facts import Facts
from pipelines.figures.negligible import CENTS
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.sent_again import rows_sent_again
from pipelines.intake.accounts import mask_account_number
from pipelines.vocabulary.plans import collect

MIN_SUMS = 5  # different sums of a day's receipts that both accounts have; our judgement
_DAY = pl.col("date")
_PAIR = ("account_id", "account_id_original")
_SAME_DAY = (BY_CUSTOMER, "date", "is_receipt", "rows", "moved")
_DAY_OF_ACCOUNT = (*BY_ACCOUNT, "date", "is_receipt")


def repeated_sources(facts: Facts) -> pl.DataFrame:
    """Return the accounts (BY_ACCOUNT) that repeat another one, or have rows that were sent again."""
    repeated = (facts.cached(repeated_accounts), facts.cached(rows_sent_again))
    return pl.concat(each.select(BY_ACCOUNT) for each in repeated)


def repeated_accounts(facts: Facts) -> pl.DataFrame:
    """Return `customer_number`, `account_id` of each account that repeats another one, and that one's `original`.

    An account repeats another one if enough days have as many receipts with the same sum in both. Own transfers don't
    count: an account that is emptied into another one every evening has the same sums. Of two accounts, the one with
    fewer rows repeats the other. An account that repeats several has the one with most rows as its original.
    """
    rows = facts.rows.lazy().filter(pl.col("is_external"), pl.col("amount") > 0)
    days = _days(rows).pipe(collect)
    shared = days.lazy().filter(pl.len().over(_SAME_DAY) > 1).pipe(collect)
    if shared.is_empty():  # true for most customers
        return _NO_REPEATED_ACCOUNTS
    periods = facts.rows.lazy().group_by(BY_ACCOUNT).agg(size=pl.len(), first=_DAY.min(), last=_DAY.max())
    sized = shared.lazy().join(periods.drop("first", "last"), on=BY_ACCOUNT, validate="m:1")
    pairs = (
        sized.join(sized, on=_SAME_DAY, suffix="_original")
        .filter(_has_fewer_rows())
        .group_by(BY_CUSTOMER, *_PAIR)
        .agg(same=pl.len(), sums=pl.col("moved").n_unique(), size=pl.col("size_original").first())
        .filter(pl.col("sums") >= MIN_SUMS)
    )
    own_days = days.lazy().select(BY_CUSTOMER, "date", side="account_id")
    own_periods = periods.select(BY_CUSTOMER, "first", "last", side="account_id")
    return (
        select_agreeing(pairs, [BY_CUSTOMER], _PAIR, own_days, own_periods)
        .sort(*BY_ACCOUNT, pl.col("size").cast(pl.Int64) * -1, "account_id_original")
        .unique(BY_ACCOUNT, keep="first", maintain_order=True)
        .select(*BY_ACCOUNT, original="account_id_original")
        .pipe(collect)
    )


_NO_REPEATED_ACCOUNTS = pl.Schema(
    {BY_CUSTOMER: pl.Int64(), "account_id": pl.Binary(), "original": pl.Binary()}
).to_frame()


def repeated_rows(facts: Facts) -> pl.LazyFrame:
    """Return `customer_number`, `transaction_id`, `about` (the account's masked number) and `cents` of repeated rows.

    They are the rows that were sent again for one account, and the rows of repeating accounts on days on which the
    original account has as many rows with the same sum. Receipts and payments of a day are compared separately.
    """
    own = facts.rows.lazy().with_columns(is_receipt=pl.col("amount") > 0)
    of_accounts = own.join(_same_days_of_accounts(facts), on=_DAY_OF_ACCOUNT, how="semi")
    sent_again = facts.cached(rows_sent_again).lazy()
    repeated = pl.concat(each.select("transaction_id") for each in (of_accounts, sent_again))
    number = facts.accounts.lazy().select(*BY_ACCOUNT, about=mask_account_number(pl.col("account_number")))
    return (
        own.join(repeated, on="transaction_id", how="semi", maintain_order="left")
        .join(number, on=BY_ACCOUNT, how="left", validate="m:1", maintain_order="left")
        .select(BY_CUSTOMER, "transaction_id", "about", cents=CENTS)
    )


def _same_days_of_accounts(facts: Facts) -> pl.LazyFrame:
    """Return _DAY_OF_ACCOUNT of the days on which a repeating account equals its original."""
    repeated = facts.cached(repeated_accounts).lazy()
    days = _days(facts.rows.lazy())
    originals = days.join(repeated, left_on=BY_ACCOUNT, right_on=(BY_CUSTOMER, "original"), suffix="_repeated")
    same = originals.select(*_SAME_DAY, account_id="account_id_repeated")
    return days.join(same, on=(*_SAME_DAY, "account_id"), how="semi").select(_DAY_OF_ACCOUNT)


def merge_repeated_accounts(facts: Facts, repeated: pl.DataFrame) -> Facts:
    """Return facts in which repeated rows count once, and all rows of both accounts are rows of the original account.

    Rows that were repeated within their account count once, too.

    Args:
        repeated: `transaction_id` of `repeated_rows`.
    """
    copies = facts.transactions.join(repeated, on="transaction_id", how="semi").select(BY_ACCOUNT).unique()
    originals = facts.cached(repeated_accounts).join(copies, on=BY_ACCOUNT, how="semi")
    left_out = _choose_rows_to_leave_out(facts.rows, repeated, originals)
    rows = facts.transactions.filter(~pl.col("transaction_id").is_in(left_out.implode()))
    return Facts(_rename_accounts(rows, originals), facts.as_of, facts.context)


def _choose_rows_to_leave_out(rows: pl.DataFrame, repeated: pl.DataFrame, originals: pl.DataFrame) -> pl.Series:
    """Return the `transaction_id` of each repeated row, or of its equal in the original account.

    Of two equal rows, the one that is paired as an own transfer stays, because the pair's other side has no other
    partner.
    """
    equal = [*BY_ACCOUNT, "date", "amount", "nth"]
    is_repeated = pl.col("transaction_id").is_in(repeated["transaction_id"].implode())
    is_paired = pl.col("is_transfer").fill_null(value=False)
    compared = (
        _rename_accounts(rows, originals)
        .select(*equal[:-1], "transaction_id", is_repeated=is_repeated, is_paired=is_paired)
        .with_columns(nth=pl.int_range(pl.len()).over(*equal[:-1], "is_repeated"))
    )
    copies, others = compared.filter("is_repeated"), compared.filter(~pl.col("is_repeated"))
    both = copies.join(others, on=equal, how="left", validate="1:1", suffix="_other", maintain_order="left")
    stays = pl.col("is_paired") & ~pl.col("is_paired_other")
    return both.select(pl.when(stays).then("transaction_id_other").otherwise("transaction_id")).to_series()


def _rename_accounts(rows: pl.DataFrame, originals: pl.DataFrame) -> pl.DataFrame:
    named = rows.join(originals, on=BY_ACCOUNT, how="left", validate="m:1", maintain_order="left")
    return named.with_columns(account_id=pl.coalesce("original", "account_id")).drop("original")


def _days(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the number of rows and their sum (cents) per account, day and direction."""
    moved = rows.filter(pl.col("amount") != 0)
    return moved.group_by(*BY_ACCOUNT, "date", is_receipt=pl.col("amount") > 0).agg(rows=pl.len(), moved=CENTS.sum())


def _has_fewer_rows() -> pl.Expr:
    """Match the account with fewer rows; if both have as many, the one with the larger id."""
    fewer, equal = pl.col("size") < pl.col("size_original"), pl.col("size") == pl.col("size_original")
    return fewer | (equal & (pl.col("account_id") > pl.col("account_id_original")))
