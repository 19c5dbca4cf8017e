"""Write enriched transactions as JSON text: public names, nesting and masking in one select.

With dictionaries and an encoder it would take several times as long, and hold the GIL all that time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

import polars as pl

from pipelines.figures.json_text import json_objects
from pipelines.intake.accounts import mask_account_number
from pipelines.vocabulary.report_values import uuid_text
from storage.enrichment.transactions import Listing


def in_slices(listing: Listing, ids_of: Callable[[Iterable[int]], dict[int, UUID]]) -> Iterator[bytes]:
    """Yield the listing's rows as JSON objects joined by commas, slice by slice.

    `ids_of` returns the public ids of customers by their numbers.
    """
    for frame in listing.slices():
        ids = ids_of(frame["customer_number"].unique())
        yield as_json(frame, ids)


def as_json(frame: pl.DataFrame, customer_ids: dict[int, UUID], also: Sequence[pl.Expr] = ()) -> bytes:
    """Return rows of TRANSACTIONS as JSON objects joined by commas.

    Args:
        customer_ids: public ids by customer number.
        also: further fields of a row.
    """
    public = {number: str(customer_id) for number, customer_id in customer_ids.items()}
    named = frame.with_columns(pl.col("customer_number").replace_strict(public, default=None, return_dtype=pl.String))
    return ",".join(json_objects(named.select(*SHOWN, *also))).encode()


def account() -> pl.Expr:
    return pl.struct(
        uuid_text("account_id").alias("accountId"),
        pl.col("account_name").alias("accountName"),
        pl.col("bsb"),
        mask_account_number(pl.col("account_number")).alias("accountNumberMasked"),
        pl.col("bank_name").alias("bankName"),
        pl.col("account_type").alias("accountType"),
    )


def counterparty() -> pl.Expr:
    return pl.struct(
        pl.col("counterparty_name").alias("name"),
        pl.col("counterparty_kind").alias("kind"),
        pl.col("counterparty_lender_id").alias("lenderId"),
        pl.col("counterparty_abn").alias("abn"),
        pl.col("counterparty_group").alias("group"),
    )


def recurrence() -> pl.Expr:
    """Return the recurrence of a row; null if it belongs to no series."""
    shown = pl.struct(
        uuid_text("series_id").alias("seriesId"),
        pl.col("series_period").alias("period"),
        pl.col("series_next_date").alias("nextExpectedDate"),
    )
    return pl.when(pl.col("series_id").is_not_null()).then(shown)


SHOWN = (
    uuid_text("transaction_id").alias("transactionId"),
    pl.col("client_transaction_id").alias("clientTransactionId"),
    pl.col("customer_number").alias("customerId"),
    uuid_text("job_id").alias("jobId"),
    account().alias("account"),
    pl.col("date"),
    pl.col("description"),
    pl.col("clean_description").alias("cleanDescription"),
    pl.col("amount"),
    pl.lit("AUD").alias("currency"),
    pl.col("direction"),
    pl.col("balance"),
    pl.col("balance_verified").alias("balanceVerified"),
    pl.col("status"),
    pl.col("channel"),
    pl.col("reference"),
    pl.col("location"),
    pl.col("card_last_four").alias("cardLastFour"),
    pl.col("effective_date").alias("effectiveDate"),
    pl.col("foreign_amount").alias("foreignAmount"),
    pl.col("foreign_currency").alias("foreignCurrency"),
    ("xxxx" + pl.col("other_account")).alias("otherAccountMasked"),
    pl.col("category"),
    pl.col("category_group").alias("categoryGroup"),
    pl.col("confidence"),
    pl.col("category_source").alias("categorySource"),
    pl.col("category_basis").alias("categoryBasis"),
    pl.col("alternatives"),
    counterparty().alias("counterparty"),
    pl.col("intermediaries"),
    pl.col("related_party").alias("relatedParty"),
    pl.col("is_transfer").alias("isTransfer"),
    uuid_text("transfer_pair_id").alias("transferPairId"),
    recurrence().alias("recurrence"),
    uuid_text("facility_id").alias("facilityId"),
    pl.col("flags"),
    pl.col("revision"),
    pl.col("enrichment_version").alias("enrichmentVersion"),
)
