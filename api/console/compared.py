"""Compared figures in words: where each is, of what, how it is written, and which of them changed most."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Final
from uuid import UUID

from pipelines.metrics import METRICS
from pipelines.pages import wording
from pipelines.pages.wording import UNKNOWN, day, month, spell_out
from pipelines.reports.aggregate import TABLES
from pipelines.reports.completeness import TABLES as COMPLETENESS_TABLES
from pipelines.reports.diff import KEYS_OF_LISTS
from pipelines.reports.headlines import HEADLINES
from pipelines.reports.page.columns import is_share, likely_unit, write_heading
from pipelines.reports.page.sections import SECTIONS

_NAMES: Final = sorted({*KEYS_OF_LISTS}.union(*(table.row_keys for table in (*TABLES, *COMPLETENESS_TABLES))))
_PART: Final = re.compile(rf"(?P<name>{'|'.join(_NAMES)}) (?P<value>.*?)(?:, (?=(?:{'|'.join(_NAMES)}) )|$)", re.DOTALL)
_SELF_EXPLANATORY: Final[Mapping[str, Callable[[str], str]]] = {  # parts whose value is written without their name
    "month": month,
    "date": day,
    "days": lambda days: f"{days} days",
    **dict.fromkeys(("name", "payer", "reason", "about", "lender"), str),
    **dict.fromkeys(("category", "categoryGroup", "direction", "basis", "evidence", "finding"), spell_out),
}

_METRIC: Final = re.compile(r"metric (?P<slug>\w+)")
_READINGS: Final = ("reading", "from", "to")  # members of what a metric is the key of

_TABLES: Final = {table.id: table for table in TABLES}
_SECTION_OF_REPORT: Final = {"completeness": "Completeness", "risk": "What drives the rating"}
_SECTION_OF_TABLE: Final = {chosen.table: plan.title for plan in SECTIONS for chosen in plan.tables}
_OTHER_TABLES: Final = "Other tables"
_TITLES: Final = (*_SECTION_OF_REPORT.values(), *(plan.title for plan in SECTIONS), _OTHER_TABLES)
_HEADLINES: Final[Mapping[str, tuple[str, str]]] = {  # by the API's name: its words, and its format
    "rating": ("Risk rating", ""),
    "riskValue": ("Risk figure", ""),
    "pdConfidenceScore": ("Confidence in the risk figure", "points"),
    "completenessScore": ("Completeness", "points"),
    "completenessTier": ("Completeness tier", ""),
    "revenue90Days": ("Revenue, last 90 days", "currency"),
    "moneyIn90Days": ("Money in, last 90 days", "currency"),
    "moneyOut90Days": ("Money out, last 90 days", "currency"),
    "net90Days": ("Net, last 90 days", "currency"),
    "closingBalance": ("Balance at the end", "currency"),
}
_WORDS_OF_HEADLINES: Final = {  # by the report and the pointer of the figure
    (each.report, "/".join(("", *each.path))): _HEADLINES[each.name][0] for each in HEADLINES if each.path
}
_POINTS_OF_DRIVER: Final = re.compile(r"/value(BeforeCeilings)?/\w+")  # in the lineage of the risk figure

Accounts = Mapping[str, str]  # names by id
Figure = Mapping[str, Any]  # of a comparison, as the API sends it


@dataclass(frozen=True)
class ChangedTable:
    """A table, or a member of a report, with its changed figures: those that changed most first."""

    id: str  # the report and the table
    section: str
    name: str
    figures: Sequence[Figure]


def group_by_table(figures: Iterable[Figure]) -> list[ChangedTable]:
    """Return the changed figures by table, in the order of the report page's sections.

    In a table, figures of both reports come before those that only one has, amounts of money before other numbers, and
    then large differences before small ones, because there is no common measure for different units.
    """
    by_table: defaultdict[str, list[Figure]] = defaultdict(list)
    for figure in figures:
        by_table[_table_id(figure)].append(figure)
    tables = [_order(table_id, listed) for table_id, listed in by_table.items()]
    return sorted(tables, key=lambda table: _TITLES.index(table.section))  # stable: in the report's order


def _table_id(figure: Figure) -> str:
    within = [each for each in figure["figure"].strip("/").split("/")[:-1] if not each.isdigit()]
    return "/".join([str(figure["report"]), *(within[1:2] if within[:1] == ["tables"] else within)])


def _order(table_id: str, figures: Iterable[Figure]) -> ChangedTable:
    report, _, table = table_id.partition("/")
    section = _SECTION_OF_REPORT.get(report) or _SECTION_OF_TABLE.get(table, _OTHER_TABLES)
    ordered = sorted(figures, key=_rank)
    return ChangedTable(table_id, section, _locate(ordered[0])[0], ordered)


def _rank(figure: Figure) -> tuple[bool, int, Decimal]:
    """Return the key by which changed figures of a table are sorted."""
    before, after = figure["from"], figure["to"]
    if isinstance(before, str) or isinstance(after, str):
        return False, 0, Decimal(0)  # a rating or a tier
    value_format = _locate(figure)[1]
    size = abs(Decimal(after or 0) - Decimal(before or 0)) * (100 if value_format == "percent" else 1)
    return before is None or after is None, 1 if value_format == "currency" else 2, -size


def describe(figure: Figure, accounts: Accounts) -> dict[str, Any]:
    """Return a changed figure with its `table`, `name` and `value_format`, and with what distinguishes it (`key`)."""
    table, value_format = _locate(figure)
    key = "" if figure["key"] is None else ", ".join(_parts(figure["key"], accounts))
    name = name_figure(figure["report"], figure["figure"])
    return {
        **figure,
        "table": table,
        "name": name,
        "value_format": value_format,
        "key": key,
        **_write(figure, value_format),
    }


def describe_headline(figure: Figure) -> dict[str, Any]:
    """Return a headline of the API with its `name` in words, both values and the change between them as text."""
    name, value_format = _HEADLINES.get(figure["name"], (spell_out(figure["name"]), ""))
    return {**figure, "name": name, "value_format": value_format, **_write(figure, value_format)}


def _write(figure: Figure, value_format: str) -> dict[str, str]:
    before, after = figure["from"], figure["to"]
    written = {"before": _write_value(before, value_format), "after": _write_value(after, value_format), "change": ""}
    if before is None or after is None or isinstance(before, str) or isinstance(after, str):
        return written
    return written | {"change": _write_change(Decimal(after) - Decimal(before), value_format)}


def _write_value(value: Decimal | float | str | None, value_format: str) -> str:
    return spell_out(value) if isinstance(value, str) else wording.reading(value, value_format)


def _write_change(change: Decimal, value_format: str) -> str:
    """Write a difference with its sign. That of percentages is in points, because a percentage of one is another."""
    sign = "+" if change > 0 else ""
    if value_format == "percent":
        return f"{sign}{wording.score(change * 100)} points"
    return f"{sign}{wording.reading(change, value_format)}" if change else UNKNOWN


def _locate(figure: Figure) -> tuple[str, str]:
    """Return the name of the table, or of the report's member, that contains a figure, and the figure's format."""
    table, value_format = find_table_and_format(figure["figure"])
    if table:
        return table, value_format
    *within, name = figure["figure"].strip("/").split("/")
    read = _METRIC.match(figure["key"] or "")
    if read is not None and read["slug"] in METRICS and name in _READINGS:
        value_format = METRICS[read["slug"]].format
    else:
        value_format = _format(name, likely_unit(figure["to"], name) or likely_unit(figure["from"], name))
    members = (spell_out(each).lower() for each in within if not each.isdigit())
    return ", ".join([spell_out(figure["report"]), *members]), value_format


def _parts(key: str, accounts: Accounts) -> Iterator[str]:
    """Yield the parts of a row's key in words."""
    parts = {found["name"]: found["value"] for found in _PART.finditer(key)}
    for name, value in parts.items():
        if name == "metric" and "name" in parts:
            continue  # the name says the same
        if name in _SELF_EXPLANATORY:
            yield _SELF_EXPLANATORY[name](value)
        elif value in ("True", "False"):
            yield f"{spell_out(name).lower()}: {'yes' if value == 'True' else 'no'}"
        elif value in accounts:
            side = {"fromAccountId": "from ", "toAccountId": "to "}.get(name, "")
            yield f"{side}{accounts[value]}"
        else:
            yield f"{spell_out(name).lower().removesuffix(' id')} {_short(value)}"


