"""Convert data to types of msgspec, from any thread.

msgspec works out what it has to know of a Struct when the type is first used. If two threads do so at the same time,
the process crashes (msgspec 0.22). So they take turns.
"""

from threading import Lock
from typing import TypeVar

import msgspec

T = TypeVar("T")
_TURN = Lock()


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Return the value as this type.

    Raises:
        msgspec.ValidationError: it is not of the type.
    """
    with _TURN:
        converted: T = msgspec.convert(value, kind, strict=strict)
    return converted


def decode(content: bytes | str, kind: type[T]) -> T:
    """Return a JSON text as this type.

    Raises:
        msgspec.MsgspecError: it is no JSON, or not of the type.
    """
    with _TURN:
        return msgspec.json.decode(content, type=kind)
