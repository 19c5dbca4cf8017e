"""Detect what was not supplied: rows that balances imply, months without rows, and accounts that transfers mention.

Own transfers that are described as receipts are here, too: their other side is in another account.
"""

import polars as pl

from pipelines.figures import rhythm
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.mentions import mentions
from pipelines.figures.negligible import CENTS, is_negligible
from pipelines.figures.offsets import offsets
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import MONTH, YEAR, candidates, usual_month
from pipelines.vocabulary.plans import collect

# All our judgement.
MIN_MISSING = 60_00  # cents; fees and interest that an export leaves out are smaller
SILENT_DAYS = 25  # between two days with rows
RHYTHM_DAYS = 60  # before the silence, and after it: at least ten of them must have rows (`_days_with_rows`)
BUSY_DAYS = 30  # if the account was hardly used on one side: at least ten of any such days must have rows
MIN_MENTIONS = 3
MIN_TRANSFERS = 2
MOST_DAYS = 3  # from an own transfer to the receipt that it became: a weekend
MATCHED_SHARE = 0.5  # of a customer's transfers without their other side
MENTIONED_SHARE = 0.1  # of a usual year's receipts


def balance_jumps(facts: Facts) -> pl.DataFrame:
    """Return days whose closing balance doesn't follow from the account's previous known balance and the rows since.

    Columns: `customer_number, account_id, date`, `transaction_id` of the row that states the balance, and `cents`: the
    sum of the missing rows, with its sign.
    """
    broken = facts.rows.lazy().filter(~pl.col("balance_verified")).select(BY_ACCOUNT).unique()
    step = pl.col("offset").diff().over(BY_ACCOUNT)
    return (
        offsets(facts)
        .lazy()
        .drop_nulls("offset")
        .join(broken, on=BY_ACCOUNT, how="semi", maintain_order="left")
        .with_columns(cents=(step * 100).cast(pl.Int64, strict=False))
        .filter(pl.col("cents").fill_null(0) != 0)
        .select(*BY_ACCOUNT, "date", "cents", transaction_id="stated_by")
        .pipe(collect)
    )


