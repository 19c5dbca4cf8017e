"""Activity statements: what a quarter's takings, costs and wages imply, against what the tax office was paid.

The implied tax is GST on sales, minus GST in costs, plus the tax withheld from wages. It is compared with payments of
the categories `bas` and `payg_withholding`, minus refunds. Instalments of income tax, income tax itself, payment plans,
interest and penalties settle other debts: they are shown separately, in the quarter in which they were paid.
"""

from dataclasses import replace

import polars as pl

from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS, Derived, Source, Table, Total, sum_totals
from pipelines.reports.aggregate import due_dates
from pipelines.reports.aggregate.gst import (
    GST_ON_SALES,
    OF_TAXED_KINDS,
    REGISTERED,
    TAXABLE_REVENUE,
    TAXABLE_SHARE,
    gst_assumptions,
    gst_if_registered,
    is_taxed_cost,
    part_of_price,
    sums_by_month,
    times,
)
from pipelines.reports.aggregate.super_obligations import (
    ASSUMED_GROSS,
    DUE,
    DUE_DATE,
    PARTIAL,
    PERIOD,
    PERIOD_END,
    WITHHELD,
)
from pipelines.reports.aggregate.tax_rules import GST, OBLIGATIONS
from pipelines.vocabulary.plans import collect

RULES = OBLIGATIONS.activity_statements
STATEMENT_PAYMENTS = ("bas", "payg_withholding")


def is_category(*categories: str) -> pl.Expr:
    return pl.col("category").is_in(categories).fill_null(value=False) & pl.col("is_external")


def is_statement_payment() -> pl.Expr:
    return is_category(*STATEMENT_PAYMENTS) & words.is_debit()


def paid_in_quarter(name: str, category: str) -> Total:
    part = pl.when(is_category(category)).then(-pl.col("amount"))
    return Total(name, "AUD", part, meaning="paid in the quarter, minus what came back")


