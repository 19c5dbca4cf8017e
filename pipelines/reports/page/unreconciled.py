"""Show which figures use rows of PDF statements that don't reconcile, and how large their share of a figure is."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pipelines.pages import Grid, number_columns
from pipelines.pages.wording import percent, whole_number
from pipelines.reports.page.columns import write_heading
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import driver_name
from pipelines.reports.page.tables import Table

FigureShare = tuple[str, str, Decimal]  # the part of the report, the figure, its share


def notice(reports: Mapping[str, Fields]) -> str | None:
    """Return what share of all rows comes from such statements; None if it is zero.

    All reports give the same share, because they use the same rows. So the first report that has one is enough.
    """
    for report in reports.values():
        section = report.child("unreconciled")
        if section.number("rows"):
            money, rows = percent(section.number("shareOfAmount")), percent(section.number("shareOfRows"))
            return f"{money} of the money moved ({rows} of the rows) rests on PDF statements that do not reconcile."
    return None


def grid(reports: Mapping[str, Fields], tables: Mapping[str, Table]) -> Grid | None:
    """Return, for each column, how many of its figures use such rows, and the highest share."""
    shares: dict[tuple[str, str], list[Decimal]] = {}
    for where, what, share in _list_shares(reports, tables):
        shares.setdefault((where, what), []).append(share)
    if not shares:
        return None
    columns = ("Part", "Figure", *number_columns("How many", "Highest share"))
    rows = [(*figure, whole_number(len(each)), percent(max(each))) for figure, each in shares.items()]
    return Grid.of("Figures that rest on statements that do not reconcile", columns, rows)


def _list_shares(reports: Mapping[str, Fields], tables: Mapping[str, Table]) -> Iterator[FigureShare]:
    for report in reports.values():
        for row in report.child("unreconciled").children("figures"):
            where, shares = _name_part(row.text("row") or "", report, tables), row.child("shares")
            yield from ((where, write_heading(name), share) for name in shares if (share := shares.number(name)))


def _name_part(pointer: str, report: Fields, tables: Mapping[str, Table]) -> str:
    """Name the part of the report that a JSON Pointer leads to."""
    match pointer.split("/")[1:]:
        case ["tables", table_id, *_] if table_id in tables:
            return tables[table_id].name
        case ["drivers", nth] if nth.isdecimal() and int(nth) < len(drivers := report.children("drivers")):
            return driver_name(drivers[int(nth)])
        case [member, *_]:
            return write_heading(member)
    return "Risk rating"
