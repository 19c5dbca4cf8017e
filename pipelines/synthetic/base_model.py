"""Training data of the model that comes with Tidemark.

They are a synthetic portfolio, lines with listed names, and narratives labelled by hand. The model is trained by the
same code as a lender's own (`pipelines.enrichment.training`).
"""

from datetime import date

import polars as pl

from pipelines.enrichment.learned.features import plain_text
from pipelines.enrichment.training.labelled import Unfamiliar, prepare
from pipelines.synthetic import portfolio
from pipelines.synthetic.card_lines import card_lines, no_lists

WEIGHTS = 900_000  # about 3 MB, small enough to be distributed with the code
MONTHS, SEED, UNTIL = 12, 29, date(2025, 6, 30)
MAX_ALIKE = 3  # rows that differ only in numbers: more of them teach nothing
MAX_ROWS = 30_000
BY_HAND = 4.0  # weight of a row labelled by hand; other rows, whose narratives come from templates, have 1


def training_rows(customers: int, by_hand: pl.DataFrame | None) -> pl.DataFrame:
    """Return rows of a synthetic portfolio and of listed names, and those labelled by hand, which count more.

    Columns that only the rows labelled by hand have, such as context columns, are left out.
    """
    rows = pl.concat([portfolio_rows(customers), name_rows()]).drop("card_last_four")  # made-up cards teach nothing
    if by_hand is None:
        return rows
    return pl.concat([rows, by_hand.with_columns(weight=pl.lit(BY_HAND)).select(rows.columns)])


def unfamiliar_rows(rows: pl.DataFrame) -> Unfamiliar | None:
    """Return further rows to calibrate the model on: those labelled by hand, with the lists of names and without them.

    Their authors word payments as no template does. Without the lists, their names are as unknown as most on a ledger.

    Args:
        rows: from `training_rows`.
    """
    by_hand = pl.col("weight") == BY_HAND
    written = rows.filter(by_hand)
    if written.is_empty():
        return None
    bare = written.select("date", "description", "amount", "label", "weight")
    return Unfamiliar(rows.select(by_hand).to_series(), [written, prepare(bare, no_lists())])


def name_rows() -> pl.DataFrame:
    """Return lines with listed names, prepared without the lists, so that the model learns from the names' words."""
    return prepare(card_lines(held_out=False), no_lists()).with_columns(weight=pl.lit(1.0))


def portfolio_rows(customers: int) -> pl.DataFrame:
    """Return labelled rows of a synthetic portfolio, ready for training: the same each time.

    Brands and banks that are held out stay out, so that quality can be measured on them.
    """
    businesses = portfolio(customers, MONTHS, SEED, UNTIL, part="train")
    rows = pl.concat(account.transactions for business in businesses for account in business.accounts)
    marked = rows.with_row_index("row").with_columns(alike=plain_text(pl.col("description")), out=pl.col("amount") < 0)
    chosen = marked.filter(pl.int_range(pl.len()).over("alike", "out", "category", order_by="row") < MAX_ALIKE)
    sampled = chosen.sample(min(MAX_ROWS, chosen.height), seed=SEED).sort("row")
    rows = prepare(sampled.select("date", "description", "amount", label="category"))
    return rows.with_columns(weight=pl.lit(1.0))
