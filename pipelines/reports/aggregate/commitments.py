"""Commitments: recurring payments, lenders' facilities, and payments that could not be met."""

import polars as pl

from pipelines.enrichment.facilities import FACILITIES, add_inferred, add_interest, describe_facilities, list_flows
from pipelines.enrichment.facilities.products import credit_product
from pipelines.enrichment.facilities.terms import estimate_remaining, factor
from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import uuid_text
from pipelines.vocabulary.schemas import most_frequent

_ONE, _SIZE = pl.lit(1), pl.col("amount").abs()
PAYMENTS_PER_YEAR = {
    "business_daily": 250,  # without weekends and about ten public holidays
    "weekly": 52,
    "fortnightly": 26,
    "four_weekly": 13,
    "twice_monthly": 24,
    "monthly": 12,
    "quarterly": 4,
    "yearly": 1,
}


def recurring_rows(facts: Facts) -> pl.DataFrame:
    """Return rows of series, sorted by size; `is_last` and `is_usual` each mark one row of a series."""
    series = (BY_CUSTOMER, "series_id")
    place, rows = pl.int_range(pl.len()).over(series), pl.len().over(series)
    return (
        facts.rows.lazy()
        .filter(pl.col("series_id").is_not_null())
        .select(*series, *_DETAILS_OF_SERIES, "transaction_id", "amount", size=_SIZE)
        .with_columns(is_last=place == rows - 1, place=place)
        .sort(*series, "size", "place")
        .with_columns(is_usual=place == (rows - 1) // 2)
        .pipe(collect)
    )


_DETAILS_OF_SERIES = ("account_id", "series_period", "date", "series_next_date", "counterparty_name", "category")
_SEEN = (
    Total("occurrences", "count", _ONE, meaning="payments seen"),
    Total("usualAmount", "AUD", pl.when("is_usual").then("size"), meaning="the (lower) median payment"),
    Total("lastAmount", "AUD", pl.when("is_last").then("size"), meaning="the latest payment"),
)


def _recurring_with_ids(facts: Facts) -> pl.LazyFrame:
    return facts.cached(recurring_rows).lazy().with_columns(seriesId=uuid_text("series_id"))


def _series(facts: Facts) -> pl.LazyFrame:
    names = pl.col("counterparty_name").filter(pl.col("counterparty_name").is_not_null())
    dated = pl.col("place").filter(pl.col("counterparty_name").is_not_null())
    grouped = (
        facts.cached(recurring_rows)
        .lazy()
        .group_by(BY_CUSTOMER, "series_id")
        .agg(
            pl.col("account_id", "amount", "series_period", "date", "series_next_date").filter("is_last").first(),
            occurrences=pl.len(),
            usualAmount=pl.col("size").filter("is_usual").first(),
            lastAmount=pl.col("size").filter("is_last").first(),
            counterparty=names.max_by(dated),
            category=most_frequent("category"),
        )
    )
    return grouped.select(
        BY_CUSTOMER,
        "counterparty",
        "category",
        *(total.name for total in _SEEN),
        seriesId=uuid_text("series_id"),
        accountId=uuid_text("account_id"),
        direction=pl.when(words.is_debit()).then(pl.lit("out")).otherwise(pl.lit("in")),
        period=pl.col("series_period").cast(pl.String),
        lastDate="date",
        nextExpectedDate="series_next_date",
    )


RECURRING = Table(
    id="recurring_commitments",
    name="Recurring payments and receipts",
    hierarchy="series",
    type="summary",
    meaning="Every series that enrichment found, including those that have ended.",
    keys=(Column("seriesId", "text", meaning="the series"),),
    details=(
        Column("accountId", "text", meaning="account that pays or receives"),
        Column("counterparty", "text", meaning="counterparty of its latest payment that names one"),
        Column("category", "text", meaning="its most frequent category"),
        Column("direction", "text", meaning="`in` or `out`"),
        Column("period", "text", meaning="how often: business_daily to yearly"),
        Column("lastDate", "date", meaning="date of its latest payment"),
        Column("nextExpectedDate", "date", meaning="null once the series has ended"),
    ),
    listed=_series,
    sources=(Source(_recurring_with_ids, _SEEN, is_listed=True),),
    derived=(
        Derived(
            "monthlyAmount",
            "AUD",
            ("usualAmount", "period", "nextExpectedDate"),
            pl.when(pl.col("nextExpectedDate").is_not_null()).then(
                pl.col("usualAmount")
                * pl.col("period").replace_strict(PAYMENTS_PER_YEAR, default=None, return_dtype=pl.Int64())
                / 12
            ),
            "usualAmount × payments a year / 12 ("
            + ", ".join(f"{period} {times}" for period, times in PAYMENTS_PER_YEAR.items())
            + "); null once the series has ended",
        ),
    ),
    order=("seriesId",),
)


_FACILITY_COLUMNS = (
    *(BY_CUSTOMER, "account_id", "date", "amount", "superseded_seq", "status", "transaction_id", "facility_id"),
    *("category", "category_group", "category_source", "confidence", "description", "is_transfer", "is_revenue"),
    *("related_party", "other_account", "counterparty_name", "counterparty_lender_id", "counterparty_group"),
)


def facilities(facts: Facts) -> pl.DataFrame:
    """Return FACILITIES of the customers who have any."""
    rows = facts.cached(debt_rows)
    return describe_facilities(rows, facts.as_of) if rows.height else FACILITIES.to_frame()


def debt_rows(facts: Facts) -> pl.DataFrame:
    """Return the rows from which facilities are derived, including inferred facilities (`add_inferred`).

    These are the facilities' own rows, the rows of each account's last day and, for customers with a cash advance, all
    takings, because takings show how much the lender keeps back.
    """
    of_facility = pl.col("facility_id").is_not_null()
    product = pl.coalesce("inferred_product", credit_product())
    advanced = (of_facility & words.is_credit() & (product == "cash_advance")).any().over(BY_CUSTOMER)
    last = pl.col("date") == pl.col("date").max().over(BY_CUSTOMER, "account_id")
    history_rows = of_facility | last | (pl.col("is_revenue") & words.is_credit() & advanced)
    inferred = facts.rows.select(_FACILITY_COLUMNS).pipe(add_inferred)
    having = inferred.lazy().filter(of_facility).select(BY_CUSTOMER).unique()
    relevant = inferred.lazy().join(having, on=BY_CUSTOMER, how="semi")
    return relevant.filter(history_rows).drop("is_revenue", "description").pipe(collect)


def _missed_payments(facts: Facts) -> pl.LazyFrame:
    """Return each missed payment, with the row that it is traced to: the last repayment tried up to the day it was due.

    This is the repayment that was returned, or the one before a payment that is not seen at all.
    """
    by_date = ("facility_id", "date")
    missed = (
        facts.cached(facilities).select(BY_CUSTOMER, "facility_id", date="missed_dates").explode("date").drop_nulls()
    )
    tried = list_flows(facts.cached(debt_rows)).filter(~pl.col("funds")).select(*by_date, "transaction_id")
    before = missed.sort(by_date).join_asof(
        tried.sort(*by_date, "transaction_id"), on="date", by="facility_id", check_sortedness=False
    )
    return before.lazy().with_columns(facilityId=uuid_text("facility_id"))


def _instalment_rows(facts: Facts) -> pl.LazyFrame:
    """Return rows of instalment loans with interest added."""
    grown = add_interest(list_flows(facts.cached(debt_rows)).lazy(), facts.cached(facilities).lazy())
    return grown.with_columns(facilityId=uuid_text("facility_id"))


def _facility_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows of facilities with what each draws or repays; a payment that comes back counts as negative."""
    product = pl.coalesce("inferred_product", credit_product())
    draws, size = product.is_not_null() == words.is_credit(), pl.col("amount")
    return (
        facts.cached(debt_rows)
        .lazy()
        .filter(pl.col("facility_id").is_not_null())
        .with_columns(
            facilityId=uuid_text("facility_id"),
            funded=pl.when(draws).then(size),
            repaid=pl.when(~draws).then(-size),
            repayments=pl.when(~draws).then(-size.sign()),
        )
    )


def _facilities(facts: Facts) -> pl.LazyFrame:
    known = facts.cached(facilities).lazy()
    return known.select(
        BY_CUSTOMER,
        facilityId=uuid_text("facility_id"),
        lenderName="lender_name",
        lenderId="lender_id",
        product=pl.col("product").cast(pl.String),
        status=pl.col("status").cast(pl.String),
        fundingDate="funding_date",
        lastRepaymentDate="last_repayment",
        inferred="inferred",
        nextExpectedDate="next_expected",
        possiblyStackedWith="possibly_stacked_with",
        remainingLow="remaining_low",
        remainingHigh="remaining_high",
        remainingMethod=pl.col("remaining_method").cast(pl.String),
        costFactor=factor(),
        withheldEstimate=pl.col("withheld_estimate").fill_null(0),
        missedPayments="missed_payments",
        balanceWithInterest="grown_balance",
    )


FACILITIES_TABLE = Table(
    id="facilities",
    name="Facilities",
    hierarchy="facility",
    type="summary",
    is_usually_empty=True,
    meaning="Money that lenders paid out and money repaid to them, joined into the loans, advances and lines that they "
    "belong to, as far as the statements show. The amount remaining is an estimate.",
    keys=(Column("facilityId", "text", meaning="the facility"),),
    details=(
        Column("lenderName", "text", meaning="null where no narrative names one"),
        Column("lenderId", "text", meaning="id in the list of lenders"),
        Column("product", "text", meaning="term_loan, line_of_credit, cash_advance, invoice_finance …"),
        Column("status", "text", meaning="active, likely_repaid, in_arrears or renewed"),
        Column("fundingDate", "date", meaning="date of the first draw; null: the funding is not seen"),
        Column("lastRepaymentDate", "date", meaning="date of the last repayment that was not returned"),
        Column("inferred", "boolean", meaning="found by its payments, not by name; no rating, rule or policy reads it"),
        Column("nextExpectedDate", "date", meaning="date of the next repayment; null once it has ended"),
        Column(
            "possiblyStackedWith",
            "count",
            meaning="other working-capital facilities that ran at the same time, inferred ones included",
        ),
        Column("remainingLow", "AUD", meaning="left to repay at least, if it is paid off now; null if unknown"),
        Column("remainingHigh", "AUD", meaning="left to repay at most, if it runs its term; null if unknown"),
        Column("remainingMethod", "text", meaning="how estimatedRemaining was estimated"),
        Column("costFactor", "ratio", meaning="repaid ÷ lent over the whole term, if the product has an assumed one"),
        Column("withheldEstimate", "AUD", meaning="kept back from card takings by the lender, estimated from them"),
    ),
    listed=_facilities,
    sources=(
        Source(
            _facility_rows,
            (
                Total("drawn", "AUD", pl.col("funded"), meaning="all that was drawn"),
                Total("repaymentCount", "count", pl.col("repayments"), meaning="repayments that were not returned"),
                Total("repaidTotal", "AUD", pl.col("repaid"), meaning="repaid, minus what came back"),
            ),
        ),
        Source(
            _missed_payments,
            (Total("missedPayments", "count", _ONE, meaning="returned, or expected and not seen"),),
            is_listed=True,
        ),
        Source(
            _instalment_rows,
            (Total("balanceWithInterest", "AUD", pl.col("grown"), meaning="lent less repaid, each with interest"),),
            is_listed=True,
        ),
    ),
    derived=(
        Derived(
            "fundingAmount",
            "AUD",
            ("drawn", "fundingDate"),
            pl.when(pl.col("fundingDate").is_not_null()).then(pl.col("drawn")),
            "all that was drawn; null: the funding is not seen",
        ),
        Derived(
            "estimatedRemaining",
            "AUD",
            (
                *("remainingMethod", "fundingAmount", "repaidTotal", "costFactor", "withheldEstimate"),
                "balanceWithInterest",
            ),
            estimate_remaining(
                pl.col("remainingMethod"),
                pl.col("fundingAmount"),
                pl.col("costFactor"),
                pl.col("repaidTotal") + pl.col("withheldEstimate"),
                pl.col("balanceWithInterest"),
            ),
            "what may still be owed, by remainingMethod: assumed_factor: fundingAmount × costFactor − repaidTotal − "
            "withheldEstimate; amortised: what was lent less what was repaid, each with interest to the last day; "
            "drawn_less_repaid: fundingAmount − repaidTotal; payments_ended and rolled_over: nothing; unknown: null. "
            "Not below zero",
        ),
    ),
    hidden=("drawn", "costFactor", "withheldEstimate", "balanceWithInterest"),
    order=("facilityId",),
)


def _dishonours(facts: Facts) -> pl.LazyFrame:
    rows = facts.rows.lazy().filter(words.is_returned_payment())
    return rows.with_columns(transactionId=uuid_text("transaction_id"), accountId=uuid_text("account_id"))


DISHONOURS_TABLE = Table(
    id="dishonours",
    name="Dishonoured payments",
    hierarchy="customer",
    type="time_series",
    is_usually_empty=True,
    meaning="A row for each of the customer's payments that came back because it could not be met.",
    keys=(Column("transactionId", "text", meaning="the row that brought it back"),),
    details=(
        Column("date", "date", meaning="when it came back"),
        Column("accountId", "text", meaning="account that was to pay"),
        Column("counterparty", "text", meaning="counterparty that was to be paid, where known"),
        Column("description", "text", meaning="as sent"),
    ),
    listed=lambda facts: _dishonours(facts).select(
        BY_CUSTOMER, "transactionId", "date", "accountId", "description", counterparty="counterparty_name"
    ),
    sources=(Source(_dishonours, (Total("amount", "AUD", pl.col("money_in"), meaning="amount that came back"),)),),
    order=("date", "transactionId"),
)
