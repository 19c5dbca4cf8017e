"""Messages between a child and its parent: plain data as MessagePack, each message preceded by its length.

Both sides decode into these types only. The parent doesn't trust the child, which has read an untrusted file: what
these types and the checks below don't allow is refused.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import msgspec

from pipelines.intake.export_rows import PlainRefusal, PlainRows
from pipelines.intake.lines import Rows
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.page.result import Box, Extraction, Statement
from pipelines.vocabulary.strict_json import Number

LENGTH: Final = struct.Struct(">I")
OUT_OF_MEMORY: Final = "Reading the file takes more memory than allowed."
NUMBER: Final = 1  # our MessagePack extension type for the exact text of a JSON number
MAX_DIGITS: Final = 16  # before the decimal point, of an amount in Decimal(18,2)


class ReadStatements(msgspec.Struct, frozen=True, tag=True):
    """The task to extract statements. With `use_ocr` the child asks the parent for the words of scanned pages."""

    max_pages: int
    max_characters: int
    max_scanned_pages: int
    use_ocr: bool


class Draw(msgspec.Struct, frozen=True, tag=True):
    """The task to draw a page as a picture, with some areas highlighted."""

    page: int
    highlight: tuple[Box, ...]


class Explain(msgspec.Struct, frozen=True, tag=True):
    """The task to draw every page, with the words, columns and rows that extraction found."""


class ReadText(msgspec.Struct, frozen=True, tag=True):
    """The task to read the text of a PDF's pages."""


class Decode(msgspec.Struct, frozen=True, tag=True):
    """The task to decode a JSON document by the rules of the API (`strict_json`).

    `rows`: the member whose elements are sent as JSON lines instead, if the document has one.
    """

    rows: Rows | None


class ReadExport(msgspec.Struct, frozen=True, tag=True):
    """The task to read a bank's export. The file's name may show the type of account."""

    name: str


class Task(msgspec.Struct, frozen=True):
    """The first message to a child. The file's bytes follow it."""

    action: ReadStatements | Draw | Explain | ReadText | Decode | ReadExport
    password: str | None
    content_bytes: int
    memory_bytes: int
    cpu_s: int
    parent_pid: int


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How many pages were read, of how many."""

    done: int
    total: int


class Picture(msgspec.Struct, frozen=True, tag=True):
    """A page as PNG. If the task is to extract statements, it requests OCR, and the parent replies with Words."""

    page: int
    png: bytes


class Extracted(msgspec.Struct, frozen=True, tag=True):
    """The statements of a PDF, or why it is refused. The last message of this task.

    For every kind of task, a child that runs out of memory sends this message, with the text OUT_OF_MEMORY.
    """

    extraction: Extraction


class Text(msgspec.Struct, frozen=True, tag=True):
    """The text of a PDF. `complete` is false if some page is only a picture, so its text is unknown."""

    text: str
    complete: bool


class Elements(msgspec.Struct, frozen=True, tag=True):
    """Some elements of a list, in order. The list is a member of the document, or the whole document (`member` None).

    Lists are sent in parts because decoding a message blocks every other thread.
    """

    member: str | None
    elements: list[Any]


class Lines(msgspec.Struct, frozen=True, tag=True):
    """Some of the document's rows as JSON lines, in order."""

    text: bytes


class Document(msgspec.Struct, frozen=True, tag=True):
    """The document without the elements that were sent before it. The last message."""

    document: Any


class ExportRows(msgspec.Struct, frozen=True, tag=True):
    """Some rows of one account of an export, in order."""

    rows: PlainRows


class ExportEnd(msgspec.Struct, frozen=True, tag=True):
    """What is known about an export besides its rows. The last message."""

    refused: tuple[PlainRefusal, ...]
    notes: tuple[str, ...]


class Invalid(msgspec.Struct, frozen=True, tag=True):
    """The error to report, because the content is not a valid document or export."""

    code: str
    detail: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """An exception in our code: its type and where it was raised, but no message, which could quote the file."""

    error: str
    raised_at: tuple[str, ...]


class Words(msgspec.Struct, frozen=True):
    """The parent's reply to a Picture that is a request for OCR: the words that it read."""

    words: tuple[ScannedWord, ...]


FromChild = (
    Progress | Picture | Extracted | Text | Elements | Lines | Document | ExportRows | ExportEnd | Invalid | Failed
)


def _encode_number(value: object) -> msgspec.msgpack.Ext:
    if not isinstance(value, Number):
        raise NotImplementedError
    return msgspec.msgpack.Ext(NUMBER, value.encode())


def _decode_number(code: int, data: memoryview) -> Number:
    if code != NUMBER:
        raise ValueError
    return Number(data, "ascii")


encoder: Final = msgspec.msgpack.Encoder(enc_hook=_encode_number)
_from_child: Final = msgspec.msgpack.Decoder[FromChild](FromChild, ext_hook=_decode_number)


class InvalidMessage(Exception):
    """The bytes from a child are not a valid message."""


class MessageTooLong(Exception):
    """A message exceeds its maximum length."""


def frame_message(message: msgspec.Struct) -> bytes:
    payload = encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def read_messages(pieces: Iterable[bytes], longest: int) -> Iterator[FromChild]:
    """Yield the messages in a stream of bytes. A message that is cut off at the end is ignored.

    Raises:
        InvalidMessage: a message can't be decoded, or holds values that no statement has.
        MessageTooLong: a message has more than `longest` bytes.
    """
    received = bytearray()
    for piece in pieces:
        received += piece
        while len(received) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(received)
            if length > longest:
                raise MessageTooLong
            end = LENGTH.size + length
            if len(received) < end:
                break
            yield _decode_message(bytes(received[LENGTH.size : end]))
            del received[:end]


def _decode_message(payload: bytes) -> FromChild:
    try:
        message: FromChild = _from_child.decode(payload)
    except (msgspec.DecodeError, RecursionError, ArithmeticError, ValueError) as error:
        raise InvalidMessage from error
    if isinstance(message, Extracted) and not all(map(_is_plausible, message.extraction.statements)):
        raise InvalidMessage
    return message


def _is_plausible(statement: Statement) -> bool:
    """Check that amounts can be stored and that boxes are finite: the types would allow infinities and NaN."""
    account_amounts = (statement.opening_balance, statement.closing_balance, statement.credit_limit)
    row_amounts = (amount for entry in statement.entries for amount in (entry.amount, entry.balance))
    boxes = (box for entry in statement.entries for box in entry.boxes)
    amounts = (amount for amount in chain(account_amounts, row_amounts) if amount is not None)
    return all(map(_is_storable, amounts)) and all(map(_is_finite, boxes))


def _is_storable(amount: Decimal) -> bool:
    return amount.is_finite() and amount.adjusted() < MAX_DIGITS


def _is_finite(box: Box) -> bool:
    return all(map(math.isfinite, (box.left, box.top, box.right, box.bottom)))
