"""Decide a file's rows by rules, lists and a model, without a server."""

import polars as pl

from pipelines.enrichment.counterparties.categories import ask_model
from pipelines.enrichment.learned.model import Model
from pipelines.vocabulary.schemas import CategorySource
from pipelines.vocabulary.taxonomy import TAXONOMY


def has_taxonomy_labels(model: Model) -> bool:
    """Return whether all of the model's labels are categories: only then may it decide on a client's transactions."""
    return set(model.labels) <= TAXONOMY.categories.keys()


def decide(rows: pl.DataFrame, model: Model) -> pl.DataFrame:
    """Return each row's category, its confidence, its source and the alternatives.

    A model whose labels are not the taxonomy's decides alone, because rules and lists give only the taxonomy's.

    Args:
        rows: of `labelled.prepare`.
    """
    if has_taxonomy_labels(model):
        concluded = ask_model(rows, model)
    else:
        source = pl.lit("learned", CategorySource)
        concluded = rows.with_columns(model.predict(rows)).with_columns(category_source=source)
    return concluded.select(
        "date",
        "description",
        "amount",
        "category",
        confidence=pl.col("confidence").round(3),
        source=pl.col("category_source").cast(pl.String),
        counterparty="counterparty_name",
        alternatives="alternatives",
    )