def periods(facts: Facts) -> pl.DataFrame:
    """Return each customer's quarters with the assumptions about them.

    The first is the quarter before the history, if its due date lies within the history.
    """
    end = pl.col(PERIOD_END)
    return (
        due_dates.quarters(facts)
        .with_columns(dueDate=due_dates.statement_due(end), assumedWithholding=OBLIGATIONS.withheld.share_on(end))
        .filter(pl.col("dueDate") >= pl.col("first_date"))
        .join(facts.cached(gst_assumptions).lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
        .pipe(due_dates.mark_periods)
        .pipe(collect)
    )


def implied_tax(facts: Facts) -> pl.DataFrame:
    """Return the rows of IMPLIED."""
    return IMPLIED.rows(facts).pipe(collect)


def listed_quarters(facts: Facts) -> pl.LazyFrame:
    return facts.cached(implied_tax).lazy().pipe(due_dates.listed_periods)


def rows_by_quarter(facts: Facts) -> pl.LazyFrame:
    return facts.rows.lazy().with_columns(periodEnd=due_dates.quarter_end(pl.col("date")))


def sums_by_quarter(facts: Facts) -> pl.LazyFrame:
    by_quarter = sums_by_month(facts).with_columns(periodEnd=due_dates.quarter_end(pl.col("month")))
    return sum_totals(by_quarter, (PERIOD_END,), OF_QUARTER)


def statement_rows(facts: Facts) -> pl.DataFrame:
    """Return payments to the tax office for statements, and its refunds.

    `before`: the last day of the quarter before the one that the row is dated in; `days_past`: days from the due date
    of that quarter's statement to the row; `paid`: the payment for statements; 0 for a refund, also if it is paid back.
    """
    before = due_dates.quarter_start(pl.col("date")).dt.offset_by("-1d")
    paid = pl.when(is_statement_payment()).then("money_out").otherwise(0).cast(UNITS["AUD"])
    return (
        facts.rows.lazy()
        .filter(is_statement_payment() | is_category("tax_refund"))
        .select(BY_CUSTOMER, "transaction_id", "date", "amount", before=before, paid=paid)
        .with_columns(days_past=(pl.col("date") - due_dates.statement_due(pl.col("before"))).dt.total_days())
        .pipe(collect)
    )


def settlements(facts: Facts) -> pl.DataFrame:
    """Return payments and refunds by the quarter they are attributed to: `periodEnd`; `days_late`, null when in time.

    A payment by the due date of the previous quarter's statement is for that quarter, a later one for the quarter in
    which it is made. But if the previous quarter went unpaid, a later payment is for the previous quarter too, late.
    """
    unpaid = _unpaid_quarters(facts).select(BY_CUSTOMER, "unpaid", before=PERIOD_END)
    in_time = pl.col("days_past") <= 0
    late = ~in_time & pl.col("unpaid").fill_null(value=False) & words.is_debit()
    return (
        facts.cached(statement_rows)
        .lazy()
        .join(unpaid, on=(BY_CUSTOMER, "before"), how="left", validate="m:1", maintain_order="left")
        .with_columns(
            periodEnd=pl.when(in_time | late).then("before").otherwise(due_dates.quarter_end(pl.col("date"))),
            days_late=pl.when(late).then("days_past"),
        )
        .select(BY_CUSTOMER, PERIOD_END, "transaction_id", "date", "amount", "days_late")
        .pipe(collect)
    )


def first_late_payment(facts: Facts) -> pl.LazyFrame:
    """Return the first payment after the due date of each quarter that was paid late."""
    late = facts.cached(settlements).lazy().drop_nulls("days_late")
    return late.unique((BY_CUSTOMER, PERIOD_END), keep="first", maintain_order=True)


def _unpaid_quarters(facts: Facts) -> pl.LazyFrame:
    """Return `unpaid` by customer and quarter: whether almost none of the implied tax was paid by the due date.

    A payment during a quarter is for that quarter, unless the quarter before went unpaid: then it is a late one for
    the quarter before. So a quarter is surely paid if the payments after its end are enough, and surely unpaid if even
    together with those during the quarter they are too little. In between, the result is that of the quarter before.
    """
    after_end = pl.col("days_past") <= 0
    quarter = pl.when(after_end).then("before").otherwise(due_dates.quarter_end(pl.col("date")))
    amount = pl.col("paid")
    paid = (
        facts.cached(statement_rows)
        .lazy()
        .group_by(BY_CUSTOMER, quarter.alias(PERIOD_END))
        .agg(in_all=amount.sum(), after_end=amount.filter(after_end).sum())
    )
    enough = times(pl.max_horizontal("impliedTotal", pl.lit(0, UNITS["AUD"])), pl.lit(RULES.unpaid_below))
    too_little, sufficient = pl.col("in_all").fill_null(0) < enough, pl.col("after_end").fill_null(0) >= enough
    sure = pl.when(too_little).then(pl.lit(value=True)).when(sufficient).then(pl.lit(value=False))
    return (
        facts.cached(implied_tax)
        .lazy()
        .join(paid, on=(BY_CUSTOMER, PERIOD_END), how="left", validate="1:1")
        .sort(BY_CUSTOMER, PERIOD_END)
        .with_columns(unpaid=sure.forward_fill().over(BY_CUSTOMER).fill_null(value=False))
    )


OF_QUARTER = (
    OF_TAXED_KINDS,
    Total(
        "taxedCosts", "AUD", pl.when(is_taxed_cost()).then(-pl.col("amount")), meaning="bought with GST, minus refunds"
    ),
    Total("wagesPaid", "AUD", pl.when(is_category("wages")).then("money_out"), meaning="net of tax withheld"),
    paid_in_quarter("instalments", "payg_instalment"),
    paid_in_quarter("incomeTax", "income_tax"),
    paid_in_quarter("paymentPlan", "tax_payment_plan"),
    paid_in_quarter("interestAndPenalties", "tax_interest"),
)
IMPLIED = Table(
    id="implied_tax",
    name="Tax that takings, costs and wages imply",
    hierarchy="customer",
    type="time_series",
    keys=PERIOD,
    details=(
        DUE_DATE,
        PARTIAL,
        DUE,
        REGISTERED,
        TAXABLE_SHARE,
        WITHHELD,
    ),
    listed=lambda facts: facts.cached(periods).lazy(),
    sources=(Source(rows_by_quarter, OF_QUARTER, keys=(PERIOD_END,), summed=sums_by_quarter),),
    derived=(
        TAXABLE_REVENUE,
        GST_ON_SALES,
        Derived(
            "gstInCosts",
            "AUD",
            ("taxedCosts", "gstRegistered"),
            gst_if_registered(part_of_price(pl.col("taxedCosts"))),
            f"taxedCosts ÷ {GST.divisor}, to the cent; 0 when not registered",
        ),
        Derived(
            "impliedGst",
            "AUD",
            ("gstOnSales", "gstInCosts"),
            pl.col("gstOnSales") - pl.col("gstInCosts"),
            "gstOnSales − gstInCosts",
        ),
        ASSUMED_GROSS,
        Derived(
            "impliedWithholding",
            "AUD",
            ("assumedGross", "wagesPaid"),
            pl.col("assumedGross") - pl.col("wagesPaid"),
            "assumedGross − wagesPaid",
        ),
        Derived(
            "impliedTotal",
            "AUD",
            ("impliedGst", "impliedWithholding"),
            pl.col("impliedGst") + pl.col("impliedWithholding"),
            "impliedGst + impliedWithholding",
        ),
    ),
    order=(PERIOD_END,),
)


def _status() -> pl.Expr:
    paid, implied = pl.col("paid"), pl.col("impliedTotal")
    return (
        pl.when(implied <= 0)
        .then(pl.lit("nothing_implied"))
        .when(paid < 0)
        .then(pl.lit("refunded"))
        .when(paid >= times(implied, pl.lit(RULES.met_from)))
        .then(pl.when(pl.col("daysLate").is_null()).then(pl.lit("met")).otherwise(pl.lit("late")))
        .when(~pl.col("due"))
        .then(pl.lit("not_due"))
        .when(paid < times(implied, pl.lit(RULES.missing_below)))
        .then(pl.lit("missing"))
        .otherwise(pl.lit("short"))
    )


TAX_OBLIGATIONS = replace(
    IMPLIED,
    id="tax_obligations",
    name="Activity statements: implied and paid",
    meaning="What a quarter's takings, costs and wages imply, against what the tax office was paid for it as activity "
    "statements and withheld tax, minus refunds. A payment is for the quarter whose statement is due next. But if "
    "hardly anything was paid in time for the quarter before, it is a late payment for the quarter before.",
    listed=listed_quarters,
    sources=(
        *(replace(source, is_listed=True) for source in IMPLIED.sources),
        Source(
            lambda facts: facts.cached(settlements).lazy(),
            (Total("paid", "AUD", -pl.col("amount"), meaning="paid for the quarter, minus refunds"),),
            keys=(PERIOD_END,),
        ),
        Source(
            first_late_payment,
            (
                Total(
                    "daysLate",
                    "days",
                    pl.col("days_late"),
                    complete=True,
                    meaning="how many days late the first late payment was; null: none was late",
                ),
            ),
            keys=(PERIOD_END,),
        ),
    ),
    derived=(
        *IMPLIED.derived,
        Derived(
            "variance", "AUD", ("paid", "impliedTotal"), pl.col("paid") - pl.col("impliedTotal"), "paid − impliedTotal"
        ),
        Derived(
            "status",
            "text",
            ("impliedTotal", "paid", "daysLate", "due"),
            _status(),
            f"nothing_implied; refunded; met, or late, from {RULES.met_from} of impliedTotal; not_due while the "
            f"history ends before dueDate; missing below {RULES.missing_below} of impliedTotal; else short",
        ),
    ),
)
