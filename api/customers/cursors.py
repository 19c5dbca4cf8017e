"""The text of a place in a list of customers: opaque to callers."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import date
from typing import Any, Final, TypeAlias

import msgspec

from pipelines.vocabulary.typed import convert
from storage.customers.summary_listing import Order, Place, Sort

LONGEST: Final = 4_000  # characters; a name has at most 200, of which each may become three when casefolded
BIGINT_END: Final = 2**63  # customer numbers and counts are less
KINDS: Final[dict[Sort, Any]] = {
    Sort.CREATED: int,
    Sort.NAME: str | None,
    Sort.RATING: str | None,
    Sort.RISK_VALUE: float | None,
    Sort.COMPLETENESS: float | None,
    Sort.DATA_THROUGH: date | None,
    Sort.OPEN_ALERTS: int,
}


Cursor: TypeAlias = tuple[Order, Place] | tuple[None, None]


def cursor_text(order: Order, place: Place) -> str:
    packed = msgspec.msgpack.encode((order.key, order.descending, place.value, place.customer_number))
    return urlsafe_b64encode(packed).decode().rstrip("=")


def parse_cursor(value: Any) -> Cursor:
    """Parse the text of a place and its order; the empty text is the place before the first customer in any order."""
    if type(value) is not str or not re.fullmatch(f"[A-Za-z0-9_-]{{0,{LONGEST}}}", value):
        raise ValueError
    if not value:
        return None, None
    try:
        content = urlsafe_b64decode(value + "=" * (-len(value) % 4))
        sort, descending, key, number = msgspec.msgpack.decode(
            content, type=tuple[Sort, bool, str | float | int | None, int]
        )
        key = convert(key, KINDS[sort])
    except msgspec.DecodeError as error:
        raise ValueError from error
    if not 0 <= number < BIGINT_END or (isinstance(key, int) and not 0 <= key < BIGINT_END) or "\0" in str(key):
        raise ValueError
    return Order(sort, descending=descending), Place(key, number)
