"""Lists derived from all of a customer's transactions: recurring series, credit facilities, mentioned accounts.

They are not stored but computed from the current transactions for each request, so they are never stale. A long history
takes seconds and several times its own size in memory, so `ConcurrencyLimit` limits how much is computed at once.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from threading import Lock

import polars as pl

from api.core.limits import Requester, Shares
from pipelines.enrichment.facilities import summarise_facilities
from pipelines.enrichment.recurrence import describe_series
from pipelines.enrichment.transfers.own_accounts import list_mentioned_accounts
from pipelines.figures.json_text import json_objects
from pipelines.vocabulary.errors import Unavailable
from pipelines.vocabulary.report_values import RATIO_SCALE, uuid_text
from storage.core.paging import Page

MAX_BYTES = 3 * 2**30  # in a process at once: enough for the largest customer and a few usual ones (our judgement)
# Peak memory for each row of a customer, as measured by tests/api/intake/test_measured_bytes.py:
BYTES_PER_ROW = 3_300  # computing metrics, reports and derived lists
BYTES_PER_ROW_OF_DIFF = 6_500  # comparing the reports of two versions
BYTES_PER_LISTED_ROW = 3_500  # listing rows as JSON; only rows in memory at the same time count
SLICE_ITEMS = 5_000  # items of a list that are sent in one piece
_IN_EVERY_LIST = ("customer_number", "account_id", "date", "amount", "superseded_seq")


@dataclass(frozen=True)
class Derived:
    """A list derived from transactions.

    Args:
        columns: the columns of transactions that it is computed from.
        compute: takes one customer's posted rows with these columns, and today's date; returns the items.
        shown: an item's public fields.
    """

    name: str
    columns: tuple[str, ...]
    compute: Callable[[pl.DataFrame, date], pl.DataFrame]
    shown: tuple[pl.Expr, ...]

    def as_json(self, items: pl.DataFrame, page: Page | None) -> Iterator[bytes]:
        """Yield the items of the page, or all, as JSON objects joined by commas, slice by slice."""
        selected = items if page is None else items.slice(page.offset, page.count)
        for part in selected.iter_slices(SLICE_ITEMS):
            yield ",".join(json_objects(part.select(self.shown))).encode()


class ConcurrencyLimit:
    """A limit on something used at once, such as bytes of memory, shared fairly by clients and keys.

    A request that doesn't fit is refused, not queued, so that a few large customers can't occupy all threads. A request
    that is larger than the limit is admitted when nothing else is running.
    """

    def __init__(self, most: int) -> None:
        self._shares = Shares(most)
        self._lock = Lock()

    @contextmanager
    def reserve(self, requester: Requester, amount: int) -> Iterator[None]:
        """Reserve the amount for the length of the block.

        Raises:
            Unavailable: it would exceed the requester's share or the whole limit.
        """
        with self._lock:
            if not (self._shares.fits(requester, amount) or self._shares.is_untaken):
                raise Unavailable("Service.Busy", "The service is busy. Try again.")
            self._shares.take(requester, amount)
        try:
            yield
        finally:
            with self._lock:
                self._shares.take(requester, -amount)


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
        *(*_IN_EVERY_LIST, "status", "received_seq", "position", "bsb", "direction"),
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
        *(*_IN_EVERY_LIST, "status", "transaction_id", "facility_id", "category", "category_group", "is_transfer"),
        *("counterparty_name", "counterparty_lender_id", "counterparty_group", "related_party", "other_account"),
        *("category_source", "confidence", "description"),
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
        pl.col("remaining_low").alias("remainingLow"),
        pl.col("remaining_high").alias("remainingHigh"),
        pl.col("next_expected").alias("nextExpectedDate"),
        pl.col("stacked_with").alias("stackedWith"),
        pl.col("possibly_stacked_with").alias("possiblyStackedWith"),
        uuid_text("renewed_by").alias("renewedBy"),
    ),
)
MENTIONED_ACCOUNTS = Derived(
    "mentionedAccounts",
    (
        *(*_IN_EVERY_LIST, "bsb", "account_number", "other_account", "category", "category_source", "confidence"),
        *("is_transfer", "description", "clean_description", "counterparty_name", "counterparty_kind", "channel"),
    ),
    lambda rows, _: list_mentioned_accounts(rows),
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
