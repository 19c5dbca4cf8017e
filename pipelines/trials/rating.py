"""Rate many ledgers at once: risk report, completeness report and a shipped policy, with the code that lenders use."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
import polars as pl

from pipelines import metrics
from pipelines.decisions import (
    INDETERMINATE,
    OUTCOMES,
    Attribute,
    Plan,
    Policy,
    Value,
    evaluate_plan,
    examples,
    plan_policy,
    readings,
)
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.context import ClientPortfolio, Context
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports import REPORTS
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.vocabulary.schemas import MONEY, TRANSACTIONS

POLICY = "working-capital-loan"
INPUTS: dict[str, Value] = {"requestedAmount": Decimal(100_000), "termMonths": Decimal(12)}
# Attributes of an applicant whom only rules about transactions can refuse.
ATTRIBUTES: dict[str, Value] = {
    "loan_purpose": "working_capital",
    "bureau_score": Decimal(650),
    "ato_debt": Decimal(0),
    "ato_payment_plan": False,
    "time_trading_months": Decimal(60),
    "hardship_flag": False,
}
BEST_FIRST = (*OUTCOMES[:2], INDETERMINATE, OUTCOMES[2])
"""Verdicts: an undecided case is worse than a conditional one and better than a refusal."""
GRADES = pl.Enum(("A", "B", "C", "D", "E"))

RATED = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "grade": GRADES,
        "value": pl.Float64(),  # estimated probability of default
        "verdict": pl.Enum(BEST_FIRST),  # of POLICY
        "limit": MONEY,  # of POLICY; null: indeterminate
        "codes": pl.List(pl.String()),  # error codes of risk and reasons of completeness
        "findings": pl.List(pl.String()),  # of integrity, those that nobody resolved
    }
)


def rate(accepted: pl.DataFrame, as_of: date, expected: Expected = EVERYTHING) -> pl.DataFrame:
    """Return the ratings (schema RATED) of the customers in frames of accepted rows (schema ACCEPTED).

    Args:
        as_of: day of the reports, for all of them.
        expected: the evidence expected of all of them.
    """
    transactions = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect()
    return rate_enriched(transactions, as_of, expected)


def rate_enriched(transactions: pl.DataFrame, as_of: date, expected: Expected = EVERYTHING) -> pl.DataFrame:
    """Return the ratings as `rate` does, of enriched rows (schema TRANSACTIONS)."""
    customers = frozenset(transactions[BY_CUSTOMER].unique())
    facts = Facts(transactions, as_of, Context([ClientPortfolio(customers, expected=expected)]))
    risk, completeness = (REPORTS[kind].compute(facts) for kind in ("risk", "completeness"))
    reported = pl.DataFrame(
        list(_read_reports(risk, completeness)), schema={name: RATED[name] for name in _REPORTED}, orient="row"
    )
    rated = reported.join(_apply_policy(facts), on=BY_CUSTOMER, how="left", validate="1:1")
    return rated.select(pl.col(name).cast(kind) for name, kind in RATED.items())


_REPORTED = (BY_CUSTOMER, "grade", "value", "codes", "findings")


def _read_reports(risk: pl.DataFrame, completeness: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield each customer's row of _REPORTED, from the JSON of its two reports."""
    both = risk.join(completeness, on=BY_CUSTOMER, validate="1:1", suffix="_of_completeness", maintain_order="left")
    for number, risk_json, completeness_json in both.iter_rows():
        report, reasons = msgspec.json.decode(risk_json), msgspec.json.decode(completeness_json)["reasons"]
        codes = {each["code"] for each in (*report["errorCodes"], *reasons)}
        open_findings = {each["finding"] for each in report["integrity"]["findings"] if not each["isResolved"]}
        yield number, report["rating"], report["value"], sorted(codes), sorted(open_findings)


def _apply_policy(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, verdict, limit`."""
    plan = _plan()
    values = metrics.values(facts, plan.metrics)
    stated = {name: Attribute(value) for name, value in ATTRIBUTES.items()}
    midnight = datetime.combine(facts.as_of, time(), UTC)
    read = readings.read_leaves(plan, values, dict.fromkeys(values[BY_CUSTOMER], stated), INPUTS, midnight)
    return evaluate_plan(plan, read).select(BY_CUSTOMER, verdict=pl.col("outcome").cast(pl.String), limit="amount_0")


@cache
def _plan() -> Plan:
    return plan_policy(Policy.model_validate(examples.load()[POLICY]))
