"""Describe a series: what it pays, which payments are missing, how its amount changed, and what is expected next.

Everything is as of the account's last day with posted rows, not as of today. A payment due after that day is not
missed. A series has ended when more due dates in a row than its schedule allows have passed without a payment.
"""

import polars as pl

from pipelines.enrichment.calendars import SETTLEMENT, Calendar, is_open, last_open, next_open
from pipelines.enrichment.recurrence.dates import LAST
from pipelines.enrichment.recurrence.schedules import SCHEDULES, find_nearest_due, list_due_dates
from pipelines.vocabulary.schemas import MONEY, UUID, CounterpartyKind, Direction, SeriesPeriod

AMOUNT_CHANGE = pl.Struct({"date": pl.Date(), "from": MONEY, "to": MONEY})
SeriesStatus = pl.Enum(("active", "ended"))
# A recurring series. Amounts keep the sign of their transactions: negative leaves the account.
SERIES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "account_id": UUID,
        "series_id": UUID,
        "direction": Direction,
        "counterparty_name": pl.String(),  # of its latest payment that names one
        "counterparty_group": pl.String(),
        "counterparty_kind": CounterpartyKind,
        "description": pl.String(),  # clean description of its latest payment
        "category": pl.String(),  # the most frequent
        "period": SeriesPeriod,
        "anchor": pl.String(),  # in words: "Tuesday", "day 15 of the month", "last business day of the month"
        "first_date": pl.Date(),
        "last_date": pl.Date(),
        "occurrences": pl.UInt32(),  # due dates paid
        "missed": pl.UInt32(),  # due dates not paid since the first payment, up to the last one if the series has ended
        "missed_dates": pl.List(pl.Date()),
        "doubled": pl.UInt32(),  # due dates paid more than once
        "usual_amount": MONEY,  # the lower median of their sizes
        "latest_amount": MONEY,
        "amount_changes": pl.List(AMOUNT_CHANGE),  # from one lasting amount to another
        "next_date": pl.Date(),  # null once it has ended
        "next_amount": MONEY,
        "regularity": pl.Float64(),  # 0–1: payments on time, as a share of due dates and doubles
        "status": SeriesStatus,
    }
)
RECENT = 5  # payments whose median is the expected next amount, if amounts vary (our judgement)
_SETTLED = ("direct_credit", "direct_debit", "bpay", "cheque")
_ROLLS = ("forward", "back", "stays")

# One value per schedule, in the order of SCHEDULES.
_PERIODS = pl.Series([schedule.period for schedule in SCHEDULES], dtype=SeriesPeriod)
_OVER_AFTER = pl.Series([schedule.over_after for schedule in SCHEDULES])
_PATIENCE_DAYS = pl.Series([schedule.tolerance_days + 1 for schedule in SCHEDULES])
_MONTHLY = [schedule.name for schedule in SCHEDULES].index("monthly")


