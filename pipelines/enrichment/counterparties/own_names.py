"""Payments that bear the customer's own name: from or to an account of its own, maybe one that nobody supplied.

Money that a business sends itself from another bank reads like a customer's payment. Taken for revenue it would flatter
every report, so where nothing else is sure, one's own name on the other side makes it a transfer between own accounts.
Banks cut names to the width of a field.

The other side is the customer where its name was told as the counterparty's. Cut, or made of words that mean something
else, it may have been told wrongly (`EASTERN ICE CREA TRANSFER`); so also where the text is that name, with at most a
word for a transfer behind it. A customer's name behind somebody else's is what that payer wrote of the payment.
"""

from functools import reduce

import polars as pl

from pipelines.enrichment.counterparties.categories import SURE
from pipelines.enrichment.names.name_groups import business_group, slug
from pipelines.enrichment.names.related import FIELD_WIDTHS
from pipelines.vocabulary.schemas import CategorySource, CounterpartyKind
from pipelines.vocabulary.taxonomy import TRANSFER

CONFIDENCE = 0.85
BASIS = "the customer's own name"
_PREFIXES = ("FROM ", "TO ", "IN · ", "OUT · ")
_SUFFIXES = ("", *(f"{gap}{word}" for gap in (" ", " - ") for word in ("TRANSFER", "TFR", "FUNDS", "OWN ACCOUNT")))
_NAME_FROM = 5  # characters: a shorter name is a word
_UNEXPLAINED = ("customer_transfer", "unknown_credit", "unknown_debit")  # say of a payment only that it is one


def mark_own_names(rows: pl.LazyFrame, customers: pl.DataFrame) -> pl.LazyFrame:
    """Where the counterparty is the customer itself: its kind, and the category where that was unsure.

    Args:
        rows: with the counterparty's columns, the category's, and `clean_description`.
        customers: schema `knowledge.CUSTOMERS`.
    """
    found = (
        rows.with_columns(alone=_unexplained_text())
        .pipe(_join_marks, _own_groups(customers), "counterparty_group")
        .pipe(_join_marks, _own_texts(customers), "alone")
    )
    by_text = pl.col("is_text").is_not_null()
    itself = by_text | pl.col("is_group").is_not_null()
    # The model knows nobody's name: where the text is nothing else, what it says is no surer.
    guessed = (pl.col("confidence") < SURE) | (by_text & (pl.col("category_source") == "learned"))
    unsure = itself & pl.col("category").is_in(_UNEXPLAINED) & guessed
    return found.with_columns(
        counterparty_kind=pl.when(itself).then(pl.lit("own", CounterpartyKind)).otherwise("counterparty_kind"),
        category=pl.when(unsure).then(pl.lit(TRANSFER.slug)).otherwise("category"),
        category_group=pl.when(unsure).then(pl.lit(TRANSFER.group)).otherwise("category_group"),
        category_source=pl.when(unsure).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
        category_basis=pl.when(unsure).then(pl.lit(BASIS)).otherwise("category_basis"),
        confidence=pl.when(unsure).then(pl.lit(CONFIDENCE)).otherwise("confidence"),
    ).drop("alone", "is_group", "is_text")


def _unexplained_text() -> pl.Expr:
    """What a text says from whom or to whom it is, where it isn't known what for."""
    text: pl.Expr = pl.when(pl.col("category").is_in(_UNEXPLAINED)).then("clean_description")
    return reduce(lambda left, word: left.str.strip_prefix(word), _PREFIXES, text)


def _join_marks(rows: pl.LazyFrame, own: pl.DataFrame, key: str) -> pl.LazyFrame:
    return rows.join(own.lazy(), on=["customer_number", key], how="left", maintain_order="left")


def _own_groups(customers: pl.DataFrame) -> pl.DataFrame:
    """The groups of counterparties that are the customer: `customer_number`, `counterparty_group`, `is_group`."""
    name = pl.col("name")
    groups = pl.concat_list(slug(name), business_group(name), *(slug(name.str.head(width)) for width in FIELD_WIDTHS))
    return _explode_marked(
        customers.select("customer_number", counterparty_group=groups), "counterparty_group", "is_group"
    )


def _own_texts(customers: pl.DataFrame) -> pl.DataFrame:
    """Texts that are the customer's name and a word for a transfer at most: `customer_number`, `alone`, `is_text`."""
    name = pl.col("name").str.to_uppercase().str.strip_chars()
    cuts = pl.concat_list(name, *(name.str.head(width).str.strip_chars_end() for width in FIELD_WIDTHS))
    names = customers.filter(name.str.len_chars() >= _NAME_FROM).select("customer_number", name=cuts).explode("name")
    texts = names.select("customer_number", alone=pl.concat_list(pl.col("name") + end for end in _SUFFIXES))
    return _explode_marked(texts, "alone", "is_text")


def _explode_marked(of_customers: pl.DataFrame, key: str, mark: str) -> pl.DataFrame:
    """One row for each of the keys that are listed."""
    return of_customers.explode(key).drop_nulls().unique().with_columns(pl.lit(value=True).alias(mark))
