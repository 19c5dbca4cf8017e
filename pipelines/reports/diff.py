"""Which figures differ between two states of a customer's transactions, and why.

A state is a version of the transactions, reported as of a day. The earlier state is turned into the later one in four
steps, and the reports are computed before, between and after them. A figure's causes are the steps that changed it.
Step 1 takes the later day. Step 2 takes the later version's rows (added, revised, retracted), while rows in both
versions keep their earlier enrichment. Step 3 adds the client's corrections. Step 4 adds every other change by rules,
model or knowledge.

What is known besides the transactions (`Context`) takes its later state together with the rows if some came or went;
else with the day if that differs, else in step 4. So the first and the last figures are those of the two reports.

Columns that depend on several rows (pairs, series, facilities, flags) take their later values in one step: if rows came
or went in step 2, on corrected rows in step 3; else in step 3 if there are corrections, else in step 4.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import polars as pl

from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.figures.context import Context
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.reports.aggregate import TABLES
from pipelines.reports.completeness import TABLES as COMPLETENESS_TABLES
from pipelines.reports.headlines import HEADLINES, Reports
from pipelines.vocabulary.places import sort_rows
from pipelines.vocabulary.schemas import TRANSACTIONS, current, not_retracted, posted

Cause = Literal["date", "rows", "correction", "enrichment"]
CAUSES: Sequence[Cause] = ("date", "rows", "correction", "enrichment")
OWN = (  # columns of a row that don't depend on other rows
    *("category", "category_group", "confidence", "category_source"),
    *("counterparty_name", "counterparty_kind", "counterparty_lender_id", "counterparty_group"),
)
TEXT_FIGURES = ("rating", "completenessTier", "pdConfidenceRating")  # texts that count as figures
# What distinguishes the items of lists that aren't tables. `place` distinguishes items that are equal in all of this.
KEYS_OF_LISTS = ("accountId", "metric", "code", "subject", "finding", "about", "name", "place")
_NOT_COMPARED = ("retracted_seq", "read_by", "as_read")
DERIVED = tuple(name for name in TRANSACTIONS if name not in KNOWN and name not in _NOT_COMPARED)  # includes OWN
_SHARES = ("unreconciled", "figures")
_CONTAINERS = (dict, list)
_ROW = ("customer_number", "transaction_id", "revision")


@dataclass(frozen=True)
class ChangedFigure:
    """A figure with different values before and after. None: it doesn't exist."""

    report: str
    figure: str  # JSON Pointer into the later report's data, or into the earlier one's if the figure is gone
    figure_before: str | None  # JSON Pointer into the earlier report's data
    key: str | None
    before: object
    after: object
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class ComparedHeadline:
    """A headline of both reports, changed or not. None: the report doesn't have it."""

    name: str
    report: str
    figure: str | None
    figure_before: str | None
    before: object
    after: object


@dataclass(frozen=True)
class Diff:
    rows_dated_between: int  # posted rows of the later version that are dated after the earlier day, or the reverse
    rows_added: int
    rows_gone: int
    rows_corrected: int
    rows_reenriched: int
    headlines: Sequence[ComparedHeadline]
    figures: Sequence[ChangedFigure]


class _Figure(NamedTuple):  # thousands are made, which takes a dataclass several times as long
    pointer: str
    key: str | None
    value: object


@dataclass(frozen=True)
class _Computed:
    """The reports of one step: their data by kind, and every figure by its identity, its path with keys for indexes."""

    reports: Reports
    figures: Mapping[tuple[str, ...], _Figure]


def compute_text(kind: str, facts: Facts) -> str | None:
    """Return the data of one customer's report of this kind; None if there is nothing to report on."""
    return REPORTS[kind].compute_text(facts)


