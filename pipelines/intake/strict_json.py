"""JSON read as the contract reads it: exactly, or not at all.

The standard parser takes NaN, keeps the last of two equal keys, turns 0.10 into a float and passes lone surrogates
on to whoever first encodes them. Here each of these is refused with a code, and a number keeps the text that was
sent.
"""

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from pipelines.errors import InvalidRequest

MOST_VALUES = 2_000_000  # of a document, which takes a hundred times the memory that it was sent in: `[{},{},…`

# A text with its quotes, or an open one up to the end. Possessive, and never without a match at a quote: backtracking,
# or trying again from each next quote, takes the square of the body's length.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


class Number(str):
    """The exact text of a JSON number: told from a JSON string by its type."""

    __slots__ = ()


def parse(body: bytes) -> object:
    """The document in `body`: dict, list, str, Number, bool or None.

    Raises:
        InvalidRequest: not UTF-8, not JSON, or JSON that two readers could understand differently.
    """
    if not body.strip():
        _refuse("EmptyBody", "The request has no body.")
    if _separators(body) > MOST_VALUES and _separators(_TEXT.sub(b"", body)) > MOST_VALUES:
        _refuse("TooManyValues", f"The body holds more than {MOST_VALUES:,} values.")
    try:
        text = body.decode("utf-8")
        document: object = json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_constant, object_pairs_hook=_object
        )
    except UnicodeDecodeError:
        _refuse("NotUtf8", "The body is not UTF-8.")
    except RecursionError:
        _refuse("TooDeep", "The body is nested too deeply.")
    except json.JSONDecodeError:
        _refuse("MalformedJson", "The body is not one valid JSON document.")
    if _SUSPICIOUS_ESCAPE.search(body):
        _check_text(document)
    return document


def _separators(text: bytes) -> int:
    """How many values there may be, at least: each stands after a comma, or opens with a bracket."""
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("DuplicateKey", "An object names a member twice.")
    return members


def _constant(_name: str) -> NoReturn:
    _refuse("MalformedJson", "NaN and infinities are not JSON.")


def _check_text(document: object) -> None:
    for text in _texts(document):
        if "\0" in text:
            _refuse("NullCharacter", "A text holds the character NUL.")
        if any("\ud800" <= character <= "\udfff" for character in text):
            _refuse("LoneSurrogate", "A text holds half of a surrogate pair.")


def _texts(document: object) -> Iterator[str]:
    """Every text of the document, names of members included."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            yield from value
            waiting.extend(value.values())


def _refuse(reason: str, detail: str) -> NoReturn:
    raise InvalidRequest(f"Request.{reason}", detail) from None
