"""Detect texts that are missing or not written as the account's bank writes, and texts that print a distant date."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import candidates

# All our judgement.
MOST_BLANK = 0.5  # share of an account's rows without a text; from this share on, its bank writes none
FEWEST_ROWS = 20
OWN_STYLE = 0.998  # least share of an account's rows that follow its bank's style
FEWEST_IN_STYLE = 300
DAYS_APART = 12  # between the date that a text prints and the posting date
PRINTED = 0.9  # least share of an account's printed dates that are near the posting date
_FIRST_WORD = r"(\p{L}{2,})"
_BY_MERCHANTS = ("card", "eftpos", "atm")  # their terminals write the text
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = rf"(?i)\b(\d{{1,2}}) ?(?:{'|'.join(_MONTHS)})(?:[^a-z]|$)"
_MONTH = rf"(?i)\b\d{{1,2}} ?({'|'.join(_MONTHS)})(?:[^a-z]|$)"


def odd_texts(facts: Facts) -> pl.DataFrame:
    """Return rows whose text is missing (`is_blank`) or in another style than the account's others (`is_reworded`).

    The style of a text is that of its first word, because the bank writes that one; the payer may have written later
    words. It is 1 if the word has small letters, 0 if it has only capitals, and null if the text has no words or a
    merchant's terminal wrote it.
    """
    text, style, blank = (pl.col(name) for name in ("description", "style", "blank"))
    by_bank = ~pl.col("channel").is_in(_BY_MERCHANTS).fill_null(value=False)
    small = text.str.extract(_FIRST_WORD).str.contains(r"\p{Ll}").cast(pl.Int8)
    has_texts = (pl.len().over(BY_ACCOUNT) >= FEWEST_ROWS) & (blank.mean().over(BY_ACCOUNT) < MOST_BLANK)
    has_style, usual = style.count().over(BY_ACCOUNT) >= FEWEST_IN_STYLE, style.mean().over(BY_ACCOUNT)
    is_odd = ((usual >= OWN_STYLE) & (style == 0)) | ((usual <= 1 - OWN_STYLE) & (style == 1))
    return (
        facts.rows.lazy()
        .with_columns(blank=~text.str.contains(r"[\p{L}\d]"), style=pl.when(by_bank).then(small))
        .select(
            *(*BY_ACCOUNT, "date", "transaction_id"),
            about=pl.lit(None, pl.String),
            cents=pl.col("amount").abs().to_physical().cast(pl.Int64),
            is_blank=blank & has_texts,
            is_reworded=is_odd & has_style,
        )
        .filter(pl.col("is_blank") | pl.col("is_reworded"))
        .collect(engine="in-memory")
    )


def blanked_texts(facts: Facts) -> pl.LazyFrame:
    """Return rows whose text has no letter or digit, in accounts where most rows have texts."""
    return facts.cached(odd_texts).lazy().filter("is_blank")


def reworded_texts(facts: Facts) -> pl.LazyFrame:
    """Return the few rows in capitals in an account whose texts have small letters, and the other way round."""
    return facts.cached(odd_texts).lazy().filter("is_reworded")


def printed_days(facts: Facts) -> pl.DataFrame:
    """Return the receipts whose text prints a day and month, and whether that is `far` from the posting date."""
    day = pl.col("description").str.extract(_DAY).cast(pl.Int32)
    month = pl.col("description").str.extract(_MONTH).str.to_lowercase()
    of_year = month.replace_strict({name: nth for nth, name in enumerate(_MONTHS, 1)}, return_dtype=pl.Int32)
    # Days of the year, as if all months were equally long: the error is below two days. Texts rarely print the year, so
    # the distance is measured around the turn of the year, too.
    printed = (of_year - 1) * 30.4 + day
    posted_on = (pl.col("date").dt.month() - 1) * 30.4 + pl.col("date").dt.day()
    apart = (printed - posted_on).abs()
    return (
        facts.cached(candidates)
        .lazy()
        .filter("is_receipt")
        .select(*BY_ACCOUNT, "date", "transaction_id", "size", far=pl.min_horizontal(apart, 366 - apart) > DAYS_APART)
        .drop_nulls("far")
        .collect(engine="in-memory")
    )


def moved_receipts(facts: Facts) -> pl.LazyFrame:
    """Return receipts that print a date far from their posting date, if the account's other receipts don't."""
    near = 1 - pl.col("far").mean().over(BY_ACCOUNT)
    return (
        facts.cached(printed_days)
        .lazy()
        .filter(pl.len().over(BY_ACCOUNT) >= FEWEST_ROWS, near >= PRINTED)
        .filter("far")
        .select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")
    )
