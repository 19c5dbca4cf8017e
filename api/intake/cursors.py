"""The text of a cursor: opaque to callers, and short."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from storage.enrichment.client_listing import Cursor

LONGEST = 80  # characters; five values take at most 56 bytes
MAX_DAYS, BIGINT_END = 100_000, 2**63  # a place after these has no rows


def cursor_text(cursor: Cursor) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def parse_cursor(value: Any) -> Cursor:
    """Parse the text of a cursor; the empty text is the place before the first row.

    Raises:
        ValueError: the text is not one that `cursor_text` returns.
    """
    if type(value) is not str or not re.fullmatch(f"[A-Za-z0-9_-]{{0,{LONGEST}}}", value):
        raise ValueError
    if not value:
        return Cursor()
    try:
        cursor = msgspec.msgpack.decode(urlsafe_b64decode(value + "=" * (-len(value) % 4)), type=Cursor)
    except msgspec.DecodeError as error:
        raise ValueError from error
    numbers = (cursor.customer_number, cursor.received_seq, cursor.position)
    if not 0 <= cursor.day < MAX_DAYS or not all(0 <= number < BIGINT_END for number in numbers):
        raise ValueError
    return cursor
