"""One customer's rows, and ways to change them so that the printed balances still agree.

A forger who adds a row to a statement also changes every balance after it. By default, so do these functions: an attack
must not be found because of a mistake that no forger would make. Where balances already disagreed with the rows, they
still do, by the same amount.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from pipelines.vocabulary.schemas import MONEY, AccountType

Touch = pl.Enum(("inserted", "reworded", "repriced", "moved", "balance_hidden", "removed"))

# Account by account, each in statement order, oldest first.
LEDGER = pl.Schema(
    {
        "row": pl.UInt32(),  # number in the untouched ledger, from 0; null for inserted rows
        "account": pl.String(),  # its number, "" if the customer has one without a number
        "account_type": AccountType,
        "bank": pl.String(),
        "date": pl.Date(),
        "description": pl.String(),
        "amount": MONEY,  # negative leaves the account
        "balance": MONEY,  # after the row; null where none is printed
        "category": pl.String(),  # what the row truly is, a slug of the taxonomy; null if unknown
        "counterparty": pl.String(),  # its true name; null if unknown
        "touch": Touch,  # what was done to the row last; null if nothing
    }
)
PRINTED_DAY = re.compile(r"(?i)\b\d{1,2}(\s?)(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?![a-z])")
"""A day and month in a description, as in `3 Mar`; the group is the space between them."""
_REQUIRED = ("account", "date", "description", "amount", "balance")


class Movement(NamedTuple):
    """A row to insert. `category` and `counterparty` say what it truly is, whatever its description says."""

    account: str
    date: date
    description: str
    amount: Decimal
    category: str | None = None
    counterparty: str | None = None


def as_ledger(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows (`account, date, description, amount, balance`, any further column of LEDGER) as a ledger.

    An account's rows are sorted by date and otherwise keep their order; if they come newest first, it is reversed.
    """
    given = rows.select(name for name in LEDGER if name in (*_REQUIRED, *rows.columns) and name not in ("row", "touch"))
    blank = [pl.lit(None, kind).alias(name) for name, kind in LEDGER.items() if name not in given.columns]
    newest_first = (pl.col("date").first() > pl.col("date").last()).over("account")
    nth = pl.int_range(pl.len())
    ordered = (
        given.with_columns(blank)
        .with_columns(pl.col("account", "description").fill_null(""))
        .sort(pl.when(newest_first).then(-nth).otherwise(nth))
        .pipe(_sort)
    )
    return ordered.with_columns(row=nth).select(pl.col(name).cast(kind) for name, kind in LEDGER.items())


def insert_rows(ledger: pl.DataFrame, movements: Iterable[Movement]) -> pl.DataFrame:
    """Insert rows at the end of their days, in accounts that the ledger has. Later balances change.

    An inserted row has a balance if the row before it has one.
    """
    new = pl.DataFrame(list(movements), schema={name: LEDGER[name] for name in Movement._fields}, orient="row")
    accounts = ledger.select("account", "account_type", "bank").unique("account")
    marked = new.join(accounts, on="account", validate="m:1").with_columns(touch=pl.lit("inserted", Touch))
    return pl.concat([_add_openings(ledger), marked], how="diagonal").pipe(_sort).pipe(_recompute_balances)


