"""Changed figures of a comparison in words: where each is, of what, and how it is written."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from pipelines.pages.wording import day, month, spell_out
from pipelines.reports.aggregate import TABLES
from pipelines.reports.diff import KEYS_OF_LISTS
from pipelines.reports.page.columns import is_share, likely_unit, write_heading

_NAMES: Final = sorted({name for table in TABLES for name in table.row_keys} | set(KEYS_OF_LISTS))
_PART: Final = re.compile(rf"(?P<name>{'|'.join(_NAMES)}) (?P<value>.*?)(?:, (?=(?:{'|'.join(_NAMES)}) )|$)", re.DOTALL)
_SAID_BY_VALUE: Final[Mapping[str, Callable[[str], str]]] = {  # whose value needs no name beside it
    "month": month,
    "date": day,
    "days": lambda days: f"{days} days",
    **dict.fromkeys(("name", "payer", "reason"), str),
    **dict.fromkeys(("category", "categoryGroup", "direction", "basis"), spell_out),
}

Accounts = Mapping[str, str]  # names by id


def describe(figure: Mapping[str, Any], accounts: Accounts) -> dict[str, Any]:
    """Return a changed figure with the place where it is (`table`), its `name`, `shape` and what distinguishes it."""
    *within, name = figure["figure"].strip("/").split("/")
    table, shape = find_table_and_format(figure["figure"])
    if not table:
        shape = _format(name, likely_unit(figure["to"], name) or likely_unit(figure["from"], name))
        table = ", ".join(
            [spell_out(figure["report"]), *(spell_out(each).lower() for each in within if not each.isdigit())]
        )
    key = "" if figure["key"] is None else ", ".join(_parts(figure["key"], accounts))
    return {**figure, "table": table, "name": write_heading(name), "shape": shape, "key": key}


def _parts(key: str, accounts: Accounts) -> Iterator[str]:
    """Yield the parts of a row's key in words."""
    parts = {found["name"]: found["value"] for found in _PART.finditer(key)}
    for name, value in parts.items():
        if name == "metric" and "name" in parts:
            continue  # the name says the same
        if name in _SAID_BY_VALUE:
            yield _SAID_BY_VALUE[name](value)
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


def find_table_and_format(pointer: str) -> tuple[str, str]:
    """Return the name of the table that contains a figure, and the figure's format. Outside tables both are empty."""
    column = pointer.rpartition("/")[2]
    for table in TABLES:
        if pointer.startswith(f"/tables/{table.id}/"):
            return table.name, _format(column, next((each.unit for each in table.columns if each.name == column), ""))
    return "", ""


def _format(column: str, unit: str) -> str:
    return "currency" if unit == "AUD" else "percent" if is_share(column, unit) else ""
