"""Flows: the sums and counts that most tables show, each defined once, and summed once by day and by month.

Own transfers are left out of `moneyIn`, `moneyOut` and the counts; they have sums of their own.
"""

from collections.abc import Callable, Sequence

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Derived, Source, Total

_EXTERNAL, _ONE = pl.col("is_external"), pl.lit(1)
MONEY_IN = Total(
    "moneyIn",
    "AUD",
    pl.when(_EXTERNAL).then("money_in"),
    meaning="money in from others, own transfers left out",
)
MONEY_OUT = Total(
    "moneyOut",
    "AUD",
    pl.when(_EXTERNAL).then("money_out"),
    meaning="money out to others, own transfers left out",
)
TRANSFERS = (
    Total(
        "transfersIn",
        "AUD",
        pl.when(~_EXTERNAL).then("money_in"),
        meaning="money in from own accounts and declared related parties",
    ),
    Total(
        "transfersOut",
        "AUD",
        pl.when(~_EXTERNAL).then("money_out"),
        meaning="money out to own accounts and declared related parties",
    ),
)
COUNTS = (
    Total("creditCount", "count", pl.when(words.is_credit() & _EXTERNAL).then(_ONE), meaning="rows of `moneyIn`"),
    Total("debitCount", "count", pl.when(words.is_debit() & _EXTERNAL).then(_ONE), meaning="rows of `moneyOut`"),
)
REVENUE = Total(
    "revenue",
    "AUD",
    pl.when("is_revenue").then("amount"),
    meaning="trading receipts less refunds and chargebacks; no own transfers, related parties, loans of owners or "
    "lenders, returned payments",
)
PAYROLL = Total(
    "payroll",
    "AUD",
    pl.when(words.is_payroll()).then("money_out"),
    meaning="paid for staff: wages, superannuation, labour hire, workers compensation",
)
DEBT_SERVICE = Total(
    "debtService",
    "AUD",
    pl.when(words.is_debt_service()).then("money_out"),
    meaning="repayments, interest and fees paid to lenders",
)
TAX = Total(
    "tax",
    "AUD",
    pl.when(words.is_tax()).then("money_out"),
    meaning="paid to tax offices and councils; refunds not deducted",
)
DISHONOURS = Total(
    "dishonours",
    "count",
    pl.when(words.is_returned_payment()).then(_ONE),
    meaning="the customer's payments that came back because they could not be met",
)
TRANSACTIONS = Total("transactionCount", "count", _ONE, meaning="posted rows")
KEY_FLOWS = (REVENUE, PAYROLL, DEBT_SERVICE, TAX, DISHONOURS)
FLOWS = (MONEY_IN, MONEY_OUT, *TRANSFERS, *COUNTS, *KEY_FLOWS)
_ALL = (*FLOWS, TRANSACTIONS)
_DAILY = (MONEY_IN, MONEY_OUT, *COUNTS, *KEY_FLOWS)
NET = Derived(
    "net",
    "AUD",
    ("moneyIn", "moneyOut"),
    pl.col("moneyIn") - pl.col("moneyOut"),
    "moneyIn − moneyOut",
)

AddKeys = Callable[[pl.LazyFrame, Facts], pl.LazyFrame]


def flow_parts(facts: Facts) -> pl.DataFrame:
    """Return each row with what it adds to each flow."""
    return facts.rows.select(*BY_ACCOUNT, "month", "date", *(total.contribution for total in _ALL))


def by_account_and_month(facts: Facts) -> pl.DataFrame:
    return facts.cached(flow_parts).group_by(*BY_ACCOUNT, "month").agg(_sums(_ALL))


def by_month(facts: Facts) -> pl.DataFrame:
    return facts.cached(by_account_and_month).group_by(BY_CUSTOMER, "month").agg(_sums(_ALL))


def by_day(facts: Facts) -> pl.DataFrame:
    return facts.cached(flow_parts).group_by(BY_CUSTOMER, "date").agg(_sums(_DAILY))


def flows(
    add_keys: AddKeys,
    keys: Sequence[str],
    summed: Callable[[Facts], pl.DataFrame],
    totals: tuple[Total, ...] = FLOWS,
    finer: bool = True,
) -> Source:
    """Return a source of flows by the keys that `add_keys` adds to rows.

    Args:
        add_keys: frame with a date or month → the same with `keys`; a row may count under several.
        summed: the flows by finer keys, to which `add_keys` can be applied just as to rows.
        finer: false if `summed` has one row for each of the keys already.
    """

    def sums(facts: Facts) -> pl.LazyFrame:
        flows = add_keys(facts.cached(summed).lazy(), facts)
        return (
            flows.group_by(BY_CUSTOMER, *keys).agg(_sums(totals)) if finer else flows.select(BY_CUSTOMER, *keys, *names)
        )

    names = [total.name for total in totals]
    return Source(
        rows=lambda facts: add_keys(facts.rows.lazy(), facts),
        totals=totals,
        keys=tuple(keys),
        summed=sums,
    )


def _sums(totals: Sequence[Total]) -> list[pl.Expr]:
    return [total.summed for total in totals]
