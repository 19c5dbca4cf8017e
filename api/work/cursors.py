"""The text of a place in a timeline: opaque to callers."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from storage.work.timeline import EntryKind, Place

LONGEST = 120  # characters; a time, a kind and an id take at most 85 bytes
BIGINT_END = 2**63


def cursor_text(place: Place) -> str:
    packed = msgspec.msgpack.encode((place.at, place.kind, place.tie))
    return urlsafe_b64encode(packed).decode().rstrip("=")


def parse_place(value: Any) -> Place | None:
    """Parse the text of a place. An empty text gives None, the place before the newest entry."""
    if type(value) is not str or not re.fullmatch(f"[A-Za-z0-9_-]{{0,{LONGEST}}}", value):
        raise ValueError
    if not value:
        return None
    try:
        content = urlsafe_b64decode(value + "=" * (-len(value) % 4))
        at, kind, tie = msgspec.msgpack.decode(content, type=tuple[datetime, EntryKind, int | str])
    except msgspec.DecodeError as error:
        raise ValueError from error
    if at.tzinfo is None or (isinstance(tie, int) and not 0 <= tie < BIGINT_END):
        raise ValueError
    if isinstance(tie, str) != (kind is EntryKind.STATEMENT_READ):
        raise ValueError
    return Place(at.astimezone(UTC), kind, UUID(tie) if isinstance(tie, str) else tie)
