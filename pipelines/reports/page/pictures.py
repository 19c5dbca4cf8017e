"""The charts of reports, each with a sentence that says what it shows."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from pipelines.pages import Figure, Grid, charts, drop_none, number_columns
from pipelines.pages.charts import Span
from pipelines.pages.wording import (
    UNKNOWN,
    day,
    dollars,
    extent,
    money,
    month,
    percent,
    plain,
    quantity,
    round_to,
    score,
    shorten,
    spell_out,
)
from pipelines.reports.page.columns import write_heading
from pipelines.reports.page.details import NOT_MISSING
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import STATES, account_name, driver_name, points_in_words
from pipelines.reports.page.tables import NO_TABLE, Table

LABEL, LONG_LABEL = 32, 42  # characters of a line's label that leave room for a figure, or only for a word or two
MAX_BARS = 8
MAX_SPANS = 60
RUNNING = frozenset({"active", "in_arrears"})

Tables: TypeAlias = Mapping[str, Table]
History: TypeAlias = tuple[date | None, date | None]  # the first and last day of the data
ZERO = Decimal(0)


def figures(tables: Tables, gaps: Sequence[Fields], history: History) -> tuple[Figure, ...]:
    """Return the charts for which the reports have figures."""
    return drop_none(
        _balance(tables, gaps, history[1]),
        _months(tables.get("monthly_cash_flow", NO_TABLE)),
        _composition(tables, "moneyIn", "Where money came from"),
        _composition(tables, "moneyOut", "Where money went"),
        _debts(tables.get("facilities", NO_TABLE), history),
    )


def _balance(tables: Tables, gaps: Sequence[Fields], through: date | None) -> Figure | None:
    daily, monthly = tables.get("daily_balance", NO_TABLE), tables.get("monthly_cash_flow", NO_TABLE)
    balances = sorted(
        ((on, row.number("balance")) for row in daily.rows if (on := row.day("date"))), key=lambda each: each[0]
    )
    if all(balance is None for _, balance in balances):
        return None
    until = max(through or balances[-1][0], balances[-1][0])
    spans = _gap_edges(gaps)
    columns = ("month", "openingBalance", "closingBalance", "meanBalance", "minBalance", "negativeDays")
    return Figure(
        "balance",
        "Balance",
        _balance_in_words(balances, until, len(spans)),
        charts.line_chart(balances, until, spans),
        monthly.grid("Balance by month", columns) if monthly.rows else daily.grid(),
        (("gap", "rows are or may be missing"),) if spans else (),
    )


def _balance_in_words(balances: Sequence[tuple[date, Decimal | None]], until: date, gaps: int) -> str:
    known = [(balance, on) for on, balance in balances if balance is not None]
    (least, least_on), (most, most_on) = min(known), max(known)
    last = balances[-1][1]
    return (
        f"From {day(balances[0][0])} to {day(until)} the cash accounts together held between {money(least)} on "
        f"{day(least_on)} and {money(most)} on {day(most_on)}; at the end "
        f"{'an unknown balance' if last is None else money(last)}. "
        + (f"{quantity(gaps, 'gap')} in the data shaded." if gaps else "No gaps in the data.")
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
        f"{quantity(len(months), 'month')} to {month(months[-1][0])}, transfers between own accounts left out. "
        f"The best month was {month(best[0])} (net {money(best[3])}), "
        f"the worst {month(worst[0])} (net {money(worst[3])})."
    )
    title = "Money in and out by month"
    grid = table.grid(title, ("month", "partial", "moneyIn", "moneyOut", "net"))
    key = (("in", "in (upwards)"), ("out", "out (downwards, striped)"), ("net", "net"))
    return Figure("months", title, says, charts.month_chart(months), grid, key)


def _composition(tables: Tables, side: str, title: str) -> Figure | None:
    """Draw the largest categories of money in or out over the whole history, and the others together."""
    ranked = sorted(_by_category(tables, side).items(), key=lambda each: (-each[1], each[0]))
    if not ranked:
        return None
    whole = sum((amount for _, amount in ranked), ZERO)
    rest = ranked[MAX_BARS:]
    others = [(f"{len(rest)} more", sum((amount for _, amount in rest), ZERO))] if rest else []
    bars = [
        (shorten(name, LABEL), f"{dollars(amount)}, {_share(amount, whole)}", {"solid": amount})
        for name, amount in [*ranked[:MAX_BARS], *others]
    ]
    largest, amount = ranked[0]
    kinds = quantity(len(ranked), "category", "categories")
    return Figure(
        f"composition-{side}",
        title,
        f"{money(whole)} in {kinds}, transfers between own accounts left out. Largest: {largest}, "
        f"{_share(amount, whole)}.",
        charts.bar_chart(bars),
        Grid.of(
            title,
            ("Category", *number_columns(write_heading(side), "Share")),
            [[name, money(amount), _share(amount, whole)] for name, amount in ranked],
        ),
    )


def _by_category(tables: Tables, side: str) -> Mapping[str, Decimal]:
    """Return the positive sums of a side, by the category's name."""
    sums: dict[str, Decimal] = {}
    for row in (tables.get("category_summary") or tables.get("category_by_month", NO_TABLE)).rows:
        amount, category = row.number(side), row.text("category")
        if amount and category and row.raw("ownTransfer") is not True:
            name = spell_out(category)
            sums[name] = sums.get(name, ZERO) + amount
    return {name: amount for name, amount in sums.items() if amount > 0}


