"""A report's JSON, read leniently: what is absent, or of another kind than expected, is None or empty.

Reports gain members with every version, and old reports are shown too; so nothing here raises.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Self

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Fields:
    """A JSON object; anything else counts as one without members."""

    def __init__(self, value: object) -> None:
        self._members: Mapping[str, object] = value if isinstance(value, Mapping) else {}

    @classmethod
    def of_json(cls, text: str | None) -> Self:
        """Parse an object; its numbers stay exactly as they are written."""
        return cls(None if text is None else json.loads(text, parse_float=Decimal, parse_constant=lambda _: None))

    def __bool__(self) -> bool:
        return bool(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def raw(self, name: str) -> object:
        """Return the member as it was parsed."""
        return self._members.get(name)

    def text(self, name: str) -> str | None:
        value = self._members.get(name)
        return value if isinstance(value, str) else None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._members.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()

    def number(self, name: str) -> Decimal | None:
        return as_number(self._members.get(name))

    def day(self, name: str) -> date | None:
        return as_day(self._members.get(name))

    def child(self, name: str) -> "Fields":
        return Fields(self._members.get(name))

    def children(self, name: str) -> tuple["Fields", ...]:
        value = self._members.get(name)
        return tuple(map(Fields, value)) if isinstance(value, list) else ()


def as_number(value: object) -> Decimal | None:
    """Return what JSON calls a number; Python's booleans don't count."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Decimal(value)


def as_day(value: object) -> date | None:
    """Parse an ISO date (`2026-03-01`).

    Python also parses `20260301`, which may be the number of an invoice.
    """
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None
