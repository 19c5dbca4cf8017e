"""What the page shows, read from a bundle: every text and every chart; the templates only lay them out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from pipelines.reports.page import pictures, resting
from pipelines.reports.page.details import account_details, changes, driver_details, gap_details
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.grids import NO_TABLE, Grid, Table, loose_grid
from pipelines.reports.page.naming import account_name
from pipelines.reports.page.pictures import Figure
from pipelines.reports.page.sections import SECTIONS, Section, sections
from pipelines.reports.page.wording import UNKNOWN, abn, day, dollars, heading, month, percent, plain, words_of

KINDS = ("completeness", "risk", "aggregate")
# Members of the completeness report that are shown with the accounts. Members neither here nor in _SHOWN are in the
# annex.
FINDINGS = (
    "mentionedAccounts",
    "unsharedLenders",
    "similarAccounts",
    "accountHolders",
    "reconciliation",
    "statements",
    "tamperSignals",
    "basQuarters",
    "quality",
)
_SHOWN = frozenset(
    {"summary", "accounts", "gaps", "reasons", "drivers", "sensitivity", "errorCodes", "unreconciled", *FINDINGS}
)


class Member(Protocol):
    """A report of the bundle. `data_json`: the JSON text of its last good data; None before the first."""

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
    """The customer, as far as known."""

    name: str | None = None
    abn: str | None = None
    reference: str | None = None
    customer_id: str | None = None


@dataclass(frozen=True)
class Card:
    """A figure of the summary. `mark` qualifies it (`Indicative`)."""

    title: str
    figure: str
    lines: tuple[str, ...]
    mark: str | None = None


@dataclass(frozen=True)
class Reason:
    """Why a figure needs care, and what would resolve that."""

    code: str
    message: str
    settled_by: str | None


@dataclass(frozen=True)
class Shown:
    title: str
    identity: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    cards: tuple[Card, ...]
    reasons: tuple[Reason, ...]
    cautions: tuple[Reason, ...]
    drivers: Figure | None
    driver_details: Grid | None
    sensitivity: tuple[str, ...]
    figures: tuple[Figure, ...]
    coverage: Figure | None
    accounts: Grid | None
    gaps: Grid | None
    findings: tuple[Grid, ...]
    sections: tuple[Section, ...]
    annex: tuple[Grid, ...]


def read(bundle: Mapping[str, Member], about: About) -> Shown:
    """Read everything that the page shows."""
    data = {kind: Fields.of_json(bundle[kind].data_json if kind in bundle else None) for kind in KINDS}
    completeness, risk = data["completeness"], data["risk"]
    accounts, gaps = completeness.many("accounts"), completeness.many("gaps")
    names = {account_id: account_name(each) for each in accounts if (account_id := each.text("accountId"))}
    tables = {table.id: table for each in data["aggregate"].many("tables") if (table := Table.read(each, names))}
    through = _latest(bundle, "data_through")
    return Shown(
        title=about.name or "Business customer",
        identity=tuple(_identity(bundle, about)),
        notices=_non_empty((*_notices(bundle), resting.notice(data) or "")),
        cards=tuple(_cards(completeness, risk, tables)),
        reasons=_reasons(completeness.many("reasons")),
        cautions=_reasons(risk.many("errorCodes")),
        drivers=pictures.drivers(risk.many("drivers")),
        driver_details=driver_details(risk.many("drivers")),
        sensitivity=changes(risk.many("sensitivity")),
        figures=tuple(pictures.figures(tables, gaps, _history(accounts, through))),
        coverage=pictures.coverage(accounts, gaps),
        accounts=account_details(accounts),
        gaps=gap_details(gaps, names),
        sections=sections(SECTIONS, tables),
        findings=tuple(_loose_grids(completeness, FINDINGS, names)),
        annex=(
            *_loose_grids(completeness, [name for name in completeness if name not in _SHOWN], names),
            *_loose_grids(risk, [name for name in risk if name not in _SHOWN], names),
            *(table.grid() for table in tables.values()),
            *(grid for grid in (resting.grid(data, tables),) if grid is not None),
        ),
    )


def _loose_grids(members: Fields, names: Iterable[str], account_names: Mapping[str, str]) -> Iterator[Grid]:
    """Yield a grid for each of the members that has content."""
    grids = (loose_grid(members, name, account_names) for name in names)
    return (grid for grid in grids if grid is not None)


def _latest(bundle: Mapping[str, Member], name: str) -> date | None:
    days = (getattr(bundle[kind], name) for kind in KINDS if kind in bundle)
    return max((day for day in days if day is not None), default=None)


def _history(accounts: Sequence[Fields], through: date | None) -> tuple[date | None, date | None]:
    """Return the data's first and last day."""
    firsts = [first for each in accounts if (first := each.day("firstDate")) is not None]
    return min(firsts, default=None), through


