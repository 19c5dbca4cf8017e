"""Attribute payments to debts: each payment settles the oldest debt first."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS

AMOUNT = UNITS["AUD"]

_PARTS = pl.Schema({BY_CUSTOMER: pl.Int64(), "periodEnd": pl.Date(), "payment": pl.UInt32(), "part": AMOUNT})
_REST = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "payment": pl.UInt32(),
        "date": pl.Date(),
        "periodEnd": pl.Date(),
        "until": pl.Date(),
        "amount": AMOUNT,
    }
)


class Attribution(NamedTuple):
    """Which payments settled which debts.

    `parts`: of each payment for each debt: `customer_number, periodEnd, payment, part` (AUD, above zero). `rest`: what
    is left of payments once all debts open on that day are settled: `customer_number, payment, date, amount` (above
    zero), and `periodEnd` and `until` of the latest debt that had begun, null if there was none.
    """

    parts: pl.DataFrame
    rest: pl.DataFrame


@dataclass
class _Debt:
    """A debt and what is still unpaid of it, `need`."""

    period_end: date
    begins: date
    until: date
    need: Decimal


def attribute_to_oldest(owed: pl.DataFrame, payments: pl.DataFrame) -> Attribution:
    """Attribute each payment to the oldest debt that is open on its day and not yet settled, then to the next.

    A debt is open from the day `begins` through the day `until`; what is unpaid by then stays unpaid.

    Args:
        owed: `customer_number, periodEnd` (the debt's name), `begins`, `until`, `need` (AUD, not negative). In the
            order of `periodEnd`, neither `begins` nor `until` decreases.
        payments: `customer_number, payment` (a number; increasing within a customer as the dates do), `date`,
            `amount` (AUD, above zero).
    """
    debts: defaultdict[int, list[_Debt]] = defaultdict(list)
    for customer, *debt in owed.sort("periodEnd").select(BY_CUSTOMER, "periodEnd", "begins", "until", "need").rows():
        debts[customer].append(_Debt(*debt))
    first_open: defaultdict[int, int] = defaultdict(int)
    parts, rest = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for customer, payment, day, amount in payments.sort("payment").select(_PAYMENT).rows():
        own_debts, first = debts[customer], first_open[customer]
        begun, left = bisect_right(own_debts, day, key=lambda debt: debt.begins), amount
        while first < begun and (own_debts[first].until < day or left > 0):
            debt = own_debts[first]
            if debt.until >= day and (part := min(left, debt.need)):
                parts.append((customer, debt.period_end, payment, part))
                left, debt.need = left - part, debt.need - part
            if debt.until >= day and debt.need:
                break
            first += 1
        first_open[customer] = first
        if left:
            latest = (own_debts[begun - 1].period_end, own_debts[begun - 1].until) if begun else (None, None)
            rest.append((customer, payment, day, *latest, left))
    return Attribution(pl.DataFrame(parts, _PARTS, orient="row"), pl.DataFrame(rest, _REST, orient="row"))


_PAYMENT = (BY_CUSTOMER, "payment", "date", "amount")
