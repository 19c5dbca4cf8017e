"""Parse JSON strictly, as the contract requires.

The standard parser accepts NaN, keeps the last of two equal keys, turns 0.10 into a float and accepts lone surrogates,
which fail later when they are encoded. Here each of these is refused with a code, and a number keeps its text as sent.

A parsed document may take a hundred times the memory of its bytes: `[{},{},…`. So the number of values, the depth and
the length of numbers are checked on the bytes before parsing. The time for this is proportional to the number of bytes,
whatever they are.
"""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NoReturn

from pipelines.vocabulary.errors import InvalidRequest

# All limits are our judgement, except the digits: Python itself refuses to convert longer integers.
MAX_VALUES: Final = 2_000_000  # including names of members: 50,000 transactions of 19 members each
MAX_OTHER_VALUES: Final = 700_000  # in a body without transactions: a backtest with 100,000 outcomes and customers
MAX_MEMBERS: Final = 1_000  # of one object
MAX_DEPTH: Final = 200  # levels of objects and lists; a policy's operators are nested up to 20 deep
MAX_DIGITS: Final = 4_300  # in a row

PIECE_BYTES: Final = 2**20  # split at once: a list of all texts of a body takes sixty times its memory
# The look-behind lets a match start only at the first digit of a run. Without it, time is quadratic in its length.
_LONG_NUMBER = re.compile(rb"[0-9](?<![0-9][0-9])[0-9]{%d}" % MAX_DIGITS)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


class Number(str):
    """The exact text of a JSON number. Its type distinguishes it from a JSON string."""

    __slots__ = ()


def parse(body: bytes, max_values: int = MAX_VALUES) -> object:
    """Parse the document in `body`: dict, list, str, Number, bool or None.

    Args:
        max_values: how many values are allowed, including names of members.

    Raises:
        InvalidRequest: not UTF-8, not JSON, over a limit, or JSON that two parsers could read differently.
    """
    if not body.strip():
        _refuse("EmptyBody", "The request has no body.")
    _require_bounded(body, max_values)
    try:
        text = body.decode("utf-8")
        document: object = json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_build_object
        )
    except UnicodeDecodeError:
        _refuse("NotUtf8", "The body is not UTF-8.")
    except json.JSONDecodeError:
        _refuse("MalformedJson", "The body is not one valid JSON document.")
    if _SUSPICIOUS_ESCAPE.search(body):
        _check_texts(document)
    return document


def _require_bounded(body: bytes, max_values: int) -> None:
    if _count_openings(body) <= MAX_DEPTH and _count_values(body) <= max_values and not _LONG_NUMBER.search(body):
        return  # within the limits even if the bytes in texts are counted; leaving them out is costly
    bare = _drop_texts(body)
    if _count_values(bare) > max_values:
        _refuse("TooManyValues", f"The body holds more than {max_values:,} values.")
    if _measure_depth(bare) > MAX_DEPTH:
        _refuse("TooDeep", "The body is nested too deeply.")
    if _LONG_NUMBER.search(bare):
        _refuse("TooManyDigits", f"A number has more than {MAX_DIGITS:,} digits.")


def _drop_texts(body: bytes) -> bytes:
    """Return the bytes outside of texts. An unclosed text extends to the end.

    A backslash outside a text may make the rest wrong. But it is not JSON, so the parser stops there.
    """
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare, inside = bytearray(), False
    for start in range(0, len(unescaped), PIECE_BYTES):
        between_quotes = unescaped[start : start + PIECE_BYTES].split(b'"')
        bare += b"".join(between_quotes[inside::2])
        inside ^= len(between_quotes) % 2 == 0
    return bytes(bare)


def _count_values(text: bytes) -> int:
    """Count the values, roughly: each follows a comma or a colon, or opens with a bracket."""
    return text.count(b",") + text.count(b":") + _count_openings(text)


def _count_openings(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def _measure_depth(text: bytes) -> int:
    """Return the deepest level of nested objects and lists."""
    return max(accumulate(map(_STEPS.__getitem__, text.translate(None, _NO_BRACKET))), default=0)


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) > MAX_MEMBERS:
        _refuse("TooManyValues", f"An object holds more than {MAX_MEMBERS:,} members.")
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse("DuplicateKey", "An object names a member twice.")
    return members


def _refuse_constant(_name: str) -> NoReturn:
    _refuse("MalformedJson", "NaN and infinities are not JSON.")


def _check_texts(document: object) -> None:
    for text in _list_texts(document):
        if "\0" in text:
            _refuse("NullCharacter", "A text holds the character NUL.")
        if any("\ud800" <= character <= "\udfff" for character in text):
            _refuse("LoneSurrogate", "A text holds half of a surrogate pair.")


def _list_texts(document: object) -> Iterator[str]:
    """Yield every text of the document, including names of members."""
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
