"""Compare a customer's reports of two days, each as known now or at an earlier time."""

from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from math import ceil
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console import compared
from api.console.accounts import read_account_names
from api.console.calls import Correctable
from api.console.compared import ChangedTable
from api.console.moments import find_today, find_zone, read_moment
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.pages import wording

EARLIER: Final = ("fromAsOf", "fromKnownAt", "from")
LATER: Final = ("asOf", "knownAt", "to")
MONTHS_BACK: Final = {1: "a month ago", 3: "three months ago", 12: "a year ago"}
REFRESHES: Final = 6  # the latest ones, offered to compare with
FIGURES_OF_TABLE: Final = 3  # shown of each table; the others on request
FIGURES_ON_PAGE: Final = 200  # of one table
REPORTS: Final = {"risk": "Risk", "completeness": "Completeness", "aggregate": "Money"}  # names in the API and on pages

router = APIRouter(route_class=PageRoute, include_in_schema=False, prefix="/customers/{customer_id}/reports/compare")


@dataclass(frozen=True)
class Offer:
    """Something to compare with, in words, and the address's parameters for it."""

    words: str
    query: str


@router.get("")
async def choose_moments(page: SignedIn, customer_id: str) -> Response:
    """Ask for two days. What changed between them takes long to compute: the page fetches it afterwards, by report."""
    customer = await page.get("customer", customer_id)
    chosen = _read_chosen(page)
    query = {"customerId": customer_id, "flow": "ReportRefresh", "page": 1, "count": REFRESHES}
    refreshes = (await page.get("jobs", **query))["jobs"]
    computed = [each["dateCompleted"] for each in refreshes if each["dateCompleted"] and each["status"] != "Failed"]
    offers = list(_offer(page, chosen, computed))
    shown = {"chosen": chosen, "query": urlencode(chosen), "offers": offers, "reports": REPORTS}
    return page.show("compare.html", customer=customer, **shown)


@router.get("/changes")
async def show_changes(
    page: SignedIn,
    customer_id: str,
    report: Annotated[str, Query()] = "",
    table: Annotated[str, Query()] = "",
    number: Annotated[str, Query(alias="page")] = "1",
) -> Response:
    """Show a report's headline figures and what changed most or, if `table` is given, all its changed figures."""
    customer = await page.get("customer", customer_id)
    chosen = _read_chosen(page)
    part = table.partition("/")[0] or report
    report = part if part in REPORTS else next(iter(REPORTS))
    shared = {"customer": customer, "query": urlencode(chosen), "report": report, "reports": REPORTS}
    try:
        found = await page.get("customer", customer_id, "reports", "diff", report=report, **chosen)
    except Correctable as refused:
        return page.show("compare-changes.html", refused.status, problem=refused.detail, found=None, **shared)
    tables = compared.group_by_table(found["figures"])
    accounts = await read_account_names(page, customer_id)
    whole = next((each for each in tables if each.id == table), None)
    shown = {
        "headlines": [compared.describe_headline(each) for each in found["headlines"]],
        "sections": [] if whole else list(_describe_sections(tables, accounts)),
        "whole": whole and _describe_page(whole, accounts, number),
    }
    explained = {"explained_before": _explain(found, EARLIER), "explained_after": _explain(found, LATER)}
    return page.show("compare-changes.html", problem="", found=found, **shown, **explained, **shared)


def _read_chosen(page: Page) -> dict[str, str]:
    """Return the two moments in the address. By default, today is compared with a month ago."""
    chosen = read_moment(page, (*EARLIER, *LATER))
    today = find_today(page)
    return chosen or {"fromAsOf": _go_back(today, 1).isoformat(), "asOf": today.isoformat()}


def _offer(page: Page, chosen: Mapping[str, str], computed: list[str]) -> Iterator[Offer]:
    """Yield what the later reports can be compared with: other days, and the reports of earlier computations."""
    today, zone = find_today(page), find_zone(page)
    later = {name: value for name, value in chosen.items() if name in LATER} or {"asOf": today.isoformat()}
    for months, words in MONTHS_BACK.items():
        yield Offer(words, urlencode({"fromAsOf": _go_back(today, months).isoformat(), **later}))
    for text in computed:
        # Forms have whole seconds, and the reports must have been computed by then.
        second = datetime.fromtimestamp(ceil(datetime.fromisoformat(text).timestamp()), zone)
        earlier = {"fromAsOf": second.date().isoformat(), "fromKnownAt": second.isoformat()}
        yield Offer(f"the reports of {wording.moment(second)}", urlencode(earlier | later))


def _go_back(day: date, months: int) -> date:
    """Return the day this number of months earlier, or the last of that month if it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _describe_sections(tables: list[ChangedTable], accounts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for title, of_section in groupby(tables, key=lambda table: table.section):
        yield {"title": title, "tables": [_describe_top(each, accounts) for each in of_section]}


def _describe_top(table: ChangedTable, accounts: Mapping[str, str]) -> dict[str, Any]:
    figures = [compared.describe(each, accounts) for each in table.figures[:FIGURES_OF_TABLE]]
    return {"id": table.id, "name": table.name, "total": len(table.figures), "figures": figures}


def _describe_page(table: ChangedTable, accounts: Mapping[str, str], number: str) -> dict[str, Any]:
    total, pages = len(table.figures), ceil(len(table.figures) / FIGURES_ON_PAGE)
    current = min(int(number), pages) if number.isdecimal() and int(number) else 1
    listed = table.figures[(current - 1) * FIGURES_ON_PAGE : current * FIGURES_ON_PAGE]
    counts = {"totalCount": total, "currentPage": current, "totalPages": pages}
    return {"name": table.name, "figures": [compared.describe(each, accounts) for each in listed], "counts": counts}


def _explain(found: Mapping[str, Any], names: tuple[str, str, str]) -> str:
    """Return the parameters of the page that explains a figure of one side."""
    as_of, known_at, version = (found[name] for name in names)
    moment = {"asOf": as_of, "knownAt": known_at, "dataVersion": version}
    return urlencode({name: value for name, value in moment.items() if value is not None})
