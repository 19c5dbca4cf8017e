"""Find recurring payments (wages, rent, loans, bills, settlements) and what is expected next.

    rows.pipe(mark_series)   # marks each row with its series
    describe_series(rows)    # one row per series (schema SERIES)

A series is between one account and one counterparty, in one direction. `schedules` computes due dates, `anchors` finds
the due dates that fit some payments best, `evidence` weighs which schedule they follow, `search` splits the payments of
one counterparty into series, and `description` describes each series.

Transactions are frames. The search works on arrays, for all candidates and all schedules at once: it takes thousands
of steps, and their number is the same for five hundred rows as for a million.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import polars as pl

from pipelines.enrichment.calendars import FIRST_DAY, LAST_DAY, look_up_calendar
from pipelines.enrichment.matching.identities import derive_ids
from pipelines.enrichment.recurrence.description import SERIES, describe, expect_next
from pipelines.enrichment.recurrence.evidence import YEARLY_LEAST_DAYS
from pipelines.enrichment.recurrence.search import find_members
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.schemas import UUID, SeriesPeriod, posted

__all__ = ["SERIES", "describe_series", "mark_series", "recurring_text"]

CHUNK_ROWS = 250_000  # customers are grouped up to about this many rows, to bound memory
CHUNKS_AT_ONCE = 2  # a single chunk leaves cores idle during look-ups and sums
_ACCOUNT = ("customer_number", "account_id")
_SENT = ("received_seq", "position")
_GROUP = (*_ACCOUNT, "direction", "counterparty_group", "text")
_TEXT = ("counterparty_group", "clean_description", "description")
_USED = ("row", "bsb", "direction", "date", "amount", "channel", *_SENT, *_ACCOUNT, *_TEXT)
_DESCRIBED = (*_USED, "category", "counterparty_name", "counterparty_kind")
_POSTED = (posted(), pl.col("amount") != 0, pl.col("date").is_between(FIRST_DAY, LAST_DAY))
_IN_PERSON = ("card", "eftpos", "atm", "cash")
_CASH_CHANNELS, _CASH = ("atm", "cash"), "CASH"
_PAYMENT_SPECIFIC = r"\S*\d\S*|\b(?:JAN|FEB|MAR|APR|MAY|JUNE?|JULY?|AUG|SEPT?|OCT|NOV|DEC)\b"
_FILLED = ("series_id", "series_period", "series_next_date")
_MARKS = pl.Schema(
    {"row": pl.UInt32(), "series_id": UUID, "series_period": SeriesPeriod, "series_next_date": pl.Date()}
)


def mark_series(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `series_id`, `series_period` and `series_next_date` of TRANSACTIONS.

    Rows that are pending, superseded or of amount 0 belong to no series. `series_next_date` is null once a series has
    ended. A series keeps its id when rows are appended, as long as its period does not change.
    """
    unmarked = rows.drop(_FILLED, strict=False)
    marks = pl.concat([pl.DataFrame(schema=_MARKS), *_map_customers(unmarked, _USED, _read_marks)])
    return add_by_row(unmarked, marks)


