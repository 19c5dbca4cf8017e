"""The evidence behind a customer's readings: how much of the money is categorised and proven, and what is unknown.

It is a table with one row per customer, so that each figure can be traced to its transactions (`figures.tables`).
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.risk_models.coverage import is_covered
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO, ratio

WINDOW = 180  # days before the customer's last row


def _window(facts: Facts) -> pl.LazyFrame:
    return facts.rows.lazy().filter(pl.col("age") < WINDOW)


def _overdrawn_closings(facts: Facts) -> pl.LazyFrame:
    """Return negative closing balances of cash accounts without a known limit, each with its `days` in the window."""
    before = ((pl.col("data_through") - pl.col("date")).dt.total_days() - (WINDOW - 1)).clip(lower_bound=0)
    below = (pl.col("closing_balance") < 0) & pl.col("credit_limit").is_null()
    dated = facts.derived_closings.lazy().join(facts.history.lazy(), on=BY_CUSTOMER, how="left", validate="m:1")
    return dated.filter(below).with_columns(days=(pl.col("days_held") - before).clip(lower_bound=0))


def _stated_closings(facts: Facts) -> pl.LazyFrame:
    return facts.closings.lazy().filter(pl.col("closing_balance").is_not_null()).with_columns(one=1)


_SIZE = pl.col("amount").abs()
EVIDENCE = Table(
    id="evidence",
    name="Evidence behind the readings",
    hierarchy="customer",
    type="summary",
    keys=(),
    listed=lambda facts: facts.customers.lazy().join(facts.history.lazy(), on=BY_CUSTOMER, how="left", validate="1:1"),
    details=(Column("first_date", "date"), Column("data_through", "date")),
    sources=(
        Source(
            _window,
            (
                Total("moved", "AUD", _SIZE),
                Total("categorisedMoved", "AUD", pl.when(is_covered()).then(_SIZE)),
                Total("provenMoved", "AUD", pl.when(pl.col("balance_verified")).then(_SIZE)),
                Total("unreconciledMoved", "AUD", pl.when("is_unreconciled").then(_SIZE)),
                Total("revenue", "AUD", pl.when(pl.col("is_revenue")).then(pl.col("amount"))),
            ),
        ),
        Source(_overdrawn_closings, (Total("unknownLimitDays", "days", pl.col("days")),)),
        Source(_stated_closings, (Total("statedBalances", "count", pl.col("one")),)),
    ),
    derived=(
        Derived(
            "categorised",
            "ratio",
            ("categorisedMoved", "moved"),
            ratio(pl.col("categorisedMoved"), pl.col("moved")),
            f"share of the money moved in the last {WINDOW} days that counts as categorised",
        ),
        Derived(
            "proven",
            "ratio",
            ("provenMoved", "moved"),
            ratio(pl.col("provenMoved"), pl.col("moved")),
            f"share of the money moved in the last {WINDOW} days on rows whose balance follows from the one before",
        ),
        Derived(
            "reconciled",
            "ratio",
            ("unreconciledMoved", "moved"),
            (1 - ratio(pl.col("unreconciledMoved"), pl.col("moved"))).cast(RATIO),
            f"1 less the share of the money moved in the last {WINDOW} days on rows that their statement doesn't prove",
        ),
    ),
    order=(),
)


def evidence(facts: Facts) -> pl.DataFrame:
    """Return `customer_number` and EVIDENCE's columns for every customer; sums are 0 where there are no rows."""
    return EVIDENCE.rows(facts).sort(BY_CUSTOMER).pipe(collect)
