"""Sources of revenue, takings before processors' fees, and receipts that are not revenue."""

from decimal import Decimal
from functools import cache
from importlib.resources import files

import polars as pl

from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.aggregate.categories import CATEGORY
from pipelines.vocabulary.report_values import RATIO, ratio
from pipelines.vocabulary.rule_files import parse

WINDOW = 365  # days
FEE_FILE = "fee_rates.yaml"
_ONE = pl.lit(1)
_RECENT = pl.col("age") < WINDOW


def _fee_rates() -> pl.DataFrame:
    """Read `category`, `since`, `assumedFeeRate`, `feeAssumption` from `rules/fee_rates.yaml`, by date."""
    document = parse(files("pipelines.reports").joinpath("rules", FEE_FILE).read_text("utf-8"), FEE_FILE)
    rows = [
        (category, rate["from"], Decimal(rate["share"]), rate["why"])
        for category, rates in document.items()
        for rate in rates
    ]
    schema = {"category": pl.String(), "since": pl.Date(), "assumedFeeRate": RATIO, "feeAssumption": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("since", "category")


FEE_RATES = _fee_rates()


def _revenue(facts: Facts) -> pl.LazyFrame:
    return facts.rows.lazy().filter(pl.col("is_revenue"), _RECENT)


def _sources(facts: Facts) -> pl.LazyFrame:
    """Return categories of revenue with the fee assumed at the customer's last row; 0 for what is paid in full."""
    categories = _revenue(facts).select(BY_CUSTOMER, "category").unique()
    through = categories.join(facts.history.lazy(), on=BY_CUSTOMER, validate="m:1").sort("data_through")
    rates = FEE_RATES.lazy()
    known = through.join_asof(rates, left_on="data_through", right_on="since", by="category", check_sortedness=False)
    return known.select(
        BY_CUSTOMER,
        "category",
        "feeAssumption",
        netOfFees=pl.col("assumedFeeRate").is_not_null(),
        assumedFeeRate=pl.col("assumedFeeRate").fill_null(0),
    )


REVENUE_SOURCES = Table(
    id="revenue_sources",
    name="Sources of revenue",
    hierarchy="category",
    type="summary",
    meaning="Revenue of the 365 days to the customer's last row by category. Most processors keep their fees before "
    "they pay takings out: the takings before fees are estimated with the assumed rate that the row shows.",
    keys=(CATEGORY,),
    details=(
        Column("netOfFees", "boolean", meaning="paid out by a processor, usually after its fees"),
        Column(
            "assumedFeeRate", "ratio", meaning="share of takings assumed to have been kept back; 0 for other receipts"
        ),
        Column("feeAssumption", "text", meaning="why that rate"),
    ),
    listed=_sources,
    sources=(
        Source(
            _revenue,
            (
                Total("receipts", "AUD", pl.col("money_in"), meaning="money in"),
                Total("givenBack", "AUD", pl.col("money_out"), meaning="refunds, chargebacks, receipts that bounced"),
                Total("revenue", "AUD", pl.col("amount"), meaning="receipts minus what was given back"),
                Total("transactionCount", "count", _ONE, meaning="rows"),
            ),
        ),
        Source(_revenue, (Total("allReceipts", "AUD", pl.col("money_in")),), keys=()),
    ),
    derived=(
        Derived(
            "shareOfReceipts",
            "ratio",
            ("receipts", "allReceipts"),
            ratio(pl.col("receipts"), pl.col("allReceipts")),
            "receipts / all receipts of revenue",
        ),
        Derived(
            "grossReceipts",
            "AUD",
            ("receipts", "assumedFeeRate"),
            pl.col("receipts") / (1 - pl.col("assumedFeeRate")),
            "receipts / (1 − assumedFeeRate): an estimate of takings before fees",
        ),
        Derived(
            "feesKeptBack",
            "AUD",
            ("grossReceipts", "receipts"),
            pl.col("grossReceipts") - pl.col("receipts"),
            "grossReceipts − receipts: an estimate",
        ),
    ),
    hidden=("allReceipts",),
    order=("category",),
)


@cache
def _reason() -> pl.Expr:
    """Return why a receipt is not revenue."""
    category, group = pl.col("category"), pl.col("category_group")
    return (
        pl.when(category.eq_missing("related_entity"))
        .then(pl.lit("related_party"))
        .when(~pl.col("is_external"))
        .then(pl.lit("own_transfer"))
        .when(category.eq_missing("director_loan_in"))
        .then(pl.lit("director_loan"))
        .when(group.eq_missing("debt_inflow"))
        .then(pl.lit("debt_inflow"))
        .when(words.is_returned_payment())
        .then(pl.lit("returned_payment"))
        .when(group.eq_missing("owner"))
        .then(pl.lit("owner"))
        .when(group.eq_missing("other_income"))
        .then(pl.lit("other_income"))
        .when(group.eq_missing("unknown"))
        .then(pl.lit("unknown"))
        .otherwise(pl.lit("other"))
    )


def _excluded_credits(facts: Facts) -> pl.LazyFrame:
    left_out = facts.rows.lazy().filter(words.is_credit(), ~pl.col("is_revenue"), _RECENT)
    return left_out.with_columns(reason=_reason())


def _all_receipts(facts: Facts) -> pl.LazyFrame:
    return facts.rows.lazy().filter(_RECENT)


EXCLUDED_RECEIPTS = Table(
    id="excluded_receipts",
    name="Receipts that are not revenue",
    hierarchy="customer",
    type="summary",
    meaning="Money in during the 365 days to the customer's last row that does not count as revenue. With "
    "`receipts` of `revenue_sources` it adds up to all money in.",
    keys=(
        Column(
            "reason",
            "text",
            meaning="`own_transfer`, `related_party`, `director_loan`, `debt_inflow`, `returned_payment`, `owner` "
            "(paid in by one), `other_income`, `unknown`, `other`",
        ),
    ),
    sources=(
        Source(
            _excluded_credits,
            (
                Total("transactionCount", "count", _ONE, meaning="receipts"),
                Total("amount", "AUD", pl.col("money_in"), meaning="amount received"),
            ),
        ),
        Source(_all_receipts, (Total("allReceipts", "AUD", pl.col("money_in")),), keys=()),
    ),
    derived=(
        Derived(
            "share",
            "ratio",
            ("amount", "allReceipts"),
            ratio(pl.col("amount"), pl.col("allReceipts")),
            "amount / all money in, own transfers included",
        ),
    ),
    hidden=("allReceipts",),
    order=("reason",),
)
