"""Detect texts that are missing or not written as the account's bank writes."""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import SMALLEST, SMALLEST_SHARE, usual_month
from pipelines.vocabulary.plans import collect

# All our judgement.
MAX_BLANK = 0.5  # share of an account's rows without a text; from this share on, its bank writes none
MIN_ROWS = 20
OWN_STYLE = 0.97  # least share of payments that follow the bank's style; of a bank that writes both ways, fewer do
MIN_IN_STYLE = 200
MOST_SINCE = 0.5  # largest share of the payments since the first odd one; above it, the bank may have changed its style
MIN_ODD = 2  # rows in another style; a single one may be a payer's own words
_FIRST_WORD = r"(\p{L}{2,})"
_IN_CAPITALS = r"^\p{Lu}{5,}$"  # shorter words may be abbreviations, which all banks write in capitals
_BY_OTHERS = ("card", "eftpos", "atm", "bpay")  # merchants' terminals and billers write the text


def odd_texts(facts: Facts) -> pl.DataFrame:
    """Return rows whose text is missing (`is_blank`) or in another style than the account's others (`is_reworded`).

    The style of a text is that of its first word, because the bank writes that one; the payer may have written later
    words. It is 1 if the word has small letters, 0 if it is long and has only capitals, and null if it may be an
    abbreviation, if the text has no words, or if somebody else wrote it, as for money in. Rows in another style count
    only together: there must be MIN_ODD in an account, in all as large as a single row must be to matter
    (`candidates`).
    """
    text, style, blank = (pl.col(name) for name in ("description", "style", "blank"))
    first = text.str.extract(_FIRST_WORD)
    small = first.str.contains(r"\p{Ll}")
    shown = pl.when(small | first.str.contains(_IN_CAPITALS)).then(small.cast(pl.Int8))
    has_texts = (pl.len().over(BY_ACCOUNT) >= MIN_ROWS) & (blank.mean().over(BY_ACCOUNT) < MAX_BLANK)
    has_style, usual = style.count().over(BY_ACCOUNT) >= MIN_IN_STYLE, style.mean().over(BY_ACCOUNT)
    is_odd = ((usual >= OWN_STYLE) & (style == 0)) | ((usual <= 1 - OWN_STYLE) & (style == 1))
    found = (
        facts.rows.lazy()
        .with_columns(blank=~text.str.contains(r"[\p{L}\d]"), style=pl.when(_is_by_bank()).then(shown))
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
    if not found["is_reworded"].any():  # true for most customers
        return found
    odd = found.filter("is_reworded")
    reworded = odd.join(_accounts_that_matter(facts, odd), on=BY_ACCOUNT, how="semi")["transaction_id"]
    return found.with_columns(is_reworded=pl.col("transaction_id").is_in(reworded.implode()))


def _is_by_bank() -> pl.Expr:
    return (pl.col("amount") < 0) & ~pl.col("channel").is_in(_BY_OTHERS).fill_null(value=False)


def _accounts_that_matter(facts: Facts, odd: pl.DataFrame) -> pl.DataFrame:
    """Return the accounts whose odd rows are many and large enough, and whose bank did not change its style."""
    sums = odd.group_by(BY_ACCOUNT).agg(pl.len(), pl.col("cents").sum(), begun=pl.col("date").min())
    paid = facts.rows.filter(_is_by_bank()).select(*BY_ACCOUNT, "date")
    later = paid.join(sums, on=BY_ACCOUNT).filter(pl.col("date") >= pl.col("begun")).group_by(BY_ACCOUNT).len("later")
    return (
        sums.join(facts.cached(usual_month), on=BY_CUSTOMER, how="left", validate="m:1")
        .join(later, on=BY_ACCOUNT, how="left", validate="1:1")
        .filter(
            pl.col("len") >= MIN_ODD,
            pl.col("cents") >= SMALLEST,
            pl.col("cents") * SMALLEST_SHARE >= pl.col("usual"),
            pl.col("len") <= MOST_SINCE * pl.col("later"),
        )
    )


def blanked_texts(facts: Facts) -> pl.LazyFrame:
    """Return rows whose text has no letter or digit, in accounts where most rows have texts."""
    return facts.cached(odd_texts).lazy().filter("is_blank")


def reworded_texts(facts: Facts) -> pl.LazyFrame:
    """Return the few payments in capitals in an account whose texts have small letters, and the other way round."""
    return facts.cached(odd_texts).lazy().filter("is_reworded")
