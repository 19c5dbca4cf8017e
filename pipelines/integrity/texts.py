"""Texts that are missing, or that differ from how the account's bank writes."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import candidates

# All our judgement.
MOST_BLANK = 0.5  # share of an account's rows; from here on, its bank writes no texts
FEWEST_ROWS = 20
OWN_STYLE = 0.998  # least share of an account's rows that follow its bank's style
FEWEST_IN_STYLE = 300
DAYS_APART = 12  # between the date that a text prints and the booking date
PRINTED = 0.9  # least share of an account's printed dates that are near the booking date
_BY_MERCHANTS = ("card", "eftpos", "atm")  # their terminals write the text
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = rf"(?i)\b(\d{{1,2}}) ?(?:{'|'.join(_MONTHS)})(?:[^a-z]|$)"
_MONTH = rf"(?i)\b\d{{1,2}} ?({'|'.join(_MONTHS)})(?:[^a-z]|$)"


def blanked_texts(facts: Facts) -> pl.DataFrame:
    """Return rows without a letter or digit in their text, in accounts where most rows have texts."""
    blank = ~pl.col("description").str.contains(r"[\p{L}\d]")
    rows = facts.rows.select(*BY_ACCOUNT, "transaction_id", "amount", blank=blank)
    share = pl.col("blank").mean().over(BY_ACCOUNT)
    return _sized(
        rows.filter((pl.len().over(BY_ACCOUNT) >= FEWEST_ROWS) & (share > 0) & (share < MOST_BLANK)).filter("blank")
    )


def reworded_texts(facts: Facts) -> pl.DataFrame:
    """Return the few rows in capitals in an account whose texts have small letters, and the other way round."""
    text = pl.col("description")
    style = pl.when(text.str.contains(r"\p{Ll}")).then(1).when(text.str.contains(r"\p{Lu}")).then(0)
    by_bank = ~pl.col("channel").is_in(_BY_MERCHANTS).fill_null(value=False)
    rows = facts.rows.filter(by_bank).select(*BY_ACCOUNT, "transaction_id", "amount", style=style).drop_nulls("style")
    share = pl.col("style").mean().over(BY_ACCOUNT)
    enough = pl.len().over(BY_ACCOUNT) >= FEWEST_IN_STYLE
    odd = ((share >= OWN_STYLE) & (pl.col("style") == 0)) | ((share <= 1 - OWN_STYLE) & (pl.col("style") == 1))
    return _sized(rows.filter(enough & odd))


def moved_receipts(facts: Facts) -> pl.DataFrame:
    """Return receipts that print a date far from their booking date, if the account's other receipts don't."""
    day = pl.col("description").str.extract(_DAY).cast(pl.Int32)
    month = pl.col("description").str.extract(_MONTH).str.to_lowercase()
    of_year = month.replace_strict({name: nth for nth, name in enumerate(_MONTHS, 1)}, return_dtype=pl.Int32)
    printed = (of_year - 1) * 30.4 + day
    booked = (pl.col("date").dt.month() - 1) * 30.4 + pl.col("date").dt.day()
    apart = (printed - booked).abs()
    rows = (
        facts.cached(candidates)
        .filter("is_receipt")
        .with_columns(apart=pl.min_horizontal(apart, 366 - apart))
        .drop_nulls("apart")
        .with_columns(far=pl.col("apart") > DAYS_APART)
    )
    near = 1 - pl.col("far").mean().over(BY_ACCOUNT)
    return (
        rows.filter(pl.len().over(BY_ACCOUNT) >= FEWEST_ROWS, near >= PRINTED)
        .filter("far")
        .select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")
    )


def _sized(rows: pl.DataFrame) -> pl.DataFrame:
    size = pl.col("amount").abs().to_physical().cast(pl.Int64)
    return rows.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents=size)
