"""Find payment plans with a tax office that no words name."""

import polars as pl

from pipelines.enrichment.facilities.inferring.payments import DEALING, MIN_DEBITS

# The numbers are our judgement.
MONTH_DAYS = 33  # most days between the instalments of a plan: instalments of income tax are quarterly
MONTHLY_SHARE = 0.7  # share of the gaps between instalments that must not be longer than MONTH_DAYS


def find_tax_plans(to_office: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of plans with a tax office that no words name; each amount is a plan of its own.

    An instalment may be missed. Tax withheld from constant wages is equal only in two months of a quarter.

    Args:
        to_office: payments to tax offices, from `select_payments`.
    """
    if to_office.height < MIN_DEBITS:  # true of many customers
        return to_office.clear()
    paid = to_office.with_columns(lender="tax " + pl.col("size").cast(pl.String))
    soon = pl.col("date").unique().sort().diff().dt.total_days() <= MONTH_DAYS
    plans = paid.group_by(DEALING).agg(days=pl.col("date").n_unique(), monthly=soon.mean())
    equal = plans.filter(pl.col("days") >= MIN_DEBITS, pl.col("monthly") >= MONTHLY_SHARE)
    return paid.join(equal, on=DEALING, how="semi").with_columns(product=pl.lit("tax_payment_plan"))
