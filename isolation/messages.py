"""What a child and its parent say to each other: plain data, each message behind its length.

Either side decodes into these types and nothing else. The parent believes no more than they let through: a child has
read a stranger's file.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import msgspec

from pipelines.intake.lines import Rows
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.page.result import Box, Extraction, Statement
from pipelines.vocabulary.strict_json import Number

LENGTH: Final = struct.Struct(">I")
OUT_OF_MEMORY: Final = "Reading it takes more memory than a statement needs."
NUMBER: Final = 1  # the extension of MessagePack that holds the exact text of a JSON number
LARGEST_DIGITS: Final = 16  # before the point, of money in Decimal(18,2)


class Read(msgspec.Struct, frozen=True, tag=True):
    """Find the statements. With `asks` a page that is a picture is handed to the parent, who answers with words."""

    pages: int
    characters: int
    scanned_pages: int
    asks: bool


class Draw(msgspec.Struct, frozen=True, tag=True):
    """A page as a picture, with places marked."""

    page: int
    highlight: tuple[Box, ...]


class Explain(msgspec.Struct, frozen=True, tag=True):
    """Every page as a picture, with what was seen in it."""


class Decode(msgspec.Struct, frozen=True, tag=True):
    """The content is JSON, as the contract reads it."""

    rows: Rows | None


class Task(msgspec.Struct, frozen=True):
    """What stands at the head; the file's bytes follow."""

    what: Read | Draw | Explain | Decode
    password: str | None
    content_bytes: int
    memory_bytes: int
    cpu_s: int
    parent: int


class Progress(msgspec.Struct, frozen=True, tag=True):
    done: int
    total: int


class Picture(msgspec.Struct, frozen=True, tag=True):
    """A page as PNG. Of a child that reads it is a question: the parent answers with Words."""

    page: int
    png: bytes


class Answer(msgspec.Struct, frozen=True, tag=True):
    extraction: Extraction


class Elements(msgspec.Struct, frozen=True, tag=True):
    """Some elements of a list, in order: of a member of the document, or of the document itself. A list comes in parts
    because decoding a message holds up every other thread."""

    member: str | None
    elements: list[Any]


class Lines(msgspec.Struct, frozen=True, tag=True):
    """Some of the lines of the document's rows, in order."""

    text: bytes


class Document(msgspec.Struct, frozen=True, tag=True):
    """The document, last: without the elements that came before."""

    document: Any


class Invalid(msgspec.Struct, frozen=True, tag=True):
    """Why the content is no document."""

    code: str
    detail: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A fault of ours, as far as it can be told without quoting the file: its type, and where it was raised."""

    error: str
    raised_at: tuple[str, ...]


class Words(msgspec.Struct, frozen=True):
    words: tuple[ScannedWord, ...]


FromChild = Progress | Picture | Answer | Elements | Lines | Document | Invalid | Failed


def _exact(value: object) -> msgspec.msgpack.Ext:
    if not isinstance(value, Number):
        raise NotImplementedError
    return msgspec.msgpack.Ext(NUMBER, value.encode())


def _extension(code: int, data: memoryview) -> Number:
    if code != NUMBER:
        raise ValueError
    return Number(data, "ascii")


encoder: Final = msgspec.msgpack.Encoder(enc_hook=_exact)
_from_child: Final = msgspec.msgpack.Decoder[FromChild](FromChild, ext_hook=_extension)


class Garbled(Exception):
    """What a child wrote is no message."""


class TooLong(Exception):
    """A message is longer than it may be."""


def framed(message: msgspec.Struct) -> bytes:
    payload = encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def messages(pieces: Iterable[bytes], longest: int) -> Iterator[FromChild]:
    """Raises Garbled, TooLong. What is cut off at the end was never said."""
    received = bytearray()
    for piece in pieces:
        received += piece
        while len(received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(received)
            if length > longest:
                raise TooLong
            end = LENGTH.size + length
            if len(received) < end:
                break
            yield _decoded(bytes(received[LENGTH.size : end]))
            del received[:end]


def _decoded(payload: bytes) -> FromChild:
    try:
        message: FromChild = _from_child.decode(payload)
    except (msgspec.DecodeError, RecursionError, ArithmeticError, ValueError) as error:
        raise Garbled from error
    if isinstance(message, Answer) and not all(map(_is_sound, message.extraction.statements)):
        raise Garbled
    return message


def _is_sound(statement: Statement) -> bool:
    """Money that can be kept and places on a page: their types would let through infinities and what is no number."""
    of_account = (statement.opening_balance, statement.closing_balance, statement.credit_limit)
    of_rows = (money for entry in statement.entries for money in (entry.amount, entry.balance))
    boxes = (box for entry in statement.entries for box in entry.boxes)
    return all(_is_money(each) for each in chain(of_account, of_rows) if each is not None) and all(
        map(_is_place, boxes)
    )


def _is_money(money: Decimal) -> bool:
    return money.is_finite() and money.adjusted() < LARGEST_DIGITS


def _is_place(box: Box) -> bool:
    return all(map(math.isfinite, (box.left, box.top, box.right, box.bottom)))
