"""Decide from all customers of a file which evidence to expect of each of them.

One customer among many can't change what is expected of all. On a server, the client states it instead.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.risk_models.coverage import is_covered
from pipelines.scorecards.expected import Expected

# Evidence that more than half of the file lacks was probably not asked for; our judgement, like the next two.
MIN_SHARE = 0.5
# With less, the usual customer could not be rated B for want of words (`reports.risk`). They are in another language or
# too short, and how many of them are recognised by chance says nothing about a customer.
MIN_WORDS = 0.75
MIN_DAYS = 180


def decide_expected_evidence(facts: Facts) -> Expected:
    """Expect words if MIN_WORDS of all rows and of the money are categorised, balances if half of the rows have one.

    Accounts are expected if words are, because only words mention them. Months are expected if half of the customers
    have MIN_DAYS of history.
    """
    size = pl.col("amount").abs().cast(pl.Float64)
    words, money, balances = facts.rows.select(
        is_covered().mean(),
        money=size.filter(is_covered()).sum() / size.sum(),
        balances=pl.col("balance").is_not_null().mean(),
    ).row(0)
    span = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1
    long = facts.history.select((span >= MIN_DAYS).mean()).item()
    has_words = min(words or 0, money or 0) >= MIN_WORDS
    return Expected(
        words=has_words, balances=(balances or 0) >= MIN_SHARE, accounts=has_words, months=(long or 0) >= MIN_SHARE
    )
