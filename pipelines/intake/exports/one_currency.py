"""The one currency that an analysis of exports works in: rows in another are refused, never summed with it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl

from pipelines.intake.currencies import CODES, CURRENCY, UNKNOWN
from pipelines.intake.exports.sheet import refused
from pipelines.intake.exports.statements import REFUSED, Statement


class Basis(StrEnum):
    """Why an analysis is in its currency."""

    STATED = "stated"  # by the files
    DECLARED = "declared"  # by the user
    ASSUMED = "assumed"


@dataclass(frozen=True)
class InOneCurrency:
    """`statements`: their rows in `currency`, which they need not name any more. `refused` (schema REFUSED): the rows
    of each statement that state another.
    """

    currency: str
    basis: Basis
    statements: tuple[Statement, ...]
    refused: tuple[pl.DataFrame, ...]


def in_one_currency(statements: Sequence[Statement], declared: str | None) -> InOneCurrency:
    """Decide the currency: what the user declares, else the one that the rows state, else the service's own.

    Raises:
        InvalidRequest: the rows state several and the user declares none.
    """
    stated = Counter(code for each in statements for code in each.rows["currency"] if code in CODES)
    if declared is None and len(stated) > 1:
        counts = ", ".join(f"{code} ({count:,})" for code, count in stated.most_common())
        raise refused("SeveralCurrencies", f"The rows are in several currencies: {counts}. Choose one with --currency.")
    currency = declared or next(iter(stated), CURRENCY)
    basis = Basis.DECLARED if declared else Basis.STATED if stated else Basis.ASSUMED
    return InOneCurrency(
        currency,
        basis,
        tuple(_only(each, basis, currency) for each in statements),
        tuple(_others(each, basis, currency) for each in statements),
    )


def _is_other(basis: Basis, currency: str) -> pl.Expr:
    """Whether a row is in another currency. What a shared mark leaves open is what the user declares, if not AUD."""
    own = (currency, UNKNOWN) if basis is Basis.DECLARED and currency != CURRENCY else (currency,)
    return (~pl.col("currency").is_in(own)).fill_null(value=False)


def _only(statement: Statement, basis: Basis, currency: str) -> Statement:
    retained = statement.rows.with_columns(line=statement.lines).filter(~_is_other(basis, currency))
    rows = retained.with_columns(
        position=pl.int_range(pl.len(), dtype=pl.UInt32), currency=pl.lit(None, pl.String)
    ).drop("line")
    return replace(statement, rows=rows, lines=retained["line"])


def _others(statement: Statement, basis: Basis, currency: str) -> pl.DataFrame:
    """A row in another currency, with the code that the service gives it."""
    others = statement.rows.with_columns(line=statement.lines).filter(_is_other(basis, currency))
    is_unknown = pl.col("currency") == UNKNOWN
    return others.select(
        "line",
        field=pl.lit("currency"),
        code=pl.lit("Transaction.UnsupportedCurrency"),
        message=pl.when(is_unknown)
        .then(pl.lit("Several currencies share the mark beside the amount: choose one with --currency."))
        .otherwise(pl.format("The row is in {}, the analysis in {}.", "currency", pl.lit(currency))),
    ).cast(REFUSED)