def _short(value: str) -> str:
    """Write a day as people do, and of an id only the beginning. Other text stays as it is."""
    with suppress(ValueError):
        return day(value)
    with suppress(ValueError):
        return str(UUID(value))[:8]
    return value


def name_figure(report: str, pointer: str) -> str:
    """Return a figure's name in words: that of a headline figure, of a metric, or of a column."""
    if (report, pointer) in _WORDS_OF_HEADLINES:
        return _WORDS_OF_HEADLINES[report, pointer]
    last = pointer.rpartition("/")[2]
    name = METRICS[last].name if last in METRICS else write_heading(last)
    return f"Points: {name}" if report == "risk" and _POINTS_OF_DRIVER.fullmatch(pointer) else name


def find_table_and_format(pointer: str, value: object = None) -> tuple[str, str]:
    """Return the name of the table that contains a figure, and the figure's format.

    Outside tables the name is empty, and the format is that of the metric, or guessed by name and value.
    """
    match pointer.split("/"):
        case ["", "tables", table, *_, column] if table in _TABLES:
            return _TABLES[table].name, _format(column, _units(table).get(column, ""))
        case ["", slug] if slug in METRICS:
            return "", METRICS[slug].format
    name = pointer.rpartition("/")[2]
    return "", _format(name, likely_unit(value, name))


@cache
def _units(table_id: str) -> Mapping[str, str]:
    return {column.name: column.unit for column in _TABLES[table_id].columns}


def _format(column: str, unit: str) -> str:
    if is_share(column, unit):
        return "percent"
    return {"AUD": "currency", "points": "points"}.get(unit, "")
