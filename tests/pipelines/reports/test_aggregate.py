"""The tables add up to the cent, and own transfers count neither as income nor as cost."""

import json
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.tables import UNITS
from pipelines.reports.aggregate import TABLES, aggregate_report
from tests.conftest import examples
from tests.pipelines.reports import aggregate_oracle as oracle
from tests.pipelines.reports.examples import LOAN, MAIN, SAVINGS, START, Row, add_balances, cents, facts, row

TODAY = START + timedelta(days=500)
JAN, FEB, MAR = (date(2025, month, 1) for month in (1, 2, 3))
DAYS = [column.name for table in TABLES for column in table.columns if UNITS[column.unit].is_temporal()]


def tables(rows: Sequence[Row], as_of: date = TODAY) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of the only customer."""
    return as_read(text_of(rows, as_of))


def text_of(rows: Sequence[Row], as_of: date = TODAY) -> str:
    [text] = aggregate_report(facts(rows, as_of))["data"]
    return str(text)


def as_read(text: str) -> dict[str, list[dict[str, Any]]]:
    """Parse a report with numbers as decimals and dates as dates."""
    return {each["id"]: [with_dates(value) for value in each["values"]] for each in read_tables(text)}


def read_tables(text: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(text, parse_float=Decimal)["tables"]
    return result


def with_dates(value: dict[str, Any]) -> dict[str, Any]:
    return {n: date.fromisoformat(v) if n in DAYS and isinstance(v, str) else v for n, v in value.items()}


def table(rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    """Return the values of one table, which takes a tenth of the time of all."""
    [chosen] = (each for each in TABLES if each.id == name)
    lines = chosen.lines(facts(rows, TODAY)).collect()["line"]
    return [with_dates(json.loads(line, parse_float=Decimal)) for line in lines]


def column(rows: Sequence[Row], name: str, column: str) -> list[Any]:
    return [value[column] for value in table(rows, name)]


# Customers of all sorts.

KINDS = (
    "revenue/card_settlement",
    "revenue/platform_payout",
    "revenue/customer_transfer",
    "revenue/refund_paid",
    "cost_of_sales/suppliers",
    "payroll/wages",
    "payroll/superannuation",
    "tax/bas",
    "tax/tax_refund",
    "tax/payroll_tax",
    "operations/software",
    "operations/bank_fees",
    "premises/rent",
    "vehicle_travel/fuel",
    "other_income/returned_payment",
    "other_income/interest_received",
    "other_income/asset_sale",
    "debt_inflow/term_loan_funding",
    "debt_inflow/director_loan_in",
    "debt_service/term_loan_repayment",
    "debt_service/card_repayment",
    "owner/owner_drawings",
    "high_risk/gambling",
    "distress/dishonour_fee",
    "transfer/own_transfer",
    "transfer/related_entity",
    "unknown/unknown_credit",
)
TYPES = {MAIN: "transaction", SAVINGS: "savings", LOAN: "loan"}
PARTIES = [(f"Party {name}", f"party-{name}" if name in "ACE" else None) for name in "ABCDEFGHIJKLMN"]
PERIODS = ("weekly", "fortnightly", "monthly", "quarterly", "business_daily")


@st.composite
def a_row(draw: st.DrawFn, most_days: int) -> Row:
    account = draw(st.sampled_from((MAIN, MAIN, SAVINGS, LOAN)))
    name, group = draw(st.sampled_from([(None, None), *PARTIES]))
    series = draw(st.sampled_from((None, None, 1, 2)))
    return row(
        draw(st.integers(0, most_days)),
        draw(cents() | cents(0, 10**15 - 1)),
        kind=draw(st.sampled_from(KINDS)),
        account_id=account,
        account_type=TYPES[account],
        status=draw(st.sampled_from(("posted", "posted", "posted", "pending"))),
        superseded_seq=draw(st.sampled_from((None, None, None, 2))),
        is_transfer=draw(st.sampled_from((False, False, False, True))),
        category_source=draw(st.sampled_from(("pattern", "correction", None))),
        transfer_pair_id=draw(st.sampled_from((None, b"\1" * 16, b"\2" * 16))),
        balance=draw(st.none() | cents() | st.sampled_from((Decimal(0), Decimal(100)))),
        counterparty_name=name,
        counterparty_group=group,
        counterparty_kind=draw(st.sampled_from((None, "business", "processor"))) if name else None,
        series_id=None if series is None else bytes([series]) * 16,
        series_period=None if series is None else PERIODS[series],
        series_next_date=date(2027, 1, 1) if series == 1 else None,
        description="Row",
    )


@st.composite
def customers(draw: st.DrawFn) -> list[Row]:
    """Draw rows of a customer over a day, a month or more than two years, most with a chain of balances."""
    most_days = draw(st.sampled_from((0, 25, 150, 460)))
    rows = draw(st.lists(a_row(most_days), min_size=1, max_size=35))
    return number_rows(with_chains(rows) if draw(st.booleans()) else rows)


def number_rows(rows: Sequence[Row]) -> list[Row]:
    return [{**r, "position": n, "transaction_id": (n + 1).to_bytes(16, "big")} for n, r in enumerate(rows)]


def with_chains(rows: Sequence[Row]) -> list[Row]:
    """Give most accounts a chain of balances, as banks print it."""
    ordered = sorted(rows, key=lambda r: (r["account_id"], r["date"]))
    return [
        each
        for _, account in groupby(ordered, lambda r: r["account_id"])
        for each in add_balances(account, opening=250)
    ]


def generate_rows(random: Random, rows: int) -> list[Row]:
    """Return a customer of this many rows without hypothesis, which is much faster for thousands."""
    most_days, result = random.choice((0, 1, 28, 58, 365, 470)), list[Row]()
    for _ in range(rows):
        account = random.choice((MAIN, MAIN, SAVINGS, LOAN))
        name, group = random.choice([(None, None), *PARTIES])
        series = random.choice((None, None, 1, 2))
        result.append(
            row(
                random.randint(0, most_days),
                Decimal(random.choice((random.randint(-50_000, 50_000), random.randint(-999, -1)))).scaleb(-2),
                kind=random.choice(KINDS),
                account_id=account,
                account_type=TYPES[account],
                is_transfer=random.random() < 0.2,
                transfer_pair_id=random.choice((None, b"\1" * 16)),
                counterparty_name=name,
                counterparty_group=group,
                counterparty_kind=random.choice((None, "business", "processor")) if name else None,
                series_id=None if series is None else bytes([series]) * 16,
                series_period=None if series is None else PERIODS[series],
                series_next_date=date(2027, 1, 1) if series == 1 else None,
                balance=random.choice((None, Decimal(random.randint(-90, 90)))),
            )
        )
    return number_rows(with_chains(result) if random.random() < 0.6 else result)


def assert_agrees_with_oracle(shown: dict[str, list[Row]], rows: list[Row], as_of: date = TODAY) -> None:
    """Check every row and column of every table that the oracle knows."""
    expected = oracle.tables(rows, as_of)
    for name in shown.keys() & expected.keys():
        values = expected[name]
        known = [{column: value[column] for column in like} for value, like in zip(shown[name], values, strict=False)]
        assert (name, known) == (name, values)
        assert len(shown[name]) == len(values), name


@examples(4)
@given(customers())
def test_every_figure_agrees_with_the_oracle(rows: list[Row]) -> None:
    assert_agrees_with_oracle(tables(rows), rows)


@examples(1)
@given(customers(), st.integers(0, 460))
def test_rows_after_as_of_do_not_count(rows: list[Row], days: int) -> None:
    as_of = START + timedelta(days=days)
    assert_agrees_with_oracle(tables(rows, as_of), rows, as_of)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_figure_of_thousands_of_customers_agrees_with_the_oracle() -> None:
    random = Random(5)
    for _ in range(20):
        customers = {number: generate_rows(random, random.choice((1, 2, 8, 40, 90))) for number in range(1, 151)}
        rows = [{**r, "customer_number": number} for number, its in customers.items() for r in its]
        for number, text in aggregate_report(facts(rows, TODAY)).iter_rows():
            assert_agrees_with_oracle(as_read(text), customers[number])


def test_the_oracle_knows_every_column_not_tested_elsewhere() -> None:
    busy = oracle.tables(generate_rows(Random(27), 80), TODAY)
    long = oracle.tables(number_rows([row(0, "1"), row(400, "1")]), TODAY)
    expected_documents = {name: busy[name] or long[name] for name in busy}
    unknown = {
        (each.id, column.name)
        for each in TABLES
        if each.id not in DESCRIBED_ELSEWHERE
        for column in each.columns
        if not expected_documents[each.id] or column.name not in expected_documents[each.id][0]
    }
    assert unknown == {("revenue_sources", "feeAssumption")}


DESCRIBED_ELSEWHERE = {  # each is proved by tests of its own
    "facilities",  # by test_facilities_oracle
    "regular_income",  # by test_regular_income
    *("super_obligations", "tax_obligations", "gst_revenue"),  # by the law
}


@examples(1)
@given(customers(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(rows: list[Row], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    assert text_of(shuffled) == text_of(rows)


@examples(1)
@given(customers(), customers())
def test_another_account_does_not_change_figures_of_the_others(rows: list[Row], more: list[Row]) -> None:
    another = b"\7" * 16
    added = [
        {**r, "account_id": another, "transaction_id": b"\7" + r["transaction_id"][1:], "series_id": None} for r in more
    ]
    alone, beside = tables(rows), tables([*rows, *added])
    for name in ("account_cash_flow", "account_summary"):
        of_others = [value for value in beside[name] if value["accountId"] != oracle.text(another)]
        assert of_others == alone[name]


# Examples, where a number alone does not say why.


def test_a_table_describes_itself_before_its_rows() -> None:
    [first, *_] = read_tables(text_of([row(0, "5")]))
    assert {key: first[key] for key in ("id", "name", "hierarchy", "type")} == {
        "id": "monthly_cash_flow",
        "name": "Monthly cash flow",
        "hierarchy": "customer",
        "type": "time_series",
    }
    assert first["columns"][:3] == [
        {"name": "month", "unit": "month"},
        {"name": "partial", "unit": "boolean"},
        {"name": "openingBalance", "unit": "AUD"},
    ]


@examples(1)
@given(customers())
def test_every_value_has_exactly_the_declared_columns(rows: list[Row]) -> None:
    for each in read_tables(text_of(rows)):
        names = [column["name"] for column in each["columns"]]
        assert all(list(value) == names for value in each["values"])


def test_a_customer_without_posted_rows_has_empty_tables() -> None:
    shown = tables([row(0, "5", status="pending")])
    assert shown == {each.id: [] for each in TABLES}


def test_own_transfers_are_not_part_of_money_in_and_out() -> None:
    rows = [
        row(0, "500", kind="revenue/card_settlement"),
        row(1, "-80", kind="revenue/refund_paid"),
        row(2, "40", kind="other_income/interest_received"),
        row(3, "-100", kind="transfer/own_transfer"),
        row(3, "100", account_id=SAVINGS, kind="revenue/customer_transfer", is_transfer=True),
    ]
    [month] = table(rows, "monthly_cash_flow")
    assert (month["moneyIn"], month["moneyOut"], month["net"], month["revenue"]) == (540, 80, 460, 420)
    assert (month["transfersIn"], month["transfersOut"], month["creditCount"]) == (100, 100, 2)


def test_a_month_without_rows_has_zero_flows_and_keeps_its_balance() -> None:
    rows = [row(JAN, "5", balance=Decimal(50)), row(MAR, "5")]
    months = table(rows, "monthly_cash_flow")
    assert [(month["month"], month["moneyIn"], month["creditCount"]) for month in months] == [
        (JAN, 5, 1),
        (FEB, 0, 0),
        (MAR, 5, 1),
    ]
    assert [month["openingBalance"] for month in months] == [45, 50, 50]
    assert [month["closingBalance"] for month in months] == [50, 50, None]  # unknown since the row of March
    assert [month["knownDays"] for month in months] == [31, 28, 0]
    assert [month["partial"] for month in months] == [False, False, True]


def test_the_mean_balance_is_weighted_by_days() -> None:
    rows = add_balances([row(JAN, "10"), row(date(2025, 1, 11), "-1310"), row(date(2025, 1, 31), "300")])
    [month] = table(rows, "monthly_cash_flow")
    assert month["meanBalance"] == Decimal("132.26")  # (10 × 1010 − 20 × 300 + 1 × 0) / 31
    assert (month["minBalance"], month["negativeDays"]) == (-300, 20)


def test_an_account_first_seen_later_brings_its_own_opening_balance() -> None:
    main = add_balances([row(JAN, "10"), row(FEB, "10")])
    savings = [row(FEB, "1", account_id=SAVINGS, account_type="savings", balance=Decimal(500))]
    loan = [row(FEB, "1", account_id=LOAN, account_type="loan", balance=Decimal(-9000))]
    rows = [*main, *savings, *loan]
    assert column(rows, "monthly_cash_flow", "closingBalance") == [1010, 1520]
    assert column(rows, "monthly_cash_flow", "openingBalance") == [1000, 1509]


def test_one_account_without_balance_makes_the_total_unknown() -> None:
    rows = [row(JAN, "10", balance=Decimal(10)), row(JAN, "10", account_id=SAVINGS)]
    [month] = table(rows, "monthly_cash_flow")
    assert (month["closingBalance"], month["meanBalance"], month["knownDays"]) == (None, None, 0)


def test_a_pair_of_transfers_counts_once() -> None:
    pair = {"is_transfer": True, "transfer_pair_id": b"\1" * 16}
    rows = [
        row(0, "-70", **pair),
        row(1, "70", account_id=SAVINGS, **pair),
        row(2, "30", kind="transfer/own_transfer"),
        row(2, "-9", kind="transfer/related_entity"),
    ]
    main, savings = oracle.text(MAIN), oracle.text(SAVINGS)
    assert [tuple(value.values()) for value in table(rows, "own_transfers")] == [
        (None, main, False, 1, 30),
        (main, None, True, 1, 9),
        (main, savings, False, 1, 70),
    ]


def test_processor_takings_are_shown_net_of_an_assumed_fee() -> None:
    rows = [row(0, "985", kind="revenue/card_settlement"), row(0, "100", kind="revenue/customer_transfer")]
    sources = table(rows, "revenue_sources")
    assert [(s["netOfFees"], s["grossReceipts"], s["feesKeptBack"]) for s in sources] == [
        (True, 1000, 15),
        (False, 100, 0),
    ]


def test_direct_payers_leave_out_processors() -> None:
    payout = {"kind": "revenue/card_settlement", "counterparty_name": "Tyro", "counterparty_kind": "processor"}
    client = {"kind": "revenue/customer_transfer", "counterparty_name": "Client"}
    rows = [row(0, "900", **payout), row(0, "60", **client), row(0, "40", kind="revenue/customer_transfer")]
    assert [(c["basis"], c["largest1Share"], c["hhi"]) for c in table(rows, "revenue_concentration")] == [
        ("all_payers", Decimal("0.9000"), Decimal("0.8136")),
        ("direct_payers", Decimal("0.6000"), Decimal("0.3600")),
    ]


def test_revenue_and_excluded_receipts_add_up_to_all_money_in() -> None:
    rows = generate_rows(Random(1), 200)
    recent = oracle.Seen(rows, TODAY).recent(365)
    received = sum(column(rows, "revenue_sources", "receipts")) + sum(column(rows, "excluded_receipts", "amount"))
    assert received == sum(each["in"] for each in recent)


def test_profit_and_loss_has_the_net_of_the_cash_flow() -> None:
    rows = generate_rows(Random(2), 200)
    assert column(rows, "profit_and_loss", "net") == column(rows, "monthly_cash_flow", "net")


# Bad input: figures all the same, or none, but never an exception.


def test_half_a_century_between_two_rows_lists_every_month() -> None:
    rows = [row(date(1970, 1, 1), "5", balance=Decimal(5)), row(date(2025, 6, 1), "5", balance=Decimal(10))]
    assert len(table(rows, "monthly_cash_flow")) == 55 * 12 + 6
    assert len(table(rows, "financial_year")) == 56


def test_fifty_accounts_are_listed() -> None:
    rows = [row(n, "1", account_id=n.to_bytes(16, "big"), balance=Decimal(n)) for n in range(50)]
    shown = tables(rows)
    assert len(shown["account_summary"]) == 50
    assert shown["monthly_cash_flow"][-1]["closingBalance"] == sum(range(50))


def test_money_at_both_ends_of_the_range_is_summed_exactly() -> None:
    most = Decimal("9999999999999.99")
    paid = {"kind": "revenue/customer_transfer", "counterparty_name": "Whale"}
    rows = [row(day, sign * most, balance=most * sign, **paid) for day in range(200) for sign in (1, 1, -1)]
    assert_agrees_with_oracle(
        {name: values for name, values in tables(number_rows(rows)).items() if name != "revenue_concentration"},
        number_rows(rows),
    )
    assert column(rows, "revenue_concentration", "hhi") == [None, None]
    assert column(rows, "revenue_concentration", "largest1Share") == [1, 1]


def test_ratios_to_income_are_null_without_credits() -> None:
    rows = number_rows(
        [row(day, "-10", kind="cost_of_sales/suppliers", balance=Decimal(-10 * day)) for day in range(90)]
    )
    assert_agrees_with_oracle(tables(rows), rows)
    assert column(rows, "category_summary", "shareOfMoneyIn12m") == [None]
