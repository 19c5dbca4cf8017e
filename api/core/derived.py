"""What follows from a customer's transactions together: recurring series, credit facilities, accounts mentioned.

Nothing of it is stored: it is computed from the transactions that stand when it is asked for, so it never lags behind
them. For a long history that takes seconds and several times its memory, so only so much is worked on at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from threading import Lock

import polars as pl

from api.core.limits import Asker, Shares
from pipelines.enrichment.facilities import summarise_facilities
from pipelines.enrichment.recurrence import describe_series
from pipelines.enrichment.transfers.own_accounts import mentioned_accounts
from pipelines.figures.json_text import json_objects
from pipelines.vocabulary.errors import Unavailable
from pipelines.vocabulary.printing import RATIO_SCALE, uuid_text
from storage.core.paging import Page

MOST_BYTES = 3 * 2**30  # worked on at a time in one process: the largest customer, and usual ones beside it
# What a row of a customer takes at most, by tests/api/intake/test_measured_bytes.py:
BYTES_A_ROW = 2_800  # of metrics, reports and what follows from them
BYTES_A_ROW_OF_DIFF = 5_200  # of two versions, and the reports of four
BYTES_A_LISTED_ROW = 3_500  # of those that are held at once, and of their JSON
SLICE_ITEMS = 5_000  # sent at once
_STANDING = ("customer_number", "account_id", "date", "amount", "superseded_seq")


@dataclass(frozen=True)
class Derived:
    """A list that follows from transactions: the columns it is computed from, how, and what is shown of its items.

    `compute` takes booked rows of one customer with `columns`, and the service's date.
    """

    name: str
    columns: tuple[str, ...]
    compute: Callable[[pl.DataFrame, date], pl.DataFrame]
    shown: tuple[pl.Expr, ...]

    def as_json(self, found: pl.DataFrame, page: Page | None) -> Iterator[bytes]:
        """The items of the page, or all, as JSON objects joined by commas, slice by slice."""
        asked = found if page is None else found.slice(page.offset, page.count)
        for some in asked.iter_slices(SLICE_ITEMS):
            yield ",".join(json_objects(some.select(self.shown))).encode()


class ConcurrencyLimit:
    """How much may be worked on at a time, such as bytes of memory; clients and keys share it. Who doesn't fit is
    refused, not queued, lest a few large customers hold all threads; one that would never fit is let in alone."""

    def __init__(self, most: int) -> None:
        self._shares = Shares(most)
        self._lock = Lock()

    @contextmanager
    def taken(self, asker: Asker, amount: int) -> Iterator[None]:
        """Hold so many until the end.

        Raises:
            Unavailable: too much is under way, by the asker or by all.
        """
        with self._lock:
            if not (self._shares.fits(asker, amount) or self._shares.untaken):
                raise Unavailable("Service.Busy", "The service is busy. Try again.")
            self._shares.take(asker, amount)
        try:
            yield
        finally:
            with self._lock:
                self._shares.take(asker, -amount)


def series_counterparty() -> pl.Expr:
    return pl.struct(
        pl.col("counterparty_name").alias("name"),
        pl.col("counterparty_kind").alias("kind"),
        pl.col("counterparty_group").alias("group"),
    )


def uuid_texts(column: str) -> pl.Expr:
    return pl.col(column).list.eval(uuid_text(""))  # an element has no name


def share(column: str) -> pl.Expr:
    return pl.col(column).round(RATIO_SCALE)


SERIES = Derived(
    "series",
    (
        *(*_STANDING, "status", "received_seq", "position", "bsb", "direction"),
        *("counterparty_name", "counterparty_kind", "counterparty_group"),
        *("description", "clean_description", "channel", "category"),
    ),
    lambda rows, _: describe_series(rows),
    (
        uuid_text("series_id").alias("seriesId"),
        uuid_text("account_id").alias("accountId"),
        pl.col("direction"),
        series_counterparty().alias("counterparty"),
        pl.col("description"),
        pl.col("category"),
        pl.col("period"),
        pl.col("anchor"),
        pl.col("status"),
        pl.col("first_date").alias("firstDate"),
        pl.col("last_date").alias("lastDate"),
        pl.col("occurrences"),
        pl.col("missed"),
        pl.col("missed_dates").alias("missedDates"),
        pl.col("doubled"),
        share("regularity"),
        pl.col("usual_amount").alias("usualAmount"),
        pl.col("latest_amount").alias("latestAmount"),
        pl.col("amount_changes").alias("amountChanges"),
        pl.col("next_date").alias("nextExpectedDate"),
        pl.col("next_amount").alias("nextExpectedAmount"),
    ),
)
FACILITIES = Derived(
    "facilities",
    (
        *(*_STANDING, "status", "transaction_id", "facility_id", "category", "category_group", "is_transfer"),
        *("counterparty_name", "counterparty_lender_id", "counterparty_group", "related_party", "other_account"),
    ),
    summarise_facilities,
    (
        uuid_text("facility_id").alias("facilityId"),
        pl.col("lender_name").alias("lenderName"),
        pl.col("lender_id").alias("lenderId"),
        pl.col("product"),
        uuid_texts("account_ids").alias("accountIds"),
        pl.col("status"),
        pl.col("funding_date").alias("fundingDate"),
        pl.col("funding_amount").alias("fundingAmount"),
        pl.col("frequency"),
        pl.col("repayment_count").alias("repaymentCount"),
        pl.col("repayment_mean").alias("repaymentMean"),
        pl.col("repayment_spread").round(2).alias("repaymentSpread"),
        pl.col("first_repayment").alias("firstRepaymentDate"),
        pl.col("last_repayment").alias("lastRepaymentDate"),
        pl.col("missed_payments").alias("missedPayments"),
        pl.col("missed_dates").alias("missedDates"),
        pl.col("repaid_total").alias("repaidTotal"),
        pl.col("inferred"),
        share("inferred_confidence").alias("inferredConfidence"),
        share("withheld_share").alias("withheldShare"),
        pl.col("withheld_estimate").alias("withheldEstimate"),
        pl.col("estimated_remaining").alias("estimatedRemaining"),
        share("remaining_confidence").alias("remainingConfidence"),
        pl.col("remaining_method").alias("remainingMethod"),
        pl.col("next_expected").alias("nextExpectedDate"),
        pl.col("stacked_with").alias("stackedWith"),
        uuid_text("renewed_by").alias("renewedBy"),
    ),
)
MENTIONED_ACCOUNTS = Derived(
    "mentionedAccounts",
    (
        *(*_STANDING, "bsb", "account_number", "other_account", "category", "category_source", "confidence"),
        *("is_transfer", "description", "clean_description", "counterparty_name", "counterparty_kind", "channel"),
    ),
    lambda rows, _: mentioned_accounts(rows),
    (
        ("xxxx" + pl.col("masked_number").str.strip_prefix("xx")).alias("accountNumberMasked"),
        pl.col("name"),
        pl.col("bank").alias("bankName"),
        pl.col("direction"),
        pl.col("count").alias("transactionCount"),
        pl.col("total_in").alias("totalIn"),
        pl.col("total_out").alias("totalOut"),
        pl.col("first_date").alias("firstDate"),
        pl.col("last_date").alias("lastDate"),
    ),
)
