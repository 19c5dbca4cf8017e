"""Facts include rows that are posted and dated by `as_of`, per customer."""

from datetime import date
from decimal import Decimal
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.facts import Facts
from pipelines.vocabulary import plans
from tests.pipelines.reports.examples import LOAN, SAVINGS, Row, add_balances, any_row, row, transactions

AS_OF = date(2025, 6, 1)


def facts(*rows: dict[str, object]) -> Facts:
    return Facts(transactions(rows).collect(), AS_OF)


def test_history_reaches_to_the_last_posted_row_of_each_customer() -> None:
    of = facts(
        row(date(2025, 1, 5), "1"),
        row(date(2025, 2, 7), "1"),
        row(date(2025, 3, 1), "1", status="pending"),
        row(date(2025, 3, 2), "1", superseded_seq=9),
        row(date(2025, 4, 1), "1", customer_number=2),
    )
    assert of.history.rows() == [(1, date(2025, 1, 5), date(2025, 2, 7)), (2, date(2025, 4, 1), date(2025, 4, 1))]


def test_a_row_dated_after_as_of_does_not_count() -> None:
    of = facts(row(AS_OF, "1"), row(date(2025, 6, 2), "1"))
    assert of.rows["date"].to_list() == [AS_OF]


def test_a_customer_with_only_pending_rows_is_a_customer() -> None:
    assert facts(row(0, "1", status="pending")).customers["customer_number"].to_list() == [1]


def test_closings_leave_out_loan_balances() -> None:
    loan = row(0, "10", account_id=LOAN, account_type="loan", balance=Decimal(-5000))
    untyped = row(0, "10", account_type=None, balance=Decimal(70))
    assert facts(loan, untyped).closings["closing_balance"].to_list() == [Decimal(70)]


def test_a_balance_holds_until_the_accounts_next_day_and_the_last_one_through_the_history() -> None:
    main = add_balances([row(0, "10"), row(3, "5")])
    savings = [row(9, "1", account_id=SAVINGS, account_type="savings", balance=Decimal(1))]
    held = facts(*main, *savings).closings.select("closing_balance", "days_held").rows()
    assert held == [(Decimal(1010), 3), (Decimal(1015), 7), (Decimal(1), 1)]


def test_facts_of_one_customer_are_those_of_that_customer_alone() -> None:
    both = facts(row(0, "1"), row(0, "2", customer_number=2))
    assert both.of_customer(2).rows["amount"].to_list() == [Decimal(2)]


@given(rows=st.lists(any_row(most_days=9), max_size=30))
def test_details_and_closings_of_many_rows_are_found_as_those_of_few(rows: list[Row]) -> None:
    few = facts(*rows)
    with patch.object(plans, "LARGE", 0):
        many = facts(*rows)
        assert many.stated_closings.equals(few.stated_closings)
        assert many.accounts.equals(few.accounts)
