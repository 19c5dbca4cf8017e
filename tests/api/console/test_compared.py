"""Changed figures are named as people name them."""

from decimal import Decimal
from typing import Any

import pytest

from api.console.compared import describe, describe_headline, group_by_table
from api.console.rendering import account_name

ACCOUNT = "3edb5f72-3256-5f4d-8121-d0338bc8303c"
SERIES = "5e5a3b7f-21a9-5144-ab92-e0be8ffb681f"
ACCOUNTS = {ACCOUNT: "Business Saver xxxxx5638"}


@pytest.mark.parametrize(
    ("report", "figure", "key", "table", "name", "of"),
    [
        ("completeness", "/summary/completenessScore", None, "Completeness, summary", "Completeness", ""),
        (
            *("completeness", "/reconciliationByMonth/11/moneyIn", f"accountId {ACCOUNT}"),
            *("Completeness, reconciliation by month", "Money in", "Business Saver xxxxx5638"),
        ),
        (
            *("risk", "/drivers/1/points", "metric min_balance_60d, name Lowest balance, last 60 days"),
            *("Risk, drivers", "Points", "Lowest balance, last 60 days"),
        ),
        (
            *("aggregate", "/tables/account_cash_flow/values/0/net", f"accountId {ACCOUNT}, month 2025-11-01"),
            *("Monthly cash flow by account", "Net", "Business Saver xxxxx5638, Nov 2025"),
        ),
        (
            *("aggregate", "/tables/category_by_month/values/8/net"),
            "categoryGroup cost_of_sales, category suppliers, ownTransfer False, month 2026-08-01",
            *("Categories by month", "Net", "Cost of sales, Suppliers, own transfer: no, Aug 2026"),
        ),
        (
            *("aggregate", "/tables/own_transfers/values/1/amount"),
            f"fromAccountId {ACCOUNT}, toAccountId {SERIES}, relatedParty False",
            *("Transfers between own accounts", "Amount"),
            "from Business Saver xxxxx5638, to account 5e5a3b7f, related party: no",
        ),
        ("aggregate", "/tables/daily_balance/values/0/net", "date 2025-11-29", "Daily balance", "Net", "29 Nov 2025"),
        ("aggregate", "/tables/rolling_windows/values/0/net", "days 30", "Last 30 to 365 days", "Net", "30 days"),
        (
            *("completeness", "/gaps/0/days", f"accountId {SERIES}, nextSeen 2026-08-01, place 2"),
            *("Completeness, gaps", "Days", "account 5e5a3b7f, next seen 1 Aug 2026, place 2"),
        ),
        (
            *("completeness", "/mentionedAccounts/0/totalIn", "maskedNumber xx0301, name Saver"),
            *("Completeness, mentioned accounts", "Total in", "masked number xx0301, Saver"),
        ),
    ],
)
def test_figures_are_named(report: str, figure: str, key: str | None, table: str, name: str, of: str) -> None:
    changed = {"report": report, "figure": figure, "key": key, "from": 1, "to": 2, "causes": ["rows"]}
    described = describe(changed, ACCOUNTS)
    assert (described["table"], described["name"], described["key"]) == (table, name, of)


@pytest.mark.parametrize(
    ("account", "name"),
    [
        ({"accountName": "Business Saver", "accountNumberMasked": "xxxxx5638"}, "Business Saver xxxxx5638"),
        ({"bankName": "NAB"}, "NAB"),
        ({"accountType": "credit_card"}, "Credit card"),
        ({}, "Account without a name"),
    ],
)
def test_accounts_are_named_by_what_is_known_of_them(account: dict[str, str], name: str) -> None:
    unknown = dict.fromkeys(("accountName", "bankName", "accountType", "accountNumberMasked"))
    assert account_name({**unknown, **account}) == name


def test_shares_are_no_money() -> None:
    changed = {"report": "completeness", "figure": "/summary/totalMissingness", "key": None}
    assert describe({**changed, "from": Decimal("0.3123"), "to": 0}, ACCOUNTS)["value_format"] == "percent"


def describe_change(figure: str, before: Any, after: Any, report: str = "aggregate") -> dict[str, Any]:
    places = {"figure": figure, "fromFigure": figure}
    return {"report": report, **places, "key": None, "from": before, "to": after, "causes": ["rows"]}