def diff(
    before: Facts,
    after: Facts,
    kinds: Collection[str] = tuple(REPORTS),
    read_text: Callable[[str, Facts], str | None] = compute_text,
) -> Diff:
    """Compare one customer's reports in two states, both by today's formulas.

    Args:
        kinds: of the reports to compare; the others are not computed.
        read_text: returns what `compute_text` returns for `before` and `after`, for callers that may have it already.
    """
    earlier, later = before.transactions.filter(current()), after.transactions.filter(current())
    paired = _add_earlier_columns(later, earlier)
    is_client_category = pl.col("category_source").is_in(["correction", "client_rule"]).fill_null(value=False)
    earlier_source = pl.col("category_source_earlier")
    corrected = is_client_category | earlier_source.is_in(["correction", "client_rule"]).fill_null(value=False)
    added, gone = later.join(earlier, on=_ROW, how="anti").height, earlier.join(later, on=_ROW, how="anti").height
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_earlier")) for name in OWN)
    other = paired.filter("in_both", differs)
    rows_corrected = other.filter(corrected).height
    both, rows_changed = pl.col("in_both"), added + gone > 0
    only_rows = paired.select(_earlier_columns_where(both, (both & corrected) if rows_changed else both))
    follows_later = pl.lit(value=rows_changed or rows_corrected > 0)
    rows_and_corrections = paired.select(_earlier_columns_where(both & ~corrected, both & ~follows_later))
    days_differ = before.as_of != after.as_of
    on_later_day = before.context if rows_changed or not days_differ else after.context
    with_rows = after.context if rows_changed or days_differ else before.context
    was_replaced, is_replaced = (_list_replaced(each.transactions) for each in (before, after))
    steps = _compute_each(
        (
            _join_facts(earlier, was_replaced, before.as_of, before.context),
            _join_facts(earlier, was_replaced, after.as_of, on_later_day),
            _join_facts(only_rows, is_replaced, after.as_of, with_rows),
            _join_facts(rows_and_corrections, is_replaced, after.as_of, with_rows),
            _join_facts(later, is_replaced, after.as_of, after.context),
        ),
        partial(_compute, before, kinds, read_text),
        partial(_compute, kinds=kinds, read_text=compute_text),
        partial(_compute, after, kinds, read_text),
    )
    return Diff(
        rows_dated_between=_count_dated_between(before, after),
        rows_added=added,
        rows_gone=gone,
        rows_corrected=rows_corrected,
        rows_reenriched=other.filter(~corrected).height,
        headlines=[each for each in _compare_headlines(steps[0].reports, steps[-1].reports) if each.report in kinds],
        figures=list(_list_changed_figures([step.figures for step in steps])),
    )


def _list_replaced(transactions: pl.DataFrame) -> pl.DataFrame:
    """Return the facts (KNOWN) of rows that were revised or replaced: what they state of their account still holds."""
    return transactions.filter(not_retracted(), ~current()).select(KNOWN.names())


def _join_facts(rows: pl.DataFrame, replaced: pl.DataFrame, as_of: date, context: Context) -> Facts:
    return Facts(pl.concat([rows, replaced], how="diagonal"), as_of, context)


def _count_dated_between(before: Facts, after: Facts) -> int:
    first, last = sorted((before.as_of, after.as_of))
    return after.transactions.filter(posted(), pl.col("date") > first, pl.col("date") <= last).height


