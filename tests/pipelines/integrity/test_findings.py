"""Findings: exact amounts, keys, what true revenue leaves out, and what a person resolves."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.figures.context import RESOLUTIONS, Context
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import value_of
from pipelines.integrity import findings, load_descriptions, with_exclusions
from pipelines.integrity.candidates import usual_month
from pipelines.integrity.finding import finding_rows
from pipelines.metrics import explain, select_with_inputs, values
from pipelines.metrics.registry import METRICS
from pipelines.vocabulary.schemas import TRANSACTIONS, CounterpartyKind
from pipelines.vocabulary.taxonomy import GROUPS

TODAY = date(2026, 11, 1)
MARKED = ("customer_number", "transaction_id", "date", "amount")


def rows(*given: tuple[int, str, str, str | None], customer: int = 1) -> pl.DataFrame:
    """Return rows, given as `(days ago, amount, category, party)`."""
    return pl.DataFrame(
        [
            {
                "customer_number": customer,
                "account_id": b"account",
                "account_type": "transaction",
                "transaction_id": bytes([customer, nth]),
                "received_seq": 1,
                "position": nth,
                "since_seq": 1,
                "status": "posted",
                "date": TODAY - timedelta(days=ago),
                "amount": Decimal(amount),
                "category": category,
                "category_group": GROUPS[category],
                "counterparty_group": party,
                "description": "text",
                "is_transfer": False,
                "flags": [],
            }
            for nth, (ago, amount, category, party) in enumerate(given)
        ],
        schema=TRANSACTIONS,
    )


TRADE: list[tuple[int, str, str, str | None]] = [
    (ago, "20000.05", "customer_transfer", "steady") for ago in range(0, 390, 30)
]
TRIPS: list[tuple[int, str, str, str | None]] = [
    (40, "5000.01", "customer_transfer", "friend"),
    (39, "-5000.01", "suppliers", "friend"),
    (30, "6200.10", "customer_transfer", "friend"),
    (2, "-6200.10", "suppliers", "friend"),
]
DRESSED = rows(*TRADE, *TRIPS)


@pytest.mark.parametrize(
    ("oldest", "usual"),
    [(0, 100_00), (29, 100_00), (59, 50_00), (99, 30_00), (363, 100_00 * 30 / 364), (364, 100_00 * 30 / 365)],
)
def test_the_usual_month_is_measured_over_all_days_from_the_first_row_to_the_last(oldest: int, usual: float) -> None:
    oldest_row = (oldest, "-1.00", "suppliers", None)
    [found] = usual_month(Facts(rows((0, "100.00", "customer_transfer", "steady"), oldest_row), TODAY)).to_dicts()
    assert found["usual"] == pytest.approx(usual)


def context_with_resolution(key: str) -> Context:
    row: dict[str, Any] = {"customer_number": 1, "kind": "finding", "key": key, "reason": "seen", "resolved_on": TODAY}
    return Context(resolutions=pl.DataFrame([row], schema=RESOLUTIONS))


def test_a_finding_names_its_rows_amount_and_days() -> None:
    [found] = findings(Facts(DRESSED, TODAY)).to_dicts()
    assert (found["finding"], found["rows"], found["amount"]) == ("round_trip", 4, Decimal("11200.11"))
    assert (found["first_date"], found["last_date"]) == (TODAY - timedelta(days=40), TODAY - timedelta(days=2))


def test_true_revenue_is_stated_revenue_without_what_came_back() -> None:
    slugs = ("revenue_180d", "true_revenue_180d", "true_revenue_share_180d")
    facts = Facts(DRESSED, TODAY)
    [figures] = values(facts, select_with_inputs(slugs, METRICS)).to_dicts()
    assert figures["revenue_180d"] - figures["true_revenue_180d"] == Decimal("11200.11")
    assert figures["true_revenue_share_180d"] < 1
    assert value_of(explain(facts, "true_revenue_180d")) == figures["true_revenue_180d"]


def test_parked_money_that_has_not_had_time_to_leave_is_left_out_too() -> None:
    parked = [(62, "8000", "customer_transfer", "a"), (60, "-8000", "suppliers", "a")]
    parked += [(32, "9000", "customer_transfer", "a"), (30, "-9000", "suppliers", "a")]
    found = findings(Facts(rows(*TRADE, *parked, (2, "7000", "customer_transfer", "a")), TODAY))
    assert found.filter(finding="month_end_parking")["amount"].to_list() == [24000]
    other = findings(Facts(rows(*TRADE, *parked, (2, "7000", "customer_transfer", "b")), TODAY))
    assert other.filter(finding="month_end_parking")["amount"].to_list() == [17000]


def test_a_person_who_never_paid_before_pays_twice_in_the_last_days() -> None:
    often = [(ago, "9000", "customer_transfer", f"person {ago}") for ago in range(20, 380, 10)]
    twice = [(6, "4000", "customer_transfer", "stranger"), (3, "4000", "customer_transfer", "stranger")]

    def injected_amounts(*last: tuple[int, str, str, str | None]) -> list[Decimal]:
        private = rows(*often, *last).with_columns(counterparty_kind=pl.lit("person", CounterpartyKind))
        return findings(Facts(private, TODAY)).filter(finding="last_minute_injection")["amount"].to_list()

    assert injected_amounts(*twice) == [8000]
    assert injected_amounts((3, "8000", "customer_transfer", "stranger")) == []
    assert injected_amounts(*twice, (90, "4500", "customer_transfer", "stranger")) == []
    assert injected_amounts((6, "4000", "customer_transfer", "one"), (3, "4000", "customer_transfer", "other")) == []


def test_a_loan_of_revenue_is_found_whatever_its_lender_is_called() -> None:
    def borrowed_amounts(category: str, payer: str) -> list[Decimal]:
        repaid = [(ago, "-1300", "suppliers", "newcomer") for ago in range(93, 50, -7)]
        found = findings(Facts(rows(*TRADE, (100, "20000", category, payer), *repaid), TODAY))
        return found.filter(finding="borrowed_as_revenue")["amount"].to_list()

    assert borrowed_amounts("customer_transfer", "newc") == borrowed_amounts("unknown_credit", "other") == [20000]
    assert borrowed_amounts("unknown_credit", "newc") == []  # a name that the bank has cut


def test_receipts_of_one_payer_that_are_passed_on_to_anybody_are_round_trips() -> None:
    days = (90, 60, 30)
    paid_in = [(ago, f"{5000 + ago}.01", "customer_transfer", "payer") for ago in days]
    passed_on = [(ago - 3, f"-{5000 + ago}.01", "suppliers", f"payee {ago}") for ago in days]

    def round_trips(*given: tuple[int, str, str, str | None]) -> list[Decimal]:
        return findings(Facts(rows(*TRADE, *given), TODAY)).filter(finding="round_trip_related")["amount"].to_list()

    assert round_trips(*paid_in, *passed_on) == [Decimal("15180.03")]
    assert round_trips(*paid_in[1:], *passed_on[1:]) == []
    kept = [(ago, "4000", "customer_transfer", "payer") for ago in (190, 170, 140, 110)]
    assert round_trips(*paid_in, *passed_on, *kept) == []
    paid_before = [(ago + 6, amount, category, party) for ago, amount, category, party in passed_on]
    assert round_trips(*paid_in, *paid_before) == []


def test_a_resolved_finding_is_shown_and_leaves_nothing_out() -> None:
    [open_one] = findings(Facts(DRESSED, TODAY)).to_dicts()
    facts = Facts(DRESSED, TODAY, context_with_resolution(open_one["key"]))
    [found] = findings(facts).to_dicts()
    assert (found["resolved_on"], found["resolution"], found["left_out"]) == (TODAY, "seen", 0)
    assert not with_exclusions(facts, MARKED)["is_excluded"].any()
    assert finding_rows(facts)["left_out"].sum() == 0


def test_another_transaction_makes_another_finding() -> None:
    [before] = findings(Facts(DRESSED, TODAY)).to_dicts()
    more = rows(*TRADE, *TRIPS, (20, "900.00", "customer_transfer", "friend"), (19, "-900.00", "suppliers", "friend"))
    [after] = findings(Facts(more, TODAY, context_with_resolution(before["key"]))).to_dicts()
    assert after["key"] != before["key"]
    assert after["resolved_on"] is None


def test_the_order_of_rows_and_other_customers_change_nothing() -> None:
    alone = findings(Facts(DRESSED, TODAY))
    others = [rows(*TRADE, customer=2), rows(*TRIPS, customer=3)]
    shuffled = pl.concat([DRESSED, *others]).sample(fraction=1, shuffle=True, seed=3)
    together = findings(Facts(shuffled, TODAY))
    assert_frame_equal(together.filter(pl.col("customer_number") == 1), alone)


def test_no_rows_give_no_findings() -> None:
    assert findings(Facts(DRESSED.clear(), TODAY)).is_empty()
    assert with_exclusions(Facts(DRESSED.clear(), TODAY), MARKED).is_empty()


def test_no_finding_accuses_anybody() -> None:
    text = " ".join(f"{each.name} {each.sentence} {each.honest}" for each in load_descriptions().values()).lower()
    assert [word for word in ("fraud", "forged", "fake", "lying", "cheat", "scam") if word in text] == []
    assert all(each.honest.endswith(".") for each in load_descriptions().values())


def test_own_transfers_that_arrive_as_receipts_are_matched_one_to_one_on_the_same_and_later_days() -> None:
    sales = [(ago, "20000.05", "customer_transfer", "steady") for ago in range(0, 390, 30)]
    received = [(40, "5000", "customer_transfer", "a")] * 2 + [(20, "6000", "customer_transfer", "a")]
    sent = [(40, "-5000", "own_transfer", None)] * 2 + [(23, "-6000", "own_transfer", None)]
    ledger = rows(*sales, *received, *sent).with_columns(
        account_id=pl.when(pl.col("category") == "own_transfer").then(pl.lit(b"savings")).otherwise("account_id")
    )
    [found] = findings(Facts(ledger, TODAY)).to_dicts()
    assert (found["finding"], found["rows"], found["amount"]) == ("own_transfer_as_revenue", 6, Decimal("16000"))
