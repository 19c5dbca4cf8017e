"""What evidence to expect of the customers of a file, decided once from all of them.

No customer can change what is expected of it, because it is one of many. A client with a server states it instead.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.risk_models.coverage import is_covered
from pipelines.scorecards.expected import Expected

# Whatever half of the file lacks was not asked for; our judgement, like the next.
LEAST_SHARE = 0.5
LEAST_DAYS = 180


def decide_expected(facts: Facts) -> Expected:
    """Expect what at least half of the rows (in words also half of the money) or half of the customers have.

    Accounts are expected where words are, because only words mention them.
    """
    size = pl.col("amount").abs().cast(pl.Float64)
    words, money, balances = facts.rows.select(
        is_covered().mean(),
        money=size.filter(is_covered()).sum() / size.sum(),
        balances=pl.col("balance").is_not_null().mean(),
    ).row(0)
    span = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1
    long = facts.history.select((span >= LEAST_DAYS).mean()).item()
    has_words = min(words or 0, money or 0) >= LEAST_SHARE
    return Expected(
        words=has_words, balances=(balances or 0) >= LEAST_SHARE, accounts=has_words, months=(long or 0) >= LEAST_SHARE
    )
