"""The table of regular income: its figures again in plain Python, and what they rest on."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.lineage import Sum
from pipelines.reports.aggregate import explain_aggregate
from tests.conftest import examples
from tests.pipelines.reports.examples import MAIN, START, Row, facts, row
from tests.pipelines.reports.test_aggregate import TODAY, as_read, read_tables, text_of

MONTH = Decimal("365.25") / 12
PAY = {
    "kind": "other_income/salary_received",
    "category_source": "pattern",
    "counterparty_name": "Cove Cafe",
    "counterparty_group": "cove-cafe",
    "counterparty_kind": "business",
    "description": "COVE CAFE WAGES",
    "account_id": MAIN,
}


def weekly(amounts: Sequence[str], skipped: Sequence[int] = (), first: int = 2) -> list[Row]:
    """Return a weekly payment of each amount in turn; the weeks skipped have none. Then a purchase ends the history."""
    weeks = [week for week in range(len(amounts) + len(skipped)) if week not in skipped]
    paid = [row(first + 7 * week, amount, **PAY) for week, amount in zip(weeks, amounts, strict=True)]
    rows = [*paid, row(first + 7 * (weeks[-1] + 1) - 1, "-5", kind="cost_of_sales/groceries", description="SHOP")]
    return [{**each, "position": nth, "transaction_id": (nth + 1).to_bytes(16, "big")} for nth, each in enumerate(rows)]


def payer(rows: Sequence[Row]) -> dict[str, Any]:
    [only] = as_read(text_of(rows, TODAY))["regular_income"]
    return only


def round_to(value: Decimal, places: str) -> Decimal:
    return value.quantize(Decimal(places), ROUND_HALF_EVEN)


@examples(7)
@given(st.lists(st.integers(2_000, 90_000), min_size=12, max_size=40), st.sets(st.integers(1, 10), max_size=3))
def test_every_figure_agrees_with_plain_python(cents: list[int], skipped: set[int]) -> None:
    rows = weekly([str(Decimal(each) / 100) for each in cents], sorted(skipped))
    paid, through = rows[:-1], rows[-1]["date"]
    amounts = [each["amount"] for each in paid]
    recent = [each["amount"] for each in paid if (through - each["date"]).days < 180]
    first, last = paid[0]["date"], paid[-1]["date"]
    gap = round((last - first).days / (len(paid) - 1))
    days = min(180, (through - first).days + gap)
    found = payer(rows)
    assert found["payments"] == found["datesPaid"] == len(paid)
    assert found["dueDates"] == (last - first).days // 7 + 1
    assert found["paidShare"] == round_to(Decimal(len(paid)) / found["dueDates"], "0.0001")
    assert found["amount"] == sum(amounts)
    assert found["usualAmount"] == sorted(amounts)[(len(amounts) - 1) // 2]
    assert found["recentAmount"] == sum(recent)
    assert found["recentDays"] == days
    assert abs(found["monthlyAmount"] - sum(recent) * MONTH / days) <= Decimal("0.01")
    assert (found["firstDate"], found["lastDate"]) == (first, last)
    assert found["nextExpectedDate"] >= last + timedelta(days=7)
    assert abs(sum(value for name, value in found.items() if name.endswith("Probability")) - 1) < Decimal("1e-8")


def test_a_payer_that_stopped_has_no_monthly_amount() -> None:
    stopped = weekly(["310"] * 20)
    later = {**stopped[-1], "date": START + timedelta(days=400)}
    found = payer([*stopped[:-1], later])
    assert (found["monthlyAmount"], found["nextExpectedDate"]) == (None, None)
    assert found["amount"] == 20 * 310


def test_amounts_are_traced_to_the_payments() -> None:
    rows = weekly(["310.10", "205", "298.55"] * 8)
    data = {"tables": read_tables(text_of(rows, TODAY))}
    trace = explain_aggregate(facts(rows, TODAY), data, ("tables", "regular_income", "values", "0", "amount"))
    assert isinstance(trace, Sum)
    found = trace.contributions
    assert set(found["transaction_id"]) == {each["transaction_id"] for each in rows[:-1]}
    assert found["contribution"].sum() == sum(each["amount"] for each in rows[:-1])
