"""Asset checks: facts about the written frames, declared once and checked by the step that has them in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from pipelines.vocabulary.schemas import TRANSACTIONS, current, posted

MAX_UNCATEGORISED = 0.4  # our judgement


@dataclass(frozen=True)
class Expectation:
    """A fact about a frame: `measure` returns a number, and `holds` decides whether it is as expected."""

    name: str
    description: str
    measure: Callable[[pl.DataFrame], float]
    holds: Callable[[float], bool]
    severity: AssetCheckSeverity = AssetCheckSeverity.ERROR


def _is_zero(measured: float) -> bool:
    return measured == 0


def _count_repeated_ids(rows: pl.DataFrame) -> float:
    return float(rows.filter(current())["transaction_id"].is_duplicated().sum())


def _share_of_posted(rows: pl.DataFrame, condition: pl.Expr) -> float:
    return float(rows.filter(posted()).select(condition.fill_null(value=False).mean()).item() or 0)


OF_TRANSACTIONS: Sequence[Expectation] = (
    Expectation(
        "schema", "Every column is there, with its type.", lambda rows: float(rows.schema != TRANSACTIONS), _is_zero
    ),
    Expectation("unique_ids", "No transaction is there twice.", _count_repeated_ids, _is_zero),
    Expectation(
        "balances_hold",
        "Stated running balances follow from the amounts. Measured: the share that does not.",
        lambda rows: _share_of_posted(rows, ~pl.col("balance_verified")),
        _is_zero,
        AssetCheckSeverity.WARN,
    ),
    Expectation(
        "categorised",
        f"At most {MAX_UNCATEGORISED:.0%} of the posted rows have no category. Measured: the share that has none.",
        lambda rows: _share_of_posted(rows, pl.col("category_source") == "fallback"),
        lambda share: share <= MAX_UNCATEGORISED,
        AssetCheckSeverity.WARN,
    ),
)


OF_PORTFOLIO_TABLES: Sequence[Expectation] = (
    Expectation(
        "one_row_per_customer",
        "No customer is there twice.",
        lambda rows: float(rows["customer_number"].is_duplicated().sum()),
        _is_zero,
    ),
    Expectation(
        "reports_are_current",
        "Every report covers all data that its customer had when the table was written. Measured: how many do not.",
        lambda rows: float((~rows["is_current"]).sum()),
        _is_zero,
        AssetCheckSeverity.WARN,
    ),
)


OF_METRICS: Sequence[Expectation] = (
    Expectation(
        "value_or_cause",
        "Every metric has either a value or the cause of its absence. Measured: how many do not.",
        lambda rows: float((rows["value"].is_null() == rows["cause"].is_null()).sum()),
        _is_zero,
    ),
)


def specs(asset: str, expectations: Sequence[Expectation]) -> list[AssetCheckSpec]:
    return [
        AssetCheckSpec(expectation.name, asset=asset, description=expectation.description)
        for expectation in expectations
    ]


def results(rows: pl.DataFrame, expectations: Sequence[Expectation]) -> list[AssetCheckResult]:
    return [_result(expectation, expectation.measure(rows)) for expectation in expectations]


def _result(expectation: Expectation, measured: float) -> AssetCheckResult:
    return AssetCheckResult(
        check_name=expectation.name,
        passed=expectation.holds(measured),
        severity=expectation.severity,
        metadata={"measured": float(measured)},
    )