def withheld_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows whose balance jumps by more than fees and interest would explain."""
    large = facts.cached(balance_jumps).lazy().filter(pl.col("cents").abs() >= MIN_MISSING)
    return large.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents=pl.col("cents").abs())


def silences(facts: Facts) -> pl.DataFrame:
    """Return the first row after each long silence that the rhythm of its account makes improbable.

    Columns: `customer_number, account_id, date, transaction_id`; `silent_since`, the last day with rows before it; and
    `is_between`, whether the account was in use before the silence and after it. Texts and balances play no part, so
    leaving them out hides no silence. Nor do rows that move next to no money, so adding some ends no silence. If an
    account was hardly used on one side, its rhythm on the other side counts, but only if it was used a lot.
    """
    days = _days_with_rows(facts)
    long = days.filter(
        (pl.col("day") - pl.col("previous_day")).dt.total_days() > SILENT_DAYS, pl.col("is_between") | pl.col("is_busy")
    )
    read = (*BY_ACCOUNT, "transaction_id", "silent_since", "is_between", "date")
    named = {"date": "day", "silent_since": "previous_day"}
    if long.is_empty():  # true for most customers, and the query below takes time even on an empty frame
        return long.with_columns(**named).select(read)
    return (
        rhythm.count_pause_days(long.lazy(), days.lazy())
        .filter(rhythm.is_improbable())
        .with_columns(**named)
        .select(read)
        .pipe(collect)
    )


def _days_with_rows(facts: Facts) -> pl.DataFrame:
    """Return each account's days with rows that move money, and its first and last day with any row.

    `day`; `transaction_id` of its first row; `previous_day`; `is_between`, whether there are ten days within
    RHYTHM_DAYS before `day`, and ten from it on; `is_busy`, whether the account ever has ten within BUSY_DAYS.
    """
    day, moves = pl.col("day"), ~is_negligible(BY_ACCOUNT, pl.col("largest"), pl.col("moved"))
    tenth_after = (day.shift(-9) - day).dt.total_days().over(BY_ACCOUNT)
    before = (day.shift(1) - day.shift(10)).dt.total_days().over(BY_ACCOUNT)
    is_end = (day == day.first().over(BY_ACCOUNT)) | (day == day.last().over(BY_ACCOUNT))
    of_day = pl.col("transaction_id", "age").first(), CENTS.max().alias("largest"), CENTS.sum().alias("moved")
    return (
        facts.rows.lazy()
        .group_by(*BY_ACCOUNT, day="date")
        .agg(of_day)
        .sort(*BY_ACCOUNT, "day")
        .filter(moves | is_end)
        .with_columns(
            previous_day=day.shift(1).over(BY_ACCOUNT),
            is_between=((before < RHYTHM_DAYS) & (tenth_after < RHYTHM_DAYS)).fill_null(value=False),
            is_busy=(tenth_after < BUSY_DAYS).any().over(BY_ACCOUNT),
        )
        .pipe(collect)
    )


def withheld_months(facts: Facts) -> pl.LazyFrame:
    """Return the first row after each improbable silence."""
    found = facts.cached(silences).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents=pl.lit(0, pl.Int64))


def withheld_accounts(facts: Facts) -> pl.LazyFrame:
    """Return transfers of the last year to and from an account that was not supplied, if they are many and large."""
    ages = facts.rows.lazy().select("transaction_id", "age")
    dated = mentions(facts).lazy().join(ages, on="transaction_id", how="left", validate="1:1")
    account = (BY_CUSTOMER, "masked_number", "place")
    size = pl.col("amount").abs().to_physical().cast(pl.Int64)
    usual = pl.col("usual") * (YEAR // MONTH)
    return (
        dated.filter(pl.col("age") < YEAR)
        .join(facts.cached(usual_month).lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
        .with_columns(cents=size)
        .filter(
            pl.len().over(account) >= MIN_MENTIONS,
            pl.col("cents").sum().over(account) >= MENTIONED_SHARE * usual,
        )
        .select(BY_CUSTOMER, "transaction_id", about=pl.coalesce("masked_number", "name"), cents="cents")
    )


def unmatched_transfers(facts: Facts) -> pl.DataFrame:
    """Return own transfers whose other side was not found: the account that they `left`, as `other`, and their row.

    Columns: `customer_number, size, date, other` (an account id) and `left` (a transaction id).
    """
    sent = facts.cached(candidates).lazy().filter(pl.col("cents") < 0, pl.col("category") == "own_transfer")
    return (
        sent.filter(~pl.col("is_transfer").fill_null(value=False))
        .select(BY_CUSTOMER, "size", "date", other="account_id", left="transaction_id")
        .pipe(collect)
    )


def disguised_transfers(facts: Facts) -> pl.LazyFrame:
    """Return receipts that left another account of the customer as a transfer of the same size, and these transfers.

    The money arrives on the same day or up to MOST_DAYS later. On a later day an equal sum may be a coincidence, so
    it counts only for customers for whom at least MATCHED_SHARE of all such transfers are found.
    """
    sent, received = facts.cached(unmatched_transfers), facts.cached(candidates).filter("is_receipt")
    pairs = list[pl.DataFrame]()
    for days in range(MOST_DAYS + 1):
        found = _match_receipts(received, sent, days)
        pairs.append(found)
        received = received.join(found, on="transaction_id", how="anti", maintain_order="left")
        sent = sent.join(found, on="left", how="anti", maintain_order="left")
    transfers = facts.cached(unmatched_transfers).group_by(BY_CUSTOMER).agg(transfers=pl.len())
    every = pl.concat(pairs).join(transfers, on=BY_CUSTOMER, validate="m:1", maintain_order="left")
    is_usual = pl.len().over(BY_CUSTOMER) >= MATCHED_SHARE * pl.col("transfers")
    matched = every.lazy().filter((pl.col("days") == 0) | is_usual)
    several = matched.filter(pl.len().over(BY_CUSTOMER) >= MIN_TRANSFERS).with_columns(about=pl.lit(None, pl.String))
    receipts = several.select(BY_CUSTOMER, "about", "transaction_id", cents="size")
    left = several.select(BY_CUSTOMER, "about", transaction_id="left", cents=pl.lit(0, pl.Int64))
    return pl.concat([receipts, left])


def _match_receipts(received: pl.DataFrame, sent: pl.DataFrame, days: int) -> pl.DataFrame:
    """Match the n-th receipt of a size with the n-th transfer of that size that left another account `days` before.

    Returns:
        `customer_number, size, transaction_id` of the receipt, `left` of the transfer, and `days`.
    """
    equal = [BY_CUSTOMER, "size", "date"]
    nth = pl.int_range(pl.len()).over(equal)
    arriving = sent.with_columns(pl.col("date") + pl.duration(days=days), nth=nth)
    numbered = received.join(arriving, on=equal, how="semi", maintain_order="left").with_columns(nth=nth)
    pairs = numbered.join(arriving, on=[*equal, "nth"], validate="1:1", maintain_order="left")
    elsewhere = pairs.filter(pl.col("account_id") != pl.col("other"))
    return elsewhere.select(BY_CUSTOMER, "size", "transaction_id", "left", days=pl.lit(days))
