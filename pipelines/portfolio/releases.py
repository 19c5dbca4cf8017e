"""Releases of the enrichment, and what one changes: rows moved to other categories, with examples, and report figures.

Every change of rules, lists, taxonomy or the shipped model is a release, recorded in `rules/releases.yaml` with its
impact. A release also records the fingerprint of the data files that it was made with. If `fingerprint()`, computed
from the present files, differs from the last release's, the files were changed without a release.

`compare` compares the same customers' transactions as two versions enriched them. The caller supplies both frames, from
stored rows or by enriching again.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines import metrics
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.vocabulary.printing import ratio
from pipelines.vocabulary.rule_files import RuleError, load_rules
from pipelines.vocabulary.schemas import TRANSACTIONS, current

FILE = "releases.yaml"
EXAMPLES = 20
_DATA = ("rules", "learned")  # folders of `pipelines.enrichment`; Python files in them don't count
_KEYS = {"version", "taxonomy", "date", "changes", "impact", "fingerprint"}
_MONEY = pl.Decimal(38, 2)  # sums over a portfolio
_FIGURE = pl.Decimal(38, 4)

MOVED = pl.Schema(
    {
        "from": pl.String(),  # category
        "to": pl.String(),
        "count": pl.UInt32(),
        "dollars": _MONEY,  # AUD, sum of absolute amounts
    }
)
FIGURES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "report": pl.String(),
        "figure": pl.String(),
        "before": _FIGURE,
        "after": _FIGURE,
    }
)
SUMMED = pl.Schema(
    {
        "report": pl.String(),
        "figure": pl.String(),
        "customers": pl.UInt32(),  # whose figure changed
        "before": _FIGURE,  # the sum, or for scores and ratios the mean, over all compared customers with this figure
        "after": _FIGURE,
        "summed": pl.Boolean(),
    }
)
MOVED_ROWS = pl.Schema(
    {
        **{name: TRANSACTIONS[name] for name in ("customer_number", "transaction_id", "date", "description", "amount")},
        "from": pl.String(),
        "to": pl.String(),
        "from_source": TRANSACTIONS["category_source"],
        "to_source": TRANSACTIONS["category_source"],
    }
)
_KEY = ("customer_number", "transaction_id", "revision")
_FIGURE_KEY = ("customer_number", "report", "figure")


@dataclass(frozen=True)
class Release:
    """`fingerprint` is null for releases made before fingerprints were recorded."""

    version: int  # of the enrichment
    taxonomy: int
    date: date
    changes: tuple[str, ...]
    impact: str
    fingerprint: str | None


@dataclass(frozen=True)
class Impact:
    """The differences between two versions, for the customers and transactions that both have.

    `moved` (MOVED): most dollars first. `figures` (FIGURES): all headline figures, changed or not. `examples`
    (MOVED_ROWS): the largest. `rows`: transactions compared; `only_one`: transactions that only one version has.
    """

    customers: int
    rows: int
    only_one: int
    moved: pl.DataFrame
    figures: pl.DataFrame
    examples: pl.DataFrame

    def changed_figures(self) -> pl.DataFrame:
        """Return the FIGURES that differ."""
        return self.figures.filter(pl.col("before").ne_missing(pl.col("after")))

    def summed_figures(self) -> pl.DataFrame:
        """Return SUMMED over all customers: money and counts are added, scores and ratios averaged."""
        adds = pl.col("figure").is_in(_ADDED)
        changed = pl.col("before").ne_missing(pl.col("after")).sum()
        return (
            self.figures.group_by("report", "figure", summed=adds)
            .agg(customers=changed, **{side: _total(pl.col(side), adds.first()) for side in ("before", "after")})
            .match_to_schema(SUMMED, integer_cast="upcast")
            .sort("report", "figure")
        )


def releases() -> tuple[Release, ...]:
    """Return the recorded releases, oldest first.

    Raises:
        RuleError: naming the file and every fault.
    """
    return checked(load_rules(FILE))


def checked(entries: Any) -> tuple[Release, ...]:
    """Return the file's entries as releases.

    Raises:
        RuleError: naming the file and every fault.
    """
    if faults := list(_faults(entries)):
        raise RuleError("\n".join(f"{FILE}: {fault}" for fault in faults))
    return tuple(Release(**entry | {"changes": tuple(entry["changes"])}) for entry in entries)


def fingerprint() -> str:
    """Return the SHA-256 over names and contents of the data files that enrichment reads, except the release list."""
    whole = hashlib.sha256()
    for name, content in sorted(_data_files()):
        whole.update(f"{name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def _data_files() -> Iterator[tuple[str, bytes]]:
    for folder in _DATA:
        yield from _files_in(files("pipelines.enrichment").joinpath(folder), folder)


def _files_in(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_in(each, f"{path}/{each.name}")
        elif not each.name.endswith((".py", ".pyc")) and each.name != FILE:
            yield f"{path}/{each.name}", each.read_bytes()


def _faults(entries: Any) -> Iterator[str]:
    if not isinstance(entries, list) or not entries:
        yield "takes a list of releases"
        return
    sound = []
    for number, entry in enumerate(entries, start=1):
        if found := _entry_fault(entry):
            yield f"release {number}: {found}"
        else:
            sound.append(entry)
    for earlier, later in pairwise(sound):
        if later["version"] != earlier["version"] + 1:
            yield f"release {later['version']} follows release {earlier['version']}"
        if later["taxonomy"] < earlier["taxonomy"] or later["date"] < earlier["date"]:
            yield f"release {later['version']} has an older taxonomy or date than the one before"
    if sound and sound[-1]["fingerprint"] is None:
        yield "the last release has no fingerprint"


def _entry_fault(entry: Any) -> str | None:
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        return f"it takes {', '.join(sorted(_KEYS))}"
    if not (isinstance(entry["version"], int) and isinstance(entry["taxonomy"], int)):
        return "versions are whole numbers"
    if not isinstance(entry["date"], date):
        return "the date is a day, as 2026-07-01"
    changes, impact = entry["changes"], entry["impact"]
    if not (isinstance(changes, list) and changes and all(isinstance(each, str) and each for each in changes)):
        return "changes are a list of sentences"
    return None if isinstance(impact, str) and impact.strip() else "impact is a text"


def compare(before: pl.DataFrame, after: pl.DataFrame, as_of: date) -> Impact:
    """Compare two versions of the same customers' transactions (schema TRANSACTIONS).

    Only transactions that both versions have are compared, because one may have submissions that the other lacks.

    Args:
        as_of: the day for which reports are computed, for both.
    """
    both = _in_both(before, after)
    retained, renewed = (rows.join(both.select(_KEY), on=_KEY, how="semi") for rows in (before, after))
    compared = _current_pairs(retained, renewed)
    moved = compared.filter(pl.col("from").ne_missing(pl.col("to")))
    size = pl.col("amount").cast(_MONEY).abs()
    return Impact(
        customers=compared["customer_number"].n_unique(),
        rows=compared.height,
        only_one=_standing(before) + _standing(after) - 2 * compared.height,
        moved=_by_dollars(moved.group_by("from", "to").agg(count=pl.len(), dollars=size.sum())),
        figures=_figures(retained, renewed, as_of),
        examples=_largest(moved.select(MOVED_ROWS.names())),
    )


def merged(impacts: Iterable[Impact]) -> Impact:
    """Add up the impacts on parts of the customers, such as buckets."""
    parts = list(impacts)
    moved = pl.concat([pl.DataFrame(schema=MOVED), *(part.moved for part in parts)])
    examples = pl.concat([pl.DataFrame(schema=MOVED_ROWS), *(part.examples for part in parts)])
    return Impact(
        customers=sum(part.customers for part in parts),
        rows=sum(part.rows for part in parts),
        only_one=sum(part.only_one for part in parts),
        moved=_by_dollars(moved.group_by("from", "to").agg(pl.col("count").sum(), pl.col("dollars").sum())),
        figures=pl.concat([pl.DataFrame(schema=FIGURES), *(part.figures for part in parts)]).sort(_FIGURE_KEY),
        examples=_largest(examples),
    )


def _current_pairs(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the transactions that are current in both versions, with their two categories as `from` and `to`."""
    newer = after.filter(current()).select(*_KEY, to="category", to_source="category_source")
    older = before.filter(current()).rename({"category": "from", "category_source": "from_source"})
    return older.join(newer, on=_KEY, how="inner", validate="1:1")


