"""Split a file's bytes into cells: find its encoding, its delimiter, and the line on which each record begins."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import polars as pl

from pipelines.intake.exports.values import is_day, is_money
from pipelines.vocabulary.errors import InvalidRequest

DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 100
SAMPLE = 200  # records from which features of the whole file are inferred
_NOT_TEXT = {
    b"%PDF": "is a PDF: export the transactions as CSV",
    b"PK\x03\x04": "is an Excel workbook: save it as CSV",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save it as CSV",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Sheet:
    """A file's records.

    `cells`: `line` (where the record begins, from 1) and a text column for each column of the file, stripped of white
    space, null if empty. `blank`: the lines of records without a filled cell, which are not in `cells`.
    """

    cells: pl.DataFrame
    blank: tuple[int, ...]

    @property
    def columns(self) -> list[str]:
        return self.cells.columns[1:]


def refusal(reason: str, detail: str) -> InvalidRequest:
    """Return the error for a file that can't be read."""
    return InvalidRequest(f"Export.{reason}", detail)


def text_of(content: bytes) -> str:
    """Decode a file as UTF-8 or UTF-16 if valid, else as Windows-1252, which older exports use.

    Raises:
        InvalidRequest: the file is empty or not text.
    """
    for beginning, what in _NOT_TEXT.items():
        if content.startswith(beginning):
            raise refusal("NotText", what)
    text = _decode(content)
    if not text.strip():
        raise refusal("Empty", "is empty")
    if "\0" in text:
        raise refusal("NotText", "is not a text file")
    return text


def _decode(content: bytes) -> str:
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def sheet(text: str) -> Sheet:
    """Split a text into cells by the delimiter that most often puts a date and an amount in separate cells.

    Raises:
        InvalidRequest: no delimiter does, or a quote is never closed.
    """
    samples = {delimiter: _cells(_sample(text, delimiter)) for delimiter in DELIMITERS}
    hits = {delimiter: transactions(sample).height for delimiter, sample in samples.items()}
    best = max(DELIMITERS, key=lambda delimiter: hits[delimiter])
    if not hits[best]:
        raise refusal("NoTransactions", "has no line with a date and an amount in separate columns")
    records = [*_parse(text, best)]
    return Sheet(
        _cells([(line, cells) for line, cells in records if any(cells)]),
        tuple(line for line, cells in records if not any(cells)),
    )


def transactions(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the records with a date and, in another cell, an amount. A cell that could be either counts as a date."""
    if len(cells.columns) < 3:  # with the lines' numbers: no cell is beside another
        return cells.clear()
    text = pl.col("text")
    stated = cells.unpivot(index="line", value_name="text").select("line", is_date=is_day(text), amount=is_money(text))
    is_date, amount = pl.col("is_date"), pl.col("amount") & ~pl.col("is_date")
    lines = stated.group_by("line").agg(is_date.any(), amount.any()).filter("is_date", "amount")
    return cells.join(lines, on="line", how="semi", maintain_order="left")


def _sample(text: str, delimiter: str) -> list[tuple[int, Sequence[str]]]:
    """Return line and cells of the first records that are not blank."""
    return list(islice(((line, cells) for line, cells in _parse(text, delimiter) if any(cells)), SAMPLE))


def _parse(text: str, delimiter: str) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield line and cells of every record, blank ones included."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    line = 1
    try:
        for cells in reader:
            if len(cells) > MAX_COLUMNS:
                raise refusal("TooWide", f"has more than {MAX_COLUMNS} columns on line {line}")
            if reader.line_num > line:
                _refuse_open_quote(cells, delimiter, line)
            yield line, cells
            line = reader.line_num + 1
    except csv.Error:
        raise refusal("OpenQuote", f"has a quoted text on line {line} that never ends") from None


def _refuse_open_quote(cells: Sequence[str], delimiter: str, line: int) -> None:
    """Raise if a quoted text of several lines contains whole transactions: its quote was never closed."""
    inner = [part for cell in cells if "\n" in cell for part in cell.splitlines()[1:]]
    within = [(line, part.replace('"', "").split(delimiter)) for part in inner[:SAMPLE]]
    if any(len(cells) > 1 for _, cells in within) and transactions(_cells(within)).height:
        raise refusal("OpenQuote", f"has a quote on line {line} that is never closed")


def _cells(records: Sequence[tuple[int, Sequence[str]]]) -> pl.DataFrame:
    """Return records as a frame; short ones are padded with nulls."""
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
