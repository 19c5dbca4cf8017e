"""A file's bytes as cells: which characters they are, what separates them, and on which line each record begins."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import polars as pl

from pipelines.intake.exports.values import is_day, money
from pipelines.vocabulary.errors import InvalidRequest

DELIMITERS = (",", ";", "\t", "|")
MOST_COLUMNS = 100
SAMPLE = 200  # records that a question about the whole file is put to
_NOT_TEXT = {
    b"%PDF": "is a PDF: export the transactions as CSV",
    b"PK\x03\x04": "is an Excel workbook: save it as CSV",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save it as CSV",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Sheet:
    """`cells`: `line` (where the record begins, from 1) and one text column for each column of the file, without
    white space around it, null when empty. Records without any cell filled are not in it: `blank` are their lines.
    """

    cells: pl.DataFrame
    blank: tuple[int, ...]

    @property
    def columns(self) -> list[str]:
        return self.cells.columns[1:]


def refused(reason: str, detail: str) -> InvalidRequest:
    """The error of a file that can't be understood."""
    return InvalidRequest(f"Export.{reason}", detail)


def text_of(content: bytes) -> str:
    """The characters of a file: UTF-8 or UTF-16 if it is that, else Windows-1252, as older exports are.

    Raises:
        InvalidRequest: it is empty, or no text.
    """
    for beginning, what in _NOT_TEXT.items():
        if content.startswith(beginning):
            raise refused("NotText", what)
    text = _decoded(content)
    if not text.strip():
        raise refused("Empty", "is empty")
    if "\0" in text:
        raise refused("NotText", "is not a text file")
    return text


def _decoded(content: bytes) -> str:
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def sheet(text: str) -> Sheet:
    """The text's cells, by the delimiter that leaves a date and an amount in cells of their own most often.

    Raises:
        InvalidRequest: no delimiter does, or the quotes don't fit together.
    """
    samples = {delimiter: _cells(_sampled(text, delimiter)) for delimiter in DELIMITERS}
    hits = {delimiter: transactions(sample).height for delimiter, sample in samples.items()}
    best = max(DELIMITERS, key=lambda delimiter: hits[delimiter])
    if not hits[best]:
        raise refused("NoTransactions", "holds no line with a date and an amount in columns of their own")
    records = [*_parsed(text, best)]
    return Sheet(
        _cells([(line, cells) for line, cells in records if any(cells)]),
        tuple(line for line, cells in records if not any(cells)),
    )


def transactions(cells: pl.DataFrame) -> pl.DataFrame:
    """The records that hold a date and, in another cell, an amount. Digits alone may be either, but not both."""
    if cells.width == 1:
        return cells.clear()
    text = pl.col("text")
    is_amount = money(text).is_not_null() | money(text, decimal_comma=True).is_not_null()
    stated = cells.unpivot(index="line", value_name="text").select("line", is_date=is_day(text), amount=is_amount)
    is_date, amount = pl.col("is_date"), pl.col("amount") & ~pl.col("is_date")
    lines = stated.group_by("line").agg(is_date.any(), amount.any()).filter("is_date", "amount")
    return cells.join(lines, on="line", how="semi", maintain_order="left")


def _sampled(text: str, delimiter: str) -> list[tuple[int, Sequence[str]]]:
    """Line and cells of the first records that have any."""
    return list(islice(((line, cells) for line, cells in _parsed(text, delimiter) if any(cells)), SAMPLE))


def _parsed(text: str, delimiter: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Line and cells of every record, blank ones too."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    line = 1
    try:
        for cells in reader:
            if len(cells) > MOST_COLUMNS:
                raise refused("TooWide", f"has more than {MOST_COLUMNS} columns on line {line}")
            if reader.line_num > line:
                _refuse_swallowed(cells, delimiter, line)
            yield line, cells
            line = reader.line_num + 1
    except csv.Error:
        raise refused("OpenQuote", f"has a text on line {line} that never ends") from None


def _refuse_swallowed(cells: Sequence[str], delimiter: str, line: int) -> None:
    """A quoted text may run over several lines; one that holds whole transactions was never closed."""
    inner = [part for cell in cells if "\n" in cell for part in cell.splitlines()[1:]]
    within = [(line, part.replace('"', "").split(delimiter)) for part in inner[:SAMPLE]]
    if any(len(cells) > 1 for _, cells in within) and transactions(_cells(within)).height:
        raise refused("OpenQuote", f"has a quote on line {line} that is never closed")


def _cells(records: Sequence[tuple[int, Sequence[str]]]) -> pl.DataFrame:
    """Records as a frame; short ones are filled up with nothing."""
    width = max((len(cells) for _, cells in records), default=0)
    columns = [[cells[place] if place < len(cells) else None for _, cells in records] for place in range(width)]
    frame = pl.DataFrame(
        {
            "line": pl.Series([line for line, _ in records], dtype=pl.UInt32),
            **{f"column_{place + 1}": pl.Series(texts, dtype=pl.String) for place, texts in enumerate(columns)},
        }
    )
    text = pl.col(pl.String).str.strip_chars()
    return frame.with_columns(pl.when(text != "").then(text).name.keep()) if width else frame
