"""Files that an operator names: what can't be read or written is said in one line."""

from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from pipelines.vocabulary.errors import Unprocessable

_FORMULA = r"^[=+\-@\t\r]"  # a spreadsheet runs a cell of text that begins so


def content_of(path: Path) -> bytes:
    """Raises Unprocessable where it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unprocessable("File.Unreadable", f"{path} can't be read: {error.strerror}.") from error


def text_of(path: Path) -> str:
    """Raises Unprocessable where it can't be read, or is not UTF-8."""
    try:
        return content_of(path).decode()
    except UnicodeDecodeError as error:
        raise Unprocessable("File.NotUtf8", f"{path} is not text in UTF-8.") from error


def folder_at(path: Path) -> Path:
    """The folder, made where it isn't there. Raises Unprocessable where it can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be made: {error.strerror}.") from error
    return path


def write(path: Path, content: bytes) -> None:
    """Raises Unprocessable where it can't be written."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Unprocessable("File.Unwritable", f"{path} can't be written: {error.strerror}.") from error


def csv_of(path: Path) -> pl.DataFrame:
    """The columns of a CSV file, as text. Raises Unprocessable where it is none."""
    try:
        return pl.read_csv(content_of(path), infer_schema=False, encoding="utf8-lossy")
    except PolarsError as error:
        reason = str(error).splitlines()[0]
        raise Unprocessable("File.NotCsv", f"{path} is no CSV file: {reason}") from error


def as_csv(frame: pl.DataFrame, *, heading: bool = True) -> str:
    """A frame as CSV, with texts that no spreadsheet takes for formulas."""
    text = pl.col(pl.String)
    made_inert = pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text).name.keep()
    return frame.with_columns(made_inert).write_csv(include_header=heading)