def _in_both(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    return before.filter(current()).select(_KEY).join(after.filter(current()), on=_KEY, how="semi")


def _standing(rows: pl.DataFrame) -> int:
    return rows.filter(current()).height


def _by_dollars(moved: pl.DataFrame) -> pl.DataFrame:
    cast = moved.select(pl.col(name).cast(kind) for name, kind in MOVED.items())
    return cast.sort("dollars", "count", "from", "to", descending=[True, True, False, False])


def _largest(moved: pl.DataFrame) -> pl.DataFrame:
    order = (pl.col("amount").abs(), "customer_number", "date", "transaction_id")
    return moved.sort(*order, descending=[True, False, False, False]).head(EXAMPLES)


def _figures(before: pl.DataFrame, after: pl.DataFrame, as_of: date) -> pl.DataFrame:
    sides = (headline_figures(rows, as_of) for rows in (before, after))
    older, newer = (frame.rename({"reading": side}) for frame, side in zip(sides, ("before", "after"), strict=True))
    joined = older.join(newer, on=_FIGURE_KEY, how="full", coalesce=True, validate="1:1")
    return joined.select(pl.col(name).cast(kind) for name, kind in FIGURES.items()).sort(_FIGURE_KEY)


def headline_figures(rows: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """Return each report's headline figures, and all metrics.

    Columns: `customer_number`, `report`, `figure`, `reading` (four decimals).
    """
    facts = Facts(rows, as_of)
    readings = [
        (number, kind, name, value)
        for kind, report in REPORTS.items()
        for number, text in report.compute(facts).iter_rows()
        for name, value in _HEADLINES[kind](json.loads(text, parse_float=Decimal))
    ]
    schema = {"customer_number": pl.Int64(), "report": pl.String(), "figure": pl.String(), "reading": _FIGURE}
    return pl.concat([pl.DataFrame(readings, schema=schema, orient="row"), _metrics(facts)])


def _of_completeness(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, data["summary"][name]) for name in ("completenessScore", "totalMissingness"))


def _of_risk(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, data[name]) for name in ("value", "pdConfidenceScore"))


def _of_aggregate(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Add up all months."""
    [months] = [table["values"] for table in data["tables"] if table["id"] == "monthly_cash_flow"]
    return ((name, sum(month[name] for month in months)) for name in _ADDED)


_ADDED: Sequence[str] = ("revenue", "moneyIn", "moneyOut", "net", "transfersIn", "transfersOut")
_HEADLINES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Any]]]] = {
    "completeness": _of_completeness,
    "risk": _of_risk,
    "aggregate": _of_aggregate,
}


def _metrics(facts: Facts) -> pl.DataFrame:
    values = facts.cached(metrics.values).select("customer_number", pl.col(list(metrics.METRICS)).cast(_FIGURE))
    long = values.unpivot(list(metrics.METRICS), index="customer_number", variable_name="figure", value_name="reading")
    return long.select("customer_number", pl.lit("metrics").alias("report"), "figure", "reading")


def _total(figure: pl.Expr, adds: pl.Expr) -> pl.Expr:
    known = figure.drop_nulls()
    mean = ratio(known.sum(), known.len().cast(pl.Int64))
    return pl.when(adds).then(known.sum()).otherwise(mean).cast(_FIGURE)
