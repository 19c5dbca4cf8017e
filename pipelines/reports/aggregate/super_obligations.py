"""Superannuation: what wages imply, against what reached funds and clearing houses by the due date.

Until payday super begins, super for a quarter's wages is due 28 days after the quarter's end. From then on every payday
is a period of its own, due seven business days later. Statements show wages net of the tax withheld, so the wage that
super is computed from is an estimate: the table shows the share assumed to be withheld, and `met` leaves room for its
error.
"""

from dataclasses import replace

import polars as pl

from pipelines.figures import words
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS, Column, Derived, Source, Table, Total
from pipelines.reports.aggregate import due_dates
from pipelines.reports.aggregate.gst import times
from pipelines.reports.aggregate.payment_order import attribute_to_oldest
from pipelines.reports.aggregate.tax_rules import OBLIGATIONS
from pipelines.vocabulary.plans import collect

RULES = OBLIGATIONS.super_guarantee
PERIOD_END = "periodEnd"


def payroll_rows(category: str, facts: Facts) -> pl.DataFrame:
    paid = pl.col("category").eq_missing(category) & words.is_debit() & pl.col("is_external")
    return facts.rows.lazy().filter(paid).select(BY_CUSTOMER, "transaction_id", "date", "money_out").pipe(collect)


def wage_rows(facts: Facts) -> pl.DataFrame:
    return payroll_rows("wages", facts)


def super_rows(facts: Facts) -> pl.DataFrame:
    """Return payments to super funds and clearing houses."""
    return payroll_rows("superannuation", facts)


def is_payday_super(day: pl.Expr) -> pl.Expr:
    return day >= RULES.payday_super_from


def periods(facts: Facts) -> pl.DataFrame:
    """Return every period that super may be due for, by customer and `periodEnd`.

    `periodStart`, `kind`, `dueDate`, the rates, `first_date`, `partial` and `due`. The quarter before the history is
    included if its due date lies within the history.
    """
    end = pl.col(PERIOD_END)
    columns = (BY_CUSTOMER, "first_date", "data_through", "kind", "periodStart", PERIOD_END, "dueDate")
    quarters = (
        due_dates.quarters(facts)
        .filter(~is_payday_super(end))
        .with_columns(kind=pl.lit("quarterly"), dueDate=due_dates.super_due(end))
        .filter(pl.col("dueDate") >= pl.col("first_date"))
    )
    every = pl.concat([frame.select(columns) for frame in (quarters, _paydays(facts))])
    return every.with_columns(**_RATES).pipe(due_dates.mark_periods).pipe(collect)


_RATES = {
    "rate": RULES.rates.share_on(pl.col(PERIOD_END)),
    "assumedWithholding": OBLIGATIONS.withheld.share_on(pl.col(PERIOD_END)),
}


def _paydays(facts: Facts) -> pl.LazyFrame:
    """Return each payday with its period: from a week before it, or from the day after the previous payday if later."""
    wages = facts.cached(wage_rows).lazy()
    days = wages.filter(is_payday_super(pl.col("date"))).select(BY_CUSTOMER, "date").unique()
    day = pl.col("date")
    after_last = day.shift(1).over(BY_CUSTOMER, order_by="date") + pl.duration(days=1)
    earliest = day - pl.duration(days=RULES.days_ahead)
    return days.join(facts.history.lazy(), on=BY_CUSTOMER, how="left", validate="m:1").with_columns(
        kind=pl.lit("payday"),
        periodStart=pl.max_horizontal(after_last, earliest, pl.lit(RULES.payday_super_from)),
        periodEnd=day,
        dueDate=due_dates.business_days_after(day, RULES.business_days),
    )


def expected_super(facts: Facts) -> pl.DataFrame:
    """Return the rows of EXPECTED."""
    return EXPECTED.rows(facts).pipe(collect)


def listed_periods(facts: Facts) -> pl.LazyFrame:
    return facts.cached(expected_super).lazy().pipe(due_dates.listed_periods)


def wages(facts: Facts) -> pl.LazyFrame:
    """Return wages by the period that their super belongs to."""
    day = pl.col("date")
    end = pl.when(is_payday_super(day)).then(day).otherwise(due_dates.quarter_end(day))
    return facts.cached(wage_rows).lazy().with_columns(periodEnd=end)


def super_by_period(facts: Facts) -> pl.DataFrame:
    """Return payments of super by the period they are attributed to: `periodEnd`, `transaction_id`, `part` (AUD).

    The oldest open period comes first. What no period needs stays with the latest one that has begun, if it may still
    be paid. From the start of payday super, the quarters before it come first, as the law has it, then the paydays.
    """
    paid = facts.cached(super_rows).with_row_index("payment")
    payments = paid.select(BY_CUSTOMER, "payment", "date", amount="money_out")
    owed = _super_debts(facts)
    for_paydays = is_payday_super(pl.col("date"))
    quarterly = attribute_to_oldest(owed.filter(pl.col("kind") == "quarterly"), payments)
    left = quarterly.rest.filter(for_paydays).select(payments.columns)
    payday = attribute_to_oldest(owed.filter(pl.col("kind") == "payday"), left)
    surplus = pl.concat([quarterly.rest.filter(~for_paydays), payday.rest]).filter(pl.col("date") <= pl.col("until"))
    parts = pl.concat(
        [quarterly.parts, payday.parts, surplus.select(BY_CUSTOMER, PERIOD_END, "payment", part="amount")]
    )
    return parts.join(paid.select("payment", "transaction_id"), on="payment", how="left", validate="m:1")