def add_account(ledger: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Add another account with its rows (as for `as_ledger`, balances included)."""
    added = as_ledger(rows).with_columns(row=pl.lit(None, LEDGER["row"]), touch=pl.lit("inserted", Touch))
    return pl.concat([ledger, added])


def remove_rows(ledger: pl.DataFrame, rows: Collection[int], rebalance: bool = True) -> pl.DataFrame:
    """Remove rows by their numbers. With `rebalance=False` the later balances stay and show the gap."""
    is_left = ~_is_among(rows)
    return _recompute_balances(_add_openings(ledger).filter(is_left)) if rebalance else ledger.filter(is_left)


def change_texts(ledger: pl.DataFrame, texts: Mapping[int, str]) -> pl.DataFrame:
    """Replace the descriptions of rows, by their numbers."""
    return _replace(ledger, "description", texts).with_columns(_mark("reworded", texts))


def change_amounts(ledger: pl.DataFrame, amounts: Mapping[int, Decimal], rebalance: bool = True) -> pl.DataFrame:
    """Replace the amounts of rows, by their numbers. With `rebalance=False` all balances stay and contradict them."""
    changed = _replace(_add_openings(ledger), "amount", amounts).with_columns(_mark("repriced", amounts))
    return _recompute_balances(changed) if rebalance else changed.select(LEDGER.names())


def move_rows(ledger: pl.DataFrame, dates: Mapping[int, date]) -> pl.DataFrame:
    """Move rows, by their numbers, to the end of other days. The balances in between change."""
    moved = _replace(_add_openings(ledger), "date", dates).with_columns(_mark("moved", dates))
    return _recompute_balances(_sort(moved, _is_among(dates)))


def hide_balances(ledger: pl.DataFrame, rows: Collection[int]) -> pl.DataFrame:
    """Leave out the balances of rows, by their numbers."""
    hidden = pl.when(~_is_among(rows)).then("balance").alias("balance")
    return ledger.with_columns(hidden, _mark("balance_hidden", rows))


def count_breaks(ledger: pl.DataFrame) -> int:
    """Return how often a printed balance does not follow from the account's printed balance before it."""
    offset = pl.col("balance") - pl.col("amount").cum_sum().over("account")
    stated = ledger.select("account", offset=offset).drop_nulls("offset")
    return int(stated.select((pl.col("offset").diff().over("account").fill_null(0) != 0).sum()).item())


def touched_rows(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that differ (schema LEDGER), each with its `touch`; removed ones as they were before."""
    removed = before.join(after, on="row", how="anti").with_columns(touch=pl.lit("removed", Touch))
    return pl.concat([after.filter(pl.col("touch").is_not_null()), removed])


def _is_among(rows: Collection[int]) -> pl.Expr:
    return pl.col("row").is_in(list(rows)).fill_null(value=False)


def _mark(touch: str, rows: Collection[int]) -> pl.Expr:
    return pl.when(_is_among(rows)).then(pl.lit(touch, Touch)).otherwise("touch").alias("touch")


def _replace(ledger: pl.DataFrame, column: str, values: Mapping[int, object]) -> pl.DataFrame:
    new = pl.DataFrame({"row": list(values), "_new": list(values.values())}, schema_overrides=_new_schema(column))
    joined = ledger.join(new, on="row", how="left", validate="m:1", maintain_order="left")
    return joined.with_columns(pl.coalesce("_new", column).alias(column)).drop("_new")


def _new_schema(column: str) -> pl.Schema:
    return pl.Schema({"row": LEDGER["row"], "_new": LEDGER[column]})


def _sort(ledger: pl.DataFrame, *within_day: pl.Expr) -> pl.DataFrame:
    """Sort by account (in order of appearance), day and `within_day`; equal rows keep their order."""
    account = pl.col("_place").min().over("account")
    return ledger.with_row_index("_place").sort(account, "date", *within_day, "_place").drop("_place")


def _add_openings(ledger: pl.DataFrame) -> pl.DataFrame:
    """Add `_opening`, the account's first balance as the row's balance implies it, and `_printed`, if it has one."""
    return ledger.with_columns(
        _opening=pl.col("balance") - pl.col("amount").cum_sum().over("account"),
        _printed=pl.col("balance").is_not_null(),
    )


def _recompute_balances(ledger: pl.DataFrame) -> pl.DataFrame:
    """Recompute the printed balances from the implied openings. Disagreements stay where they were."""
    opening = pl.col("_opening").forward_fill().backward_fill().over("account")
    printed = pl.col("_printed").forward_fill().backward_fill().over("account")
    balance = pl.when(printed).then(opening + pl.col("amount").cum_sum().over("account"))
    return ledger.with_columns(balance=balance.cast(MONEY)).select(LEDGER.names())
