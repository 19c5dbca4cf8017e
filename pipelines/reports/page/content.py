"""What the page shows of three reports, in which order and in which words."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Protocol

from pipelines.pages import Card, Cards, Figures, Folded, Grid, Note, Page, Part, Point, Points, Section, drop_none
from pipelines.pages.wording import UNKNOWN, abn, day, dollars, moment, month, percent, plain, score, spell_out
from pipelines.reports.page import integrity, pictures, unreconciled
from pipelines.reports.page.columns import write_heading
from pipelines.reports.page.details import account_details, driver_details, gap_details
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import account_name
from pipelines.reports.page.sections import SECTIONS, sections
from pipelines.reports.page.tables import NO_TABLE, Table, undeclared_grid

KINDS = ("completeness", "risk", "aggregate")
SUMMARY, CHARTS, ANNEX = "summary", "charts", "annex"  # ids of sections
# Members of the completeness report shown with the accounts; what is neither here nor in _SHOWN is in the annex.
FINDINGS = (
    "mentionedAccounts",
    "unsharedLenders",
    "similarAccounts",
    "repeatedSubmissions",
    "accountHolders",
    "reconciliation",
    "statements",
    "tamperSignals",
    "replacedRows",
    "basQuarters",
    "quality",
)
_SHOWN = frozenset(
    {"summary", "accounts", "gaps", "reasons", "resolvedTogether", "unreconciled"}
    | {"drivers", "sensitivity", "errorCodes", "principalReasons", "limitedBy", "integrity", *FINDINGS}
)


class Member(Protocol):
    """A report of the bundle. `data_json` is the JSON text of its last good data, None before the first."""

    @property
    def status(self) -> str: ...
    @property
    def failed(self) -> bool: ...
    @property
    def generated_at(self) -> datetime | None: ...
    @property
    def as_of(self) -> date | None: ...
    @property
    def data_through(self) -> date | None: ...
    @property
    def data_version(self) -> int | None: ...
    @property
    def report_version(self) -> int | None: ...
    @property
    def data_json(self) -> str | None: ...


@dataclass(frozen=True)
class About:
    """Whom the reports are about, as far as it is known."""

    name: str | None = None
    abn: str | None = None
    reference: str | None = None
    customer_id: str | None = None
    zone: tzinfo = UTC  # of the times on the page
    names_zone: bool = True  # False where all times have this zone, as in the console


_CALIBRATIONS = {
    "none": "Not calibrated on outcomes, so not a probability",
    "synthetic": "Calibrated on synthetic outcomes, so not a probability",
}
FOOTER = (
    "Computed by Tidemark from the bank transactions that were supplied. Transfers between own accounts count neither "
    f"as money in nor as money out; money out is shown as a positive amount. {UNKNOWN} stands for what is not known."
)


def page_content(bundle: Mapping[str, Member], about: About, *, only: Collection[str] | None = None) -> Page:
    """Return everything that the page shows. Its first section is the summary: cards, then points.

    Args:
        only: the ids of sections to fill, because all take long. The others may be empty, and charts and annex missing.
    """
    data = _read(bundle)
    account_names = _read_account_names(data)
    tables = _read_tables(data, account_names)
    found = (
        _summary(data["completeness"], data["risk"], tables),
        *([_charts(data["completeness"], tables, _latest(bundle, "data_through"))] if _is_in(only, CHARTS) else []),
        _rating_section(data["risk"]),
        integrity.section(data["risk"].child("integrity")),
        _accounts(data["completeness"], account_names),
    )
    planned = sections(SECTIONS, tables, only)
    annex = _annex(data, tables, account_names) if _is_in(only, ANNEX) else None
    return Page(
        "Bank statement reports",
        about.name or "Business customer",
        tuple(_identity(bundle, about)),
        drop_none(*_notices(bundle), unreconciled.notice(data)),
        (*(each for each in found if each.parts), *planned, *([annex] if annex and annex.parts else [])),
        FOOTER,
    )


def _is_in(only: Collection[str] | None, section_id: str) -> bool:
    return only is None or section_id in only


def _read(bundle: Mapping[str, Member]) -> Mapping[str, Fields]:
    """Return the reports' data by kind; that of a report that was not computed is empty."""
    return {kind: Fields.of_json(bundle[kind].data_json if kind in bundle else None) for kind in KINDS}


