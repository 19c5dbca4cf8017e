"""Read labelled transactions from a file as rows that a model can learn from.

A file has `date,description,amount,label` and any `context_…` columns. Rows that can't be read are left out and
counted. A file is refused if more than a tenth of its rows can't be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.learned.features import CONTEXT, hashed, name_of
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.schemas import MONEY, AccountType, Direction

NEEDED = ("date", "description", "amount")
MOST_UNREADABLE = 0.1
_DATES = ("%Y-%m-%d", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y")


@dataclass(frozen=True)
class File:
    """`rows` are ready for a model; `notes` has a line for each kind of row that was left out."""

    rows: pl.DataFrame
    notes: Sequence[str]


def labelled_rows(table: pl.DataFrame) -> File:
    """Return the rows to learn from.

    Args:
        table: the file's columns, all text.

    Raises:
        Unprocessable: a column is missing, or too much can't be read.
    """
    return _read(table, (*NEEDED, "label"))


def prepare(rows: pl.DataFrame) -> pl.DataFrame:
    """Clean `date`, `description` and `amount` (Decimal), and apply rules and lists."""
    side = pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit")).cast(Direction)
    return read_narratives(rows.with_columns(direction=side, account_type=pl.lit(None, AccountType)))


def merchants(rows: pl.DataFrame) -> pl.Series:
    """Return each row's merchant: the first two words of the clean description without numbers."""
    return name_of(rows["clean_description"])


def tenth_of(merchant: pl.Series) -> NDArray[np.int64]:
    """Return which tenth (0–9) a merchant's name falls into; -100 for one without a name."""
    tenths = (hashed(merchant) >> np.uint64(40)) % np.uint64(10)
    return np.where(merchant == "", -100, tenths.astype(np.int64))


def _read(table: pl.DataFrame, needed: Sequence[str]) -> File:
    named = table.rename({name: name.strip().lower() for name in table.columns})
    if missing := [name for name in needed if name not in named.columns]:
        raise _unreadable(f"there is no column {', '.join(missing)}; there are {', '.join(table.columns) or 'none'}")
    if named.is_empty():
        raise _unreadable("there are no rows")
    retained = [*needed, *(name for name in named.columns if name.startswith(CONTEXT))]
    read = named.select(retained).with_row_index("line", offset=2).with_columns(_typed())
    if "label" in needed:
        read = read.with_columns(label=_without_blanks("label"))
    read_by = [name for name in ("date", "amount", "label") if name in needed]
    faults = _faults(named, read, read_by)
    sound = read.drop_nulls(read_by)
    if sound.height < (1 - MOST_UNREADABLE) * read.height:
        raise _unreadable("; ".join(faults))
    return File(prepare(sound.drop("line")), [f"{fault}: left out" for fault in faults])


def _typed() -> list[pl.Expr]:
    """Parse text as dates, money and names; null if it can't be parsed."""
    day = pl.col("date").str.strip_chars().str.extract(r"^(.{8,11}?)(?:[T ]\d{1,2}:.*)?$")
    digits = pl.col("amount").str.replace_all(r"[$,\s]", "").str.replace(r"^\((.*)\)$", "-$1")
    exact = digits.cast(pl.Decimal(38, 12), strict=False).round(2)
    return [
        pl.coalesce(day.str.to_date(each, strict=False) for each in _DATES).alias("date"),
        pl.when(exact.abs() < 10**13).then(exact).cast(MONEY, strict=False).alias("amount"),
        pl.col("description").fill_null(""),
    ]


def _without_blanks(name: str) -> pl.Expr:
    text = pl.col(name).str.strip_chars()
    return pl.when(text != "").then(text)


def _faults(table: pl.DataFrame, read: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Return a line for each column with values that can't be read: how many there are, and the first."""
    return [
        f"{bad.height} rows have no {name} that can be read, first row {line}: {(table[name][line - 2] or '')[:40]!r}"
        for name in names
        for bad in [read.filter(pl.col(name).is_null())]
        for line in bad["line"].head(1)
    ]


def _unreadable(reason: str) -> Unprocessable:
    return Unprocessable("Labels.Unreadable", f"The file can't be used: {reason}.")
