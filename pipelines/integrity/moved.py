"""Detect receipts that seem to have been moved to an earlier day.

Whoever moves a receipt can correct all balances, but three things may still show its true day: the day that the text
prints, the number of the invoice that it pays, and the weekly rhythm of a processor. Settlements are then missing on
the days that they left, and come on top of the usual ones on the days to which they were moved.

All credits are read, however small: one that can't change a balance still shows the rhythm, or the order of numbers.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import OLDEST
from pipelines.vocabulary.plans import collect

# All our judgement.
MIN_ROWS = 20  # fewer printed days, numbers or settlements show no habit
USUAL = 0.85  # least share of an account's printed days, or of a customer's invoice numbers, in which nothing is odd
DAYS_EARLY = 12  # a receipt is early if its text prints a date more than this many days after its posting date
# An invoice is compared with up to LOWER invoices that have the next lower numbers, and at least MIN_LOWER.
LOWER, MIN_LOWER = 10, 5
DAYS_AHEAD = 30  # it is ahead if half of them are paid more than this many days later
PAID_LATER = 0.8  # and at least this share of them are paid later
MAX_SPAN = 100  # and its number is at most this much higher than theirs
PAID_LATELY = 100  # and half of them were not yet paid this many days before the last row
DAYS_BEHIND = 120  # it is behind if it is paid more than this many days after half of them
MIN_AHEAD = 2  # different numbers ahead: a single one may be mistyped
LAST_WEEKS = 6  # in which settlements are missing
MIN_WEEKS = 12  # of a processor before these weeks: fewer show no rhythm
MIN_MOVED = 4  # least number of missing settlements, and of surplus ones before
MAX_SURPLUS = 0.25  # largest share of the earlier settlements; above it, the processor follows no weekly rhythm
MAX_RATIO = 4  # largest factor between the numbers of missing and of surplus settlements
USUAL_PAUSE = 0.95  # share of the pauses between settlements that are no longer than usual
ERRORS = 2  # least number of missing settlements, in standard errors
_RHYTHMIC = ("card_settlement", "platform_payout")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_DAYS = 30.4  # as if all months were equally long: the error is below two days
_DAY = rf"(?i)\b(\d{{1,2}}) ?(?:{'|'.join(_MONTHS)})(?:[^a-z]|$)"
_MONTH = rf"(?i)\b\d{{1,2}} ?({'|'.join(_MONTHS)})(?:[^a-z]|$)"
_INVOICE = r"(?i)\binv(?:oice)?(?: no)?[ .:#-]*0*(\d{3,6})\b"
_FOUND = (*BY_ACCOUNT, "date", "transaction_id", "size")
_STREAM = (*BY_ACCOUNT, "party")


def moved_receipts(facts: Facts) -> pl.DataFrame:
    """Return receipts that seem to have been moved: `customer_number, account_id, date, transaction_id, size`."""
    receipts, text = _receipts(facts), pl.col("description")
    detectors = {
        _before_printed_day: receipts.filter(text.str.contains(_DAY)),
        _ahead_of_invoices: receipts.filter(text.str.contains("(?i)inv")),
        _surplus_settlements: receipts.filter(pl.col("category").is_in(_RHYTHMIC)),
    }
    # Counted here, because most customers have few such rows, and a query takes time even on an empty frame.
    found = [detect(rows) for detect, rows in detectors.items() if rows.height >= MIN_ROWS]
    if not found:
        return receipts.select(_FOUND).clear()
    return pl.concat(found).unique("transaction_id", keep="first", maintain_order=True).pipe(collect)


def moved_receipt_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `moved_receipts`."""
    found = facts.cached(moved_receipts).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents="size")


