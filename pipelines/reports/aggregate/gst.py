"""Takings with and without goods and services tax (GST), by month, and the assumptions about it.

Statements show what was paid, tax included. How much of it is tax depends on three things: whether the business is
registered, which kinds of its takings are taxed (`rules/gst.yaml`), and what share of those is (a grocer also sells
bread). The client can state the first and the last, as attributes `gstRegistered` and `taxableShare`.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS, Column, Derived, Source, Table, Total, sum_totals
from pipelines.reports.aggregate.cash_flow import MONTH, PARTIAL, months
from pipelines.reports.aggregate.categories import by_category_and_month
from pipelines.reports.aggregate.tax_rules import GST
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO

DAYS_OF_TURNOVER = 365
SIX_PLACES = pl.Decimal(38, 6)  # a product of cents and a share, exactly


def is_taxed_revenue() -> pl.Expr:
    """Match takings, and refunds of them, of a kind that is sold with GST."""
    return pl.col("is_revenue") & ~pl.col("category").is_in(sorted(GST.untaxed_revenue)).fill_null(value=False)


def is_taxed_cost() -> pl.Expr:
    """Match costs of a kind that is bought with GST."""
    return pl.col("category").is_in(sorted(GST.taxed_costs)).fill_null(value=False) & pl.col("is_external")


def times(money: pl.Expr, share: pl.Expr) -> pl.Expr:
    """Multiply money by a share, rounded to the cent, half to even."""
    return (money.cast(SIX_PLACES) * share.cast(RATIO)).round(2)


def part_of_price(money: pl.Expr) -> pl.Expr:
    """Return the GST in a price that includes it, rounded to the cent, half to even."""
    return money.cast(UNITS["AUD"]) / GST.divisor


def gst_assumptions(facts: Facts) -> pl.DataFrame:
    """Return for each customer with rows `gstRegistered`, `taxableShare`, and the source of each (`…From`).

    Where the client states nothing, a business counts as registered if a year's turnover reaches the limit, and
    everything that can be taxed counts as taxed.
    """
    details = facts.history.lazy().join(attributes(facts), on=BY_CUSTOMER, how="left", validate="1:1")
    by_turnover = details.join(_turnover(facts), on=BY_CUSTOMER, how="left", validate="1:1")
    return by_turnover.select(
        BY_CUSTOMER,
        gstRegistered=pl.coalesce("stated_registered", "reaches_limit"),
        gstRegisteredFrom=_origin("stated_registered", "turnover"),
        taxableShare=pl.coalesce("stated_share", pl.lit(1, RATIO)),
        taxableShareFrom=_origin("stated_share", "default"),
    ).pipe(collect)


def attributes(facts: Facts) -> pl.LazyFrame:
    """Return what the client stated: `stated_registered` and `stated_share` (0–1); null where it can't be read."""
    text = pl.col("value").str.strip_chars().str.to_lowercase()
    registered = text.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    share = text.cast(RATIO, strict=False)
    within = pl.when(share.is_between(0, 1)).then(share)
    return (
        facts.context.attributes.lazy()
        .group_by(BY_CUSTOMER)
        .agg(
            stated_registered=registered.filter(pl.col("name") == "gstRegistered").first(),
            stated_share=within.filter(pl.col("name") == "taxableShare").first(),
        )
    )


def _turnover(facts: Facts) -> pl.LazyFrame:
    """Return `reaches_limit`: the last year's revenue (a shorter history scaled to a year) reaches the limit."""
    days = (pl.col("data_through") - pl.col("first_date")).dt.total_days() + 1
    counted = days.clip(GST.least_days, DAYS_OF_TURNOVER)
    last_year = facts.rows.lazy().filter(pl.col("is_revenue"), pl.col("age") < DAYS_OF_TURNOVER)
    revenue = last_year.group_by(BY_CUSTOMER).agg(revenue=pl.col("amount").cast(UNITS["AUD"]).sum())
    return (
        facts.history.lazy()
        .join(revenue, on=BY_CUSTOMER, how="left", validate="1:1")
        .select(
            BY_CUSTOMER,
            reaches_limit=pl.col("revenue").fill_null(0) * DAYS_OF_TURNOVER >= GST.registered_from * counted,
        )
    )