def describe(payments: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Describe each series in one row.

    Args:
        payments: the rows of all series, each series together and by slot and `nth`: MEMBERS and the facts of their
            transactions, including signed `cents`.
        series: the same series, from `expect_next`, with `series_id`.

    Returns:
        Schema SERIES.
    """
    slots = payments.pipe(_select_slots)
    read = series.drop("first_date", "last_date").join(
        payments.pipe(_count_doubled), on="series_number", how="left", validate="1:1"
    )
    parts = [
        payments.pipe(_summarise_payments),
        slots.pipe(_summarise_slots),
        series.pipe(_describe_anchors),
        slots.pipe(_find_categories),
        slots.pipe(_find_amount_changes),
    ]
    for part in (*parts, series.pipe(_list_missed, slots)):
        read = read.join(part, on="series_number", how="left", validate="1:1")
    return read.with_columns(_compute_figures()).select(pl.col(name).cast(kind) for name, kind in SERIES.items())


def expect_next(payments: pl.DataFrame, data_through: pl.DataFrame) -> pl.DataFrame:
    """Return one row per series with its `period`, `status` and `next_date`, the basis for `describe`.

    Args:
        payments: as for `describe`.
        data_through: `customer_number`, `account_id` and `through`, the last day with posted rows.
    """
    accounts = data_through.select("customer_number", "account_id", "through")
    return (
        payments.pipe(_select_slots)
        .pipe(_sum_series)
        .join(accounts, on=["customer_number", "account_id"], how="left", validate="m:1")
        .pipe(_expect)
    )


def _select_slots(payments: pl.DataFrame) -> pl.DataFrame:
    return payments.filter(pl.col("nth") == 0)


def _sum_series(slots: pl.DataFrame) -> pl.DataFrame:
    moved, away = ~is_open(pl.col("due"), pl.lit(SETTLEMENT, Calendar)), pl.col("day") - pl.col("due")
    on = pl.duration(days=0)
    rolls = {"forward": moved & (away > on), "back": moved & (away < on), "stays": moved & (away == on)}
    firsts = ("customer_number", "account_id", "direction", "counterparty_group", "text", "schedule", "anchor")
    return (
        slots.with_columns(**rolls)
        .group_by("series_number", maintain_order=True)
        .agg(
            pl.col(firsts).first(),
            pl.col("channel", "calendar").last(),
            pl.col(_ROLLS).sum(),
            first_date=pl.col("day").min(),
            last_date=pl.col("day").max(),
            first_cents=pl.col("cents").first(),
            first_slot=pl.col("slot").first(),
            last_slot=pl.col("slot").last(),
            occurrences=pl.len(),
        )
    )


def _summarise_payments(payments: pl.DataFrame) -> pl.DataFrame:
    """Return per series (`series_number`) its usual and latest amounts and its latest names, of all payments.

    They are those of the aggregate report's table of recurring payments.
    """
    in_order = payments.sort("series_number", "day", "received_seq", "position")
    return in_order.group_by("series_number", maintain_order=True).agg(
        pl.col("counterparty_name", "counterparty_kind").drop_nulls().last(),
        pl.col("clean_description").last(),
        first_date=pl.col("day").first(),
        last_date=pl.col("day").last(),
        usual=_lower_median(pl.col("cents")),
        latest=pl.col("cents").last(),
    )


def _summarise_slots(slots: pl.DataFrame) -> pl.DataFrame:
    """Return per series (`series_number`) what its next amount depends on, of the first payment of each due date."""
    cents = pl.col("cents")
    steady = (cents == cents.shift(1)).last().fill_null(value=False)
    repeats = (cents.diff() == 0).mean().fill_null(0) >= 0.5
    return slots.group_by("series_number").agg(
        on_time=(pl.col("late") == 0).sum(),
        last_of_slots=cents.last(),
        recent=_lower_median(cents.tail(RECENT)),
        settles_down=steady | repeats,
    )


def _lower_median(cents: pl.Expr) -> pl.Expr:
    """Return the lower median of sizes, with its sign: all payments of a series have the same."""
    return cents.sort_by(cents.abs()).get((cents.len() - 1) // 2)


def _count_doubled(payments: pl.DataFrame) -> pl.DataFrame:
    return payments.filter(pl.col("nth") == 1).group_by("series_number").agg(doubled=pl.len())


def _expect(totals: pl.DataFrame) -> pl.DataFrame:
    """Add `period`, `status`, `up_to_slot` (the last slot that should have been paid) and `next_date`."""
    active = pl.col("status") == "active"
    still_awaited = (expected_day(pl.col("due")) > pl.col("day")).cast(pl.Int32)
    over = pl.col("passed") - pl.col("last_slot") >= _look_up_schedule(_OVER_AFTER)
    return (
        totals.with_columns(day=pl.col("through") - pl.duration(days=_look_up_schedule(_PATIENCE_DAYS)))
        .pipe(_add_nearest_slot)
        .with_columns(passed=pl.max_horizontal(pl.col("slot") - still_awaited, "last_slot"))
        .with_columns(status=pl.when(over).then(pl.lit("ended")).otherwise(pl.lit("active")), slot=pl.col("passed") + 1)
        .pipe(_add_due)
        .with_columns(
            up_to_slot=pl.when(active).then("passed").otherwise("last_slot"),
            next_date=pl.when(active).then(expected_day(pl.col("due"))),
            period=_look_up_schedule(_PERIODS),
        )
        .drop("day", "slot", "due")
    )


def _look_up_schedule(values: pl.Series) -> pl.Expr:
    return pl.lit(values).gather(pl.col("schedule"))


def _add_nearest_slot(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `slot`, the one whose due date is nearest to the `day`, and that `due` date."""
    schedule, day, anchor = (rows[name].to_physical().to_numpy() for name in ("schedule", "day", "anchor"))
    slot, due = find_nearest_due(schedule, day, anchor)
    return rows.with_columns(slot=pl.Series(slot), due=pl.Series(due).cast(pl.Date))


def _add_due(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the `due` date of each `slot`."""
    due = list_due_dates(*(rows[name].to_numpy() for name in ("schedule", "slot", "anchor")))
    return rows.with_columns(due=pl.Series(due).cast(pl.Date))


def expected_day(due: pl.Expr) -> pl.Expr:
    """Return the day on which a payment with that due date is expected.

    It is moved off closed days as the series has done most often so far, and forward if it has never been seen to move.
    Direct entry, BPAY and cheques follow the settlement calendar, as do payments of an unknown channel; other rails
    follow the state's. The New Payments Platform needs no move.
    """
    settles = pl.col("channel").cast(pl.String).is_in(_SETTLED).fill_null(value=True)
    calendar = pl.when(settles).then(pl.lit(SETTLEMENT, Calendar)).otherwise("calendar")
    most = pl.max_horizontal(_ROLLS)
    by_npp = (most == 0) & (pl.col("channel") == "npp").fill_null(value=False)
    return (
        pl.when(by_npp)
        .then(due)
        .when(pl.col("forward") == most)
        .then(next_open(due, calendar))
        .when(pl.col("back") == most)
        .then(last_open(due, calendar))
        .otherwise(due)
    )


def _describe_anchors(series: pl.DataFrame) -> pl.DataFrame:
    """Return `series_number` and `anchor_words`. There are few distinct anchors, so they are described one by one."""
    anchors = series.select("schedule", "anchor").unique()
    words = [SCHEDULES[schedule].words(anchor) for schedule, anchor in anchors.rows()]
    rolls_back = (pl.col("back") > pl.col("forward")) & (pl.col("anchor") % 32 == LAST)
    last_open_day = (pl.col("schedule") == _MONTHLY) & rolls_back
    named = pl.when(last_open_day).then(pl.lit("last business day of the month")).otherwise("words")
    return series.join(
        anchors.with_columns(words=pl.Series(words, dtype=pl.String)), on=anchors.columns, validate="m:1"
    ).select("series_number", anchor_words=named)


def _list_missed(series: pl.DataFrame, slots: pl.DataFrame) -> pl.DataFrame:
    """Return `series_number`, `missed` and `missed_dates` of series with missing payments."""
    complete = pl.col("up_to_slot") - pl.col("first_slot") + 1 == pl.col("occurrences")
    wanted = series.filter(~complete).select(
        "series_number",
        *("schedule", "anchor", "channel", "calendar"),
        *_ROLLS,
        slot=pl.int_ranges("first_slot", pl.col("up_to_slot") + 1, dtype=pl.Int32),
    )
    unpaid = wanted.explode("slot").join(slots, on=["series_number", "slot"], how="anti").sort("series_number", "slot")
    dates = unpaid.pipe(_add_due).select("series_number", day=expected_day(pl.col("due")))
    return dates.group_by("series_number", maintain_order=True).agg(missed=pl.len(), missed_dates="day")


def _find_categories(slots: pl.DataFrame) -> pl.DataFrame:
    """Return `series_number` and its most frequent `category`; of equally frequent ones, the first by alphabet."""
    return (
        slots.group_by("series_number", "category")
        .len()
        .sort("series_number", "len", "category", descending=[False, True, False], nulls_last=True)
        .unique("series_number", keep="first")
        .select("series_number", "category")
    )


def _find_amount_changes(slots: pl.DataFrame) -> pl.DataFrame:
    """Return `series_number` and `amount_changes`.

    A change is a step from an amount paid at least twice in a row to the next such amount, or to the latest payment.
    Amounts that vary from payment to payment do not count as changes.
    """
    of_series = pl.col("series_number") == pl.col("series_number").shift(1)
    runs = (
        slots.with_columns(run=(~(of_series & (pl.col("cents") == pl.col("cents").shift(1))).fill_null(value=False)))
        .with_columns(pl.col("run").cum_sum())
        .group_by("run", maintain_order=True)
        .agg(pl.col("series_number", "cents", "day").first(), length=pl.len())
        .with_columns(
            is_last=(pl.col("series_number") != pl.col("series_number").shift(-1)).fill_null(value=True),
            follows_lasting=(pl.col("length").shift(1) > 1) & of_series,
        )
        .filter((pl.col("length") > 1) | (pl.col("is_last") & pl.col("follows_lasting")))
        .with_columns(before=pl.when(of_series).then(pl.col("cents").shift(1)))
        .filter(pl.col("before") != pl.col("cents"))
    )
    change = pl.struct(pl.col("day").alias("date"), money("before").alias("from"), money("cents").alias("to"))
    return runs.group_by("series_number", maintain_order=True).agg(amount_changes=change)


def money(cents: str) -> pl.Expr:
    """Convert whole cents to MONEY, exactly."""
    return (pl.col(cents).cast(pl.Decimal(38, 2)) / 100).cast(MONEY)


def _compute_figures() -> list[pl.Expr]:
    doubled, missed = pl.col("doubled").fill_null(0), pl.col("missed").fill_null(0)
    wanted = pl.col("occurrences") + missed + doubled
    coming = pl.when("settles_down").then(money("last_of_slots")).otherwise(money("recent"))
    return [
        pl.col("anchor_words").alias("anchor"),
        pl.col("clean_description").alias("description"),
        doubled.alias("doubled"),
        missed.alias("missed"),
        pl.col("missed_dates").fill_null([]),
        pl.col("amount_changes").fill_null([]),
        money("usual").alias("usual_amount"),
        money("latest").alias("latest_amount"),
        pl.when(pl.col("status") == "active").then(coming).alias("next_amount"),
        (pl.col("on_time") / wanted).alias("regularity"),
    ]
