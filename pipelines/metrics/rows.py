"""Which rows a metric reads and what each counts: `Where` and `Measure` as expressions over `Facts.rows`."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache

import polars as pl

from pipelines.enrichment.income import PROBABILITIES
from pipelines.figures.facts import Facts
from pipelines.figures.income import add_income
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import with_exclusions
from pipelines.metrics.definition import SIDES, Key, Measure, Names, Where
from pipelines.vocabulary.schemas import MONEY

THIRTY_DAYS = 30
PROBABLY = 0.5  # the kinds asked for are together at least as likely as not
# Filters whose expressions are cached: building them takes longer than reading a customer's rows. Our judgement.
_CACHED = 1_000

KEYS: dict[Key, pl.Expr] = {
    "counterparty": pl.col("counterparty_group"),
    "lender": pl.coalesce("counterparty_lender_id", "counterparty_group"),
    "account": pl.col("account_id"),
    "category": pl.col("category"),
    "series": pl.col("series_id"),
    "facility": pl.col("facility_id"),
    "day": pl.col("date"),
    "month": pl.col("month"),
    "thirty_days": pl.col("age") // THIRTY_DAYS,
}
COLUMNS = (
    BY_CUSTOMER,
    "transaction_id",
    "date",
    "month",
    "age",
    "amount",
    "is_external",
    "is_unreconciled",
    "account_id",
    "category",
    "category_group",
    "channel",
    "flags",
    "counterparty_kind",
    "counterparty_group",
    "counterparty_lender_id",
    "series_id",
    "facility_id",
)
"""All columns that metrics read, apart from those that `read_rows` adds where a filter needs them."""


def read_rows(facts: Facts, filters: Sequence[Where]) -> pl.DataFrame:
    """Return COLUMNS of the rows, and if a filter needs them: `is_excluded`, `account_type` of the row's account, and
    PROBABILITIES of kinds of income.

    They are added only then, because it takes time to find findings, accounts and regular payers.
    """
    rows = with_exclusions(facts, COLUMNS) if any(map(_reads_exclusions, filters)) else facts.rows.select(COLUMNS)
    rows = facts.add_account_type(rows) if any(where.account_types for where in filters) else rows
    return add_income(facts, rows) if any(where.income_kinds for where in filters) else rows


def reads_all_history(filters: Iterable[Where]) -> bool:
    """Return whether a filter reads values that depend on a customer's whole history, and so change from day to day."""
    return any(_reads_exclusions(where) or where.account_types or where.income_kinds for where in filters)


def _reads_exclusions(where: Where) -> bool:
    return where.excluded is not None


@lru_cache(_CACHED)
def with_direction(where: Where, measure: Measure) -> Where:
    """Add the direction that the measure implies: `money_in` counts only credits, `money_out` only debits."""
    return where.model_copy(update={"direction": SIDES[measure]}) if measure in SIDES else where


@lru_cache(_CACHED)
def conditions(where: Where) -> tuple[tuple[Hashable, pl.Expr], ...]:
    """Return the filter's conditions, never null. Equal conditions of different filters have equal keys."""
    return tuple(_conditions(where))


_MARKS = {
    "external": pl.col("is_external"),
    "recurring": pl.col("series_id").is_not_null(),
    "facility": pl.col("facility_id").is_not_null(),
    "unreconciled": pl.col("is_unreconciled"),
    "excluded": pl.col("is_excluded"),
}


def _conditions(where: Where) -> Iterator[tuple[Hashable, pl.Expr]]:
    if where.categories or where.groups:
        yield ("of", where.categories, where.groups), _is_any_of(where.categories, where.groups)
    if where.not_categories:
        yield ("not", where.not_categories), ~_is_any_of(where.not_categories, ())
    for column in ("counterparty_kind", "channel", "account_type"):
        if names := getattr(where, f"{column}s"):
            yield (column, names), _never_null(pl.col(column).is_in(names))
    if where.flags:
        yield ("flags", where.flags), _has_any(where.flags)
    if where.not_flags:
        yield ("not flags", where.not_flags), ~_has_any(where.not_flags)
    yield from _counterparty_conditions(where)
    for name, mark in _MARKS.items():
        if (wanted := getattr(where, name)) is not None:
            yield (name, wanted), mark if wanted else ~mark
    if where.income_kinds:
        probability = pl.sum_horizontal(PROBABILITIES[kind] for kind in where.income_kinds)
        yield ("income", where.income_kinds), probability >= PROBABLY
    if where.at_least is not None:
        yield ("at_least", where.at_least), pl.col("amount").abs() >= pl.lit(where.at_least, _BOUND)
    if where.at_most is not None:
        yield ("at_most", where.at_most), pl.col("amount").abs() <= pl.lit(where.at_most, _BOUND)
    if where.direction in ("credit", "debit"):
        yield (
            ("direction", where.direction),
            pl.col("amount") > 0 if where.direction == "credit" else pl.col("amount") < 0,
        )


_BOUND = pl.Decimal(38, 4)  # amounts have two decimals, the bounds of a filter up to four


def _is_any_of(categories: Names, groups: Names) -> pl.Expr:
    of_category, of_group = pl.col("category").is_in(categories), pl.col("category_group").is_in(groups)
    if categories and groups:
        return _never_null(of_category) | _never_null(of_group)
    return _never_null(of_category if categories else of_group)


def _counterparty_conditions(where: Where) -> Iterator[tuple[Hashable, pl.Expr]]:
    if where.counterparties:
        yield ("counterparties", where.counterparties), _is_counterparty(where.counterparties)
    if where.not_counterparties:
        yield ("not counterparties", where.not_counterparties), ~_is_counterparty(where.not_counterparties)


def _is_counterparty(counterparties: Names) -> pl.Expr:
    return _never_null(pl.col("counterparty_group").is_in(counterparties))


def _has_any(flags: Names) -> pl.Expr:
    return _never_null(pl.any_horizontal(pl.col("flags").list.contains(flag) for flag in flags))


def _never_null(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(value=False)


def is_met(where: Where) -> pl.Expr:
    return pl.all_horizontal(*(condition for _, condition in conditions(where)), pl.lit(value=True))


def row_value(measure: Measure) -> pl.Expr:
    """Return what a row counts: AUD, or 1."""
    match measure:
        case "rows":
            return pl.lit(1, MONEY)
        case "money_out":
            return -pl.col("amount")
        case "size":
            return pl.col("amount").abs()
        case _:
            return pl.col("amount")
