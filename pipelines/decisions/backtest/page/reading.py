"""What the page shows of a backtest: cards, charts and tables, in words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.decisions.backtest.page.pairs import Pair, PairChart, pair_chart
from pipelines.decisions.backtest.result import ALL_OUTCOMES, share
from pipelines.decisions.backtest.tallies import AFTER, BEFORE
from pipelines.decisions.policy import INDETERMINATE
from pipelines.decisions.readings import CAUSES
from pipelines.reports.page.charts import RowChart, bar_chart
from pipelines.reports.page.grids import Column, Grid
from pipelines.reports.page.wording import (
    MINUS,
    UNKNOWN,
    counted,
    day,
    dollars,
    percent,
    short_money,
    shortened,
    words_of,
)

LABEL = 30  # characters of a chart's line that fit beside its figures
MOST_BARS = 12
SHADES = 5
NO_RULE = "None: order or outcome of steps"
_STRICTNESS: Mapping[str, int] = {outcome: place for place, outcome in enumerate(ALL_OUTCOMES[:-1])}

Data = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """What was compared: `before` and `after` as people call them; `facts` are shown below the title."""

    policy: str
    before: str
    after: str
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()


@dataclass(frozen=True)
class Card:
    title: str
    figure: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """Of the matrix. `shade`: 0–SHADES, how many of the row's customers it holds; `mark`: which way they went."""

    count: str
    under: str
    shade: int
    mark: str
    says: str