def _identity(bundle: Mapping[str, Member], about: About) -> Iterator[tuple[str, str]]:
    if about.abn:
        yield "ABN", abn(about.abn)
    if about.reference:
        yield "Reference", about.reference
    yield "As of", day(_latest(bundle, "as_of"))
    yield "Data through", day(_latest(bundle, "data_through"))
    computed = [each.generated_at for each in bundle.values() if each.generated_at is not None]
    if computed:
        yield "Computed", f"{day(max(computed).date())}, {max(computed):%H:%M} UTC"
    versions = sorted({each.data_version for each in bundle.values() if each.data_version is not None})
    if versions:
        yield "Data version", ", ".join(map(str, versions))
    if about.customer_id:
        yield "Customer", about.customer_id


def _notices(bundle: Mapping[str, Member]) -> Iterator[str]:
    for kind in KINDS:
        member = bundle.get(kind)
        if member is None or member.data_json is None:
            attempted = member is not None and member.failed
            yield (
                f"The {kind} report could not be computed, and there is no earlier one."
                if attempted
                else f"The {kind} report has not been computed yet."
            )
        elif member.failed:
            yield f"The latest attempt at the {kind} report failed: this is the last good one."
        elif member.status == "stale":
            yield f"The {kind} report is older than the data: refresh it to include what has arrived since."


def _cards(completeness: Fields, risk: Fields, tables: Mapping[str, Table]) -> Iterator[Card]:
    yield _completeness_card(completeness)
    yield _risk_card(risk)
    yield _confidence_card(risk)
    yield from _money_cards(tables)


def _completeness_card(completeness: Fields) -> Card:
    summary = completeness.one("summary")
    if not summary:
        return Card("Completeness", UNKNOWN, ("Not computed",))
    missing = summary.number("totalMissingness")
    lines = (_words(summary.text("completenessTier")), f"{percent(missing)} missing" if missing is not None else "")
    return Card("Completeness", _of_hundred(summary.number("completenessScore")), _non_empty(lines))


def _risk_card(risk: Fields) -> Card:
    if not risk:
        return Card("Risk rating", UNKNOWN, ("Not computed",))
    value, calibration = risk.number("value"), risk.text("calibration") or "none"
    low, high = risk.one("interval").number("low"), risk.one("interval").number("high")
    fitted = calibration in ("client", "synthetic")
    lines = (
        f"{percent(value)} probability of default within 12 months" if fitted else f"Risk figure {plain(value)}",
        f"between {_figure(low, fitted)} and {_figure(high, fitted)}" if low is not None and high is not None else "",
        {"none": "Not calibrated on outcomes, so not a probability", "synthetic": "Fitted to synthetic outcomes"}.get(
            calibration, ""
        ),
    )
    mark = None if calibration == "client" else "Indicative"
    return Card("Risk rating", risk.text("rating") or UNKNOWN, _non_empty(lines), mark)


def _figure(value: Decimal | None, fitted: bool) -> str:
    return percent(value) if fitted else plain(value)


def _confidence_card(risk: Fields) -> Card:
    if not risk:
        return Card("Confidence in the risk figure", UNKNOWN, ("Not computed",))
    lines = (_words(risk.text("pdConfidenceRating")),)
    return Card("Confidence in the risk figure", _of_hundred(risk.number("pdConfidenceScore")), _non_empty(lines))


def _money_cards(tables: Mapping[str, Table]) -> Iterator[Card]:
    window = next((row for row in tables.get("rolling_windows", NO_TABLE).rows if row.number("days") == 90), None)
    if window is not None:
        names = ("moneyIn", "moneyOut", "net")
        lines = tuple(f"{heading(name)} {dollars(window.number(name))}" for name in names)
        yield Card("Revenue, last 90 days", dollars(window.number("revenue")), lines)
    months = tables.get("monthly_cash_flow", NO_TABLE).rows
    if months:
        last = months[-1]
        balance = last.number("closingBalance")
        known = f"Cash accounts, {month(last.day('month'))}" if balance is not None else "No balance is stated"
        yield Card("Balance at the end", dollars(balance), (known,))


def _of_hundred(score: Decimal | None) -> str:
    return UNKNOWN if score is None else f"{plain(score)} / 100"


def _words(code: str | None) -> str:
    return words_of(code) if code else ""


def _non_empty(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _reasons(reasons: Sequence[Fields]) -> tuple[Reason, ...]:
    return tuple(
        Reason(each.text("code") or "", each.text("message") or "", each.text("settledBy")) for each in reasons
    )
