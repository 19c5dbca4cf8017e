"""Descriptions without the rails' noise: what is left is who, and what for.

Banks write the way a payment took into the same text as its purpose: card numbers, value dates, receipt numbers, the
merchant's suburb and country. Each kind of noise is one named pattern; they are taken out of distinct texts only.
"""

from collections.abc import Mapping

import polars as pl

from pipelines.enrich.text import matching_text

# Taken out one after another, from the upper-case text.
NOISE: Mapping[str, str] = {
    "value date": r"\b(?:VALUE|EFFECTIVE)(?: DATE)?:? ?\d{1,2}(?:[/ -]\d{1,2}[/ -]\d{2,4}|[ -]?[A-Z]{3}[ -]?\d{2,4})\b",
    "card": r"\b(?:AUS )?CARD(?: NO\.?)? ?:?[X*\d]{2,}(?:[ -][X*\d]{4})*",
    "masked card": r"\b\d{0,6}[X*]{2,}\d{2,4}\b",
    "foreign amount": r"\(?\b(?:AUD|USD|EUR|GBP|NZD) ?\d[\d,]*\.\d{2}\b\)?",
    "rail": r"^(?:EFTPOS|POS|VISA DEBIT|DEBIT CARD|VISA|RETAIL)(?: (?:PURCHASE|PAYMENT|DEBIT))?\b[ :-]*",
    "purchase prefix": r"^[VW]\d{3,4} \d{2}/\d{2} ",
    "direct entry": r"^(?:DIRECT (?:CREDIT|DEBIT)|INTER ?BANK CREDIT)(?: \d{6})?\b[ :-]*",
    "automatic": r"^AUTOMATIC (?:DRAWING|DEBIT|CREDIT)(?: \d{6})?\b[ :-]*",
    "banking channel": r"^(?:ANZ )?(?:INTERNET BANKING|M-BANKING|MOBILE BANKING|ONLINE)\b[ :-]*",
    "banking payment": r"^(?:PAYMENT|FUNDS TFER)(?: \d{5,})? (?:TO|FROM)\b",
    "day": r"\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b,?",
    "clock": r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?\b",
    "braces": r"\{[^}]*\}",
    "receipt": r"\b(?:RECEIPT|REF(?:ERENCE)?|TRACE|AUTH)(?: ?NO\.?)?[ :#]*[A-Z]*\d[\dA-Z-]*\b",
    "long number": r"\b(?:[A-Z]{0,4}\d[\dA-Z-]*\d{4,}[\dA-Z]*|\d{5,})\b",
    "country": r"\b(?:NSW|VIC|QLD|SA|WA|TAS|NT|ACT)? ?AUS?\b$",
    "left over": r"(?:^| )[-,:;\\/#*]+(?: |$)",
}
_TEXT, _CLEAN = "matched_text", "clean_text"


def clean_descriptions(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `clean_description`; where nothing but noise was written, the whole text stays."""
    text = matching_text(pl.col("description"))
    distinct = rows.select(text.alias(_TEXT)).unique().with_columns(_cleaned().alias(_CLEAN))
    return (
        rows.drop("clean_description", strict=False)
        .with_columns(text.alias(_TEXT))
        .join(distinct, on=_TEXT, how="left", validate="m:1", maintain_order="left")
        .rename({_CLEAN: "clean_description"})
        .drop(_TEXT)
    )


def _cleaned() -> pl.Expr:
    text = pl.col(_TEXT)
    for pattern in NOISE.values():
        text = text.str.replace_all(pattern, " ").str.replace_all(" {2,}", " ").str.strip_chars(" -,:")
    return pl.when(text.str.len_chars() > 1).then(text).otherwise(pl.col(_TEXT))
