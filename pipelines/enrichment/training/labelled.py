"""Read labelled transactions from a file as rows that a model can learn from.

A file has `date,description,amount,label`, and any of `customer`, `account` and `context_…` columns. A model does not
learn from a column that identifies the customer (`identifies_customer`): it only tells whose row it is. Rows that can't
be read are left out and listed. A file is refused if more than a tenth of its rows can't be read. A file to be
categorised is read in the same way if it has these columns, with or without labels: what one command accepts, the other
accepts, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.learned.features import hash_values, merchant_words
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.own_columns import PREFIX, identifies_customer, normalise_heading
from pipelines.vocabulary.schemas import MONEY, AccountType, Direction

NEEDED = ("date", "description", "amount")
LABEL = "label"
CUSTOMER, CURRENCY = "customer", "currency"  # not learned from
ACCOUNT = ("account", "account_number", "accountnumber")  # headings of what a model knows as context_account
MAX_UNREADABLE = 0.1
REFUSED = pl.Schema({"line": pl.UInt32(), "field": pl.String(), "message": pl.String()})
LONGEST_SHOWN = 40  # characters of a value
_DATES = ("%Y-%m-%d", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y")


@dataclass(frozen=True)
class File:
    """`rows` are ready for a model; `refused` (schema REFUSED) lists those that can't be read, with their lines."""

    rows: pl.DataFrame
    refused: pl.DataFrame


@dataclass(frozen=True)
class Unfamiliar:
    """Rows to calibrate on that no row of the training resembles: of other authors, banks or countries.

    `apart` marks those rows of the training that resemble them. A trial model is trained without these, and each of
    `tests` (prepared, with labels) counts as much in the calibration as all merchants held back together.
    """

    apart: pl.Series
    tests: Sequence[pl.DataFrame]


def is_for_training(names: Iterable[str]) -> bool:
    """Return whether these headings are those of a file to learn from, which a bank's export doesn't have."""
    named = {normalise_heading(name) for name in names}
    return named.issuperset(NEEDED) and any(name == LABEL or name.startswith(PREFIX) for name in named)


def read_labelled_rows(table: pl.DataFrame) -> File:
    """Return the rows to learn from.

    Args:
        table: the file's columns, all text.

    Raises:
        Unprocessable: a column is missing, or too much can't be read.
    """
    return _read(table, (*NEEDED, LABEL))


def read_rows_to_categorise(table: pl.DataFrame) -> File:
    """Return the rows of a file for training, whether or not they have labels. Otherwise as `read_labelled_rows`."""
    return _read(table, NEEDED)


def prepare(rows: pl.DataFrame, lists: Lists | None = None) -> pl.DataFrame:
    """Clean `date`, `description` and `amount` (Decimal), and apply rules and lists (the shipped ones by default).

    `account_type` is used if it is known.
    """
    side = pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit")).cast(Direction)
    known = "account_type" if "account_type" in rows.columns else pl.lit(None, AccountType)
    return read_narratives(rows.with_columns(direction=side, account_type=known), lists)


def merchants(rows: pl.DataFrame) -> pl.Series:
    """Return each row's merchant, as the first two words of its clean description that have no digit."""
    return merchant_words(rows["clean_description"])


def customers(rows: pl.DataFrame) -> pl.Series:
    """Return each row's customer; "" where the file doesn't say."""
    return rows[CUSTOMER].fill_null("") if CUSTOMER in rows.columns else pl.Series([""]).new_from_index(0, rows.height)


def assign_tenth(merchant: pl.Series) -> NDArray[np.int64]:
    """Return which tenth (0–9) a merchant's name falls into; -100 for one without a name."""
    tenths = (hash_values(merchant) >> np.uint64(40)) % np.uint64(10)
    return np.where(merchant == "", -100, tenths.astype(np.int64))


def assign_customer_tenth(rows: pl.DataFrame) -> NDArray[np.int64]:
    """Return which tenth (0–9) of the customers the row's customer belongs to; -100 for rows without a customer.

    Customers are dealt out to the tenths in turn, in the order of their names.
    """
    names = customers(rows).replace("", None)
    return ((names.rank("dense").cast(pl.Int64) - 1) % 10).fill_null(-100).to_numpy()


def _read(table: pl.DataFrame, needed: Sequence[str]) -> File:
    named = table.rename(normalise_heading)
    if missing := [name for name in needed if name not in named.columns]:
        raise _unreadable(f"there is no column {', '.join(missing)}; there are {', '.join(table.columns) or 'none'}")
    if named.is_empty():
        raise _unreadable("there are no rows")
    sent = named.select(*needed, **_find_circumstances(named.columns)).with_row_index("line", offset=2)
    read = sent.with_columns(_parse_columns())
    if LABEL in needed:
        read = read.with_columns(label=_without_blanks(LABEL))
    refused = _list_refused(sent, read, [name for name in ("date", "amount", LABEL) if name in needed])
    if refused.height > MAX_UNREADABLE * read.height:
        raise _unreadable("; ".join(_summarise_refused(refused)))
    sound = read.join(refused, on="line", how="anti", maintain_order="left")
    return File(prepare(sound.drop("line")), refused)


def _find_circumstances(names: Sequence[str]) -> Mapping[str, str]:
    """Return the other columns that a model uses, each with the file's column that holds it."""
    of_customer = [name for name in names if identifies_customer(name)]
    account = [name for name in names if name in ACCOUNT]
    own = {name: name for name in names if name.startswith(PREFIX) and name not in of_customer}
    first = {CUSTOMER: of_customer, f"{PREFIX}account": account, CURRENCY: [name for name in names if name == CURRENCY]}
    return {name: columns[0] for name, columns in first.items() if columns} | own


def _parse_columns() -> list[pl.Expr]:
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


def _list_refused(sent: pl.DataFrame, read: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return each row of which one of these columns can't be read (schema REFUSED): the first such column."""
    faults = [
        sent.filter(read[name].is_null()).select(
            "line",
            field=pl.lit(name),
            message=pl.format(f"{name} can't be read: '{{}}'", pl.col(name).fill_null("").str.head(LONGEST_SHOWN)),
        )
        for name in names
    ]
    return pl.concat(faults).unique("line", keep="first", maintain_order=True).sort("line").cast(REFUSED)


def _summarise_refused(refused: pl.DataFrame) -> list[str]:
    """Return a line for each column with values that can't be read: how many there are, and the first."""
    grouped = refused.group_by("field", maintain_order=True).agg(pl.len(), pl.col("line").first())
    return [
        f"{count:,} rows have no {name} that can be read, the first on line {line}"
        for name, count, line in grouped.rows()
    ]


def _unreadable(reason: str) -> Unprocessable:
    return Unprocessable("Labels.Unreadable", f"The file can't be used: {reason}.")