def _share(part: Decimal, whole: Decimal) -> str:
    return percent(round_to(part / whole, 4)) if whole else UNKNOWN


def _debts(table: Table, history: History) -> Figure | None:
    spans = [span for row in table.rows if (span := _debt(row, history)) is not None]
    if not spans:
        return None
    running = sum(span.kind == "solid" for span in spans)
    says = f"{quantity(len(spans), 'facility', 'facilities')}, {running} running.{_left_out(spans)}"
    columns = ("lenderName", "product", "status", "fundingDate", "fundingAmount", "lastRepaymentDate", "repaidTotal")
    grid, key = table.grid("Facilities", columns), (("solid", "running"), ("outline", "ended"))
    return Figure("debts", "Debt over time", says, charts.timeline(spans[:MAX_SPANS]), grid, key)


def _left_out(spans: Sequence[Span]) -> str:
    """Say that a drawing shows only some of the spans that its sentence counts."""
    return f" The drawing shows {extent(MAX_SPANS, len(spans))}." if len(spans) > MAX_SPANS else ""


def _debt(row: Fields, history: History) -> Span | None:
    """Return the time for which a facility ran: from its first draw to its last repayment.

    It begins with the data if no draw is known, and lasts to their end while it is running.
    """
    begins, through = history
    drawn, repaid = row.day("fundingDate"), row.day("lastRepaymentDate")
    days = [each for each in (drawn or begins, repaid) if each is not None]
    if not days:
        return None
    status, missed = row.text("status"), row.number("missedPayments")
    running = status in RUNNING
    product = row.text("product")
    parts = (row.text("lenderName") or "Unknown lender", spell_out(product).lower() if product else "")
    described = (spell_out(status) if status else "", f"{plain(missed)} missed" if missed else "")
    return Span(
        label=shorten(", ".join(filter(None, parts)), LABEL),
        figure=", ".join(filter(None, described)),
        first=min(days),
        last=max(*days, through) if running and through else max(days),
        kind="solid" if running else "outline",
    )


def coverage(accounts: Sequence[Fields], gaps: Sequence[Fields]) -> Figure | None:
    """Draw each account from its first row to its last, its gaps marked."""
    spans = [span for account in accounts if (span := _covered_span(account, gaps)) is not None]
    if not spans:
        return None
    marked = sum(len(span.breaks) for span in spans)
    says = (
        f"{quantity(len(spans), 'account')} from first to last row, {quantity(marked, 'gap') if marked else 'no gaps'}."
        f"{_left_out(spans)}"
    )
    key = (("soft", "covered"), ("break", "gap")) if marked else ()
    return Figure("coverage", "Coverage of each account", says, charts.timeline(spans[:MAX_SPANS]), key=key)


def _covered_span(account: Fields, gaps: Sequence[Fields]) -> Span | None:
    first, last, named = account.day("firstDate"), account.day("lastDate"), account.text("accountId")
    if first is None or last is None or first > last:
        return None
    breaks = _gap_edges([gap for gap in gaps if gap.text("accountId") == named])
    described = quantity(len(breaks), "gap") if breaks else "no gaps"
    return Span(shorten(account_name(account, LONG_LABEL), LONG_LABEL), described, first, last, "soft", tuple(breaks))


def _gap_edges(gaps: Sequence[Fields]) -> list[tuple[date, date]]:
    """Return the last day before and the first day after each gap in which rows may be missing."""
    days = ((gap.day("lastSeen"), gap.day("nextSeen")) for gap in gaps if gap.text("likely") not in NOT_MISSING)
    return [(last, following) for last, following in days if last and following]


def _possible_points(driver: Fields) -> Mapping[str, Decimal]:
    """Return the bars behind a driver's points: what its evidence could earn, and what missing evidence could add."""
    if (most := driver.number("maxPoints")) is None:
        return {}
    coverage = ZERO if driver.text("state") in STATES else driver.number("coverage")
    return {"track": most} if coverage is None or coverage == 1 else {"gap": most, "track": most * coverage}


def drivers(driving: Sequence[Fields]) -> Figure | None:
    """Draw the points that each driver earned, how many it could earn, and how many of these are unknown."""
    rows = [(each, points) for each in driving if (points := each.number("points")) is not None]
    if not rows:
        return None
    bars = [
        (
            shorten(driver_name(each), LABEL if each.text("state") in STATES else LONG_LABEL),
            points_in_words(each),
            {**_possible_points(each), "solid": points},
        )
        for each, points in rows
    ]
    earned = score(sum((points for _, points in rows), ZERO))
    says = f"{quantity(len(rows), 'driver')}, together {earned} points."
    unknown = any("gap" in sizes for _, _, sizes in bars)
    key = (("solid", "earned"), ("track", "possible"), *([("gap", "unknown")] if unknown else []))
    return Figure("drivers", "Points by driver", says, charts.bar_chart(bars), key=key)