@dataclass(frozen=True)
class Matrix:
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...], str], ...]
    totals: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A chart with its title and what it says in a sentence. Its `kind` is the drawing."""

    id: str
    title: str
    says: str
    chart: PairChart | RowChart
    table: Grid | None = None

    @property
    def kind(self) -> str:
        return type(self.chart).__name__


@dataclass(frozen=True)
class Day:
    id: str
    title: str
    cards: tuple[Card, ...]
    matrix: Matrix
    figures: tuple[Figure, ...]
    tables: tuple[Grid, ...]


@dataclass(frozen=True)
class Shown:
    about: About
    overview: Grid | None
    days: tuple[Day, ...]
    changed: Grid | None

    @property
    def title(self) -> str:
        return f"{self.about.policy}: {self.about.after} against {self.about.before}"


def read(days: Sequence[Data], about: About, changed: Sequence[Data], changed_in_all: int) -> Shown:
    return Shown(
        about,
        _overview(days, about) if len(days) > 1 else None,
        tuple(_day(place, each, about) for place, each in enumerate(days)),
        _changed(changed, changed_in_all, about) if changed else None,
    )


def _overview(days: Sequence[Data], about: About) -> Grid:
    heads = ["As of", "Customers", "Outcome changes", "Share", f"Proceed, {about.before}", f"Proceed, {about.after}"]
    columns = (Column(heads[0], "short"), *(Column(head, "number") for head in heads[1:]))
    return Grid.of("Day by day", columns, [_overview_row(each) for each in days])


def _overview_row(each: Data) -> list[str]:
    proceed = _named(each["outcomes"], "outcome")["proceed"]
    return [
        _on(each["asOf"]),
        _whole(each["customers"]),
        _whole(each["outcomeChanged"]),
        percent(share(each["outcomeChanged"], each["customers"])),
        *(percent(share(proceed[side]["customers"], each["customers"])) for side in (BEFORE, AFTER)),
    ]


def _day(place: int, each: Data, about: About) -> Day:
    id_ = f"day-{place + 1}"
    figures = (
        _outcomes(id_, each, about),
        *(_limits(id_, nth, product, about) for nth, product in enumerate(each["limits"])),
        _bad_rates(id_, each, about),
        _changed_by(id_, each),
        *_causes(id_, each, about),
    )
    tables = (_limit_table(each, about), _rule_table(each), _step_table(each, about))
    return Day(
        id_,
        _on(each["asOf"]),
        tuple(_cards(each)),
        _matrix(each),
        tuple(figure for figure in figures if figure is not None),
        tuple(table for table in tables if table is not None),
    )


# Cards


def _cards(each: Data) -> Iterator[Card]:
    customers, changed = each["customers"], each["outcomeChanged"]
    limits = counted(each["limitsChanged"], "limit")
    yield Card("Customers compared", _whole(customers), ())
    yield Card(
        "Outcome changes",
        _whole(changed),
        (f"{percent(share(changed, customers))} of them", f"{limits.replace('limit', 'customer')} with another limit"),
    )
    outcomes = _named(each["outcomes"], "outcome")
    yield _moved("Proceed", outcomes["proceed"], customers)
    yield _moved("Indeterminate", outcomes[INDETERMINATE], customers)
    if each["limits"]:
        before, after = (_offered(each, side) for side in (BEFORE, AFTER))
        yield Card("Offered in all", _short(after), (f"{_short(before)} before", _step_of(after - before, _short)))
    good = outcomes["proceed"]
    if good[AFTER]["judged"] or good[BEFORE]["judged"]:
        described = f"{percent(_number(good[BEFORE]['badRate']))} before"
        yield Card(
            "Bad rate of proceed",
            percent(_number(good[AFTER]["badRate"])),
            (described, f"of {_whole(good[AFTER]['judged'])} whose end is known"),
        )


def _moved(title: str, outcome: Data, customers: int) -> Card:
    before, after = outcome[BEFORE]["customers"], outcome[AFTER]["customers"]
    return Card(
        title,
        percent(share(after, customers)),
        (f"{percent(share(before, customers))} before", f"{_signed(after - before)} customers"),
    )


def _offered(each: Data, side: str) -> Decimal:
    amounts = (_number(product[side]["amount"]) for product in each["limits"] if product[side])
    return sum((amount for amount in amounts if amount is not None), Decimal(0))


# The matrix


def _matrix(each: Data) -> Matrix:
    cells = {(row["before"], row["after"]): row for row in each["transitions"]}
    outcomes = _named(each["outcomes"], "outcome")
    rows = tuple(
        (
            words_of(before),
            tuple(_cell(before, after, cells.get((before, after)), outcomes[before]) for after in ALL_OUTCOMES),
            _whole(outcomes[before][BEFORE]["customers"]),
        )
        for before in ALL_OUTCOMES
    )
    totals = (*(_whole(outcomes[after][AFTER]["customers"]) for after in ALL_OUTCOMES), _whole(each["customers"]))
    return Matrix(tuple(words_of(each) for each in ALL_OUTCOMES), rows, totals)


def _cell(before: str, after: str, row: Data | None, outcome: Data) -> Cell:
    if row is None:
        return Cell("0", "", 0, "", f"No customer goes from {before} to {after}.")
    of_row = row["customers"] / outcome[BEFORE]["customers"]
    offers = [
        sum((_number(each[side]["amount"]) or Decimal(0) for each in row["limits"]), Decimal(0))
        for side in (BEFORE, AFTER)
    ]
    under = f"{_short(offers[0])} → {_short(offers[1])}" if any(offers) else ""
    says = f"{counted(row['customers'], 'customer')} from {before} to {after}"
    return Cell(
        _whole(row["customers"]),
        under,
        min(SHADES, 1 + int(of_row * SHADES)),
        _way(before, after),
        f"{says}{'; offered ' + under if under else ''}.",
    )


def _way(before: str, after: str) -> str:
    """Where those who move go."""
    if before == after:
        return "same"
    if INDETERMINATE in (before, after):
        return "settled" if before == INDETERMINATE else "unsettled"
    return "stricter" if _STRICTNESS[after] > _STRICTNESS[before] else "lenient"


# Charts


def _outcomes(id_: str, each: Data, about: About) -> Figure:
    pairs = [
        Pair(
            words_of(row["outcome"]),
            _change(row[BEFORE]["customers"], row[AFTER]["customers"], _whole),
            row[BEFORE]["customers"],
            row[AFTER]["customers"],
        )
        for row in each["outcomes"]
    ]
    says = (
        f"{counted(each['outcomeChanged'], 'customer')} of {_whole(each['customers'])} would be decided otherwise. "
        f"Figures: {about.before} → {about.after}."
    )
    return Figure(f"{id_}-outcomes", "Outcomes", says, pair_chart(pairs))


def _limits(id_: str, nth: int, product: Data, about: About) -> Figure:
    name = words_of(product["product"].replace("-", "_"))
    bounds = [None, *(band["upTo"] for band in product["bands"])]
    pairs = [
        Pair(_band(band["upTo"], last), _change(band[BEFORE], band[AFTER], _whole), band[BEFORE], band[AFTER])
        for band, last in zip(product["bands"], bounds, strict=False)
    ]
    before, after = (_total(product[side]) for side in (BEFORE, AFTER))
    says = (
        "Customers by the limit that they are offered. "
        f"In all {before} under {about.before}, {after} under {about.after}."
    )
    return Figure(f"{id_}-limits-{nth}", f"Limits: {name}", says, pair_chart(pairs))


def _total(side: Data | None) -> str:
    if side is None:
        return "not priced"
    return f"{dollars(_number(side['amount']))} to {counted(side['offered'], 'customer')}"


def _band(up_to: int | None, last: int | None) -> str:
    if up_to is None:
        return "Indeterminate"
    if up_to == 0:
        return "Nothing"
    if up_to >= 10**15:
        return f"More than {short_money(last or 0)}"
    return f"Up to {short_money(up_to)}"


def _bad_rates(id_: str, each: Data, about: About) -> Figure | None:
    rows = [row for row in each["outcomes"] if row[BEFORE]["judged"] or row[AFTER]["judged"]]
    if not rows:
        return None
    pairs = [
        Pair(
            words_of(row["outcome"]),
            " → ".join(percent(_number(row[side]["badRate"])) for side in (BEFORE, AFTER)),
            *(float(row[side]["badRate"] or 0) for side in (BEFORE, AFTER)),
        )
        for row in rows
    ]
    columns = (
        Column("Outcome"),
        *(Column(head, "number") for head in ("Known before", "Bad before", "Known after", "Bad after")),
    )
    cells = [
        [
            words_of(row["outcome"]),
            *(_whole(row[side][name]) for side in (BEFORE, AFTER) for name in ("judged", "defaulted")),
        ]
        for row in rows
    ]
    says = f"Of those whose end is known, the share that went bad, by outcome. Figures: {about.before} → {about.after}."
    return Figure(f"{id_}-bad", "Bad rate", says, pair_chart(pairs), Grid.of("Known outcomes", columns, cells))


def _changed_by(id_: str, each: Data) -> Figure | None:
    changes = each["changedBy"]
    if not changes:
        return None
    bars = [
        (shortened(row["code"] or NO_RULE, LABEL + 10), _whole(row["customers"]), Decimal(row["customers"]), None)
        for row in changes[:MOST_BARS]
    ]
    left = len(changes) - len(bars)
    says = "Deciding rules whose own result differs, by the customers whose outcome changes with them." + (
        f" {counted(left, 'more rule')} in the JSON." if left else ""
    )
    return Figure(f"{id_}-rules", "What changes the outcome", says, bar_chart(bars))


def _causes(id_: str, each: Data, about: About) -> Iterator[Figure]:
    for side, called in ((BEFORE, about.before), (AFTER, about.after)):
        verdicts = [row for row in each["causes"][side] or () if row["about"] is None][:MOST_BARS]
        if verdicts:
            bars = [(_lacking(row), _whole(row["customers"]), Decimal(row["customers"]), None) for row in verdicts]
            says = "Customers without a verdict, by what is missing. A customer may lack several."
            yield Figure(f"{id_}-causes-{side}", f"Why indeterminate: {called}", says, bar_chart(bars))


def _lacking(row: Data) -> str:
    subject = row["name"] or f"a calculation ({row['operator']})"
    return shortened(f"{subject}: {CAUSES.get(row['cause'], row['cause'])}", LABEL + 16)


# Tables


def _limit_table(each: Data, about: About) -> Grid | None:
    rows = [
        [words_of(product["product"].replace("-", "_")), called, *_priced(product[side])]
        for product in each["limits"]
        for side, called in ((BEFORE, about.before), (AFTER, about.after))
        if product[side]
    ]
    heads = ("Offered to", "In all", "Mean offered", "Indeterminate")
    columns = (Column("Product"), Column("Decided by"), *(Column(head, "number") for head in heads))
    return Grid.of("Limits", columns, rows) if rows else None


def _priced(side: Data) -> list[str]:
    return [
        _whole(side["offered"]),
        dollars(_number(side["amount"])),
        dollars(_number(side["meanOffered"])),
        _whole(side["indeterminate"]),
    ]


def _rule_table(each: Data) -> Grid | None:
    sides = {side: _named(each["rules"][side] or (), "code") for side in (BEFORE, AFTER)}
    codes = dict.fromkeys(code for side in (AFTER, BEFORE) for code in sides[side])
    rows = [
        [code, *(_hits(sides[side].get(code), name) for name in _HITS for side in (BEFORE, AFTER))] for code in codes
    ]
    columns = (
        Column("Rule"),
        *(Column(f"{words}, {side}", "number") for words in _HITS.values() for side in (BEFORE, AFTER)),
    )
    return Grid.of("Rules, over all customers", columns, rows) if rows else None


_HITS = {"matched": "Matched", "decisive": "Decided", "undecidable": "Undecidable"}


def _hits(rule: Data | None, name: str) -> str:
    return UNKNOWN if rule is None else _whole(rule[name])


def _step_table(each: Data, about: About) -> Grid | None:
    rows = [
        [row["step"], called, *(_whole(row[name]) for name in ("reached", "decided", "undecidable"))]
        for side, called in ((BEFORE, about.before), (AFTER, about.after))
        for row in each["steps"][side] or ()
    ]
    columns = (
        Column("Step"),
        Column("Of"),
        Column("Reached", "number"),
        Column("Decided", "number"),
        Column("Left undecided", "number"),
    )
    return Grid.of("Steps", columns, rows) if rows else None


def _changed(changed: Sequence[Data], in_all: int, about: About) -> Grid:
    columns = (
        Column("Customer"),
        Column("As of", "short"),
        Column(about.before[:1].upper() + about.before[1:]),
        Column(about.after[:1].upper() + about.after[1:]),
        Column("Changed by"),
        Column("Limits", "prose"),
    )
    rows = [
        [
            str(row["customerId"]),
            _on(row["asOf"]),
            words_of(row["before"]),
            words_of(row["after"]),
            ", ".join(row["changedBy"]) or UNKNOWN,
            "; ".join(_limit(limit) for limit in row["limits"] if limit[BEFORE] != limit[AFTER]) or UNKNOWN,
        ]
        for row in changed
    ]
    caption = "All of them" if len(rows) == in_all else f"The first {_whole(len(rows))} of {_whole(in_all)}"
    return Grid.of(f"{caption}, by outcome or by limit", columns, rows)


def _limit(limit: Data) -> str:
    before, after = (dollars(_number(limit[side])) for side in (BEFORE, AFTER))
    return f"{limit['product']} {before} → {after}"


# Words


def _named(rows: Iterable[Data], by: str) -> dict[str, Data]:
    return {row[by]: row for row in rows}


def _on(value: object) -> str:
    return day(date.fromisoformat(str(value)))


def _number(value: object) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _whole(count: int) -> str:
    return f"{count:,}"


def _signed(count: int) -> str:
    return f"{MINUS if count < 0 else '+'}{abs(count):,}" if count else "±0"


def _change(before: int, after: int, words: Any) -> str:
    return f"{words(before)} → {words(after)}"


def _short(amount: Decimal) -> str:
    return short_money(float(amount))


def _step_of(change: Decimal, words: Any) -> str:
    return f"{MINUS if change < 0 else '+'}{words(abs(change))}" if change else "unchanged"