def _super_debts(facts: Facts) -> pl.DataFrame:
    """Return periods as debts for `attribute_to_oldest`, with `kind`."""
    with_habits = facts.cached(expected_super).lazy().join(_habits(facts), on=BY_CUSTOMER, how="left", validate="m:1")
    debts = with_habits.select(
        BY_CUSTOMER, PERIOD_END, "kind", begins="periodStart", until="dueDate", need=_needed_super().fill_null(0)
    )
    return debts.pipe(collect)


def _habits(facts: Facts) -> pl.LazyFrame:
    """Return `all_paid` of customers that pay super, and `with_wages`: it is paid at least half as often as wages."""
    days = pl.col("date").n_unique()
    paid = facts.cached(super_rows).lazy().group_by(BY_CUSTOMER)
    payroll = facts.cached(wage_rows).lazy().group_by(BY_CUSTOMER).agg(wage_days=days)
    return (
        paid.agg(all_paid=pl.col("money_out").cast(UNITS["AUD"]).sum(), super_days=days)
        .join(payroll, on=BY_CUSTOMER, how="left", validate="1:1")
        .select(BY_CUSTOMER, "all_paid", with_wages=pl.col("super_days") * 2 >= pl.col("wage_days").fill_null(0))
    )


def _needed_super() -> pl.Expr:
    """Return the super expected for a period.

    It is unknown for a quarter that began before the history, because not all of its wages are seen. Such a quarter
    takes everything that is paid by its due date, unless super is paid along with wages: then each payment is for wages
    that are seen, too.
    """
    unknown = (pl.col("kind") == "quarterly") & (pl.col("periodStart") < pl.col("first_date")) & ~pl.col("with_wages")
    return pl.when(unknown).then("all_paid").otherwise("expectedSuper")


PERIOD = (
    Column("periodStart", "date", meaning="first day of the period"),
    Column(PERIOD_END, "date", meaning="last day of the period"),
)
DUE_DATE = Column("dueDate", "date", meaning="last day to pay in time")
PARTIAL = Column("partial", "boolean", meaning="the history starts or ends within the period")
DUE = Column("due", "boolean", meaning="the history reaches the due date")
WITHHELD = Column("assumedWithholding", "ratio", meaning="assumed share of gross wages that is kept back for tax")
ASSUMED_GROSS = Derived(
    "assumedGross",
    "AUD",
    ("wagesPaid", "assumedWithholding"),
    pl.col("wagesPaid") / (1 - pl.col("assumedWithholding")),
    "wagesPaid ÷ (1 − assumedWithholding), to the cent",
)
EXPECTED = Table(
    id="expected_super",
    name="Super that wages imply",
    hierarchy="customer",
    type="time_series",
    keys=PERIOD,
    details=(
        Column("kind", "text", meaning="quarterly, or payday"),
        DUE_DATE,
        PARTIAL,
        DUE,
        Column("rate", "ratio", meaning="the superannuation guarantee's share of gross wages"),
        WITHHELD,
    ),
    listed=lambda facts: facts.cached(periods).lazy(),
    sources=(
        Source(
            wages, (Total("wagesPaid", "AUD", pl.col("money_out"), meaning="net of tax withheld"),), keys=(PERIOD_END,)
        ),
    ),
    derived=(
        ASSUMED_GROSS,
        Derived(
            "expectedSuper",
            "AUD",
            ("assumedGross", "rate"),
            times(pl.col("assumedGross"), pl.col("rate")),
            "assumedGross × rate, to the cent",
        ),
    ),
    order=(PERIOD_END,),
)


def _status() -> pl.Expr:
    paid, expected = pl.col("superPaid"), pl.col("expectedSuper")
    return (
        pl.when(pl.col("wagesPaid") == 0)
        .then(pl.lit("no_wages"))
        .when(paid >= times(expected, pl.lit(RULES.met_from)))
        .then(pl.lit("met"))
        .when(~pl.col("due"))
        .then(pl.lit("not_due"))
        .when(paid < times(expected, pl.lit(RULES.missing_below)))
        .then(pl.lit("missing"))
        .otherwise(pl.lit("short"))
    )


PAID = Source(
    lambda facts: facts.cached(super_by_period).lazy(),
    (Total("superPaid", "AUD", pl.col("part"), meaning="attributed to the period, paid through its due date"),),
    keys=(PERIOD_END,),
)
SUPER_OBLIGATIONS = replace(
    EXPECTED,
    id="super_obligations",
    name="Superannuation: due and paid",
    meaning="What wages imply, against what funds and clearing houses were paid. For wages paid before "
    f"{RULES.payday_super_from:%-d %B %Y}, super is due {RULES.due_day} days after the quarter's end; from then on, "
    f"{RULES.business_days} business days after each payday. A payday's period starts {RULES.days_ahead} days before "
    "it, when its super may first be paid, or after the previous payday if that is later. Payments go to the oldest "
    "open period first.",
    listed=listed_periods,
    sources=(*(replace(source, is_listed=True) for source in EXPECTED.sources), PAID),
    derived=(
        *EXPECTED.derived,
        Derived(
            "shortfall",
            "AUD",
            ("expectedSuper", "superPaid"),
            pl.max_horizontal(pl.col("expectedSuper") - pl.col("superPaid"), pl.lit(0, UNITS["AUD"])),
            "expectedSuper − superPaid, not below 0",
        ),
        Derived(
            "status",
            "text",
            ("wagesPaid", "expectedSuper", "superPaid", "due"),
            _status(),
            f"no_wages; met from {RULES.met_from} of expectedSuper; not_due while the history ends before dueDate; "
            f"missing below {RULES.missing_below} of expectedSuper; else short",
        ),
    ),
)
