"""What must hold of the frames just written, declared once and checked in the step that has them in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from pipelines.vocabulary.schemas import TRANSACTIONS, current, posted

MOST_UNCATEGORISED = 0.4


@dataclass(frozen=True)
class Expectation:
    """A fact about the frame: `measure` gives a number, `holds` says whether it is as it should be."""

    name: str
    description: str
    measure: Callable[[pl.DataFrame], float]
    holds: Callable[[float], bool]
    severity: AssetCheckSeverity = AssetCheckSeverity.ERROR


def _none(measured: float) -> bool:
    return measured == 0


def _repeated_ids(rows: pl.DataFrame) -> float:
    return float(rows.filter(current())["transaction_id"].is_duplicated().sum())


def _share(rows: pl.DataFrame, of: pl.Expr) -> float:
    counted = rows.filter(posted())
    return float(counted.select(of.fill_null(value=False).mean()).item() or 0)


OF_TRANSACTIONS: Sequence[Expectation] = (
    Expectation(
        "schema", "Every column is there, in its type.", lambda rows: float(rows.schema != TRANSACTIONS), _none
    ),
    Expectation("unique_ids", "No transaction stands twice.", _repeated_ids, _none),
    Expectation(
        "balances_hold",
        "Stated running balances follow from the amounts (the share that does not).",
        lambda rows: _share(rows, ~pl.col("balance_verified")),
        _none,
        AssetCheckSeverity.WARN,
    ),
    Expectation(
        "categorised",
        f"At most {MOST_UNCATEGORISED:.0%} of the posted rows fall back to no category (the share that does).",
        lambda rows: _share(rows, pl.col("category_source") == "fallback"),
        lambda share: share <= MOST_UNCATEGORISED,
        AssetCheckSeverity.WARN,
    ),
)


OF_PORTFOLIO_TABLES: Sequence[Expectation] = (
    Expectation(
        "one_row_a_customer",
        "No customer stands twice.",
        lambda rows: float(rows["customer_number"].is_duplicated().sum()),
        _none,
    ),
    Expectation(
        "reports_are_current",
        "Every report covers all that was held of its customer when the table was written (how many do not).",
        lambda rows: float((~rows["is_current"]).sum()),
        _none,
        AssetCheckSeverity.WARN,
    ),
)


OF_METRICS: Sequence[Expectation] = (
    Expectation(
        "value_or_cause",
        "Every metric has either a value or the cause of having none (how many do not).",
        lambda rows: float((rows["value"].is_null() == rows["cause"].is_null()).sum()),
        _none,
    ),
)


def specs(asset: str, expectations: Sequence[Expectation]) -> list[AssetCheckSpec]:
    return [AssetCheckSpec(each.name, asset=asset, description=each.description) for each in expectations]


def results(rows: pl.DataFrame, expectations: Sequence[Expectation]) -> list[AssetCheckResult]:
    return [_result(each, each.measure(rows)) for each in expectations]


def _result(each: Expectation, measured: float) -> AssetCheckResult:
    return AssetCheckResult(
        check_name=each.name,
        passed=each.holds(measured),
        severity=each.severity,
        metadata={"measured": float(measured)},
    )