def _add_earlier_columns(later: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
    """Add to the later rows their earlier columns (`…_earlier`), and `in_both` for rows of both versions."""
    known = earlier.select(
        *_ROW, *(pl.col(name).alias(f"{name}_earlier") for name in DERIVED), in_both=pl.lit(value=True)
    )
    joined = later.join(known, on=_ROW, how="left", validate="1:1", maintain_order="left")
    return joined.with_columns(pl.col("in_both").fill_null(value=False))


def _earlier_columns_where(own: pl.Expr, dependent: pl.Expr) -> list[pl.Expr]:
    """Return the columns of TRANSACTIONS. Those in OWN have their earlier value where `own` is true, the other derived
    ones where `dependent` is.
    """
    retained = {
        name: pl.when(own if name in OWN else dependent).then(f"{name}_earlier").otherwise(name).alias(name)
        for name in DERIVED
    }
    return [retained.get(name, pl.col(name)) for name in TRANSACTIONS]


def _compute_each(
    steps: Sequence[Facts],
    compute_first: Callable[[], _Computed],
    compute_between: Callable[[Facts], _Computed],
    compute_last: Callable[[], _Computed],
) -> list[_Computed]:
    """Return the reports of each step. A step that changes nothing has those of the step before."""
    sorted_steps = [Facts(sort_rows(step.transactions), step.as_of, step.context) for step in steps]
    changing = [
        nth for nth, (step, following) in enumerate(pairwise(sorted_steps), 1) if not _are_equal(step, following)
    ]
    found = [compute_first()]
    for nth in range(1, len(steps)):
        if nth not in changing:
            found.append(found[-1])
        else:
            found.append(compute_last() if nth == changing[-1] else compute_between(sorted_steps[nth]))
    return found


def _are_equal(facts: Facts, other: Facts) -> bool:
    return (
        facts.as_of == other.as_of and facts.context is other.context and facts.transactions.equals(other.transactions)
    )


def _compute(facts: Facts, kinds: Collection[str], read_text: Callable[[str, Facts], str | None]) -> _Computed:
    reports: dict[str, Mapping[str, Any]] = {}
    figures: dict[tuple[str, ...], _Figure] = {}
    own = Facts(facts.transactions, facts.as_of, facts.context)  # what it caches is needed no longer than here
    for kind in kinds:
        text = read_text(kind, own)
        if text is not None:
            reports[kind] = json.loads(text, parse_float=Decimal)
            _add_figures(figures, reports[kind], (kind,))
    return _Computed(reports, figures)


def _add_figures(
    found: dict[tuple[str, ...], _Figure],
    node: Any,
    path: tuple[str, ...],
    pointer: str = "",
    key: str | None = None,
    keys: Sequence[str] = KEYS_OF_LISTS,
) -> None:
    """Add the numbers and TEXT_FIGURES below a node by their identities. Generators would take twice as long.

    The list `unreconciled.figures` is skipped: its items have no key but their index, so one added row would seem to
    change all later ones.
    """
    if isinstance(node, dict):
        lists = _KEYS_OF_TABLES[node["id"]] if "values" in node else _KEYS_OF_MEMBERS if len(path) == 1 else {}
        for name, value in node.items():
            if isinstance(value, _CONTAINERS):
                if (*path[1:], name) != _SHARES:
                    _add_figures(found, value, (*path, name), f"{pointer}/{name}", key, lists.get(name, KEYS_OF_LISTS))
            elif _is_number(value) or name in TEXT_FIGURES:
                found[*path, name] = _Figure(f"{pointer}/{name}", key, value)
    elif isinstance(node, list):
        seen = Counter[str]()
        for index, item in enumerate(node):
            if isinstance(item, dict) and "values" in item:
                _add_figures(found, item, (*path, item["id"]), f"{pointer}/{item['id']}")
                continue
            if (named_by := _item_key(item, keys)) is not None:
                seen[named_by] += 1
                if seen[named_by] > 1:
                    named_by = f"{named_by}, place {seen[named_by]}"
            _add_figures(found, item, (*path, named_by or str(index)), f"{pointer}/{index}", named_by or key)
    elif _is_number(node):
        found[path] = _Figure(pointer, key, node)


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _item_key(item: Any, keys: Sequence[str]) -> str | None:
    """Return what distinguishes an item of a list from the others, in words; None if only its index does."""
    if not isinstance(item, Mapping):
        return None
    return ", ".join(f"{name} {item[name]}" for name in keys if item.get(name) is not None) or None


_KEYS_OF_TABLES: Mapping[str, Mapping[str, Sequence[str]]] = {
    table.id: {"values": table.row_keys} for table in TABLES
}  # of the aggregate report
_KEYS_OF_MEMBERS: Mapping[str, Sequence[str]] = {  # of the completeness report
    table.id: table.row_keys for table in COMPLETENESS_TABLES
}


def _list_changed_figures(steps: Sequence[Mapping[tuple[str, ...], _Figure]]) -> Iterator[ChangedFigure]:
    before, after = steps[0], steps[-1]
    for identity in [*after, *(removed for removed in before if removed not in after)]:
        values = [step[identity].value if identity in step else None for step in steps]
        if values[0] == values[-1]:
            continue
        shown = after.get(identity) or before[identity]
        causes = tuple(cause for cause, (old, new) in zip(CAUSES, pairwise(values), strict=True) if old != new)
        place_before = before[identity].pointer if identity in before else None
        yield ChangedFigure(identity[0], shown.pointer, place_before, shown.key, values[0], values[-1], causes)


def _compare_headlines(before: Reports, after: Reports) -> Iterator[ComparedHeadline]:
    for each in HEADLINES:
        (place_before, value_before), (place, value) = each.find(before), each.find(after)
        yield ComparedHeadline(each.name, each.report, place, place_before, value_before, value)