def describe_series(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per series (schema SERIES) of TRANSACTIONS, sorted by customer, account and id."""
    read = _map_customers(rows, _DESCRIBED, describe)
    return pl.concat([pl.DataFrame(schema=SERIES), *read]).sort("customer_number", "account_id", "series_id")


def _read_marks(payments: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    marks = series.select("series_number", "series_id", series_period="period", series_next_date="next_date")
    return (
        payments.select("row", "series_number").join(marks, on="series_number", validate="m:1").select(_MARKS.names())
    )


def _map_customers(
    rows: pl.DataFrame, facts: Sequence[str], read: Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]
) -> list[pl.DataFrame]:
    """Find series in chunks of customers, and collect what `read` returns for each chunk's payments and series.

    `facts` are the columns of the payments. Rows are usually sorted by customer, so each chunk scans only the rows from
    its customers' first to their last.
    """
    numbered = rows.with_row_index("row")

    def read_chunk(least: int, most: int, first: int, length: int) -> list[pl.DataFrame]:
        these = pl.col("customer_number").is_between(least, most)
        posted_rows = (
            numbered.slice(first, length).lazy().filter(these, *_POSTED).select(facts).collect(engine="in-memory")
        )
        payments = _find_payments(posted_rows)
        return [] if payments.is_empty() else [read(payments, _list_series(posted_rows, payments))]

    with ThreadPoolExecutor(CHUNKS_AT_ONCE) as workers:
        chunks = workers.map(read_chunk, *numbered.pipe(_split_into_chunks).get_columns())
        return [found for chunk in chunks for found in chunk]


def _split_into_chunks(numbered: pl.DataFrame) -> pl.DataFrame:
    """Return chunks of customers, numbered `least` to `most`, whose rows are among `length` rows from `first`."""
    customer, row = pl.col("customer_number"), pl.col("row")
    before = pl.col("rows").cum_sum() - pl.col("rows")
    return (
        numbered.group_by("customer_number")
        .agg(rows=pl.len(), first=row.min(), last=row.max())
        .sort("customer_number")
        .group_by(chunk=before // CHUNK_ROWS)
        .agg(least=customer.min(), most=customer.max(), first=pl.col("first").min(), last=pl.col("last").max())
        .sort("chunk")
        .select("least", "most", "first", length=pl.col("last") - pl.col("first") + 1)
    )


def _list_series(posted_rows: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """Return the series of the payments, with their ids and expectations."""
    data_through = posted_rows.group_by(_ACCOUNT).agg(through=pl.col("date").max())
    return expect_next(payments, data_through).pipe(_add_ids)


def _find_payments(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return the payments of all series: the columns of MEMBERS and of their transactions, with signed `cents`."""
    facts = posted_rows.select(
        pl.exclude("bsb", "description", "date", "amount"),
        text=recurring_text(posted_rows),
        calendar=_look_up_calendars(posted_rows),
        day="date",
        cents=pl.col("amount").to_physical().cast(pl.Int64),
    )
    found = facts.pipe(_group_payments).pipe(find_members)
    return pl.concat([facts[found["row"]], found.drop("row")], how="horizontal")


def recurring_text(rows: pl.DataFrame) -> pl.Series:
    """Return what stands for the counterparty where none is named: the words that recur, without numbers and months.

    All cash deposits count as one counterparty, whether at a machine or over the counter.
    """
    unnamed = rows["counterparty_group"].is_null().arg_true()
    words = rows.select("clean_description", "description", "channel", "amount")[unnamed].select(_recurring_words())
    return pl.repeat(None, rows.height, dtype=pl.String, eager=True).scatter(unnamed, words.to_series())


@cache
def _recurring_words() -> pl.Expr:
    text = pl.coalesce("clean_description", "description").str.to_uppercase()
    recurring = text.str.replace_all(_PAYMENT_SPECIFIC, "").str.replace_all(r"\s+", " ").str.strip_chars(" -,.:/")
    words = pl.when(recurring.str.len_bytes() > 0).then(recurring).otherwise(text)
    is_cash_deposit = pl.col("channel").is_in(_CASH_CHANNELS) & (pl.col("amount") > 0)
    return pl.when(is_cash_deposit).then(pl.lit(_CASH)).otherwise(words)


def _look_up_calendars(posted_rows: pl.DataFrame) -> pl.Series:
    """Return the calendar of each row's state. There are few BSBs, so each is looked up once."""
    states = posted_rows.select(pl.col("bsb").unique()).with_columns(calendar=look_up_calendar(pl.col("bsb")))
    return posted_rows.select("bsb").join(states, on="bsb", how="left", nulls_equal=True, maintain_order="left")[
        "calendar"
    ]


def _group_payments(facts: pl.DataFrame) -> pl.DataFrame:
    """Group payments by counterparty (schema PAYMENTS), and drop groups too small for a series.

    `row` is the row of `facts`.
    """
    span_days = (pl.col("day").max() - pl.col("day").min()).dt.total_days()
    groups = (
        facts.with_row_index("place")
        .group_by(_GROUP)
        .agg("place", span_days=span_days)
        .filter((pl.col("place").list.len() > 2) | (pl.col("span_days") >= YEARLY_LEAST_DAYS))
        .select("place", group=pl.int_range(pl.len(), dtype=pl.UInt32))
        .explode("place")
    )
    in_person = pl.col("channel").is_in(_IN_PERSON).fill_null(value=False) & (pl.col("direction") == "debit")
    known = facts.select(*_SENT, "day", "calendar", pl.col("cents").abs(), in_person=in_person)
    return known[groups["place"]].with_columns(row=groups["place"], group=groups["group"])


def _add_ids(series: pl.DataFrame) -> pl.DataFrame:
    """Add `series_id`, derived from account, counterparty, direction and period.

    Series that agree in all of these are numbered in the order of their first payments; the id is derived from the
    number, too.
    """
    starts = ("first_date", "first_cents", "series_number")
    names = series.select(
        pl.concat_str(
            "customer_number",
            "direction",
            pl.when(pl.col("text").is_null()).then(pl.lit("group")).otherwise(pl.lit("text")),
            pl.coalesce("text", "counterparty_group"),
            "period",
            pl.int_range(pl.len()).over(*_GROUP, "period", order_by=starts),
            separator="|",
        )
    ).to_series()
    return series.with_columns(series_id=derive_ids(series["account_id"], names))
