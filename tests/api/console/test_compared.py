"""Changed figures are named as people name them."""

from decimal import Decimal

import pytest

from api.console.compared import describe

ACCOUNT = "3edb5f72-3256-5f4d-8121-d0338bc8303c"
SERIES = "5e5a3b7f-21a9-5144-ab92-e0be8ffb681f"
ACCOUNTS = {ACCOUNT: "Business Saver xxxxx5638"}


@pytest.mark.parametrize(
    ("report", "figure", "key", "table", "name", "of"),
    [
        ("completeness", "/summary/completenessScore", None, "Completeness, summary", "Completeness score", ""),
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
            *("completeness", "/gaps/0/days", f"accountId {SERIES}, nextSeen 2026-08-01"),
            *("Completeness, gaps", "Days", "account 5e5a3b7f, next seen 1 Aug 2026"),
        ),
    ],
)
def test_figures_are_named(report: str, figure: str, key: str | None, table: str, name: str, of: str) -> None:
    changed = {"report": report, "figure": figure, "key": key, "from": 1, "to": 2, "causes": ["rows"]}
    described = describe(changed, ACCOUNTS)
    assert (described["table"], described["name"], described["key"]) == (table, name, of)


def test_shares_are_no_money() -> None:
    changed = {"report": "completeness", "figure": "/summary/totalMissingness", "key": None}
    assert describe({**changed, "from": Decimal("0.3123"), "to": 0}, ACCOUNTS)["shape"] == "percent"
