"""What of the figures rests on PDF statements that don't reconcile, in words."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.grids import Column, Grid, Table
from pipelines.reports.page.naming import driver_name
from pipelines.reports.page.wording import heading, percent, plain

ShareOfFigure = tuple[str, str, Decimal]  # the part of the report, the figure's name, its share


def notice(reports: Mapping[str, Fields]) -> str | None:
    """Say how much of all rows such statements account for, if any. Every report says the same about the same rows."""
    for report in reports.values():
        described = report.one("unreconciled")
        if described.number("rows"):
            money, rows = percent(described.number("shareOfAmount")), percent(described.number("shareOfRows"))
            return f"{money} of the money moved ({rows} of the rows) is on PDF statements that do not prove it."
    return None


def grid(reports: Mapping[str, Fields], tables: Mapping[str, Table]) -> Grid | None:
    """Return how many figures of each column have a share, and the highest share; None if none has."""
    shares: dict[tuple[str, str], list[Decimal]] = {}
    for where, what, share in _shares(reports, tables):
        shares.setdefault((where, what), []).append(share)
    if not shares:
        return None
    columns = [Column("Part"), Column("Figure"), Column("How many", "number"), Column("Highest share", "number")]
    rows = [(*named, plain(Decimal(len(each))), percent(max(each))) for named, each in shares.items()]
    return Grid.of("Figures that rest on statements that do not reconcile", columns, rows)


def _shares(reports: Mapping[str, Fields], tables: Mapping[str, Table]) -> Iterator[ShareOfFigure]:
    for report in reports.values():
        for row in report.one("unreconciled").many("figures"):
            where, shares = _part_name(row.text("row") or "", report, tables), row.one("shares")
            yield from ((where, heading(name), share) for name in shares if (share := shares.number(name)))


def _part_name(place: str, report: Fields, tables: Mapping[str, Table]) -> str:
    """Return the name of the part of the report that a JSON Pointer leads to."""
    match place.split("/")[1:]:
        case ["tables", named, *_] if named in tables:
            return tables[named].name
        case ["drivers", nth] if nth.isdecimal() and int(nth) < len(drivers := report.many("drivers")):
            return driver_name(drivers[int(nth)])
        case [member, *_]:
            return heading(member)
    return "Risk rating"
