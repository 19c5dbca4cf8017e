"""The content of a backtest's page: its sections in order, with all words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipelines.decisions.backtest.result import ALL_OUTCOMES, share
from pipelines.decisions.backtest.tallies import AFTER, BEFORE, UP_TO
from pipelines.decisions.policy import INDETERMINATE
from pipelines.decisions.readings import CAUSES
from pipelines.pages import (
    Card,
    Cards,
    Cell,
    Column,
    Figure,
    Figures,
    Grid,
    Matrix,
    Note,
    Page,
    Part,
    Section,
    drop_none,
    number_columns,
)
from pipelines.pages.charts import bar_chart
from pipelines.pages.wording import (
    UNKNOWN,
    change,
    day,
    dollars,
    extent,
    percent,
    quantity,
    short_money,
    shorten,
    spell_out,
    whole_number,
)

LABEL = 56  # characters of a chart's label that fit beside its figures
MAX_BARS = 12
SHADES = 5
NO_RULE = "None: order or outcome of steps"
SIDES = (BEFORE, AFTER)
FOOTER = (
    "Computed by Tidemark. Limits that could not be determined are left out of totals. A rule is counted over all "
    f"customers, whether or not its step was reached, but as deciding only where its step decided. {UNKNOWN} stands "
    "for what is not known."
)
_STRICTNESS: Mapping[str, int] = {outcome: place for place, outcome in enumerate(ALL_OUTCOMES[:-1])}
_HITS = {"matched": "Matched", "decisive": "Decided", "undecidable": "Undecidable"}

Data = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """A description of what was compared. `before` and `after` are names of the sides; `facts` go below the title.

    `messages` has the rules' messages for staff by code, `titles` those of values by name, and `customers` the names of
    customers by id. What is in none of them is shown by its code, name or id.
    """

    policy: str
    before: str
    after: str
    facts: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()
    messages: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    customers: Mapping[str, str] = field(default_factory=dict)

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Both sides, each with its name."""
        return (BEFORE, self.before), (AFTER, self.after)

    def rule(self, code: str) -> str:
        return self.messages.get(code) or spell_out(code.lower())


def page_content(days: Sequence[Data], about: About, changed: Sequence[Data], changed_in_all: int) -> Page:
    """Return everything that the page shows."""
    sections = (
        Section("overview", "Day by day", (_overview(days, about),)) if len(days) > 1 else None,
        *(_day(f"day-{place}", each, about) for place, each in enumerate(days, 1)),
        Section("changed", "Customers who change", (_list_changes(changed, changed_in_all, about),))
        if changed
        else None,
    )
    return Page(
        "Backtest of a decision policy",
        f"{about.policy}: {about.after} against {about.before}",
        tuple(about.facts),
        tuple(about.notices),
        drop_none(*sections),
        FOOTER,
    )


def _overview(days: Sequence[Data], about: About) -> Grid:
    proceed = (f"Proceed, {about.before}", f"Proceed, {about.after}")
    columns = (Column("As of", "short"), *number_columns("Customers", "Outcome changes", "Share", *proceed))
    return Grid.of("Outcomes on each day", columns, [_overview_row(each) for each in days])


def _overview_row(each: Data) -> list[str]:
    proceed = _rows_by(each["outcomes"], "outcome")["proceed"]
    return [
        day(each["asOf"]),
        whole_number(each["customers"]),
        whole_number(each["outcomeChanged"]),
        percent(share(each["outcomeChanged"], each["customers"])),
        *(percent(share(proceed[side]["customers"], each["customers"])) for side in SIDES),
    ]


def _day(id_: str, each: Data, about: About) -> Section:
    figures = drop_none(
        _outcomes(id_, each, about),
        *(_limits(id_, nth, product, about) for nth, product in enumerate(each["limits"])),
        _bad_rates(id_, each, about),
        _rules_figure(id_, each, about),
        *_causes(id_, each, about),
    )
    parts: tuple[Part, ...] = drop_none(
        Cards(tuple(_cards(each))),
        _matrix(each),
        Note(
            f"Rows: {about.before}. Columns: {about.after}. Under a count: what these customers are offered, "
            "before → after. ▲ more lenient, ▼ stricter, ? no longer decided. The darker a cell, the larger its share "
            "of the row."
        ),
        Figures(figures),
        _limit_table(each, about),
        _rule_table(each, about),
        _step_table(each, about),
    )
    return Section(id_, f"As of {day(each['asOf'])}", parts)


# Cards


def _cards(each: Data) -> Iterator[Card]:
    customers, changed = each["customers"], each["outcomeChanged"]
    yield Card("Customers compared", whole_number(customers))
    limits = f"{quantity(each['limitsChanged'], 'customer')} with another limit"
    yield Card("Outcome changes", whole_number(changed), (f"{percent(share(changed, customers))} of them", limits))
    outcomes = _rows_by(each["outcomes"], "outcome")
    yield _share_card("Proceed", outcomes["proceed"], customers)
    yield _share_card("Indeterminate", outcomes[INDETERMINATE], customers)
    if each["limits"]:
        before, after = (_sum(product[side]["amount"] for product in each["limits"] if product[side]) for side in SIDES)
        moved = f"{'+' if after > before else ''}{short_money(after - before)}" if after != before else "unchanged"
        yield Card("Offered in all", short_money(after), (f"{short_money(before)} before", moved))
    before, after = (outcomes["proceed"][side] for side in SIDES)
    if before["judged"] or after["judged"]:
        lines = (f"{percent(before['badRate'])} before", f"of {whole_number(after['judged'])} whose repayment is known")
        yield Card("Bad rate of proceed", percent(after["badRate"]), lines)


