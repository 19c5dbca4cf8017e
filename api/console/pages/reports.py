"""A customer's reports, as of any moment, and what is behind each figure."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.compared import find_table_and_format
from api.console.moments import find_zone, read_moment
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.reports.page import About, page_content, read_annex
from pipelines.vocabulary.typed import decode

TRANSACTIONS_PER_PAGE: Final = 50
SUMMARY, CHARTS = "summary", "charts"  # sections of the report page
MOMENT: Final = ("asOf", "knownAt", "dataVersion")
KINDS: Final = ("completeness", "risk", "aggregate", "metrics")

PageOfList = Annotated[str, Query(alias="page")]  # the API refuses what isn't a number

router = APIRouter(route_class=PageRoute, include_in_schema=False, prefix="/customers/{customer_id}/reports")


class BundledReport(msgspec.Struct, frozen=True, rename="camel"):
    """A report from the API's bundle, with the attributes that `page_content` reads."""

    status: str
    failed: bool
    generated_at: datetime | None
    as_of: date | None
    data_through: date | None
    data_version: int | None
    report_version: int | None
    data: msgspec.Raw  # null before the first

    @property
    def data_json(self) -> str | None:
        text = bytes(self.data).decode()
        return None if text == "null" else text


class _Response(msgspec.Struct):
    data: dict[str, BundledReport]


@router.get("")
async def show_reports(page: SignedIn, customer_id: str) -> Response:
    return await _show_section(page, customer_id, SUMMARY)


@router.get("/sections/{section_id}")
async def show_section(page: SignedIn, customer_id: str, section_id: str) -> Response:
    return await _show_section(page, customer_id, section_id)


@router.get("/annex")
async def show_annex(page: SignedIn, customer_id: str, table: Annotated[str, Query()] = "") -> Response:
    """List all tables of the reports, and show the one whose caption is `table`."""
    customer = await page.get("customer", customer_id)
    moment = read_moment(page, MOMENT)
    annex = read_annex(await _bundle(page, customer_id, moment))
    shared = {"moment": moment, "explained": f"{urlencode(moment)}&" if moment else ""}
    chosen = {"captions": list(annex.tables), "chosen": annex.grid(table)}
    return page.show("annex.html", customer=customer, **chosen, **shared)


@router.get(".pdf")
async def print_reports(page: SignedIn, customer_id: str) -> Response:
    printed = await page.file("customer", customer_id, "reports.pdf", **read_moment(page, MOMENT))
    described = ("content-type", "content-disposition")
    return Response(printed.content, headers={name: printed.headers[name] for name in described})


@router.get("/figure")
async def show_figure(
    page: SignedIn,
    customer_id: str,
    kind: Annotated[str, Query()] = "aggregate",
    figure: Annotated[str, Query()] = "",
    number: PageOfList = "1",
) -> Response:
    """Show what a figure is made of: the transactions that add up to it, or its formula with links to the inputs."""
    customer = await page.get("customer", customer_id)
    moment = read_moment(page, MOMENT)
    report = kind if kind in KINDS else KINDS[0]
    path = ("customer", customer_id, "reports", report, "lineage")
    found = await page.get(*path, figure=figure, page=number, count=TRANSACTIONS_PER_PAGE, **moment)
    table, value_format = find_table_and_format(found["figure"], found["value"])
    inputs = [each for each in found["inputs"] if each["figure"]]
    value_formats = {each["figure"]: find_table_and_format(each["figure"], each["value"])[1] for each in inputs}
    explained = urlencode({**moment, "kind": report, "figure": ""})
    shown = {"table": table, "value_format": found["format"] or value_format, "value_formats": value_formats}
    return page.show("figure.html", customer=customer, found=found, moment=moment, explained=explained, **shown)


async def _show_section(page: Page, customer_id: str, section_id: str) -> Response:
    """Show one section of the report page, because the whole page would be too large; the summary if there is no such.

    Charts are below the summary.
    """
    customer = await page.get("customer", customer_id)
    moment = read_moment(page, MOMENT)
    reports, about = await _bundle(page, customer_id, moment), About(zone=find_zone(page), names_zone=False)
    content = page_content(reports, about, only={SUMMARY, CHARTS} if section_id == SUMMARY else {section_id})
    listed = [each for each in content.sections if each.id != CHARTS]
    chosen = section_id if any(each.id == section_id for each in listed) else SUMMARY
    if chosen != section_id:
        content = page_content(reports, about, only={SUMMARY, CHARTS})
    sections = [each for each in content.sections if each.id in (chosen, CHARTS if chosen == SUMMARY else "")]
    shared = {"moment": moment, "explained": f"{urlencode(moment)}&" if moment else ""}
    computed = [kind for kind, report in reports.items() if report.data_json is not None]
    shown = {"content": content, "listed": listed, "chosen": chosen, "sections": sections, "computed": computed}
    return page.show("reports.html", customer=customer, **shown, **shared)


async def _bundle(page: Page, customer_id: str, moment: Mapping[str, str]) -> Mapping[str, BundledReport]:
    response = await page.calls.request("GET", ("customer", customer_id, "reports"), moment)
    return decode(response.content, _Response).data
