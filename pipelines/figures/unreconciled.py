"""Unreconciled: how much of each figure rests on rows of statements that don't reconcile (`words.is_unreconciled`).

The share of a sum is what unreconciled rows contribute to it, divided by all contributions, signs left out: money by
amount, counts by rows, days by days. A derived figure rests on all the sums behind it. Sums in one unit are taken
together, because a dollar of cost weighs as much in a profit as a dollar of revenue. Different units can't be added, so
the highest share counts. A figure without rows behind it (a rate, a date, what a document says of itself) has no share.

Contributions are those of lineage, so a share is about the very rows that lineage shows. The costly steps run only for
customers who have unreconciled rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula, Sum, Trace, contributions, find_input, no_figure, pointer
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Derived, Source, Table, Total, join_by_keys
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import ratio

SIZE = pl.Decimal(38, 4)
ShareOfRow: TypeAlias = Callable[[tuple[str, ...]], Trace]
WORDS = (
    "what rows of statements that don't reconcile contribute / all contributions, signs left out; of several units, "
    "the highest"
)

_SIZE, _MARK = pl.col("amount").abs(), pl.col("is_unreconciled")
SUMMARY = Table(
    id="unreconciled",
    name="Rows of statements that don't reconcile",
    hierarchy="customer",
    type="summary",
    keys=(),
    listed=lambda facts: facts.customers.lazy(),
    sources=(
        Source(
            lambda facts: facts.rows.lazy(),
            (
                Total("rows", "count", _MARK.cast(pl.Int64), meaning="posted rows that their statement doesn't prove"),
                Total("amount", "AUD", pl.when(_MARK).then(_SIZE), meaning="what they moved, in and out added up"),
                Total("allRows", "count", pl.lit(1)),
                Total("allAmount", "AUD", _SIZE),
            ),
        ),
    ),
    derived=(
        Derived(
            "shareOfRows",
            "ratio",
            ("rows", "allRows"),
            ratio(pl.col("rows"), pl.col("allRows")),
            "rows / all posted rows",
        ),
        Derived(
            "shareOfAmount",
            "ratio",
            ("amount", "allAmount"),
            ratio(pl.col("amount"), pl.col("allAmount")),
            "amount / what all posted rows moved",
        ),
    ),
    hidden=("allRows", "allAmount"),
    order=(),
    meaning="Posted rows of PDF statements that the statement's balances don't prove. Null where there are no rows.",
)


def section(facts: Facts, figures: Sequence[pl.DataFrame]) -> list[str | pl.DataFrame]:
    """Return the member `unreconciled` as pieces for `json_text.join_pieces`. `figures`: frames of `format_shares`."""
    opened = pl.col("line").str.strip_suffix("}")
    return ['"unreconciled":', facts.cached(_summary).with_columns(opened), ',"figures":[', *figures, "]}"]


def _summary(facts: Facts) -> pl.DataFrame:
    return SUMMARY.lines(facts).pipe(collect)


def has_unreconciled_rows(facts: Facts) -> bool:
    return not facts.cached(_unreconciled_rows).is_empty()


def _unreconciled_rows(facts: Facts) -> pl.DataFrame:
    such = facts.rows.lazy().filter(pl.col("is_unreconciled"))
    return such.select(BY_CUSTOMER, "transaction_id").pipe(collect)


def share_lines(facts: Facts, tables: Iterable[tuple[Table, pl.LazyFrame, str]]) -> list[pl.DataFrame]:
    """Return `share_figures` of each table, given with its rows and their `place`; empty without unreconciled rows."""
    if not has_unreconciled_rows(facts):
        return []
    shown = (share_figures(table, facts, rows, place) for table, rows, place in tables if table.totals)
    # Collected one by one, because each frame holds all rows of its table's sources.
    return [frame.pipe(collect) for frame in shown]


def share_figures(table: Table, facts: Facts, rows: pl.LazyFrame, place: str) -> pl.LazyFrame:
    """Return `format_shares` of the table's rows, in the order reported.

    Args:
        rows: the table's rows of all customers.
        place: a row's JSON Pointer, with `{}` for its index among its customer's rows.
    """
    concerned = pl.col(BY_CUSTOMER).is_in(facts.cached(_unreconciled_rows)[BY_CUSTOMER].unique().implode())
    nth = pl.int_range(pl.len()).over(BY_CUSTOMER)
    pointer = pl.format(place, nth) if "{}" in place else pl.lit(place)
    shown = table.sort_rows(rows.filter(concerned)).with_columns(pointer.alias(_ROW))
    sized = (
        (_sizes(source, table.keys_of(source), facts, concerned), table.keys_of(source)) for source in table.sources
    )
    return reduce(join_by_keys, sized, shown).select(BY_CUSTOMER, _ROW, *_shares(table)).pipe(format_shares, _ROW)


_ROW, _MARKED = "its place", "is it unreconciled"  # with spaces, so that no other column has the name


def _is_unreconciled(facts: Facts) -> pl.Expr:
    return pl.col("transaction_id").is_in(facts.cached(_unreconciled_rows)["transaction_id"].implode())


def format_shares(shares: pl.LazyFrame, place: str) -> pl.LazyFrame:
    """Format shares above zero as JSON.

    Args:
        shares: `customer_number`, the column `place` with the JSON Pointer of a report's row, and a column of
            shares for each of its figures.

    Returns:
        `customer_number, line`: `{"row": POINTER, "shares": {FIGURE: share}}`.
    """
    names = [name for name in shares.collect_schema().names() if name not in (BY_CUSTOMER, place)]
    shown = (pl.when(pl.col(name) > 0).then(pl.concat_str(pl.lit(f'"{name}":'), name)) for name in names)
    row, all_shown = pl.lit('{"row":"'), pl.concat_str(*shown, separator=",", ignore_nulls=True)
    return (
        shares.select(BY_CUSTOMER, place, shown=all_shown)
        .filter(pl.col("shown") != "")
        .select(BY_CUSTOMER, line=pl.concat_str(row, place, pl.lit('","shares":{'), "shown", pl.lit("}}")))
    )


def _sizes(source: Source, keys: Sequence[str], facts: Facts, concerned: pl.Expr) -> pl.LazyFrame:
    """Return what rows contribute to each total by the keys, signs left out: `all TOTAL` and `unreconciled TOTAL`."""
    mark = _is_unreconciled(facts).alias(_MARKED)
    parts = (total.contribution.abs() for total in source.totals)
    names = [total.name for total in source.totals]
    return (
        source.rows(facts)
        .filter(concerned)
        .select(BY_CUSTOMER, *keys, mark, *parts)
        .group_by(BY_CUSTOMER, *keys)
        .agg(
            *(pl.col(name).sum().alias(f"all {name}") for name in names),
            *(pl.col(name).filter(_MARKED).sum().alias(f"unreconciled {name}") for name in names),
        )
    )


def _shares(table: Table) -> Iterator[pl.Expr]:
    for column in table.columns:
        units = _by_unit(table, column.name)
        if column.is_number and units:
            by_unit = (
                share(_sum_parts("unreconciled", totals), _sum_parts("all", totals)) for totals in units.values()
            )
            yield pl.when(pl.col(column.name).is_not_null()).then(pl.max_horizontal(*by_unit)).alias(column.name)


def _by_unit(table: Table, name: str) -> Mapping[str, Sequence[Total]]:
    totals = table.totals_behind(name)
    units = dict.fromkeys(total.unit for total in totals)
    return {unit: [total for total in totals if total.unit == unit] for unit in units}


def _sum_parts(which: str, totals: Sequence[Total]) -> pl.Expr:
    return pl.sum_horizontal(f"{which} {total.name}" for total in totals)


def share(unreconciled: pl.Expr, everything: pl.Expr) -> pl.Expr:
    """Return the share to four decimals; null where nothing contributes."""
    return ratio(unreconciled, everything.cast(SIZE))


def explain(facts: Facts, table: Table, row: Mapping[str, Any], column: Sequence[str]) -> Formula:
    """Explain the share of a column of this reported row.

    Args:
        column: its name alone.

    Raises:
        NotFound: no rows are behind that column.
    """
    units = _by_unit(table, column[0])
    if not units:
        raise no_figure([table.id, *column])
    parts = {unit: pl.concat(_contributions(table, facts, row, total) for total in units[unit]) for unit in units}
    return share_formula({unit: (part.filter(_is_unreconciled(facts)), part) for unit, part in parts.items()})


def _contributions(table: Table, facts: Facts, row: Mapping[str, Any], total: Total) -> pl.DataFrame:
    return contributions(table.contributing_rows(total, facts, row), total.contribution.abs())


def share_formula(units: Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]) -> Formula:
    """Return the share as a formula, from CONTRIBUTIONS of the unreconciled and of all rows in each unit."""
    inputs = {
        f"{which} {unit}": Sum(part)
        for unit, both in units.items()
        for which, part in zip(("unreconciled", "all"), both, strict=True)
    }
    return Formula(WORDS, inputs, lambda values: _highest_share([values[name] for name in inputs]))


def _highest_share(sizes: Sequence[Constant]) -> Constant:
    """Return the highest share of all units. `sizes`: unreconciled and all contributions, alternating."""
    literals = [pl.lit(size, SIZE) for size in sizes]
    each = (share(part, whole) for part, whole in zip(literals[::2], literals[1::2], strict=True))
    highest: Constant = pl.select(pl.max_horizontal(pl.lit(None, SIZE), *each)).item()
    return highest


def explain_section(facts: Facts, data: Mapping[str, Any], path: Sequence[str], of_row: ShareOfRow) -> Trace:
    """Explain a figure of the member `unreconciled`.

    Args:
        path: below the member.
        of_row: explains the share of a figure, given its path in the report.

    Raises:
        NotFound: there is no such figure.
    """
    match path:
        case ("figures", nth, "shares", name, *inside) if nth.isdecimal() and int(nth) < len(data["figures"]):
            shown = data["figures"][int(nth)]
            if name in shown["shares"]:
                row = shown["row"]
                return find_input(of_row((*pointer(row), name) if row else (name,)), inside)
        case (_, *_) if path[0] != "figures":
            return SUMMARY.explain(facts, data, path)
    raise no_figure(["unreconciled", *path])