def _read_account_names(data: Mapping[str, Fields]) -> Mapping[str, str]:
    accounts = data["completeness"].children("accounts")
    return {named: account_name(each) for each in accounts if (named := each.text("accountId"))}


def _read_tables(data: Mapping[str, Fields], account_names: Mapping[str, str]) -> Mapping[str, Table]:
    listed = data["aggregate"].children("tables")
    return {table.id: table for each in listed if (table := Table.read(each, account_names))}


def _summary(completeness: Fields, risk: Fields, tables: Mapping[str, Table]) -> Section:
    cards = Cards(tuple(_cards(completeness, risk, tables)))
    reasons = _points("What keeps completeness down", completeness.children("reasons"))
    together = _joint_effect(completeness.child("resolvedTogether")) if reasons else None
    cautions = _points("What to know about the risk figure", risk.children("errorCodes"))
    return Section(SUMMARY, "Summary", drop_none(cards, _limits(risk), _reasons(risk), reasons, together, cautions))


def _points(title: str, reasons: Sequence[Fields]) -> Points | None:
    points = ((each.text("message"), each.text("code") or "", _remedy(each)) for each in reasons)
    return Points(title, tuple(Point(says or code, code, remedy) for says, code, remedy in points)) if reasons else None


def _remedy(reason: Fields) -> str | None:
    """Say what resolves the reason, and by how many points completeness would rise by that alone."""
    remedy, effect = reason.text("settledBy"), reason.number("effect")
    return f"{remedy} (+{score(effect)} points)" if remedy and effect else remedy


def _joint_effect(resolved: Fields) -> Note | None:
    reached, effect = resolved.number("completenessScore"), resolved.number("effect")
    if reached is None or not effect:
        return None
    return Note(f"If all of this were resolved, completeness would be {score(reached)}: {score(effect)} points more.")


def _charts(completeness: Fields, tables: Mapping[str, Table], through: date | None) -> Section:
    firsts = [first for each in completeness.children("accounts") if (first := each.day("firstDate")) is not None]
    figures = pictures.figures(tables, completeness.children("gaps"), (min(firsts, default=None), through))
    return Section(CHARTS, "At a glance", (Figures(figures),) if figures else ())


def _rating_section(risk: Fields) -> Section:
    drivers = risk.children("drivers")
    changes = tuple(Point(words) for each in risk.children("sensitivity") if (words := each.text("words")))
    figures = drop_none(pictures.drivers(drivers), Points("What would move the rating", changes) if changes else None)
    shown = drop_none(Figures(figures) if figures else None, driver_details(drivers))
    return Section("risk", "What drives the rating", shown if drivers else ())


def _limits(risk: Fields) -> Points | None:
    """Say what limits the rating: too little evidence, and events that nobody resolved."""
    points = [Point(_evidence(risk), place="risk/covered")] if "evidence" in risk.texts("limitedBy") else []
    for nth, each in enumerate(risk.children("events")):
        if each.raw("resolved") is not True:
            points.append(Point(_event(each), place=f"risk/events/{nth}/amount"))
    return Points("What limits the rating", tuple(points)) if points else None


def _evidence(risk: Fields) -> str:
    return (
        f"Only {percent(risk.number('covered'))} of the expected evidence could be verified: while that is so, the "
        f"rating is {risk.text('rating')} at best. What could not be verified is not bad."
    )


def _event(event: Fields) -> str:
    until = f" until {day(event.day('until'))}" if event.day("until") else ""
    return f"{event.text('sentence')}: the rating is {event.text('ceiling')} at best{until}."


