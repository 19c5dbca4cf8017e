"""Detect texts that are missing or not written as the account's bank writes."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.vocabulary.plans import collect

# All our judgement.
MAX_BLANK = 0.5  # share of an account's rows without a text; from this share on, its bank writes none
MIN_ROWS = 20
OWN_STYLE = 0.998  # least share of an account's rows that follow its bank's style
MIN_IN_STYLE = 300
_FIRST_WORD = r"(\p{L}{2,})"
_BY_MERCHANTS = ("card", "eftpos", "atm")  # their terminals write the text


def odd_texts(facts: Facts) -> pl.DataFrame:
    """Return rows whose text is missing (`is_blank`) or in another style than the account's others (`is_reworded`).

    The style of a text is that of its first word, because the bank writes that one; the payer may have written later
    words. It is 1 if the word has small letters, 0 if it has only capitals, and null if the text has no words or a
    merchant's terminal wrote it.
    """
    text, style, blank = (pl.col(name) for name in ("description", "style", "blank"))
    by_bank = ~pl.col("channel").is_in(_BY_MERCHANTS).fill_null(value=False)
    small = text.str.extract(_FIRST_WORD).str.contains(r"\p{Ll}").cast(pl.Int8)
    has_texts = (pl.len().over(BY_ACCOUNT) >= MIN_ROWS) & (blank.mean().over(BY_ACCOUNT) < MAX_BLANK)
    has_style, usual = style.count().over(BY_ACCOUNT) >= MIN_IN_STYLE, style.mean().over(BY_ACCOUNT)
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
        .pipe(collect)
    )


def blanked_texts(facts: Facts) -> pl.LazyFrame:
    """Return rows whose text has no letter or digit, in accounts where most rows have texts."""
    return facts.cached(odd_texts).lazy().filter("is_blank")


def reworded_texts(facts: Facts) -> pl.LazyFrame:
    """Return the few rows in capitals in an account whose texts have small letters, and the other way round."""
    return facts.cached(odd_texts).lazy().filter("is_reworded")
