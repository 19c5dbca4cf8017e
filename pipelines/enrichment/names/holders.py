"""The name of an account's holder, which banks and clients put at the beginning of the account's name."""

from functools import cache

import polars as pl

from pipelines.enrichment.wording.text import matching_text

_ACCOUNT_WORDS = (  # words that banks and clients add after the holder's name
    *(
        "BUSINESS",
        "TRANSACTION",
        "EVERYDAY",
        "ONLINE",
        "SAVER",
        "SAVINGS?",
        "CREDIT",
        "DEBIT",
        "CARD",
        "CHEQUE",
        "LOAN",
    ),
    *(
        "TERM",
        "DEPOSIT",
        "CASH",
        "RESERVE",
        "TAX",
        "GST",
        "PAYROLL",
        "WAGES",
        "TRADING",
        "OPERATING",
        "WORKING",
        "MAIN",
    ),
    *("OFFSET", "BONUS", "VISA", "MASTERCARD", "PTY", "LTD", "LIMITED", "P/L", "ACC?", "ACCT", "ACCOUNT"),
)


@cache
def holder_name() -> pl.Expr:
    """Return `account_name` as `matching_text`, without account words; empty if it has no others."""
    behind = r"(?:(?:^|[ -]+)(?:" + "|".join(_ACCOUNT_WORDS) + r"))+$"
    return matching_text(pl.col("account_name")).str.replace(behind, "")
