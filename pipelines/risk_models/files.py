"""A lender's outcomes and transactions as two CSV files, read strictly: unreadable values are refused, not guessed.

    transactions   customer,account,date,description,amount,balance
    outcomes       customer,asOf,defaulted and further columns of numbers, such as loan terms

Any currency works; description and balance may be empty. Days are YYYY-MM-DD; `defaulted` is 0 or 1 (or no or
yes, false or true, or their first letters). A row of outcomes is a case: a customer as known on the day `asOf`, and
what happened afterwards. A customer may have several cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import polars as pl

from pipelines.intake.accounts import identify
from pipelines.intake.as_sent import temporary_digest
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.schemas import ACCEPTED, MONEY

TRANSACTION_COLUMNS = ("customer", "account", "date", "description", "amount", "balance")
OUTCOME_COLUMNS = ("customer", "asOf")
_YES, _NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f")


class UnusableFile(Unprocessable):
    """A file can't be read. The reason names no customer."""

    def __init__(self, reason: str) -> None:
        super().__init__("Risk.UnusableFile", f"The risk model can't use this: {reason}.")
        self.reason = reason


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of a lender's customers.

    `cases`: `case` (from 1), `customer`, `as_of`, `defaulted` (null where not stated), and the further columns of
    numbers, as floats. `given`: the names of these columns; `ignored`: those of columns that don't hold numbers.
    """

    cases: pl.DataFrame
    given: tuple[str, ...]
    ignored: tuple[str, ...]


def parse_outcomes(table: pl.DataFrame, with_outcomes: bool = True) -> Outcomes:
    """Parse the cases from a table of text.

    Args:
        with_outcomes: whether every case must state if it defaulted.

    Raises:
        Unprocessable: a column is missing or a value can't be read; the message says where.
    """
    needed = (*OUTCOME_COLUMNS, "defaulted") if with_outcomes else OUTCOME_COLUMNS
    named = _require_columns(table, needed, "outcomes")
    if "defaulted" not in named.columns:
        named = named.with_columns(defaulted=pl.lit(None, pl.String))
    answer = pl.col("defaulted").str.to_lowercase()
    typed = named.with_columns(
        as_of=_day("asOf"),
        defaulted=pl.when(answer.is_in(_YES)).then(1).when(answer.is_in(_NO)).then(0).cast(pl.Int8),
    )
    _refuse_unparsed(named, typed, {"customer": "customer", "asOf": "as_of"}, "outcomes", may_be_empty=False)
    _refuse_unparsed(named, typed, {"defaulted": "defaulted"}, "outcomes", may_be_empty=not with_outcomes)
    others = [name for name in named.columns if name not in ("customer", "asOf", "defaulted")]
    numbers = {name: named[name].cast(pl.Float64, strict=False) for name in others}
    given = [name for name in others if _has_only_numbers(named[name], numbers[name])]
    cases = typed.select("customer", "as_of", "defaulted", *(numbers[name] for name in given))
    return Outcomes(
        cases.with_row_index("case", offset=1).with_columns(pl.col("case").cast(pl.Int64)),
        tuple(given),
        tuple(name for name in others if name not in given),
    )


def parse_transactions(table: pl.DataFrame) -> pl.DataFrame:
    """Parse `customer, account, date, description, amount, balance` from a table of text; money to the cent.

    Raises:
        Unprocessable: a column is missing or a value can't be read; the message says where.
    """
    named = _require_columns(table, TRANSACTION_COLUMNS, "transactions")
    typed = named.select(
        "customer",
        pl.col("account").fill_null(""),
        _day("date").alias("date"),
        pl.col("description").fill_null(""),
        _money("amount"),
        _money("balance"),
    )
    required = {name: name for name in ("customer", "date", "amount")}
    _refuse_unparsed(named, typed, required, "transactions", may_be_empty=False)
    _refuse_unparsed(named, typed, {"balance": "balance"}, "transactions", may_be_empty=True)
    return typed


def accepted_rows(rows: pl.DataFrame, cases: pl.DataFrame) -> pl.DataFrame:
    """Return each case's rows up to its day, ready for enrichment (schema ACCEPTED), with the case as the customer.

    Args:
        rows: from `parse_transactions`.
        cases: `case`, `customer`, `as_of`.
    """
    seen = (
        rows.with_row_index("position")
        .join(cases.select("case", "customer", "as_of"), on="customer", how="inner")
        .filter(pl.col("date") <= pl.col("as_of"))
        .sort("case", "position")
        .join(_accounts(rows, cases), on=["case", "account"], how="left", validate="m:1")
    )
    return as_submission(seen.with_columns(customer_number="case"))


def as_submission(rows: pl.DataFrame) -> pl.DataFrame:
    """Return posted rows of identified accounts as one submission (schema ACCEPTED); columns they lack are null."""
    filled = rows.with_columns(
        job_id=pl.lit(UUID(int=0).bytes),
        received_seq="customer_number",  # with the position it names a row among all customers
        appended=pl.lit(value=True),
        account_identified=pl.lit(value=True),
        status=pl.lit("posted"),
    )
    blank = [pl.lit(None, kind).alias(name) for name, kind in ACCEPTED.items() if name not in filled.columns]
    return filled.with_columns(blank).select(pl.col(name).cast(kind) for name, kind in ACCEPTED.items())


def _accounts(rows: pl.DataFrame, cases: pl.DataFrame) -> pl.DataFrame:
    """Return `case, account, account_id`."""
    accounts = rows.select("customer", "account").unique().join(cases.select("case", "customer"), on="customer")
    ids = [_account_id(case, account) for case, account in accounts.select("case", "account").iter_rows()]
    return accounts.select("case", "account", account_id=pl.Series(ids, dtype=pl.Binary))


def _account_id(case: int, account: str) -> bytes:
    identified, _ = identify(
        UUID(int=case),
        account_name=None,
        bsb=None,
        account_number=account,
        bank_name=None,
        account_type=None,
        credit_limit=None,
        digest=temporary_digest,
    )
    return identified.account_id.bytes


def _require_columns(table: pl.DataFrame, needed: Sequence[str], what: str) -> pl.DataFrame:
    """Check that the columns exist. Strip blanks around names and values; an empty value becomes null."""
    named = table.rename(lambda name: name.strip().lstrip("\ufeff"))
    if missing := [name for name in needed if name not in named.columns]:
        raise UnusableFile(f"the {what} have no column {', '.join(missing)}; there are {', '.join(named.columns)}")
    if not named.height:
        raise UnusableFile(f"there are no rows in the {what}")
    text = pl.col(pl.String).str.strip_chars()
    return named.with_columns(pl.when(text != "").then(text).name.keep())


def _day(column: str) -> pl.Expr:
    return pl.col(column).str.to_date("%Y-%m-%d", strict=False)


def _money(column: str) -> pl.Expr:
    # Below 10**13 an amount fits MONEY with its cents.
    exact = pl.col(column).cast(pl.Decimal(38, 12), strict=False).round(2)
    return pl.when(exact.abs() < 10**13).then(exact).cast(MONEY, strict=False).alias(column)


def _refuse_unparsed(
    named: pl.DataFrame, typed: pl.DataFrame, columns: dict[str, str], what: str, *, may_be_empty: bool
) -> None:
    """Refuse the first column that has unreadable values, with their number and the first one."""
    for column, typed_column in columns.items():
        bad = typed[typed_column].is_null()
        if may_be_empty:
            bad &= named[column].is_not_null()
        if bad.any():
            place = bad.arg_max() or 0
            shown = (named[column][place] or "")[:40]
            raise UnusableFile(
                f"in {bad.sum()} rows of the {what} the {column} can't be read, first in row {place + 2}: {shown!r}"
            )


def _has_only_numbers(text: pl.Series, numbers: pl.Series) -> bool:
    return bool(numbers.is_not_null().any() and (numbers.is_finite().fill_null(text.is_null())).all())
