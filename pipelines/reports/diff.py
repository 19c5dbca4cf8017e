"""What moved between two versions of a customer's transactions, and why.

The reports are computed four times, from one version to the other in three steps, and a figure has the causes of the
steps that moved it: first the later version's rows come (added, revised, retracted) while rows that stand in both keep
what was said of them; then what the client corrected; then whatever else rules, model or knowledge say differently.

What follows from several rows (pairs, series, facilities, flags) may move with each of the three. With rows that come
or go it is theirs, but on rows that were corrected; without them it comes with the corrections, if there are any.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

import polars as pl

from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.figures.context import Context
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.reports.aggregate import TABLES
from pipelines.vocabulary.schemas import TRANSACTIONS, current

Cause = Literal["rows", "correction", "enrichment"]
CAUSES: Sequence[Cause] = ("rows", "correction", "enrichment")
SAID = (  # of a row, what doesn't follow from other rows
    *("category", "category_group", "confidence", "category_source"),
    *("counterparty_name", "counterparty_kind", "counterparty_lender_id", "counterparty_group"),
)
WORDS = ("rating", "completenessTier", "pdConfidenceRating")  # texts that are figures all the same
_KEYS_OF_LISTS = ("accountId", "metric", "code", "nextSeen", "name")  # what tells items of a list apart
DERIVED = tuple(name for name in TRANSACTIONS if name not in KNOWN and name != "retracted_seq")  # SAID is part of it
_SHARES = ("unreconciled", "figures")
_ROW = ("customer_number", "transaction_id", "revision")


@dataclass(frozen=True)
class Moved:
    """A figure whose value is not the same. Null: it isn't there."""

    report: str
    figure: str  # JSON Pointer into the later report's data, or into the earlier one's if it is gone
    key: str | None
    before: object
    after: object
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Diff:
    rows_added: int
    rows_gone: int
    rows_corrected: int
    rows_reenriched: int
    figures: Sequence[Moved]


@dataclass(frozen=True)
class _Figure:
    pointer: str
    key: str | None
    value: object


def diff(before: pl.DataFrame, after: pl.DataFrame, as_of: date, context: Context) -> Diff:
    """Of one customer's TRANSACTIONS in two versions, what today's formulas make of them."""
    earlier, later = before.filter(current()), after.filter(current())
    said = _said_before(later, earlier)
    described = pl.col("category_source").is_in(["correction", "client_rule"]).fill_null(value=False)
    earlier_source = pl.col("category_source_earlier")
    corrected = described | earlier_source.is_in(["correction", "client_rule"]).fill_null(value=False)
    added, gone = later.join(earlier, on=_ROW, how="anti").height, earlier.join(later, on=_ROW, how="anti").height
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_earlier")) for name in SAID)
    other = said.filter("in_both", differs)
    rows_corrected = other.filter(corrected).height
    both, rows_moved = pl.col("in_both"), added + gone > 0
    only_rows = said.select(_retained(both, (both & corrected) if rows_moved else both))
    follows_later = pl.lit(value=rows_moved or rows_corrected > 0)
    rows_and_corrections = said.select(_retained(both & ~corrected, both & ~follows_later))
    steps = [_figures(rows, as_of, context) for rows in (earlier, only_rows, rows_and_corrections, later)]
    return Diff(
        rows_added=added,
        rows_gone=gone,
        rows_corrected=rows_corrected,
        rows_reenriched=other.filter(~corrected).height,
        figures=list(_moved(steps)),
    )


def _said_before(later: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
    """The later rows, with what was said of them earlier beside it where they stood already (`in_both`)."""
    known = earlier.select(
        *_ROW, *(pl.col(name).alias(f"{name}_earlier") for name in DERIVED), in_both=pl.lit(value=True)
    )
    joined = later.join(known, on=_ROW, how="left", validate="1:1", maintain_order="left")
    return joined.with_columns(pl.col("in_both").fill_null(value=False))


def _retained(said: pl.Expr, follows: pl.Expr) -> list[pl.Expr]:
    """The columns of TRANSACTIONS, as they were earlier where `said` holds, for SAID, or `follows`, for what follows
    from several rows.
    """
    retained = {
        name: pl.when(said if name in SAID else follows).then(f"{name}_earlier").otherwise(name).alias(name)
        for name in DERIVED
    }
    return [retained.get(name, pl.col(name)) for name in TRANSACTIONS]


def _figures(rows: pl.DataFrame, as_of: date, context: Context) -> dict[tuple[str, ...], _Figure]:
    """Every figure by its identity: the path, with keys in the place of indexes."""
    facts = Facts(rows, as_of, context)
    found: dict[tuple[str, ...], _Figure] = {}
    for kind, report in REPORTS.items():
        for text in report.compute(facts)["data"]:
            for path, pointer, key, value in _leaves(json.loads(text, parse_float=Decimal)):
                found[kind, *path] = _Figure(pointer, key, value)
    return found


def _leaves(
    node: Any, path: tuple[str, ...] = (), pointer: str = "", key: str | None = None, table: str | None = None
) -> Iterator[tuple[tuple[str, ...], str, str | None, object]]:
    """Numbers and WORDS below a node, with their path by keys, their JSON Pointer and the key of their row.

    Of what rests on unreconciled statements only what is said of the whole report: shares of single figures stand by
    place, so that a row more would seem to move those of all rows after it.
    """
    if isinstance(node, Mapping):
        named = node.get("id") if "values" in node else table
        for name, value in node.items():
            if (*path, name) == _SHARES:
                continue
            yield from _leaves(value, (*path, name), f"{pointer}/{name}", key, named)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            if isinstance(item, Mapping) and "values" in item:
                yield from _leaves(item, (*path, item["id"]), f"{pointer}/{item['id']}")
            else:
                described = _described(item, table)
                yield from _leaves(
                    item, (*path, described or str(index)), f"{pointer}/{index}", described or key, table
                )
    elif (isinstance(node, int | Decimal) and not isinstance(node, bool)) or (path and path[-1] in WORDS):
        yield path, pointer, key, node


def _described(item: Any, table: str | None) -> str | None:
    """What tells an item of a list from the others, in words; None where only its place does."""
    if not isinstance(item, Mapping):
        return None
    keys = _KEYS_OF_TABLES.get(table or "", _KEYS_OF_LISTS)
    return ", ".join(f"{name} {item[name]}" for name in keys if name in item) or None


_KEYS_OF_TABLES = {table.id: table.row_keys for table in TABLES}


def _moved(steps: Sequence[Mapping[tuple[str, ...], _Figure]]) -> Iterator[Moved]:
    before, after = steps[0], steps[-1]
    for identity in [*after, *(gone for gone in before if gone not in after)]:
        values = [step[identity].value if identity in step else None for step in steps]
        if values[0] == values[-1]:
            continue
        shown = after.get(identity) or before[identity]
        causes = tuple(cause for cause, (old, new) in zip(CAUSES, pairwise(values), strict=True) if old != new)
        yield Moved(identity[0], shown.pointer, shown.key, values[0], values[-1], causes)
