"""The page's charts: which figures of the reports they show, and the sentences that describe them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from pipelines.reports.page import charts
from pipelines.reports.page.charts import LineChart, MonthChart, RowChart, Span
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.grids import NO_TABLE, Column, Grid, Table
from pipelines.reports.page.naming import account_name, driver_name, points_of_most
from pipelines.reports.page.wording import (
    UNKNOWN,
    counted,
    day,
    dollars,
    heading,
    money,
    month,
    plain,
    shortened,
    words_of,
)

LABEL, LONG_LABEL = 32, 42  # characters of a label that fit beside a figure, and beside a word or two
MOST_BARS = 8  # our judgement, like MOST_SPANS: more are hard to read
MOST_SPANS = 60
RUNNING = frozenset({"active", "in_arrears"})

Tables: TypeAlias = Mapping[str, Table]
History: TypeAlias = tuple[date | None, date | None]  # the data's first and last day
ZERO = Decimal(0)


@dataclass(frozen=True)
class Figure:
    """A chart with its title, a sentence that describes it, and its figures as a table if the page has none nearby."""

    id: str
    title: str
    says: str
    chart: LineChart | MonthChart | RowChart
    table: Grid | None = None

    @property
    def kind(self) -> str:
        """Name of the macro in the templates that draws it."""
        return type(self.chart).__name__


def figures(tables: Tables, gaps: Sequence[Fields], history: History) -> Iterator[Figure]:
    """Yield the charts that there are figures for."""
    charts_or_none = (
        _balance(tables, gaps, history[1]),
        _months(tables.get("monthly_cash_flow", NO_TABLE)),
        _composition(tables, "moneyIn", "Where money came from"),
        _composition(tables, "moneyOut", "Where money went"),
        _debts(tables.get("facilities", NO_TABLE), history),
    )
    return (figure for figure in charts_or_none if figure is not None)


def _balance(tables: Tables, gaps: Sequence[Fields], through: date | None) -> Figure | None:
    daily, monthly = tables.get("daily_balance", NO_TABLE), tables.get("monthly_cash_flow", NO_TABLE)
    balances = sorted(
        ((on, row.number("balance")) for row in daily.rows if (on := row.day("date"))), key=lambda each: each[0]
    )
    if all(balance is None for _, balance in balances):
        return None
    until = max(through or balances[-1][0], balances[-1][0])
    spans = _stretches(gaps)
    columns = ("month", "openingBalance", "closingBalance", "meanBalance", "minBalance", "negativeDays")
    return Figure(
        "balance",
        "Balance",
        _balance_in_words(balances, until, len(spans)),
        charts.line_chart(balances, until, spans),
        monthly.grid("Balance by month", columns) if monthly.rows else daily.grid(),
    )


def _balance_in_words(balances: Sequence[tuple[date, Decimal | None]], until: date, gaps: int) -> str:
    known = [(balance, on) for on, balance in balances if balance is not None]
    (least, least_on), (most, most_on) = min(known), max(known)
    last = balances[-1][1]
    return (
        f"From {day(balances[0][0])} to {day(until)} the cash accounts together held between {money(least)} on "
        f"{day(least_on)} and {money(most)} on {day(most_on)}; at the end "
        f"{'an unknown balance' if last is None else money(last)}. "
        + (f"{counted(gaps, 'gap')} in the data shaded." if gaps else "No gaps in the data.")
    )


def _months(table: Table) -> Figure | None:
    months = [
        (start, row.number("moneyIn") or ZERO, row.number("moneyOut") or ZERO, row.number("net") or ZERO)
        for row in table.rows
        if (start := row.day("month")) is not None
    ]
    if not months:
        return None
    best, worst = max(months, key=lambda each: each[3]), min(months, key=lambda each: each[3])
    says = (
        f"{counted(len(months), 'month')} to {month(months[-1][0])}, transfers between own accounts left out. Most was "
        f"kept in {month(best[0])} ({money(best[3])}), least in {month(worst[0])} ({money(worst[3])})."
    )
    title = "Money in and out by month"
    grid = table.grid(title, ("month", "partial", "moneyIn", "moneyOut", "net"))
    return Figure("months", title, says, charts.month_chart(months), grid)


def _composition(tables: Tables, side: str, title: str) -> Figure | None:
    """Return a chart of the largest categories of money in or out over the whole history, and all others together."""
    ranked = sorted(_by_category(tables, side).items(), key=lambda each: (-each[1], each[0]))
    if not ranked:
        return None
    whole = sum((amount for _, amount in ranked), ZERO)
    rest = ranked[MOST_BARS:]
    others = [(f"{len(rest)} more", sum((amount for _, amount in rest), ZERO))] if rest else []
    bars = [
        (shortened(name, LABEL), f"{dollars(amount)}, {_share(amount, whole)}", amount, None)
        for name, amount in [*ranked[:MOST_BARS], *others]
    ]
    largest, amount = ranked[0]
    kinds = "1 category" if len(ranked) == 1 else f"{len(ranked)} categories"
    return Figure(
        f"composition-{side}",
        title,
        f"{money(whole)} in {kinds}, transfers between own accounts left out. Largest: {largest}, "
        f"{_share(amount, whole)}.",
        charts.bar_chart(bars),
        Grid.of(
            title,
            (Column("Category"), Column(heading(side), "number"), Column("Share", "number")),
            [[name, money(amount), _share(amount, whole)] for name, amount in ranked],
        ),
    )


def _by_category(tables: Tables, side: str) -> Mapping[str, Decimal]:
    """Return the positive sums of a side, by the category's name."""
    sums: dict[str, Decimal] = {}
    for row in (tables.get("category_summary") or tables.get("category_by_month", NO_TABLE)).rows:
        amount, category = row.number(side), row.text("category")
        if amount and category and row.raw("ownTransfer") is not True:
            name = words_of(category)
            sums[name] = sums.get(name, ZERO) + amount
    return {name: amount for name, amount in sums.items() if amount > 0}


