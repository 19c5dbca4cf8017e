"""Which way a payment took, as far as its text says."""

from collections.abc import Sequence

import polars as pl

from pipelines.enrich.text import matching_text
from pipelines.schemas import Channel

# The first pattern that is found decides. Upper case, as in `matching_text`.
PATTERNS: Sequence[tuple[str, str]] = (
    ("bpay", r"\bBPAY\b"),
    ("atm", r"\bATM\b"),
    ("cash", r"\bCASH (?:DEPOSIT|WITHDRAWAL|DEP|WDL)\b|\bOVER THE COUNTER\b"),
    ("cheque", r"\bCHE?Q(?:UE)?\b"),
    ("npp", r"\bOSKO\b|\bPAYID\b|\bPAYTO\b|\bNPP\b|\bFAST (?:PAYMENT|TRANSFER)\b"),
    ("international", r"\bINTERNATIONAL\b|\bSWIFT\b|\bFOREIGN (?:CURRENCY|EXCHANGE)\b|\bTELEGRAPHIC\b|\bOVERSEAS\b"),
    ("fee", r"\bFEES?\b|\bACCOUNT KEEPING\b"),
    ("interest", r"\bINTEREST (?:CHARGED|PAID|CREDITED|EARNED|CHARGE)\b|\b(?:CREDIT|DEBIT|LOAN) INTEREST\b"),
    ("eftpos", r"\bEFTPOS\b"),
    ("card", r"\bCARD\b|\bVISA\b|\bMASTERCARD\b|\bAMEX\b|^[VW]\d{4} \d\d/\d\d |\b(?:RETAIL|POS) PURCHASE\b"),
    ("direct_debit", r"\bDIRECT DEBIT\b|\bEZIDEBIT\b|\bAUTOMATIC DRAWING\b|\bDDR?\b"),
    ("direct_credit", r"\bDIRECT CREDIT\b|\bINTER ?BANK CREDIT\b|\bPAYROLL CREDIT\b|\bDEP(?:OSIT)?\b"),
    ("transfer", r"\bT(?:RANS)?FE?R\b|\bTRANSFER\b|\bPAYMENT (?:TO|FROM)\b|\bPYMT\b|^(?:TO|FROM) "),
)


def channels(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `channel`; `other` where the text does not say."""
    text = matching_text(pl.col("description"))
    found = pl.coalesce(
        *(pl.when(text.str.contains(pattern)).then(pl.lit(channel)) for channel, pattern in PATTERNS), pl.lit("other")
    )
    return rows.with_columns(channel=found.cast(Channel))
