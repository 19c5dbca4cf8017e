"""Principal reasons of a rating: at most four, specific, and what is unverified is distinguished from what is bad."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.pages.wording import reading, write_reading
from pipelines.reports.risk.principal import principal_reasons
from pipelines.vocabulary.report_values import RATIO
from tests.pipelines.reports.examples import START, Row, add_balances, mark_balances, report, row

WEEKS = 53


def business(*others: Row, balances: bool = True) -> dict[str, Any]:
    """Return the risk report of weekly takings and costs, with the given rows among them."""
    trade = [
        each
        for week in range(WEEKS)
        for each in (
            row(7 * week, "1400", kind="revenue/card_settlement"),
            row(7 * week, "-1300", kind="cost_of_sales/suppliers"),
        )
    ]
    rows = sorted([*trade, *others], key=lambda each: each["date"])
    stated = mark_balances(add_balances(rows, opening="900")) if balances else rows
    return report("risk", stated, START + timedelta(days=7 * WEEKS))


def garnishee() -> Row:
    return row(
        150,
        "-900",
        kind="distress/garnishee",
        category_source="pattern",
        description="GARNISHEE ORDER LOCAL COURT",
        transaction_id=b"g" * 16,
    )


def test_reasons_are_at_most_four_and_specific() -> None:
    reasons = business()["principalReasons"]
    assert 1 <= len(reasons) <= 4
    assert reasons[0] == {
        "code": "buffer_days_180d",
        "kind": "adverse",
        "words": "Buffer, last 180 days: 26 days.",
    }


@pytest.mark.parametrize(
    ("number", "unit", "shape"),
    [("0.7362", "ratio", "percent"), ("-0.1234", "ratio", "percent"), ("12.5", "ratio", "percent"),
     ("26", "days", "days"), ("1.04", "days", "days"), ("2.3456", "months", "months"), ("1", "months", "months"),
     ("0.1667", "per month", "decimal"), ("1500", "count", "integer")],
)  # fmt: skip
def test_readings_are_written_as_decisions_do(number: str, unit: str, shape: str) -> None:
    assert write_reading(Decimal(number).quantize(Decimal("0.0001")), unit) == reading(Decimal(number), shape)


def test_reasons_come_with_the_largest_loss_first() -> None:
    data = business()
    lost = {each["metric"]: each["maxPoints"] - each["points"] for each in data["drivers"]}
    losses = [lost[each["code"]] for each in data["principalReasons"]]
    assert losses == sorted(lost.values(), reverse=True)[: len(losses)]


def test_an_event_that_limits_the_rating_comes_first() -> None:
    data = business(garnishee())
    assert data["limitedBy"] == ["garnishee"]
    assert data["principalReasons"][0] == {
        "code": "garnishee",
        "kind": "adverse",
        "words": "A court or a creditor took money from the account.",
    }


def test_what_could_not_be_verified_is_not_called_bad() -> None:
    data = business(balances=False)
    states = {each["metric"]: each["state"] for each in data["drivers"]}
    kinds = {each["code"]: each["kind"] for each in data["principalReasons"]}
    assert data["principalReasons"][0]["words"] == "Buffer at lowest balance, last 60 days: could not be verified."
    assert set(kinds.values()) == {"unverified"}
    assert {states[code] for code in kinds} == {"unknown"}


def test_a_driver_has_one_reason_that_says_how_much_was_verified() -> None:
    """Half of the balances are unknown, so a driver of balances loses points by its reading and by what is missing."""
    whole = business()
    rows = [row(7 * week, "1400", kind="revenue/card_settlement") for week in range(WEEKS)]
    rows += [row(7 * week, "-1300", kind="cost_of_sales/suppliers") for week in range(WEEKS)]
    stated = mark_balances(add_balances(sorted(rows, key=lambda each: each["date"]), opening="900"))
    half = [each if place < len(stated) * 0.7 else {**each, "balance": None} for place, each in enumerate(stated)]
    data = report("risk", half, START + timedelta(days=7 * WEEKS))
    reasons = data["principalReasons"]
    codes = [each["code"] for each in reasons]
    assert len(set(codes)) == len(codes) == 4
    lost = {each["metric"]: each["maxPoints"] - each["points"] for each in data["drivers"]}
    assert [lost[code] for code in codes] == sorted(lost.values(), reverse=True)[:4]
    coverage = {each["metric"]: each["coverage"] for each in data["drivers"]}
    partly = [each for each in reasons if 0 < coverage[each["code"]] < 1]
    assert partly
    for each in partly:
        assert f"nly {coverage[each['code']] * 100:.2f} % could be verified" in each["words"]
    assert all("verified" not in each["words"] for each in whole["principalReasons"])


def lost_points(reading_: str | None, coverage: str, points: str) -> dict[str, Any]:
    """Return the reason of a driver of 10 points."""
    listed = pl.DataFrame(
        {
            "customer_number": [1],
            "feature": [0],
            "metric": ["buffer"],
            "name": ["Buffer"],
            "unit": ["days"],
            "reading": [None if reading_ is None else Decimal(reading_)],
            "coverage": [Decimal(coverage)],
            "most": [Decimal(10)],
            "points": [Decimal(points)],
        },
        schema_overrides={"feature": pl.Int32, **dict.fromkeys(("reading", "coverage", "most", "points"), RATIO)},
    )
    scored = pl.DataFrame({"customer_number": [1], "covered": [1.0], "limitedBy": [[]]}, schema=_SCORED)
    [reason] = principal_reasons(scored, listed)["principalReasons"].item()
    found: dict[str, Any] = reason
    return found


_SCORED = {"customer_number": pl.Int64(), "covered": pl.Float64(), "limitedBy": pl.List(pl.String())}


@pytest.mark.parametrize(
    ("reading_", "coverage", "points", "kind", "words"),
    [
        ("18.5", "1", "4", "adverse", "Buffer: 18.5 days."),
        ("18.5", "0.9", "3.6", "adverse", "Buffer: 18.5 days; only 90.00 % could be verified."),
        ("150", "0.66", "6.4", "unverified", "Buffer: only 66.00 % could be verified."),
        (None, "0.66", "0", "unverified", "Buffer: could not be verified."),
        ("18.5", "0", "0", "unverified", "Buffer: could not be verified."),
    ],
)
def test_a_reason_is_either_bad_or_unverified(
    reading_: str | None, coverage: str, points: str, kind: str, words: str
) -> None:
    reason = lost_points(reading_, coverage, points)
    assert (reason["kind"], reason["words"]) == (kind, words)
