"""What the model that comes with Tidemark learns from: the synthetic portfolio, and narratives labelled by hand."""

from datetime import date

import polars as pl

from pipelines.enrichment.learned.features import plain_text
from pipelines.enrichment.training.labelled import prepared
from pipelines.synthetic import portfolio

MONTHS, SEED, UNTIL = 12, 29, date(2025, 6, 30)
MOST_ALIKE = 3  # rows of one narrative, numbers aside: the next hundred teach nothing
MOST_ROWS = 30_000
BY_HAND = 4.0  # what a row labelled by hand counts against one of the portfolio, which is worded by templates


def portfolio_rows(customers: int) -> pl.DataFrame:
    """Labelled rows of the synthetic portfolio of so many businesses, ready for training. The same each time.

    Brands and banks that are held out stay out, so that quality can be measured on them.
    """
    accounts = (
        account for business in portfolio(customers, MONTHS, SEED, UNTIL, part="train") for account in business.accounts
    )
    every = pl.concat(account.transactions.select("date", "description", "amount", "category") for account in accounts)
    few = every.with_row_index("row").with_columns(alike=plain_text(pl.col("description")), out=pl.col("amount") < 0)
    chosen = few.filter(pl.int_range(pl.len()).over("alike", "out", "category", order_by="row") < MOST_ALIKE)
    sampled = chosen.sample(min(MOST_ROWS, chosen.height), seed=SEED).sort("row")
    return prepared(sampled.select("date", "description", "amount", label="category")).with_columns(weight=pl.lit(1.0))


def with_labelled_by_hand(rows: pl.DataFrame, labelled: pl.DataFrame) -> pl.DataFrame:
    """Both, those by hand counting more. What only the one has, such as context columns, is left out."""
    by_hand = labelled.with_columns(weight=pl.lit(BY_HAND))
    return pl.concat([rows, by_hand.select(rows.columns)])