def _reasons(risk: Fields) -> Points | None:
    """Give the principal reasons. Their words distinguish what is bad from what could not be verified."""
    metrics = {each.text("metric") for each in risk.children("drivers")}
    reasons = ((each.text("words"), each.text("code")) for each in risk.children("principalReasons"))
    placed = ((words, f"metrics/{code}" if code in metrics else None) for words, code in reasons if words)
    points = tuple(Point(words, place=place) for words, place in placed)
    return Points("What cost the rating most", points) if points else None


def _accounts(completeness: Fields, account_names: Mapping[str, str]) -> Section:
    accounts, gaps = completeness.children("accounts"), completeness.children("gaps")
    covered = pictures.coverage(accounts, gaps)
    parts: tuple[Part, ...] = drop_none(
        Figures((covered,)) if covered else None,
        account_details(accounts),
        gap_details(gaps, account_names) or Note("No gaps were found."),
        *_undeclared_grids("completeness", completeness, FINDINGS, account_names),
    )
    return Section("accounts", "Accounts and gaps", parts if accounts else ())


@dataclass(frozen=True)
class Annex:
    """Every table of the reports, by caption. A table's grid is built when it is asked for: all of them take long."""

    tables: Mapping[str, Grid | Table]

    def grid(self, caption: str) -> Grid | None:
        found = self.tables.get(caption)
        return found.grid() if isinstance(found, Table) else found


def read_annex(bundle: Mapping[str, Member]) -> Annex:
    """Return the tables of the annex of `page_content`, without what else the page shows."""
    data = _read(bundle)
    account_names = _read_account_names(data)
    listed = _list_annex(data, _read_tables(data, account_names), account_names)
    return Annex({each.name if isinstance(each, Table) else each.caption: each for each in listed})


def _annex(data: Mapping[str, Fields], tables: Mapping[str, Table], account_names: Mapping[str, str]) -> Section:
    listed = _list_annex(data, tables, account_names)
    grids = tuple(each.grid() if isinstance(each, Table) else each for each in listed)
    note = Note("Tables open one by one; those left closed are not printed.")
    return Section(ANNEX, "Annex: everything the reports say", (note, Folded(grids)) if grids else ())


def _list_annex(
    data: Mapping[str, Fields], tables: Mapping[str, Table], account_names: Mapping[str, str]
) -> tuple[Grid | Table, ...]:
    unshown = (
        (kind, data[kind], [name for name in data[kind] if name not in _SHOWN]) for kind in ("completeness", "risk")
    )
    undeclared = (grid for each in unshown for grid in _undeclared_grids(*each, account_names))
    return drop_none(*undeclared, *tables.values(), unreconciled.grid(data, tables))


def _undeclared_grids(
    kind: str, members: Fields, names: Iterable[str], account_names: Mapping[str, str]
) -> tuple[Grid, ...]:
    """Return the members of a report that can be shown as a table. All figures of completeness can be explained."""
    report = kind if kind == "completeness" else None
    return drop_none(*(undeclared_grid(members, name, account_names, report) for name in names))


def _latest(bundle: Mapping[str, Member], name: str) -> date | None:
    days = (getattr(bundle[kind], name) for kind in KINDS if kind in bundle)
    return max((each for each in days if each is not None), default=None)


def _identity(bundle: Mapping[str, Member], about: About) -> Iterator[tuple[str, str]]:
    if about.abn:
        yield "ABN", abn(about.abn)
    if about.reference:
        yield "Reference", about.reference
    yield "As of", day(_latest(bundle, "as_of"))
    yield "Data through", day(_latest(bundle, "data_through"))
    computed = [each.generated_at for each in bundle.values() if each.generated_at is not None]
    if computed:
        local = max(computed).astimezone(about.zone)
        yield "Computed", f"{moment(local)} {local:%Z}" if about.names_zone else moment(local)
    versions = sorted({each.data_version for each in bundle.values() if each.data_version is not None})
    if versions:
        yield "Data version", ", ".join(map(str, versions))
    if about.customer_id:
        yield "Customer", about.customer_id


