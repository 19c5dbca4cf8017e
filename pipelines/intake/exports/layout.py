"""Parse the columns that a user specifies, in a command or a file: `date=1,amount=-3,description=2,currency=GBP`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelines.intake.currencies import CODES
from pipelines.intake.exports.headings import synonyms
from pipelines.intake.exports.sheet import MAX_COLUMNS, refusal

_PART = re.compile(r"([a-z_]+)\s*=\s*([+-]?)([0-9]{1,3}|[A-Za-z]{3})")


@dataclass(frozen=True)
class Layout:
    """The columns of a file as specified by a user.

    `columns`: the number of each role's column, from 1. `sign`: `-` to invert the amounts' signs, `+` if they are right
    as printed, empty if evidence decides. `currency`: of every row, unless a column states it.
    """

    columns: Mapping[str, int]
    sign: str = ""
    currency: str | None = None

    def __str__(self) -> str:
        return ",".join(self._parts())

    def _parts(self) -> Iterator[str]:
        for role, number in self.columns.items():
            yield f"{role}={self.sign if role == 'amount' else ''}{number}"
        if self.currency is not None:
            yield f"currency={self.currency}"


def parse_layout(text: str) -> Layout:
    """Parse a layout: parts separated by commas or line ends; `#` begins a comment.

    Raises:
        InvalidRequest: a part is malformed, names an unknown role or is repeated, or date or amount is missing.
    """
    columns: dict[str, int] = {}
    sign, currency = "", None
    for part in filter(None, map(str.strip, re.split(r"[,\n]", re.sub(r"#.*", "", text)))):
        role, its_sign, value = _parse_part(part)
        if role in columns or (role == "currency" and currency is not None):
            raise refusal("Columns", f"names the column {role} twice")
        if not value.isdigit():
            currency = value.upper()
        else:
            columns[role] = int(value)
        sign = its_sign or sign
    if "date" not in columns or not columns.keys() & {"amount", "debit", "credit"}:
        raise refusal("Columns", "must name the columns date and amount (or debit and credit)")
    return Layout(columns, sign, currency)


def _parse_part(part: str) -> tuple[str, str, str]:
    found = _PART.fullmatch(part)
    if found is None:
        raise refusal("Columns", f"has a part that is not ROLE=NUMBER, such as date=1 or amount=-3: {part[:40]}")
    role, sign, value = found.groups()
    if role not in synonyms():
        raise refusal("Columns", f"has an unknown role {role}; the roles are {', '.join(synonyms())}")
    if sign and role != "amount":
        raise refusal("Columns", f"has a sign before {role}: only amount can have one")
    if not value.isdigit() and (role != "currency" or value.upper() not in CODES):
        raise refusal("Columns", f"must give {role} as a column's number{_or_code(role)}, not {value}")
    if value.isdigit() and not 1 <= int(value) <= MAX_COLUMNS:
        raise refusal("Columns", f"must number columns from 1 to {MAX_COLUMNS}, not {value}")
    return role, sign, value


def _or_code(role: str) -> str:
    return " or an ISO 4217 code" if role == "currency" else ""
