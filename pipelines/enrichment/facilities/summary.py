"""Summarise facilities for a credit analyst: one row each, from the transactions with its id."""

from collections.abc import Sequence
from datetime import date
from functools import cache

import polars as pl

from pipelines.enrichment.facilities.inferring import add_inferred
from pipelines.enrichment.facilities.joining import lender
from pipelines.enrichment.facilities.products import PRODUCTS, REVOLVING, WORKING_CAPITAL, credit_product
from pipelines.enrichment.facilities.rhythm import (
    LONGEST_SILENCE_DAYS,
    business_days_since,
    expected_date,
    find_frequencies,
    find_missing,
    find_slots,
    list_closed_days,
    period_days,
)
from pipelines.enrichment.facilities.split_settlement import infer_withheld
from pipelines.enrichment.facilities.terms import (
    CONFIDENCE,
    TOTAL,
    UNFUNDED,
    add_rates,
    add_remaining,
    grown_size,
    least_repaid,
)
from pipelines.enrichment.matching.reversals import pair_returns
from pipelines.vocabulary.plans import AS_WRITTEN, collect
from pipelines.vocabulary.schemas import MONEY, UUID, SeriesPeriod, most_frequent, posted

Product = pl.Enum(list(PRODUCTS))
Status = pl.Enum(("active", "likely_repaid", "in_arrears", "renewed"))
Method = pl.Enum(list(CONFIDENCE))

FACILITIES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "facility_id": UUID,
        "lender_name": pl.String(),  # null if no text names one
        "lender_id": pl.String(),
        "product": Product,
        "account_ids": pl.List(UUID),  # accounts that receive or repay it, sorted
        "funding_date": pl.Date(),  # of the first draw; null: drawn before the statements begin
        "funding_amount": TOTAL,  # sum of all draws
        "frequency": SeriesPeriod,  # of repayments; null if irregular
        "repayment_count": pl.UInt32(),  # without bounced ones
        "repayment_mean": MONEY,
        "repayment_spread": pl.Float64(),  # AUD, standard deviation; null for fewer than two
        "first_repayment": pl.Date(),
        "last_repayment": pl.Date(),
        "missed_payments": pl.UInt32(),
        "missed_dates": pl.List(pl.Date()),  # the date of a bounced repayment, else the expected date
        "repaid_total": TOTAL,  # repayments that the accounts show, less those returned
        "yearly_rate": pl.Float64(),  # of instalment loans, implied by level repayments or assumed
        "grown_balance": TOTAL,  # what was lent less what was repaid, each with interest at that rate to the last day
        "inferred": pl.Boolean(),  # found by its payments alone, or its repayments are estimated from card payouts
        "inferred_confidence": pl.Float64(),  # 0–1; null where nothing was inferred
        "withheld_share": pl.Float64(),  # of card takings, if inferred
        "withheld_estimate": TOTAL,  # withheld from card takings since the funding, if inferred
        "estimated_remaining": TOTAL,  # null if unknown
        "remaining_confidence": pl.Float64(),  # 0–1, our judgement
        "remaining_method": Method,
        "remaining_low": TOTAL,  # what is left if it were paid off on the last day; null if unknown
        "remaining_high": TOTAL,  # all that is left to pay if it runs its term
        "next_expected": pl.Date(),
        "status": Status,
        "stacked_with": pl.UInt32(),  # other advances, loans and lines for working capital that ran at the same time
        "possibly_stacked_with": pl.UInt32(),  # the same, inferred ones included
        "renewed_by": UUID,  # the facility that replaced it
    }
)

# The numbers are our judgement.
INFERRED = 0.8  # confidence in a facility that behaviour alone shows
RECENT_DAYS, RECENT_PERIODS = 90, 3  # missed repayments older than both don't count as arrears
ARREARS, ARREARS_DAILY = 0.5, 3.0  # a facility that is short by this many instalments is in arrears
STOPPED, STOPPED_DAILY = 2, 5  # this many overdue repayments mean that repayments have stopped
RENEWAL_BEFORE_DAYS, RENEWAL_AFTER_DAYS = 10, 45  # of the new funding around the old facility's last repayment

_FACILITY = "facility_id"
_REMAINING = ("estimated_remaining", "remaining_low", "remaining_high")


