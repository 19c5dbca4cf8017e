"""Decide from all customers of a file which evidence to expect of each of them.

One customer among many can't change what is expected of all. On a server, the client states it instead.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.negligible import is_negligible
from pipelines.risk_models.coverage import is_covered
from pipelines.scorecards.expected import Expected

# Evidence that more than half of the file lacks was probably not asked for; our judgement, like the next two.
MIN_SHARE = 0.5
# With less, the usual customer could not be rated B for want of words (`reports.risk`). They are in another language or
# too short, and how many of them are recognised by chance says nothing about a customer.
MIN_WORDS = 0.75
MIN_DAYS = 180
MIN_BALANCES = 2  # a single one may be a closing balance


def decide_expected_evidence(facts: Facts) -> Expected:
    """Expect words if MIN_WORDS of all rows and, in the usual month, of the money are categorised; balances if half of
    the rows are of accounts that state MIN_BALANCES.

    Accounts are expected if words are, because only words mention them. Months are expected if half of the customers
    have MIN_DAYS of history. Rows that move next to no money don't count, and one large row decides one month only, so
    neither can be added to make evidence unexpected. Nor can balances be left out on bad days.
    """
    size = pl.col("amount").abs().cast(pl.Float64)
    rows = facts.rows.filter(~is_negligible(["customer_number"]))
    months = rows.group_by("customer_number", pl.col("date").dt.truncate("1mo")).agg(
        money=size.filter(is_covered()).sum() / size.sum()
    )
    stated = pl.col("balance").is_not_null().sum().over("customer_number", "account_id")
    words, balances = rows.select(words=is_covered().mean(), balances=(stated >= MIN_BALANCES).mean()).row(0)
    money = months.select(pl.col("money").median()).item()
    span = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1
    long = facts.history.select((span >= MIN_DAYS).mean()).item()
    has_words = min(words or 0, money or 0) >= MIN_WORDS
    return Expected(
        words=has_words, balances=(balances or 0) >= MIN_SHARE, accounts=has_words, months=(long or 0) >= MIN_SHARE
    )
