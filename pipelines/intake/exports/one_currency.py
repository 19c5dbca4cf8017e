"""Choose the one currency of an analysis of exports. Rows in other currencies are refused, never mixed in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl

from pipelines.intake.currencies import CODES, CURRENCY, UNKNOWN
from pipelines.intake.exports.sheet import refusal
from pipelines.intake.exports.statements import REFUSED, Statement


class Basis(StrEnum):
    """How the currency of an analysis was determined."""

    STATED = "stated"  # by the files
    DECLARED = "declared"  # by the user
    ASSUMED = "assumed"


@dataclass(frozen=True)
class InOneCurrency:
    """Statements in one currency.

    `statements` have only the rows in `currency`; their column `currency` is null. `refused` (schema REFUSED): each
    statement's rows in other currencies.
    """

    currency: str
    basis: Basis
    statements: tuple[Statement, ...]
    refused: tuple[pl.DataFrame, ...]


def in_one_currency(statements: Sequence[Statement], declared: str | None) -> InOneCurrency:
    """Choose the currency that the user declares, else the one that the rows state, else the service's own.

    Raises:
        InvalidRequest: the rows state several currencies and the user declares none.
    """
    stated = Counter(code for statement in statements for code in statement.rows["currency"] if code in CODES)
    if declared is None and len(stated) > 1:
        counts = ", ".join(f"{code} ({count:,})" for code, count in stated.most_common())
        raise refusal("SeveralCurrencies", f"The rows are in several currencies: {counts}. Choose one with --currency.")
    currency = declared or next(iter(stated), CURRENCY)
    basis = Basis.DECLARED if declared else Basis.STATED if stated else Basis.ASSUMED
    return InOneCurrency(
        currency,
        basis,
        tuple(_rows_in(each, basis, currency) for each in statements),
        tuple(_rejected_rows(each, basis, currency) for each in statements),
    )


def _is_other(basis: Basis, currency: str) -> pl.Expr:
    """Return whether a row is in another currency.

    A mark that several currencies share counts as the declared currency, unless that is AUD.
    """
    own = (currency, UNKNOWN) if basis is Basis.DECLARED and currency != CURRENCY else (currency,)
    return (~pl.col("currency").is_in(own)).fill_null(value=False)


def _rows_in(statement: Statement, basis: Basis, currency: str) -> Statement:
    retained = statement.rows.with_columns(line=statement.lines).filter(~_is_other(basis, currency))
    rows = retained.with_columns(
        position=pl.int_range(pl.len(), dtype=pl.UInt32), currency=pl.lit(None, pl.String)
    ).drop("line")
    return replace(statement, rows=rows, lines=retained["line"])


def _rejected_rows(statement: Statement, basis: Basis, currency: str) -> pl.DataFrame:
    """Return the rows in another currency, with the code that the service gives them."""
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