def _share_card(title: str, outcome: Data, customers: int) -> Card:
    before, after = (outcome[side]["customers"] for side in SIDES)
    lines = (f"{percent(share(before, customers))} before", f"{change(after - before)} customers")
    return Card(title, percent(share(after, customers)), lines)


# The matrix


def _matrix(each: Data) -> Matrix:
    cells = {(row["before"], row["after"]): row for row in each["transitions"]}
    outcomes = _rows_by(each["outcomes"], "outcome")
    rows = tuple(
        (
            spell_out(before),
            tuple(_cell(before, after, cells.get((before, after)), outcomes[before]) for after in ALL_OUTCOMES),
            whole_number(outcomes[before][BEFORE]["customers"]),
        )
        for before in ALL_OUTCOMES
    )
    totals = (
        *(whole_number(outcomes[after][AFTER]["customers"]) for after in ALL_OUTCOMES),
        whole_number(each["customers"]),
    )
    return Matrix("Outcomes before and after", "From ↓ to →", tuple(map(spell_out, ALL_OUTCOMES)), rows, totals)


def _cell(before: str, after: str, row: Data | None, outcome: Data) -> Cell:
    if row is None:
        return Cell("0", "", 0, "nobody", f"No customer goes from {before} to {after}.")
    of_row = row["customers"] / outcome[BEFORE]["customers"]
    offers = [_sum(each[side]["amount"] for each in row["limits"]) for side in SIDES]
    below = " → ".join(map(short_money, offers)) if any(offers) else ""
    says = f"{quantity(row['customers'], 'customer')} from {before} to {after}{'; offered ' + below if below else ''}."
    return Cell(
        whole_number(row["customers"]),
        below,
        min(SHADES, 1 + int(of_row * SHADES)),
        _direction_class(before, after),
        says,
    )


def _direction_class(before: str, after: str) -> str:
    """Return the style sheet's class for the direction in which customers move."""
    if before == after:
        return "same"
    if INDETERMINATE in (before, after):
        return "settled" if before == INDETERMINATE else "unsettled"
    return "stricter" if _STRICTNESS[after] > _STRICTNESS[before] else "lenient"


# Charts


def _pairs(
    id_: str, title: str, says: str, rows: Sequence[tuple[str, str, Any, Any]], about: About, table: Grid | None = None
) -> Figure:
    """Draw a pair of bars for each row: label, figure, size before and size after."""
    chart = bar_chart([(label, figure, {"was": was, "will": will}) for label, figure, was, will in rows])
    return Figure(id_, title, says, chart, table, (("was", about.before), ("will", about.after)))


def _outcomes(id_: str, each: Data, about: About) -> Figure:
    rows = [
        (spell_out(row["outcome"]), *_counts(row[BEFORE]["customers"], row[AFTER]["customers"]))
        for row in each["outcomes"]
    ]
    customers = quantity(each["customers"], "customer")
    says = f"{whole_number(each['outcomeChanged'])} of {customers} would get another outcome."
    return _pairs(f"{id_}-outcomes", "Outcomes", says, rows, about)


def _limits(id_: str, nth: int, product: Data, about: About) -> Figure:
    rows = [(_band(band["upTo"]), *_counts(band[BEFORE], band[AFTER])) for band in product["bands"]]
    totals = ", ".join(f"{called} offers {_total(product[side])}" for side, called in about.sides)
    says = f"Customers by the limit that they are offered. In all, {totals}."
    return _pairs(f"{id_}-limits-{nth}", f"Limits: {_product(product)}", says, rows, about)


def _counts(before: int, after: int) -> tuple[str, int, int]:
    return f"{whole_number(before)} → {whole_number(after)}", before, after


def _total(side: Data | None) -> str:
    if side is None:
        return "no limit"
    return f"{dollars(side['amount'])} to {quantity(side['offered'], 'customer')}"


def _band(up_to: int | None) -> str:
    if up_to is None:
        return "Indeterminate"
    if up_to == 0:
        return "Nothing"
    if up_to == UP_TO[-1]:
        return f"More than {short_money(UP_TO[-2])}"
    return f"Up to {short_money(up_to)}"


def _bad_rates(id_: str, each: Data, about: About) -> Figure | None:
    judged = [row for row in each["outcomes"] if row[BEFORE]["judged"] or row[AFTER]["judged"]]
    if not judged:
        return None
    rates = [(spell_out(row["outcome"]), *(row[side]["badRate"] for side in SIDES)) for row in judged]
    rows = [(name, f"{percent(was)} → {percent(will)}", was or 0, will or 0) for name, was, will in rates]
    columns = ("Outcome", *number_columns("Known before", "Bad before", "Known after", "Bad after"))
    cells = [
        [
            spell_out(row["outcome"]),
            *(whole_number(row[side][name]) for side in SIDES for name in ("judged", "defaulted")),
        ]
        for row in judged
    ]
    says = "Share of customers that went bad, among those whose repayment is known."
    return _pairs(f"{id_}-bad", "Bad rate", says, rows, about, Grid.of("Repaid or bad, where known", columns, cells))


