"""Rows as lines of JSON, one per row, which Polars reads into a frame without holding the interpreter's lock.

A child process writes the lines of a large body. Nothing here may import Polars: it starts threads, and a process with
several threads can't confine itself.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from pipelines.intake.masking import is_money, mask_json, mask_text, may_need_masking
from pipelines.vocabulary import strict_json
from pipelines.vocabulary.strict_json import MAX_OTHER_VALUES, Number

FIELDS: Final = ("date", "description", "amount", "type", "balance", "transactionId", "currency", "valueDate", "status")
NUMERIC_FIELDS: Final = frozenset({"amount", "balance"})  # a JSON number or its text
SENT: Final = {"transactionId": "sentTransactionId", "description": "sentDescription"}  # the fields that identify rows

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Rows:
    """The member of a document that is a list of rows, and how many it may hold. All other members are scalars."""

    member: str
    max_rows: int


@dataclass(frozen=True)
class Decoded:
    """A document, and the lines of its rows.

    A document with rows retains only what is needed to say what is wrong with it: an empty object for each row and null
    for each item that is not a row, at most one more than the limit.
    """

    document: object
    lines: bytes = b""


def decode(body: bytes, rows: Rows | None) -> Decoded:
    """Decode a JSON document with or without rows.

    Raises:
        InvalidRequest: what `strict_json.parse` raises.
    """
    if rows is None:
        return Decoded(strict_json.parse(body, MAX_OTHER_VALUES))
    document = strict_json.parse(body)
    if not isinstance(document, dict):
        return Decoded(type(document)() if isinstance(document, list) else document)
    items = document.get(rows.member)
    plain = {name: type(value)() if isinstance(value, (dict, list)) else value for name, value in document.items()}
    if not isinstance(items, list):
        return Decoded(plain)
    retained = items[: rows.max_rows + 1]
    return Decoded(
        plain | {rows.member: [{} if isinstance(item, dict) else None for item in retained]},
        as_lines(retained) if len(retained) <= rows.max_rows and _are_rows(retained) else b"",
    )


def as_lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    """Return one line for each row: its fields, the names of those that are `malformed`, and all else as `extra`, all
    masked; and the fields of SENT as sent, where masking changed them.
    """
    return b"".join(map(_line, rows))


def _are_rows(items: list[object]) -> TypeGuard[list[Mapping[str, object]]]:
    return all(isinstance(item, dict) for item in items)


def _line(row: Mapping[str, object]) -> bytes:
    malformed = [name for name in FIELDS if not _has_right_type(name, row.get(name))]
    line = {name: row[name] for name in FIELDS if name in row and name not in malformed}
    extra = {name: value for name, value in row.items() if name not in line}
    line |= {"malformed": malformed, "extra": _encode(extra) if extra else None, "masked": False}
    texts = {name: value for name, value in line.items() if isinstance(value, str)}
    shown = _mask_texts(texts) if may_need_masking("\n".join(texts.values())) else {}
    return _encode(line | shown).encode() + b"\n"


def _mask_texts(texts: Mapping[str, str]) -> dict[str, object]:
    """Return the texts as shown, the fields of SENT as sent where masking changed them, and whether it changed any."""
    shown = {name: _mask_field(name, text) for name, text in texts.items()}
    changed = {name for name, text in shown.items() if text != texts[name]}
    as_sent = {sent: texts[name] for name, sent in SENT.items() if name in changed}
    return {**shown, **as_sent, "masked": bool(changed)}


def _mask_field(name: str, text: str) -> str:
    """Mask a field's text, unless it is a valid amount: a price may have the digits of a card number."""
    if name == "extra":
        return mask_json(text)
    return text if name in NUMERIC_FIELDS and is_money(text) else mask_text(text)


def _has_right_type(name: str, value: object) -> bool:
    return value is None or type(value) is str or (type(value) is Number and name in NUMERIC_FIELDS)
