"""Summarise facilities for a credit analyst: one row each, from the transactions with its id."""

from datetime import date

import polars as pl

from pipelines.enrichment.facilities.inferring import add_inferred
from pipelines.enrichment.facilities.joining import lender
from pipelines.enrichment.facilities.missed import add_missed
from pipelines.enrichment.facilities.products import PRODUCTS, REVOLVING, credit_product
from pipelines.enrichment.facilities.rhythm import (
    business_days_since,
    expected_date,
    find_frequencies,
    find_slots,
    list_closed_days,
    period_days,
)
from pipelines.enrichment.facilities.split_settlement import infer_withheld
from pipelines.enrichment.facilities.stacking import add_stacking
from pipelines.enrichment.facilities.status import Status, is_running, status
from pipelines.enrichment.facilities.terms import (
    CONFIDENCE,
    TOTAL,
    UNFUNDED,
    add_rates,
    add_remaining,
    grown_size,
)
from pipelines.enrichment.matching.reversals import pair_returns
from pipelines.vocabulary.plans import AS_WRITTEN, collect
from pipelines.vocabulary.schemas import MONEY, UUID, SeriesPeriod, most_frequent, posted

Product = pl.Enum(list(PRODUCTS))
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
RENEWAL_OWED = 0.1  # of the funding: with less left to repay, a new funding is not a renewal
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
    slots = find_slots(flows.filter(~pl.col("funds")).select(_FACILITY, "date", "bounced"))
    terms = (
        _sum_flows(flows.lazy())
        .join(find_frequencies(slots.lazy(), closed), on=_FACILITY, how="left", validate="1:1")
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
        .pipe(add_rates)
        .pipe(_add_balances, flows)
        .pipe(_add_withheld, posted_rows)
    )
    return (
        add_remaining(terms.lazy())
        .pipe(add_missed, terms, slots, flows, closed)
        .pipe(_add_renewals, terms.lazy())
        .with_columns(status=status())
        .pipe(_settle_ended)
        .pipe(_add_next_expected, closed)
        .with_columns(**_missed_payments())
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
        .pipe(add_stacking)
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


def _add_balances(facilities: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Add `grown_balance`: what was lent less what was repaid, with interest to the last day."""
    if facilities["yearly_rate"].null_count() == facilities.height:
        return facilities.with_columns(grown_balance=pl.lit(None, TOTAL))
    grown = add_interest(flows.lazy(), facilities.lazy())
    balances = grown.group_by(_FACILITY).agg(grown_balance=pl.col("grown").sum())
    together = facilities.lazy().join(balances, on=_FACILITY, how="left", validate="1:1")
    return together.collect(engine="in-memory", optimizations=AS_WRITTEN)


def add_interest(flows: pl.LazyFrame, facilities: pl.LazyFrame) -> pl.LazyFrame:
    """Add `grown`: flows of instalment loans with interest to the last day (AUD, repayments negative).

    Args:
        flows: from `list_flows`.
        facilities: `facility_id` and `yearly_rate` of each facility.
    """
    return (
        flows.filter(~pl.col("bounced"))
        .join(facilities.select(_FACILITY, "yearly_rate").drop_nulls(), on=_FACILITY, validate="m:1")
        .with_columns(grown=pl.when("funds").then(grown_size()).otherwise(-grown_size()))
    )


def _add_withheld(facilities: pl.DataFrame, posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Add what card payouts show about the customer's latest cash advance, if no repayments are visible."""
    unseen = (pl.col("product") == "cash_advance") & pl.col("last_bounced").is_null()
    unserved = facilities.filter(unseen).sort("funding_date", _FACILITY).unique("customer_number", keep="last")
    takings = posted_rows.lazy().filter(
        pl.col("category_group") == "revenue", pl.col("amount") > 0, ~pl.col("is_transfer")
    )
    found = infer_withheld(takings, unserved.select("customer_number", _FACILITY, "funding_date", "lender_name"))
    return facilities.join(found, on=_FACILITY, how="left", validate="1:1").with_columns(
        inferred=pl.col("withheld_share").is_not_null() | pl.col("is_inferred"),
        inferred_confidence=pl.coalesce("inferred_confidence", pl.when("is_inferred").then(INFERRED)),
    )


def _add_renewals(facilities: pl.LazyFrame, terms: pl.LazyFrame) -> pl.LazyFrame:
    """Add `renewed_by` and `renewed_on`: the lender's next funding, near the last repayment of a debt still owed.

    Args:
        facilities: with `overdue` and `estimated_remaining`.
        terms: the same facilities without them, in memory. Renewals are looked for among their fundings.
    """
    agreement = ("customer_number", "lender", "product")
    fundings = terms.filter(pl.col("funding_date").is_not_null()).select(
        *agreement, renewed_by=_FACILITY, renewed_on="funding_date"
    )
    search_from = pl.max_horizontal(
        pl.col("last_repayment") - pl.duration(days=RENEWAL_BEFORE_DAYS),
        pl.col("funding_date") + pl.duration(days=1),
    )
    soon = pl.col("renewed_on") <= pl.col("last_repayment") + pl.duration(days=RENEWAL_AFTER_DAYS)
    return (
        facilities.with_columns(search_from=pl.when(_is_renewable()).then(search_from))
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


def _is_renewable() -> pl.Expr:
    """Match debts whose repayments seem to have ended while much was still owed.

    Much is more than an instalment, and than RENEWAL_OWED of the funding; a debt may be renewed if this is unknown,
    too. Revolving credit is drawn again instead.
    """
    owed = pl.col("estimated_remaining").cast(pl.Float64)
    still_owed = owed > pl.max_horizontal("repayment_usual", RENEWAL_OWED * pl.col("funding_amount").cast(pl.Float64))
    may_have_ended = pl.col("frequency").is_null() | (pl.col("overdue").list.len() > 0)
    return (
        ~pl.col("product").is_in(REVOLVING)
        & still_owed.fill_null(value=True)
        & may_have_ended
        & pl.col("last_repayment").is_not_null()
    )


def _settle_ended(facilities: pl.LazyFrame) -> pl.LazyFrame:
    """Set the remaining amount of repaid and renewed facilities to 0, whatever the formula gives."""
    renewed, repaid = pl.col("status") == "renewed", pl.col("status") == "likely_repaid"
    # Where the formula gives 0 anyway, its method remains.
    overridden = repaid & (pl.col("estimated_remaining") != 0).fill_null(value=True)
    method = pl.when(renewed).then(pl.lit("rolled_over")).when(overridden).then(pl.lit("payments_ended"))
    certainty = pl.when(pl.col("funding_amount").is_null()).then(UNFUNDED).otherwise(1.0)
    confidence = method.replace_strict(CONFIDENCE, default=None, return_dtype=pl.Float64()) * certainty
    return facilities.with_columns(
        **{name: pl.when(renewed | overridden).then(pl.lit(0, TOTAL)).otherwise(name) for name in _REMAINING},
        remaining_method=pl.coalesce(method, "remaining_method"),
        remaining_confidence=pl.coalesce(confidence, "remaining_confidence"),
    )


def _add_next_expected(facilities: pl.LazyFrame, closed: pl.Series) -> pl.LazyFrame:
    """Add `next_expected`, the first expected repayment day after the last day that statements show."""
    daily = pl.col("frequency") == "business_daily"
    days = (pl.col("through") - pl.col("last_slot")).dt.total_days()
    business_days = business_days_since("last_slot", pl.col("through"), closed)
    nth = pl.when(daily).then(business_days).otherwise((days / period_days()).floor()).cast(pl.Int64) + 1
    # Months differ in length, so the nth date may still be one that the statements show. Then the next one is expected.
    dates = {f"expected_{more}": expected_date(pl.col("nth") + more, closed, day="last_slot") for more in (0, 1)}
    first = pl.when(pl.col("expected_0") > pl.col("through")).then("expected_0").otherwise("expected_1")
    is_expected = is_running() & pl.col("frequency").is_not_null()
    # Step by step, because an expression of all steps would compute the first ones again and again.
    return (
        facilities.with_columns(nth=nth)
        .with_columns(**dates)
        .with_columns(next_expected=pl.when(is_expected).then(first))
    )


def _missed_payments() -> dict[str, pl.Expr]:
    """Return the missed repayments. Overdue ones count unless the facility has ended."""
    missed = pl.when(is_running()).then(pl.concat_list("passed_over", "overdue")).otherwise("passed_over")
    return {"missed_dates": missed.list.sort(), "missed_payments": missed.list.len()}