def _notices(bundle: Mapping[str, Member]) -> Iterator[str]:
    for kind in KINDS:
        member = bundle.get(kind)
        if member is None or member.data_json is None:
            tried = member is not None and member.failed
            yield (
                f"The {kind} report could not be computed, and there is no earlier one."
                if tried
                else f"The {kind} report has not been computed yet."
            )
        elif member.failed:
            yield f"The latest attempt at the {kind} report failed: this is the last good one."
        elif member.status == "stale":
            yield f"The {kind} report is older than the data: refresh it to include what has come since."


def _cards(completeness: Fields, risk: Fields, tables: Mapping[str, Table]) -> Iterator[Card]:
    yield _completeness_card(completeness)
    yield _risk_card(risk)
    yield _confidence_card(risk)
    yield from _money_cards(tables)


def _completeness_card(completeness: Fields) -> Card:
    summary = completeness.child("summary")
    if not summary:
        return Card("Completeness", UNKNOWN, ("Not computed",))
    missing = summary.number("totalMissingness")
    lines = (
        _spell_out_if_known(summary.text("completenessTier")),
        f"{percent(missing)} missing" if missing is not None else "",
    )
    known = _out_of_hundred(summary.number("completenessScore"))
    return Card("Completeness", known, _present(lines), place="completeness/summary/completenessScore")


def _risk_card(risk: Fields) -> Card:
    if not risk:
        return Card("Risk rating", UNKNOWN, ("Not computed",))
    value, calibration = risk.number("value"), risk.text("calibration") or "none"
    low, high = risk.child("interval").number("low"), risk.child("interval").number("high")
    fitted = calibration == "client"
    lines = (
        f"{percent(value)} probability of default within 12 months" if fitted else f"Risk figure {plain(value)}",
        f"between {_odds(low, fitted)} and {_odds(high, fitted)}" if low is not None and high is not None else "",
        _CALIBRATIONS.get(calibration, ""),
    )
    mark = None if calibration == "client" else "Indicative"
    return Card("Risk rating", risk.text("rating") or UNKNOWN, _present(lines), mark, "risk/value")


def _odds(value: Decimal | None, fitted: bool) -> str:
    return percent(value) if fitted else plain(value)


def _confidence_card(risk: Fields) -> Card:
    if not risk:
        return Card("Confidence in the risk figure", UNKNOWN, ("Not computed",))
    lines = (_spell_out_if_known(risk.text("pdConfidenceRating")),)
    known = _out_of_hundred(risk.number("pdConfidenceScore"))
    return Card("Confidence in the risk figure", known, _present(lines), place="risk/pdConfidenceScore")


def _money_cards(tables: Mapping[str, Table]) -> Iterator[Card]:
    windows = tables.get("rolling_windows", NO_TABLE).select_rows(lambda row: row.number("days") == 90)
    for window, place in zip(windows.rows, windows.places, strict=True):
        names = ("moneyIn", "moneyOut", "net")
        lines = tuple(f"{write_heading(name)} {dollars(window.number(name))}" for name in names)
        yield Card("Revenue, last 90 days", dollars(window.number("revenue")), lines, place=f"{place}/revenue")
    months = tables.get("monthly_cash_flow", NO_TABLE)
    if months.rows:
        last = months.rows[-1]
        balance = last.number("closingBalance")
        known = f"Cash accounts, {month(last.day('month'))}" if balance is not None else "No balance is stated"
        place = f"{months.places[-1]}/closingBalance" if balance is not None else None
        yield Card("Balance at the end", dollars(balance), (known,), place=place)


def _out_of_hundred(points: Decimal | None) -> str:
    return UNKNOWN if points is None else f"{score(points)} / 100"


def _spell_out_if_known(code: str | None) -> str:
    return spell_out(code) if code else ""


def _present(lines: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)