@pytest.mark.parametrize(
    ("figure", "before", "after", "written"),
    [
        ("/tables/monthly_cash_flow/values/0/net", Decimal("10.00"), Decimal("-2.50"), ("$10.00", "−$2.50", "−$12.50")),
        ("/tables/monthly_cash_flow/values/0/net", None, Decimal("2.50"), ("–", "$2.50", "")),
        ("/tables/monthly_cash_flow/values/0/dishonours", 1, 3, ("1", "3", "+2")),
        (
            "/tables/revenue_sources/values/0/shareOfReceipts",
            Decimal("0.25"),
            Decimal("0.3"),
            ("25.00 %", "30.00 %", "+5.00 points"),
        ),
        ("/summary/completenessScore", Decimal("90.86"), Decimal("93.1"), ("90.86", "93.10", "+2.24")),
    ],
)
def test_changes_are_written_in_the_unit_of_their_figure(
    figure: str, before: object, after: object, written: tuple[str, str, str]
) -> None:
    described = describe(describe_change(figure, before, after), ACCOUNTS)
    assert (described["before"], described["after"], described["change"]) == written


@pytest.mark.parametrize(
    ("name", "written"),
    [("reading", ("−9.4 days", "2 days", "+11.4 days")), ("points", ("−9.4284", "2.00", "+11.4284"))],
)
def test_readings_are_written_as_their_metric(name: str, written: tuple[str, str, str]) -> None:
    key = "metric min_balance_days_60d, name Lowest balance, last 60 days"
    changed = describe_change(f"/drivers/1/{name}", Decimal("-9.4284"), Decimal(2), "risk") | {"key": key}
    described = describe(changed, ACCOUNTS)
    assert (described["before"], described["after"], described["change"]) == written


def test_headlines_are_written_in_words() -> None:
    sent = {"name": "completenessTier", "report": "completeness", "figure": "/summary/completenessTier"}
    described = describe_headline({**sent, "fromFigure": None, "from": None, "to": "very_high"})
    assert (described["name"], described["before"], described["after"]) == ("Completeness tier", "–", "Very high")
    money = describe_headline({**sent, "name": "revenue90Days", "fromFigure": None, "from": 1, "to": Decimal("1.5")})
    assert (money["name"], money["change"]) == ("Revenue, last 90 days", "+$0.50")


def test_changed_figures_are_grouped_in_the_order_of_the_page() -> None:
    tables = group_by_table(
        [
            describe_change("/tables/weekday_profile/values/0/moneyIn", 1, 2),
            describe_change("/tables/quarters/values/0/moneyIn", 1, 2),
            describe_change("/tables/monthly_cash_flow/values/0/moneyIn", 1, 2),
            describe_change("/drivers/1/points", 1, 2, "risk"),
            describe_change("/summary/completenessScore", 1, 2, "completeness"),
        ]
    )
    assert [(each.section, each.id) for each in tables] == [
        ("Completeness", "completeness/summary"),
        ("What drives the rating", "risk/drivers"),
        ("Month by month", "aggregate/monthly_cash_flow"),
        ("By year and quarter", "aggregate/quarters"),
        ("Other tables", "aggregate/weekday_profile"),
    ]


def test_figures_of_a_table_are_sorted_by_how_much_they_changed() -> None:
    """Rows of one report only come last: a new month is no change from nothing. Money comes before counts."""
    small, large = (describe_change(f"/tables/monthly_cash_flow/values/{nth}/net", 0, nth) for nth in (5, 900))
    count = describe_change("/tables/monthly_cash_flow/values/0/dishonours", 0, 10_000)
    new = describe_change("/tables/monthly_cash_flow/values/9/net", None, 90_000)
    [table] = group_by_table([new, small, count, large])
    assert (table.name, table.figures) == ("Monthly cash flow", [large, small, count, new])
    rating, value = (
        describe_change("/rating", "B", "C", "risk"),
        describe_change("/value", Decimal("0.1"), Decimal("0.2"), "risk"),
    )
    assert group_by_table([value, rating])[0].figures == [rating, value]
