"""Files that an operator gives. Every failure to read or write one is an `Unprocessable` with a clear message."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import polars as pl
from polars.exceptions import PolarsError

from pipelines.vocabulary.errors import Unprocessable

_FORMULA = r"^[=+\-@\t\r]"  # a spreadsheet treats a text that begins like this as a formula


def content_of(path: Path) -> bytes:
    """Return a file's bytes, or raise Unprocessable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unprocessable("File.Unreadable", f"{path} can't be read: {error.strerror}.") from error


def text_of(path: Path) -> str:
    """Return a file's text in UTF-8, or raise Unprocessable."""
    try:
        return content_of(path).decode()
    except UnicodeDecodeError as error:
        raise Unprocessable("File.NotUtf8", f"{path} is not text in UTF-8.") from error


def folder_at(path: Path) -> Path:
    """Create a folder if it is missing, and return it, or raise Unprocessable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be made: {error.strerror}.") from error
    return path


def write(path: Path, content: bytes) -> None:
    """Write a file, or raise Unprocessable."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be written: {error.strerror}.") from error


def csv_of(path: Path) -> pl.DataFrame:
    """Return the columns of a CSV file as text, or raise Unprocessable."""
    try:
        return pl.read_csv(content_of(path), infer_schema=False, encoding="utf8-lossy")
    except PolarsError as error:
        reason = str(error).splitlines()[0]
        raise Unprocessable("File.NotCsv", f"{path} is not a CSV file: {reason}") from error


def ids_in(texts: Iterable[str]) -> dict[str, UUID]:
    """Return the UUID of each text that is one. Other texts are left out: they can't be the id of a customer."""
    ids = {}
    for text in texts:
        with suppress(ValueError):
            ids[text] = UUID(text)
    return ids


def headings_of(path: Path) -> list[str]:
    """Return the headings of a CSV file; an empty list if it is not one."""
    try:
        return pl.read_csv(path, infer_schema=False, encoding="utf8-lossy", n_rows=0).columns
    except (PolarsError, OSError):
        return []


def as_csv(frame: pl.DataFrame, *, heading: bool = True) -> str:
    """Return a frame as CSV, with an apostrophe before texts that a spreadsheet would treat as formulas."""
    text = pl.col(pl.String)
    made_inert = pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text).name.keep()
    return frame.with_columns(made_inert).write_csv(include_header=heading)