def _receipts(facts: Facts) -> pl.DataFrame:
    """Return external credits (`_FOUND`, `description`, `age`, and `party`, the counterparty's group)."""
    size = pl.col("amount").to_physical().cast(pl.Int64)
    return (
        facts.rows.lazy()
        .filter(pl.col("amount") > 0, pl.col("is_external"), pl.col("age") < OLDEST)
        .select(*_FOUND[:-1], "description", "category", "age", party="counterparty_group", size=size)
        .pipe(collect)
    )


def _before_printed_day(receipts: pl.DataFrame) -> pl.LazyFrame:
    """Return receipts posted long before the date that they print, if the account's other receipts are not.

    A bank that prints the day of a payment may post it late, but not early. Dates after the last row are the payer's
    own, such as the day of a job.
    """
    text, months = pl.col("description"), {name: nth for nth, name in enumerate(_MONTHS)}
    month = text.str.extract(_MONTH).str.to_lowercase().replace_strict(months, return_dtype=pl.Int32)
    printed = month * _MONTH_DAYS + text.str.extract(_DAY).cast(pl.Int32)
    posted = (pl.col("date").dt.month() - 1) * _MONTH_DAYS + pl.col("date").dt.day()
    # Texts rarely print the year: the date is taken to be within half a year of the posting date.
    days_early = (printed - posted) % (12 * _MONTH_DAYS)
    is_early = (days_early > DAYS_EARLY) & (days_early <= pl.min_horizontal(pl.col("age") + 2, 6 * _MONTH_DAYS))
    return (
        receipts.lazy()
        .filter(pl.len().over(BY_ACCOUNT) >= MIN_ROWS)
        .with_columns(is_early=is_early)
        .filter(1 - pl.col("is_early").mean().over(BY_ACCOUNT) >= USUAL)
        .filter(pl.col("is_early"))
        .select(_FOUND)
    )


def _ahead_of_invoices(receipts: pl.DataFrame) -> pl.LazyFrame:
    """Return receipts for invoices that can't have been issued yet.

    A business numbers its invoices in order, so those of lower numbers were issued before. Some of them may be paid
    later, but hardly ever most of them, and half of them DAYS_AHEAD later. Only the latest numbers count, because only
    recent receipts are moved. Payers also mistype and make up numbers: if as many are behind as ahead, they show no
    order. Higher numbers are not compared: if the last weeks' receipts are moved, theirs may be moved, too.
    """
    day, number = pl.col("date").dt.epoch("d"), pl.col("number")
    lower = {"window_size": LOWER, "min_samples": MIN_LOWER}
    half_paid_by = day.shift().rolling_median(**lower)
    most_paid_after = day.shift().rolling_quantile(1 - PAID_LATER, interpolation="nearest", **lower)
    span = number - number.shift().rolling_min(**lower)
    is_recent = half_paid_by >= day + pl.col("age") - PAID_LATELY
    is_behind = (day - half_paid_by > DAYS_BEHIND) & (span <= MAX_SPAN)
    is_ahead = is_recent & (half_paid_by - day > DAYS_AHEAD) & (most_paid_after > day) & (span <= MAX_SPAN)
    return (
        receipts.lazy()
        .with_columns(number=pl.col("description").str.extract(_INVOICE).cast(pl.Int64))
        .drop_nulls("number")
        .filter(pl.len().over(BY_CUSTOMER) >= MIN_ROWS)
        .sort(BY_CUSTOMER, "number", "date", "transaction_id")
        .with_columns(
            ahead=is_ahead.over(BY_CUSTOMER).fill_null(value=False),
            behind=is_behind.over(BY_CUSTOMER).fill_null(value=False),
        )
        .filter(
            pl.col("behind").sum().over(BY_CUSTOMER) < pl.col("ahead").sum().over(BY_CUSTOMER),
            pl.col("number").filter("ahead").n_unique().over(BY_CUSTOMER) >= MIN_AHEAD,
            1 - pl.col("ahead").mean().over(BY_CUSTOMER) >= USUAL,
        )
        .filter(pl.col("ahead"))
        .select(_FOUND)
    )


