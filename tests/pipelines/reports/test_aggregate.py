"""The tables add up, to the cent, and leave own transfers out of what looks like income or cost."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reports.aggregate import TABLES
from tests.pipelines.reports.examples import LOAN, MAIN, SAVINGS, Row, any_row, chained, counted, report, row

TODAY = date(2026, 6, 1)
JAN, FEB, MAR = (date(2025, month, 1) for month in (1, 2, 3))


def table(rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    tables = {each["id"]: each["values"] for each in report("aggregate", rows, TODAY)["tables"]}
    values: list[dict[str, Any]] = tables[name]
    return values


def column(rows: Sequence[Row], name: str, column: str) -> list[Any]:
    return [value[column] for value in table(rows, name)]


def test_a_table_says_what_it_is_before_its_rows() -> None:
    first = report("aggregate", [row(0, "5")], TODAY)["tables"][0]
    assert {key: first[key] for key in ("id", "name", "hierarchy", "type")} == {
        "id": "monthly_cash_flow",
        "name": "Monthly cash flow",
        "hierarchy": "customer",
        "type": "time_series",
    }
    assert first["columns"][:3] == [
        {"name": "month", "unit": "month"},
        {"name": "partial", "unit": "boolean"},
        {"name": "moneyIn", "unit": "AUD"},
    ]


def test_every_value_has_exactly_the_declared_columns() -> None:
    for each in report("aggregate", [row(0, "5", balance=Decimal(5))], TODAY)["tables"]:
        assert [list(value) for value in each["values"]] == [[column["name"] for column in each["columns"]]]


def test_a_customer_without_posted_rows_has_empty_tables() -> None:
    tables = report("aggregate", [row(0, "5", status="pending")], TODAY)["tables"]
    assert [(each["id"], each["values"]) for each in tables] == [(each.id, []) for each in TABLES]


def test_a_month_of_cash_flow() -> None:
    rows = [
        row(0, "500", kind="revenue/card_settlement"),
        row(1, "-80", kind="revenue/refund_paid"),
        row(2, "40", kind="other_income/interest"),
        row(3, "-100", kind="transfer/own_transfer"),
        row(3, "100", account_id=SAVINGS, kind="revenue/customer_transfer", is_transfer=True),
        row(30, "0"),
    ]
    assert table(rows, "monthly_cash_flow") == [
        {
            "month": JAN,
            "partial": False,
            "moneyIn": Decimal("540.00"),
            "moneyOut": Decimal("80.00"),
            "net": Decimal("460.00"),
            "transfersIn": Decimal("100.00"),
            "transfersOut": Decimal("100.00"),
            "creditCount": 2,
            "debitCount": 1,
            "revenue": Decimal("420.00"),
            "closingBalance": None,
        }
    ]


def test_a_month_without_rows_is_a_month_of_zeros() -> None:
    months = table([row(JAN, "5", balance=Decimal(50)), row(MAR, "5")], "monthly_cash_flow")
    assert [(month["month"], month["moneyIn"], month["creditCount"]) for month in months] == [
        (JAN, 5, 1),
        (FEB, 0, 0),
        (MAR, 5, 1),
    ]
    assert [month["closingBalance"] for month in months] == [50, 50, None]  # kept while idle, unknown in March
    assert [month["partial"] for month in months] == [False, False, True]


def test_the_closing_balance_is_that_of_all_cash_accounts_seen_so_far() -> None:
    main = chained([row(JAN, "10"), row(FEB, "10")])
    savings = [row(FEB, "1", account_id=SAVINGS, account_type="savings", balance=Decimal(500))]
    loan = [row(FEB, "1", account_id=LOAN, account_type="loan", balance=Decimal(-9000))]
    assert column([*main, *savings, *loan], "monthly_cash_flow", "closingBalance") == [1010, 1520]


def test_one_account_without_balance_leaves_the_whole_unknown() -> None:
    rows = [row(JAN, "10", balance=Decimal(10)), row(JAN, "10", account_id=SAVINGS)]
    assert column(rows, "monthly_cash_flow", "closingBalance") == [None]


def test_categories_by_month_show_own_transfers_apart() -> None:
    rows = [
        row(JAN, "500", kind="revenue/customer_transfer"),
        row(JAN, "70", kind="revenue/customer_transfer", is_transfer=True),
        row(FEB, "-20", kind="revenue/customer_transfer"),
    ]
    values = table(rows, "category_by_month")
    shown = [(value["ownTransfer"], value["month"], value["moneyIn"], value["moneyOut"]) for value in values]
    assert shown == [(False, JAN, 500, 0), (False, FEB, 0, 20), (True, JAN, 70, 0)]


def test_an_account_is_summed_up() -> None:
    rows = [*chained([row(JAN, "10"), row(FEB, "-30")]), row(MAR, "1", is_transfer=True)]
    assert table(rows, "account_summary") == [
        {
            "accountId": "00000000-0000-0000-0000-000000000001",
            "accountName": "Harbour Coffee",
            "bankName": "Bank",
            "accountNumberMasked": "xxxx2233",
            "accountType": "transaction",
            "firstDate": JAN,
            "lastDate": MAR,
            "transactionCount": 3,
            "moneyIn": Decimal("10.00"),
            "moneyOut": Decimal("30.00"),
            "net": Decimal("-20.00"),
            "transfersIn": Decimal("1.00"),
            "transfersOut": Decimal("0.00"),
            "creditCount": 1,
            "debitCount": 1,
            "closingBalance": Decimal("980.00"),
            "closingBalanceDate": FEB,
        }
    ]


def test_accounts_stand_beside_each_other_in_a_fixed_order() -> None:
    rows = [row(0, "1", account_id=account) for account in (LOAN, MAIN, SAVINGS)]
    assert [each[-1] for each in column(rows, "account_summary", "accountId")] == ["1", "2", "3"]


# The oracle: one pass over the rows, adding up in dicts.

Sums = dict[Any, dict[str, Any]]


def is_own_transfer(each: Row) -> bool:
    return bool(each["is_transfer"]) or each["category_group"] == "transfer"


def added_up(rows: Iterable[Row], *by: str) -> Sums:
    sums: Sums = defaultdict(lambda: defaultdict(Decimal))
    for each in rows:
        total, amount = sums[tuple(each[name] for name in by)], each["amount"]
        prefix = "transfers" if is_own_transfer(each) else "money"
        total[f"{prefix}In"] += max(amount, Decimal(0))
        total[f"{prefix}Out"] += max(-amount, Decimal(0))
        if prefix == "money":
            total["net"] += amount
            total["creditCount"] += amount > 0
            total["debitCount"] += amount < 0
    return sums


def month(each: Row) -> Row:
    return {**each, "month": each["date"].replace(day=1), "transfer": is_own_transfer(each)}


MEASURES = ("moneyIn", "moneyOut", "net", "transfersIn", "transfersOut", "creditCount", "debitCount")


@settings(max_examples=60, deadline=None)
@given(st.lists(any_row(), min_size=1, max_size=30))
def test_every_table_adds_up_to_the_cent(rows: list[Row]) -> None:
    posted = [month(each) for each in counted(rows)]
    for name, key, by in (
        ("monthly_cash_flow", "month", "month"),
        ("account_summary", "accountId", "account_id"),
    ):
        expected = added_up(posted, by)
        for value in table(rows, name):
            part = value[key] if key == "month" else bytes.fromhex(value[key].replace("-", ""))
            assert {measure: value[measure] for measure in MEASURES} == {
                measure: expected[part,].get(measure, 0) for measure in MEASURES
            }
        assert sum(column(rows, name, "net")) == sum(each["net"] for each in added_up(posted).values())


@settings(max_examples=60, deadline=None)
@given(st.lists(any_row(), min_size=1, max_size=30))
def test_categories_by_month_add_up_to_all_that_was_booked(rows: list[Row]) -> None:
    posted = [month(each) for each in counted(rows)]
    keys = ("category_group", "category", "transfer", "month")
    expected = [(*key, *_in_and_out(posted, key, keys)) for key in sorted({tuple(e[k] for k in keys) for e in posted})]
    assert [tuple(value.values()) for value in table(rows, "category_by_month")] == expected


def _in_and_out(
    rows: Sequence[Row], key: tuple[Any, ...], keys: Sequence[str]
) -> tuple[Decimal, Decimal, Decimal, int]:
    amounts = [each["amount"] for each in rows if tuple(each[name] for name in keys) == key]
    received = sum((amount for amount in amounts if amount > 0), Decimal(0))
    return received, received - sum(amounts), sum(amounts), len(amounts)