def summarise_facilities(rows: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Summarise facilities by the rows up to `as_of`: one row each (FACILITIES), sorted by customer, start and id.

    Everything is as of the last row of the accounts that repay the facility; later events are unknown.

    **Status.** `renewed`: the same lender lent again while the facility was being repaid, and repayments then stopped.
    `likely_repaid`: repayments stopped without a dishonour and, if it is known what was lent, after enough was repaid
    (`least_repaid`) or when only the last repayment was left; or nothing is left of revolving or irregularly repaid
    credit. `in_arrears`: repayments stopped earlier, or at least half a recent one (three daily ones) is missing and
    was not made up for, or the last one of revolving or irregularly repaid credit bounced. A payment plan with the tax
    office that stops counts as broken, because its payments are voluntary. Otherwise `active`.

    Args:
        rows: whole customers with `facility_id` filled (schema TRANSACTIONS).
    """
    return describe_facilities(add_inferred(rows.filter(posted(), pl.col("date") <= as_of)), as_of)


def describe_facilities(posted_rows: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Summarise facilities by posted rows to which `add_inferred` was applied."""
    flows = list_flows(posted_rows)
    if flows.is_empty():
        return FACILITIES.to_frame()
    closed = list_closed_days(flows.select(pl.col("date").min()).item(), as_of)
    due = find_slots(flows.filter(~pl.col("funds")).select(_FACILITY, "date", "bounced"))
    known = (
        _sum_flows(flows.lazy())
        .join(find_frequencies(due.lazy(), closed), on=_FACILITY, how="left", validate="1:1")
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
        .pipe(add_rates)
        .pipe(_add_balances, flows)
        .pipe(_add_withheld, posted_rows)
    )
    return (
        add_remaining(known.lazy())
        .pipe(_add_misses, _list_misses(known, due, flows, closed))
        .pipe(_add_renewals, known.lazy())
        .with_columns(status=_status().cast(Status))
        .pipe(_settle_ended)
        .pipe(_add_next_expected, closed)
        .with_columns(**_missed_payments())
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
        .pipe(_add_stacking)
        .sort("customer_number", pl.coalesce("funding_date", "first_repayment"), _FACILITY)
        .select(pl.col(name).cast(kind) for name, kind in FACILITIES.items())
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def list_flows(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """List fundings that did not bounce, and all repayments, in order of time.

    Returns:
        Rows with columns of TRANSACTIONS and `product`, `lender`, `facility_id`, `size` (AUD, positive), whether the
        row `funds` or repays, whether a repayment `bounced`, `through`, the last day that the statements of the
        facility's accounts show, and `is_inferred`.
    """
    accounts = posted_rows.lazy().group_by("customer_number", "account_id").agg(through=pl.col("date").max())
    members = posted_rows.filter(pl.col(_FACILITY).is_not_null()).with_row_index("row")
    bounced = pair_returns(members)["opened"]
    return (
        members.lazy()
        .with_columns(product=pl.coalesce("inferred_product", credit_product()))
        .filter(pl.col("product").is_not_null())
        .join(accounts, on=["customer_number", "account_id"], validate="m:1")
        .select(
            "customer_number",
            _FACILITY,
            "account_id",
            "date",
            "transaction_id",
            "product",
            "counterparty_name",
            "counterparty_lender_id",
            "through",
            "is_inferred",
            lender=lender(),
            size=pl.col("amount").abs(),
            funds=pl.col("amount") > 0,
            bounced=pl.col("row").is_in(bounced.implode()),
        )
        .filter(~(pl.col("funds") & pl.col("bounced")))
        .with_columns(pl.col("through").max().over(_FACILITY))
        .sort("customer_number", "date", "transaction_id")
        .pipe(collect)
    )


def _sum_flows(flows: pl.LazyFrame) -> pl.LazyFrame:
    """Sum the flows of each facility: what was drawn and repaid, when and by which accounts."""
    funds, paid, size, day = pl.col("funds"), ~pl.col("funds") & ~pl.col("bounced"), pl.col("size"), pl.col("date")
    total = size.cast(TOTAL)
    return flows.group_by(_FACILITY).agg(
        pl.col("customer_number", "product", "lender", "through").first(),
        lender_name=most_frequent("counterparty_name"),
        lender_id=most_frequent("counterparty_lender_id"),
        is_inferred=pl.col("is_inferred").any(),
        account_ids=pl.col("account_id").unique().sort(),
        funding_date=day.filter(funds).min(),
        funding_amount=pl.when(funds.any()).then(total.filter(funds).sum()),
        repayment_count=paid.sum(),
        repayment_mean=pl.when(paid.any()).then(total.filter(paid).sum() / paid.sum().clip(1).cast(TOTAL)),
        repayment_spread=size.filter(paid).cast(pl.Float64).std(),
        repayment_usual=size.filter(paid).cast(pl.Float64).median(),
        first_repayment=day.filter(paid).min(),
        last_repayment=day.filter(paid).max(),
        first_attempt=day.filter(~funds).min(),
        last_bounced=pl.col("bounced").filter(~funds).last(),
        repaid_total=total.filter(paid).sum(),
        repaid_first=(day.filter(paid).min() < day.filter(funds).min()).fill_null(value=False),
    )


def _add_balances(known: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Add `grown_balance`: what was lent less what was repaid, with interest to the last day."""
    if known["yearly_rate"].null_count() == known.height:
        return known.with_columns(grown_balance=pl.lit(None, TOTAL))
    grown = add_interest(flows.lazy(), known.lazy())
    balances = grown.group_by(_FACILITY).agg(grown_balance=pl.col("grown").sum())
    together = known.lazy().join(balances, on=_FACILITY, how="left", validate="1:1")
    return together.collect(engine="in-memory", optimizations=AS_WRITTEN)


def add_interest(flows: pl.LazyFrame, known: pl.LazyFrame) -> pl.LazyFrame:
    """Add `grown`: flows of instalment loans with interest to the last day (AUD, repayments negative).

    Args:
        flows: from `list_flows`.
        known: `facility_id` and `yearly_rate` of each facility.
    """
    return (
        flows.filter(~pl.col("bounced"))
        .join(known.select(_FACILITY, "yearly_rate").drop_nulls(), on=_FACILITY, validate="m:1")
        .with_columns(grown=pl.when("funds").then(grown_size()).otherwise(-grown_size()))
    )


def _add_withheld(known: pl.DataFrame, posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Add what card payouts show about the customer's latest cash advance, if no repayments are visible."""
    unseen = (pl.col("product") == "cash_advance") & pl.col("last_bounced").is_null()
    unserved = known.filter(unseen).sort("funding_date", _FACILITY).unique("customer_number", keep="last")
    takings = posted_rows.lazy().filter(
        pl.col("category_group") == "revenue", pl.col("amount") > 0, ~pl.col("is_transfer")
    )
    found = infer_withheld(takings, unserved.select("customer_number", _FACILITY, "funding_date", "lender_name"))
    return known.join(found, on=_FACILITY, how="left", validate="1:1").with_columns(
        inferred=pl.col("withheld_share").is_not_null() | pl.col("is_inferred"),
        inferred_confidence=pl.coalesce("inferred_confidence", pl.when("is_inferred").then(INFERRED)),
    )


def _list_misses(
    known: pl.DataFrame, due: pl.DataFrame, flows: pl.DataFrame, closed: pl.Series
) -> Sequence[pl.LazyFrame]:
    """Return three frames by facility: the last slot and the number of recent ones; the missed repayments; and how many
    usual instalments were paid recently. Recent is what `_recent_since` says.

    Revolving credit is repaid at will, so only bounced repayments count as missed.
    """
    terms = known.select(_FACILITY, "frequency", "through", "product", "repayment_usual", since=_recent_since()).lazy()
    slots = due.lazy().join(terms, on=_FACILITY, validate="m:1").collect(engine="in-memory", optimizations=AS_WRITTEN)
    slotted = slots.lazy()
    silent = find_missing(slotted.filter(~pl.col("product").is_in(REVOLVING)), closed)
    bounced = due.lazy().filter("bounced").select(_FACILITY, "date", overdue=pl.lit(value=False))
    every = pl.concat([bounced, silent.select(_FACILITY, "date", "overdue")])
    missed = every.join(terms, on=_FACILITY, validate="m:1")
    paid = flows.lazy().filter(~pl.col("funds"), ~pl.col("bounced"))
    paid = paid.join(terms.drop("product", "through"), on=_FACILITY)
    is_recent = pl.col("date") > pl.col("since")
    return (
        slotted.group_by(_FACILITY).agg(last_slot=pl.col("date").max(), slots=(is_recent & ~pl.col("bounced")).sum()),
        missed.group_by(_FACILITY).agg(
            passed_over=pl.col("date").filter(~pl.col("overdue")).sort(),
            overdue=pl.col("date").filter("overdue").sort(),
            missed_recently=is_recent.sum(),
        ),
        paid.filter(is_recent).group_by(_FACILITY).agg(instalments=(pl.col("size") / pl.col("repayment_usual")).sum()),
    )


def _add_misses(known: pl.LazyFrame, misses: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """Add `passed_over` and `overdue` dates, `last_slot`, and by how many recent instalments the customer is `short`.

    Args:
        misses: from `_list_misses`.
    """
    together = known
    for found in misses:
        together = together.join(found, on=_FACILITY, how="left", validate="1:1")
    made_good = (pl.col("instalments").fill_null(0) - pl.col("slots").fill_null(0)).clip(0)
    return together.with_columns(
        *(pl.col(name).fill_null(pl.lit([], pl.List(pl.Date()))) for name in ("passed_over", "overdue")),
        short=pl.col("missed_recently").fill_null(0) - made_good,
    )


def _recent_since() -> pl.Expr:
    days = pl.max_horizontal(pl.lit(RECENT_DAYS), (RECENT_PERIODS * period_days()).ceil()).cast(pl.Int64)
    return pl.col("through") - pl.duration(days=days)


def _add_renewals(missed: pl.LazyFrame, known: pl.LazyFrame) -> pl.LazyFrame:
    """Add `renewed_by` and `renewed_on`: the lender's next funding, near the last repayment of a debt still owed.

    Args:
        missed: facilities, from `_add_misses`.
        known: the same, with the fundings alone.
    """
    agreement = ("customer_number", "lender", "product")
    search_from = pl.max_horizontal(
        pl.col("last_repayment") - pl.duration(days=RENEWAL_BEFORE_DAYS),
        pl.col("funding_date") + pl.duration(days=1),
    )
    fundings = known.filter(pl.col("funding_date").is_not_null()).select(
        *agreement, renewed_by=_FACILITY, renewed_on="funding_date"
    )
    owed = pl.col("estimated_remaining").cast(pl.Float64)
    still_owed = owed > pl.max_horizontal("repayment_usual", 0.1 * pl.col("funding_amount").cast(pl.Float64))
    silent_since = pl.col("frequency").is_null() | (pl.col("overdue").list.len() > 0)
    soon = pl.col("renewed_on") <= pl.col("last_repayment") + pl.duration(days=RENEWAL_AFTER_DAYS)
    renewable = ~pl.col("product").is_in(REVOLVING) & still_owed.fill_null(value=True) & silent_since
    return (
        missed.with_columns(search_from=pl.when(renewable & pl.col("last_repayment").is_not_null()).then(search_from))
        .sort("search_from", _FACILITY)
        .join_asof(
            fundings.sort("renewed_on", "renewed_by"),
            left_on="search_from",
            right_on="renewed_on",
            by=agreement,
            strategy="forward",
            coalesce=False,
            check_sortedness=False,
        )
        .drop("search_from")
        .with_columns(pl.when(soon).then(name).alias(name) for name in ("renewed_by", "renewed_on"))
    )


@cache
def _status() -> pl.Expr:
    daily = pl.col("frequency").eq_missing(pl.lit("business_daily", SeriesPeriod))
    silent = pl.col("through") - pl.col("last_repayment") > pl.duration(days=LONGEST_SILENCE_DAYS)
    overdue = pl.col("overdue").list.len() >= pl.when(daily).then(STOPPED_DAILY).otherwise(STOPPED)
    stopped = overdue | (pl.col("frequency").is_null() & silent.fill_null(value=False))
    clean = ~pl.col("last_bounced").fill_null(value=False)
    lent = pl.col("funding_amount").cast(pl.Decimal(38, 4))
    owed = pl.col("estimated_remaining").cast(pl.Float64)
    enough = (pl.col("repaid_total") >= lent * least_repaid()) | (owed <= pl.col("repayment_usual"))
    enough = enough.fill_null(lent.is_null())
    ended = stopped & clean & enough & (pl.col("product") != "tax_payment_plan")
    at_will = pl.col("product").is_in(REVOLVING) | pl.col("frequency").is_null()
    nothing_left = (pl.col("estimated_remaining") == 0).fill_null(value=False) & at_will
    short = pl.col("short") >= pl.when(daily).then(ARREARS_DAILY).otherwise(ARREARS)
    return (
        pl.when(pl.col("renewed_by").is_not_null())
        .then(pl.lit("renewed"))
        .when(ended | nothing_left)
        .then(pl.lit("likely_repaid"))
        .when(short | (~clean & at_will) | (stopped & ~pl.col("product").is_in(REVOLVING)))
        .then(pl.lit("in_arrears"))
        .otherwise(pl.lit("active"))
    )


def _settle_ended(known: pl.LazyFrame) -> pl.LazyFrame:
    """Set the remaining amount of repaid and renewed facilities to 0, whatever the formula gives."""
    renewed, repaid = pl.col("status") == "renewed", pl.col("status") == "likely_repaid"
    ended = repaid & (pl.col("estimated_remaining") != 0).fill_null(value=True)
    unfunded = pl.when(pl.col("funding_amount").is_null()).then(UNFUNDED).otherwise(1.0)
    over = renewed | ended
    method = pl.when(renewed).then(pl.lit("rolled_over")).when(ended).then(pl.lit("payments_ended"))
    confidence = method.replace_strict(CONFIDENCE, default=None, return_dtype=pl.Float64()) * unfunded
    return known.with_columns(
        **{name: pl.when(over).then(pl.lit(0, TOTAL)).otherwise(name) for name in _REMAINING},
        remaining_method=pl.coalesce(method, "remaining_method"),
        remaining_confidence=pl.coalesce(confidence, "remaining_confidence"),
    )


def _is_running() -> pl.Expr:
    return pl.col("status").is_in(["active", "in_arrears"])


def _add_next_expected(known: pl.LazyFrame, closed: pl.Series) -> pl.LazyFrame:
    """Add `next_expected`, the first expected repayment day after the last day that statements show."""
    daily = pl.col("frequency") == "business_daily"
    since = (pl.col("through") - pl.col("last_slot")).dt.total_days()
    working = business_days_since("last_slot", pl.col("through"), closed)
    nth = pl.when(daily).then(working).otherwise((since / period_days()).floor()).cast(pl.Int64) + 1
    days = {f"expected_{more}": expected_date(pl.col("nth") + more, closed, day="last_slot") for more in (0, 1)}
    first = pl.when(pl.col("expected_0") > pl.col("through")).then("expected_0").otherwise("expected_1")
    is_expected = _is_running() & pl.col("frequency").is_not_null()
    # Step by step, because an expression of all steps would compute the first ones again and again.
    return known.with_columns(nth=nth).with_columns(**days).with_columns(next_expected=pl.when(is_expected).then(first))


def _missed_payments() -> dict[str, pl.Expr]:
    """Return the missed repayments. Overdue ones count unless the facility has ended."""
    missed = pl.when(_is_running()).then(pl.concat_list("passed_over", "overdue")).otherwise("passed_over")
    return {"missed_dates": missed.list.sort(), "missed_payments": missed.list.len()}


def _add_stacking(known: pl.DataFrame) -> pl.LazyFrame:
    """Add `stacked_with`, the number of other working-capital facilities that ran at the same time.

    Inferred facilities are not among them: they and the others are `possibly_stacked_with` each other.
    """
    spans = known.filter(pl.col("product").is_in(WORKING_CAPITAL)).select(
        "customer_number",
        _FACILITY,
        "is_inferred",
        start=pl.coalesce("funding_date", "first_attempt"),
        end=pl.when(_is_running())
        .then("through")
        .otherwise(pl.min_horizontal("last_repayment", pl.col("renewed_on") - pl.duration(days=1))),
    )
    if spans.height < 2:
        return known.lazy().with_columns(stacked_with=pl.lit(0), possibly_stacked_with=pl.lit(0))
    sides = {"start": pl.col("start"), "end": pl.max_horizontal("start", "end")}
    events = [
        spans.lazy().select("customer_number", _FACILITY, "is_inferred", on=day, ends=pl.lit(side == "end"))
        for side, day in sides.items()
    ]
    named = ~pl.col("is_inferred")
    counts = (
        pl.concat(events)
        .sort("customer_number", "on", "ends")  # what ends on the day that another begins ran beside it
        .with_columns(**_count_so_far("named", named), **_count_so_far("every", pl.lit(value=True)))
        .group_by(_FACILITY)
        .agg(
            stacked_with=pl.when(named.any()).then(_stacked_count("named")),
            possibly_stacked_with=_stacked_count("every"),
        )
    )
    together = known.lazy().join(counts, on=_FACILITY, how="left", validate="1:1")
    return together.with_columns(pl.col("stacked_with", "possibly_stacked_with").fill_null(0))


def _count_so_far(name: str, counted: pl.Expr) -> dict[str, pl.Expr]:
    """Count for each event how many of the customer's facilities have begun and ended up to it."""
    ends = pl.col("ends")
    sides = {"begun": counted & ~ends, "ended": counted & ends}
    return {f"{name}_{side}": events.cum_sum().over("customer_number") for side, events in sides.items()}


def _stacked_count(name: str) -> pl.Expr:
    """Count the facilities that began before this one ended, less those that ended before it began, and itself."""
    ends = pl.col("ends")
    return (pl.col(f"{name}_begun").filter(ends) - pl.col(f"{name}_ended").filter(~ends)).first() - 1