def _rules_figure(id_: str, each: Data, about: About) -> Figure | None:
    changes = each["changedBy"]
    if not changes:
        return None
    rules = [about.rule(row["code"]) if row["code"] else NO_RULE for row in changes[:MAX_BARS]]
    bars = [(shorten(rule, LABEL), *_bar(row)) for rule, row in zip(rules, changes, strict=False)]
    left = len(changes) - len(bars)
    says = "Customers whose outcome changes, by the deciding rules whose result differs." + (
        f" {quantity(left, 'more rule')} in the JSON." if left else ""
    )
    return Figure(f"{id_}-rules", "What changes the outcome", says, bar_chart(bars))


def _causes(id_: str, each: Data, about: About) -> Iterator[Figure]:
    for side, called in about.sides:
        verdicts = [row for row in each["causes"][side] or () if row["about"] is None][:MAX_BARS]
        if verdicts:
            says = "Customers without a verdict, by what is missing. A customer may lack several."
            chart = bar_chart([(_missing_value_label(row, about), *_bar(row)) for row in verdicts])
            yield Figure(f"{id_}-causes-{side}", f"Why indeterminate: {called}", says, chart)


def _bar(row: Data) -> tuple[str, dict[str, int]]:
    return whole_number(row["customers"]), {"solid": row["customers"]}


def _missing_value_label(row: Data, about: About) -> str:
    name = row["name"] or f"a calculation ({row['operator']})"
    return shorten(f"{about.titles.get(name) or spell_out(name)}: {CAUSES.get(row['cause'], row['cause'])}", LABEL)


# Tables


def _limit_table(each: Data, about: About) -> Grid | None:
    rows = [
        [_product(product), called, *_limit_cells(product[side])]
        for product in each["limits"]
        for side, called in about.sides
        if product[side]
    ]
    columns = ("Product", "Decided by", *number_columns("Offered to", "In all", "Mean offered", "Indeterminate"))
    return Grid.of("Limits", columns, rows) if rows else None


def _limit_cells(side: Data) -> list[str]:
    return [
        whole_number(side["offered"]),
        dollars(side["amount"]),
        dollars(side["meanOffered"]),
        whole_number(side["indeterminate"]),
    ]


def _rule_table(each: Data, about: About) -> Grid | None:
    sides = {side: _rows_by(each["rules"][side] or (), "code") for side in SIDES}
    codes = dict.fromkeys(code for side in (AFTER, BEFORE) for code in sides[side])
    rows = [
        [about.rule(code), *(_hits_text(sides[side].get(code), name) for name in _HITS for side in SIDES), code]
        for code in codes
    ]
    counts = number_columns(*(f"{words}, {side}" for words in _HITS.values() for side in SIDES))
    columns = (Column("Rule", "prose"), *counts, Column("Code", "short"))
    return Grid.of("Rules, over all customers", columns, rows) if rows else None


def _hits_text(rule: Data | None, name: str) -> str:
    return UNKNOWN if rule is None else whole_number(rule[name])


def _step_table(each: Data, about: About) -> Grid | None:
    rows = [
        [row["step"], called, *(whole_number(row[name]) for name in ("reached", "decided", "undecidable"))]
        for side, called in about.sides
        for row in each["steps"][side] or ()
    ]
    columns = ("Step", "Of", *number_columns("Reached", "Decided", "Left undecided"))
    return Grid.of("Steps", columns, rows) if rows else None


def _list_changes(changed: Sequence[Data], in_all: int, about: About) -> Grid:
    sides = (called[:1].upper() + called[1:] for _, called in about.sides)
    columns = ("Customer", Column("As of", "short"), *sides, Column("Changed by", "prose"), Column("Limits", "prose"))
    rows = [
        [
            about.customers.get(str(row["customerId"])) or str(row["customerId"]),
            day(row["asOf"]),
            spell_out(row["before"]),
            spell_out(row["after"]),
            " ".join(map(about.rule, row["changedBy"])) or UNKNOWN,
            "; ".join(_limit(limit) for limit in row["limits"] if limit[BEFORE] != limit[AFTER]) or UNKNOWN,
        ]
        for row in changed
    ]
    return Grid.of(f"Changed by outcome or by limit, {extent(len(rows), in_all)}", columns, rows)


def _limit(limit: Data) -> str:
    return f"{limit['product']} {dollars(limit[BEFORE])} → {dollars(limit[AFTER])}"


def _rows_by(rows: Iterable[Data], key: str) -> dict[str, Data]:
    return {row[key]: row for row in rows}


def _product(product: Data) -> str:
    return spell_out(product["product"].replace("-", "_"))


def _sum(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount for amount in amounts if amount is not None), Decimal(0))