def _surplus_settlements(receipts: pl.DataFrame) -> pl.LazyFrame:
    """Return earlier settlements on top of a weekday's usual number, if the account's last weeks lack about as many.

    A business that closes or loses trade lacks settlements, too, but had no surplus before.
    """
    settled = receipts.lazy().filter(pl.len().over(_STREAM) >= MIN_ROWS)
    days = _settlement_days(settled).pipe(collect).lazy()
    is_early, count, weeks = pl.col("age") >= 7 * LAST_WEEKS, pl.col("count"), pl.col("weeks")
    deviation = count * count / weeks - count * pl.col("of_weekday") / (weeks * weeks)
    rate = pl.col("earlier") / weeks
    # A pause longer than nearly all earlier ones is a closure, which explains why settlements are missing.
    longest = pl.max_horizontal(pl.col("pause").filter(~is_early).max(), pl.col("age").min() + 1)
    closed = (longest - pl.col("pause").filter(is_early).quantile(USUAL_PAUSE)).clip(0) / 7
    streams = (
        days.group_by(_STREAM, maintain_order=True)
        .agg(
            weeks.first(),
            earlier=count.filter(is_early).sum(),
            recent=count.filter(~is_early).sum(),
            surplus=pl.col("surplus").sum(),
            variance=deviation.filter(is_early).sum() * LAST_WEEKS,
            closed=closed,
        )
        .filter(weeks >= MIN_WEEKS, pl.col("surplus") <= MAX_SURPLUS * pl.col("earlier"))
        .with_columns(missing=rate * (LAST_WEEKS - pl.col("closed")) - pl.col("recent"))
    )
    missing, surplus = pl.col("missing"), pl.col("surplus")
    accounts = (
        streams.group_by(BY_ACCOUNT, maintain_order=True)
        .agg(missing.sum(), surplus.sum(), pl.col("variance").sum().clip(0))
        .filter(
            missing >= MIN_MOVED,
            missing >= ERRORS * pl.col("variance").sqrt(),
            surplus >= MIN_MOVED,
            surplus.is_between(missing / MAX_RATIO, missing * MAX_RATIO),
        )
    )
    return (
        settled.join(days.filter(surplus > 0), on=[*_STREAM, "date"], how="semi", nulls_equal=True)
        .join(streams, on=_STREAM, how="semi", nulls_equal=True)
        .join(accounts, on=BY_ACCOUNT, how="semi", maintain_order="left")
        .select(_FOUND)
    )


def _settlement_days(settled: pl.LazyFrame) -> pl.LazyFrame:
    """Return each processor's days with settlements, by `_STREAM` and day.

    Columns: `date`; `age`; `count`, the settlements of the day; `weeks` of the processor before the last LAST_WEEKS; in
    those, `of_weekday`, the settlements of all such weekdays, and `surplus`, how many of the day's exceed the weekday's
    usual number (0 in the last weeks); `pause`, the days since the day before (in the last weeks: since they began).
    """
    count, age = pl.col("count"), pl.col("age")
    is_early = age >= 7 * LAST_WEEKS
    alike = (*_STREAM, pl.col("date").dt.weekday(), is_early)
    is_usual = pl.len().over(alike) * 2 >= pl.col("weeks")
    before = age.shift().over(_STREAM)
    usual = pl.when(is_usual).then(count.median().over(alike).floor()).otherwise(0)
    return (
        settled.group_by(*_STREAM, "date", "age")
        .agg(count=pl.len().cast(pl.Int64))
        .sort(*_STREAM, "date")
        .with_columns(
            weeks=(age.max().over(_STREAM) + 1 - 7 * LAST_WEEKS) / 7,
            pause=pl.when(is_early).then(before).otherwise(before.clip(upper_bound=7 * LAST_WEEKS)) - age,
        )
        .with_columns(
            of_weekday=count.sum().over(alike),
            surplus=pl.when(is_early).then((count - usual).clip(0)).otherwise(0),
        )
    )
