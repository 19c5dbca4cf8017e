"""Which tables of the aggregate report the page shows, in which order and with which columns.

The annex holds every table in full; sections show the columns that people look for first. A table that a report doesn't
have is left out; a section whose tables have no rows says so.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pipelines.pages import Grid, Note, Section
from pipelines.pages.wording import spell_out
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.tables import Table


@dataclass(frozen=True)
class Chosen:
    """A table that a section shows.

    Args:
        columns: in the order shown; all of the table's if empty.
        caption: the table's name if None.
        split: a column; each of its values has a grid of its own.
    """

    table: str
    columns: tuple[str, ...] = ()
    caption: str | None = None
    split: str | None = None


@dataclass(frozen=True)
class Plan:
    """A section: its tables, and what it says when these have no rows."""

    id: str
    title: str
    tables: tuple[Chosen, ...]
    none: str


def _choose(table: str, columns: str = "", caption: str | None = None, split: str | None = None) -> Chosen:
    return Chosen(table, tuple(columns.split()), caption, split)


SECTIONS = (
    Plan(
        "monthly",
        "Month by month",
        (
            _choose(
                "monthly_cash_flow",
                "month partial moneyIn moneyOut net revenue closingBalance minBalance negativeDays dishonours",
            ),
            _choose(
                "monthly_cash_flow",
                "month payroll debtService tax transfersIn transfersOut meanBalance",
                "Wages, debt, tax and transfers by month",
            ),
            _choose(
                "rolling_windows",
                "days moneyIn moneyOut net revenue payroll debtService tax minBalance",
            ),
        ),
        "No months yet.",
    ),
    Plan(
        "years",
        "By year and quarter",
        (
            _choose("financial_year", "name complete moneyIn moneyOut net revenue payroll debtService tax"),
            _choose("quarters", "name complete moneyIn moneyOut net revenue payroll debtService tax"),
            _choose("seasonality", "month partial revenue revenueYearBefore revenueGrowth"),
        ),
        "No years yet.",
    ),
    Plan(
        "profit",
        "Cash profit and loss",
        (
            _choose(
                "profit_and_loss",
                "month revenue costOfSales grossProfit otherIncome payroll premises operations vehicleTravel "
                "operatingResult",
                "From revenue to the operating result",
            ),
            _choose(
                "profit_and_loss",
                "month operatingResult financeCosts tax resultAfterTax financing investing owner returnedPayments "
                "unallocated net",
                "From the operating result to what was kept",
            ),
        ),
        "No months yet.",
    ),
    Plan(
        "revenue",
        "Revenue",
        (
            _choose(
                "revenue_sources",
                "category receipts givenBack revenue shareOfReceipts transactionCount netOfFees grossReceipts",
            ),
            _choose("gst_revenue", "month revenue revenueOfTaxedKinds taxableRevenue gstOnSales revenueWithoutGst"),
            _choose("revenue_concentration"),
            _choose("excluded_receipts"),
        ),
        "No revenue was recognised.",
    ),
    Plan(
        "counterparties",
        "Whom money came from and went to",
        (_choose("top_counterparties", "name kind amount share transactionCount monthsSeen trend", split="direction"),),
        "No counterparties were recognised.",
    ),
    Plan(
        "recurring",
        "What recurs",
        (
            _choose(
                "recurring_commitments",
                "counterparty category period usualAmount monthlyAmount occurrences lastDate nextExpectedDate",
                split="direction",
            ),
            _choose(
                "regular_income",
                "counterparty kind wagesProbability benefitProbability pensionProbability rentProbability "
                "contractRevenueProbability regularProbability period usualDay paidShare usualAmount monthlyAmount "
                "nextExpectedDate",
            ),
        ),
        "Nothing was found that recurs.",
    ),
    Plan(
        "facilities",
        "Debt",
        (
            _choose(
                "facilities",
                "lenderName product status fundingDate fundingAmount repaymentCount repaidTotal lastRepaymentDate "
                "missedPayments estimatedRemaining remainingLow remainingHigh inferred",
            ),
        ),
        "No lenders were recognised.",
    ),
    Plan(
        "dishonours",
        "Dishonours",
        (_choose("dishonours", "date amount counterparty description"),),
        "No payment of the customer bounced.",
    ),
    Plan(
        "tax",
        "Tax and super",
        (
            _choose(
                "super_obligations",
                "periodStart periodEnd kind dueDate wagesPaid expectedSuper superPaid shortfall status",
            ),
            _choose("tax_obligations", "periodStart periodEnd dueDate impliedTotal paid variance daysLate status"),
        ),
        "Nothing was due, and nothing paid.",
    ),
)
_DIRECTIONS: Mapping[str, str] = {
    "in": "Money in",
    "credit": "Money in",
    "out": "Money out",
    "debit": "Money out",
}


def sections(
    plans: Sequence[Plan], tables: Mapping[str, Table], only: Collection[str] | None = None
) -> tuple[Section, ...]:
    """Return the sections that have at least one table in the report; with `only`, the other sections are empty."""
    shown = (plan for plan in plans if any(each.table in tables for each in plan.tables))
    return tuple(
        _section(plan, tables) if only is None or plan.id in only else Section(plan.id, plan.title, ())
        for plan in shown
    )


def _section(plan: Plan, tables: Mapping[str, Table]) -> Section:
    grids = [grid for each in plan.tables if each.table in tables for grid in _grids(tables[each.table], each)]
    return Section(plan.id, plan.title, tuple(grids) or (Note(plan.none),))


def _grids(table: Table, chosen: Chosen) -> list[Grid]:
    if not table.rows:
        return []
    if chosen.split is None or chosen.split not in table.units:
        return [table.grid(chosen.caption, chosen.columns)]
    return [_part(table, chosen, chosen.split, value) for value in _values(table.rows, chosen.split)]


def _part(table: Table, chosen: Chosen, split: str, value: str) -> Grid:
    caption = f"{table.name}: {_DIRECTIONS.get(value) or spell_out(value)}"
    return table.select_rows(lambda row: (row.text(split) or "") == value).grid(caption, chosen.columns)


def _values(rows: Sequence[Fields], name: str) -> list[str]:
    """Return the different texts in a column, in the order that they come."""
    return list(dict.fromkeys(row.text(name) or "" for row in rows))
