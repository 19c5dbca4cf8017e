"""Payments that bear the customer's own name: from or to an account of its own, maybe one that nobody supplied.

Money that a business sends itself from another bank reads like a customer's payment. Taken for revenue it would flatter
every report, so where nothing else is sure, one's own name on the other side makes it a transfer between own accounts.
Banks cut names to the width of a field.
"""

import polars as pl

from pipelines.enrich.categories import SURE
from pipelines.enrich.name_groups import business_group, slug
from pipelines.enrich.related import FIELD_WIDTHS
from pipelines.enrich.taxonomy import TRANSFER
from pipelines.schemas import CategorySource, CounterpartyKind

CONFIDENCE = 0.85
BASIS = "the customer's own name"
_OF_ANYBODY = ("customer_transfer", "unknown_credit", "unknown_debit")  # say of a payment only that it is one


def own_names(rows: pl.LazyFrame, customers: pl.DataFrame) -> pl.LazyFrame:
    """Where the counterparty is the customer itself: its kind, and the category where that was unsure.

    Args:
        rows: with the counterparty's columns and the category's.
        customers: schema `knowledge.CUSTOMERS`.
    """
    name = pl.col("name")
    cut = (slug(name.str.head(width)) for width in FIELD_WIDTHS)
    names = customers.select("customer_number", own=pl.concat_list(slug(name), business_group(name), *cut))
    groups = names.explode("own").drop_nulls().unique()
    own = groups.select("customer_number", counterparty_group="own", is_own=pl.lit(value=True))
    found = rows.join(own.lazy(), on=["customer_number", "counterparty_group"], how="left", maintain_order="left")
    itself = pl.col("is_own").is_not_null()
    unsure = itself & pl.col("category").is_in(_OF_ANYBODY) & (pl.col("confidence") < SURE)
    return found.with_columns(
        counterparty_kind=pl.when(itself).then(pl.lit("own", CounterpartyKind)).otherwise("counterparty_kind"),
        category=pl.when(unsure).then(pl.lit(TRANSFER.slug)).otherwise("category"),
        category_group=pl.when(unsure).then(pl.lit(TRANSFER.group)).otherwise("category_group"),
        category_source=pl.when(unsure).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
        category_basis=pl.when(unsure).then(pl.lit(BASIS)).otherwise("category_basis"),
        confidence=pl.when(unsure).then(pl.lit(CONFIDENCE)).otherwise("confidence"),
    ).drop("is_own")