def _share(part: Decimal, whole: Decimal) -> str:
    return f"{part / whole * 100:.1f} %" if whole else UNKNOWN


def _debts(table: Table, history: History) -> Figure | None:
    spans = [span for row in table.rows if (span := _debt(row, history)) is not None]
    if not spans:
        return None
    running = sum(span.kind == "solid" for span in spans)
    count = "1 facility" if len(spans) == 1 else f"{len(spans)} facilities"
    says = f"{count}, {running} running. A solid bar is a running facility, an outlined one has ended."
    columns = ("lenderName", "product", "status", "fundingDate", "fundingAmount", "lastRepaymentDate", "repaidTotal")
    return Figure(
        "debts", "Debt over time", says, charts.timeline(spans[:MOST_SPANS]), table.grid("Facilities", columns)
    )


def _debt(row: Fields, history: History) -> Span | None:
    """Return a span from the facility's first draw to its last repayment, or to the end of the data while it runs.

    Without a first draw it is older than the data.
    """
    begins, through = history
    drawn, repaid = row.day("fundingDate"), row.day("lastRepaymentDate")
    days = [day for day in (drawn or begins, repaid) if day is not None]
    if not days:
        return None
    status, missed = row.text("status"), row.number("missedPayments")
    running = status in RUNNING
    product = row.text("product")
    parts = (row.text("lenderName") or "Unknown lender", words_of(product).lower() if product else "")
    described = (words_of(status) if status else "", f"{plain(missed)} missed" if missed else "")
    return Span(
        label=shortened(", ".join(filter(None, parts)), LABEL),
        figure=", ".join(filter(None, described)),
        first=min(days),
        last=max(*days, through) if running and through else max(days),
        kind="solid" if running else "outline",
    )


def coverage(accounts: Sequence[Fields], gaps: Sequence[Fields]) -> Figure | None:
    """Return a timeline of the accounts from first to last row, with their gaps marked."""
    spans = [span for account in accounts if (span := _covered(account, gaps)) is not None]
    if not spans:
        return None
    marked = sum(len(span.breaks) for span in spans)
    described = f"{counted(marked, 'gap')} marked dark" if marked else "No gaps"
    says = f"{counted(len(spans), 'account')} from first to last row. {described}."
    return Figure("coverage", "Coverage of each account", says, charts.timeline(spans[:MOST_SPANS]))


def _covered(account: Fields, gaps: Sequence[Fields]) -> Span | None:
    first, last, account_id = account.day("firstDate"), account.day("lastDate"), account.text("accountId")
    if first is None or last is None or first > last:
        return None
    breaks = _stretches([gap for gap in gaps if gap.text("accountId") == account_id])
    described = counted(len(breaks), "gap") if breaks else "no gaps"
    return Span(shortened(account_name(account, LONG_LABEL), LONG_LABEL), described, first, last, "soft", tuple(breaks))


def _stretches(gaps: Sequence[Fields]) -> list[tuple[date, date]]:
    """Return the last day seen before and the next one after each gap that has both."""
    days = ((gap.day("lastSeen"), gap.day("nextSeen")) for gap in gaps)
    return [(last, following) for last, following in days if last and following]


def drivers(listed: Sequence[Fields]) -> Figure | None:
    """Return a chart of the points that each driver earned, out of the points it could earn."""
    rows = [(driver, points) for driver in listed if (points := driver.number("points")) is not None]
    if not rows:
        return None
    bars = [
        (shortened(driver_name(driver), LONG_LABEL), points_of_most(driver), points, driver.number("maxPoints"))
        for driver, points in rows
    ]
    earned = plain(sum((points for _, points in rows), ZERO))
    says = f"{counted(len(rows), 'driver')}, together {earned} points. Filled: earned; framed: what could be."
    return Figure("drivers", "Points by driver", says, charts.bar_chart(bars))
