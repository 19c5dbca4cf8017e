"""Detect receipts that seem to have been moved to an earlier day.

Whoever moves a receipt can correct all balances, but three things may still show its true day: the day that the text
prints, the number of the invoice that it pays, and the gap that it leaves where a processor settles every day.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import OLDEST, candidates
from pipelines.vocabulary.plans import collect

# All our judgement.
MIN_ROWS = 20  # fewer printed days or numbers show no habit
USUAL = 0.9  # least share of an account's printed days, or of a customer's invoice numbers, that are as they should be
DAYS_APART = 12  # between the date that a text prints and the posting date
NEIGHBOURS = 11  # invoices, by number
DAYS_AHEAD = 60  # by which an invoice is paid before half of its neighbours
NEIGHBOURS_DAYS, NEIGHBOURS_APART = 45, 100  # most days and numbers between them
MIN_AHEAD = 3  # one or two may be numbers that their payers mistyped
LAST_DAYS = 45  # in which settlements are missing
SETTLES_DAILY = 0.85  # least share of earlier weekdays with a settlement
MIN_MOVED = 5  # weekdays without a settlement in LAST_DAYS, and earlier days with more than one
MAX_DOUBLED = 0.25  # share of the earlier days; from this share on, the processor settles more than once a day
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = rf"(?i)\b(\d{{1,2}}) ?(?:{'|'.join(_MONTHS)})(?:[^a-z]|$)"
_MONTH = rf"(?i)\b\d{{1,2}} ?({'|'.join(_MONTHS)})(?:[^a-z]|$)"
_INVOICE = r"(?i)\binv(?:oice)?[ .:#-]*0*(\d{3,6})\b"
_FOUND = (*BY_ACCOUNT, "date", "transaction_id", "size")


def moved_receipts(facts: Facts) -> pl.DataFrame:
    """Return receipts that seem to have been moved: `customer_number, account_id, date, transaction_id, size`."""
    found = pl.concat([_far_from_printed_day(facts), _ahead_of_invoices(facts), _doubled_settlements(facts)])
    return found.unique("transaction_id", keep="first", maintain_order=True).pipe(collect)


def receipts_moved(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `moved_receipts`."""
    found = facts.cached(moved_receipts).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")


def _far_from_printed_day(facts: Facts) -> pl.LazyFrame:
    """Return receipts that print a date far from their posting date, if the account's other receipts don't."""
    day = pl.col("description").str.extract(_DAY).cast(pl.Int32)
    month = pl.col("description").str.extract(_MONTH).str.to_lowercase()
    of_year = month.replace_strict({name: nth for nth, name in enumerate(_MONTHS, 1)}, return_dtype=pl.Int32)
    # Days of the year, as if all months were equally long: the error is below two days. Texts rarely print the year, so
    # the distance is measured around the turn of the year, too.
    printed = (of_year - 1) * 30.4 + day
    posted_on = (pl.col("date").dt.month() - 1) * 30.4 + pl.col("date").dt.day()
    apart = (printed - posted_on).abs()
    return (
        _receipts(facts)
        .with_columns(far=pl.min_horizontal(apart, 366 - apart) > DAYS_APART)
        .drop_nulls("far")
        .filter(pl.len().over(BY_ACCOUNT) >= MIN_ROWS, 1 - pl.col("far").mean().over(BY_ACCOUNT) >= USUAL)
        .filter("far")
        .select(_FOUND)
    )


def _ahead_of_invoices(facts: Facts) -> pl.LazyFrame:
    """Return receipts for invoices that can't have been issued yet.

    A business numbers its invoices in order, so invoices of neighbouring numbers are paid at about the same time. Many
    are paid late, but hardly any is paid DAYS_AHEAD before half of its neighbours. Numbers without close neighbours, or
    whose neighbours were paid months apart, show nothing: payers mistype, or print numbers of their own.
    """
    day, at_least = pl.col("date").dt.epoch("d"), NEIGHBOURS // 2 + 1
    usual = day.rolling_median(NEIGHBOURS, center=True, min_samples=at_least)
    late = day.rolling_quantile(0.9, window_size=NEIGHBOURS, center=True, min_samples=at_least)
    number = pl.col("number")
    apart = number.rolling_max(NEIGHBOURS, center=True, min_samples=at_least) - number.rolling_min(
        NEIGHBOURS, center=True, min_samples=at_least
    )
    is_ahead = (usual - day > DAYS_AHEAD) & (late - usual <= NEIGHBOURS_DAYS) & (apart <= NEIGHBOURS_APART)
    return (
        _receipts(facts)
        .with_columns(number=pl.col("description").str.extract(_INVOICE).cast(pl.Int64))
        .drop_nulls("number")
        .filter(pl.len().over(BY_CUSTOMER) >= MIN_ROWS)
        .sort(BY_CUSTOMER, "number", "date", "transaction_id")
        .with_columns(ahead=is_ahead.over(BY_CUSTOMER).fill_null(value=False))
        .filter(
            pl.col("ahead").sum().over(BY_CUSTOMER) >= MIN_AHEAD,
            1 - pl.col("ahead").mean().over(BY_CUSTOMER) >= USUAL,
        )
        .filter("ahead")
        .select(_FOUND)
    )


def _receipts(facts: Facts) -> pl.LazyFrame:
    return facts.cached(candidates).lazy().filter("is_receipt").select(*_FOUND, "description")


def _doubled_settlements(facts: Facts) -> pl.LazyFrame:
    """Return settlements of days with more than one, if the last weeks lack about as many.

    A processor that settled on nearly every weekday, once, doesn't skip days and double others weeks before.
    """
    stream = (*BY_ACCOUNT, "party")
    settled = (
        facts.rows.lazy()
        .filter(pl.col("category") == "card_settlement", pl.col("amount") > 0, pl.col("age") < OLDEST)
        .select(
            *(*BY_ACCOUNT, "date", "transaction_id", "age"),
            party="counterparty_group",
            size=pl.col("amount").to_physical().cast(pl.Int64),
        )
        .filter(pl.len().over(stream) >= LAST_DAYS)
        .with_columns(of_day=pl.len().over(*stream, "date"))
    )
    is_recent = pl.col("age") < LAST_DAYS
    days = settled.unique([*stream, "date"], keep="first", maintain_order=True)
    on_weekday = pl.col("date").dt.weekday() <= 5
    streams = (
        days.group_by(stream)
        .agg(
            oldest=pl.col("age").max(),
            earlier=(on_weekday & ~is_recent).sum(),
            recent=(on_weekday & is_recent).sum(),
            doubled=((pl.col("of_day") > 1) & ~is_recent).sum(),
        )
        .with_columns(
            share=pl.col("earlier") / ((pl.col("oldest") + 1 - LAST_DAYS) * 5 / 7),
            missing=pl.col("earlier") / (pl.col("oldest") + 1 - LAST_DAYS) * LAST_DAYS - pl.col("recent"),
        )
        .filter(
            pl.col("oldest") >= 3 * LAST_DAYS,
            pl.col("share") >= SETTLES_DAILY,
            pl.col("missing") >= MIN_MOVED,
            pl.col("recent") >= MIN_MOVED,
            pl.col("doubled").is_between(MIN_MOVED, MAX_DOUBLED * pl.col("earlier")),
            pl.col("doubled") * 2 >= pl.col("missing"),
        )
    )
    return (
        settled.filter(~is_recent, pl.col("of_day") > 1)
        .join(streams, on=stream, how="semi", nulls_equal=True, maintain_order="left")
        .select(_FOUND)
    )