def _origin(stated: str, otherwise: str) -> pl.Expr:
    return pl.when(pl.col(stated).is_not_null()).then(pl.lit("attribute")).otherwise(pl.lit(otherwise))


def sums_by_month(facts: Facts) -> pl.LazyFrame:
    """Return sums by `month` of rows that are alike in everything that tax figures depend on."""
    is_revenue = pl.col("categoryGroup").eq_missing("revenue") & pl.col("is_external")
    return facts.cached(by_category_and_month).lazy().with_columns(is_revenue=is_revenue)


def months_with_assumptions(facts: Facts) -> pl.LazyFrame:
    assumptions = facts.cached(gst_assumptions).lazy()
    return facts.cached(months).lazy().join(assumptions, on=BY_CUSTOMER, how="left", validate="m:1")


REGISTERED = Column("gstRegistered", "boolean", meaning="registered for GST: charges it and may claim it")
TAXABLE_SHARE = Column("taxableShare", "ratio", meaning="share of `revenueOfTaxedKinds` that is sold with GST")
OF_TAXED_KINDS = Total(
    "revenueOfTaxedKinds",
    "AUD",
    pl.when(is_taxed_revenue()).then("amount"),
    meaning="revenue without the kinds that are sold without GST",
)
TAKINGS = (
    Total("revenue", "AUD", pl.when("is_revenue").then("amount"), meaning="trading receipts, less refunds"),
    OF_TAXED_KINDS,
)
TAXABLE_REVENUE = Derived(
    "taxableRevenue",
    "AUD",
    ("revenueOfTaxedKinds", "taxableShare"),
    times(pl.col("revenueOfTaxedKinds"), pl.col("taxableShare")),
    "revenueOfTaxedKinds × taxableShare, to the cent",
)


def gst_if_registered(gst: pl.Expr) -> pl.Expr:
    """Return the GST, or 0 for a business that isn't registered: it neither charges nor claims GST."""
    return pl.when("gstRegistered").then(gst).otherwise(pl.lit(0, UNITS["AUD"]))


GST_ON_SALES = Derived(
    "gstOnSales",
    "AUD",
    ("taxableRevenue", "gstRegistered"),
    gst_if_registered(part_of_price(pl.col("taxableRevenue"))),
    f"taxableRevenue ÷ {GST.divisor}, to the cent; 0 when not registered",
)
GST_REVENUE = Table(
    id="gst_revenue",
    name="Revenue with and without GST",
    hierarchy="customer",
    type="time_series",
    meaning="Takings include GST. How much depends on whether the business is registered, and on the taxable share of "
    "its takings. Where `…From` is attribute, the client stated the value. Otherwise it is assumed: registration from "
    "the turnover, and everything that can be taxed as taxed.",
    keys=(MONTH,),
    details=(
        PARTIAL,
        REGISTERED,
        Column("gstRegisteredFrom", "text", meaning=f"attribute, or turnover: from {GST.registered_from:,} AUD a year"),
        TAXABLE_SHARE,
        Column("taxableShareFrom", "text", meaning="attribute, or default: all of it"),
    ),
    listed=months_with_assumptions,
    sources=(
        Source(
            lambda facts: facts.rows.lazy(),
            TAKINGS,
            summed=lambda facts: sum_totals(sums_by_month(facts), ("month",), TAKINGS),
        ),
    ),
    derived=(
        TAXABLE_REVENUE,
        GST_ON_SALES,
        Derived(
            "revenueWithoutGst",
            "AUD",
            ("revenue", "gstOnSales"),
            pl.col("revenue") - pl.col("gstOnSales"),
            "revenue − gstOnSales",
        ),
    ),
    order=("month",),
)
