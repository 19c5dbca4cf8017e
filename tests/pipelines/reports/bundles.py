"""Bundles for the tests of the page: the JSON of three reports of a plausible business, and variations of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

Data = dict[str, Any]
THROUGH = date(2026, 10, 31)
MAIN, SAVINGS = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


@dataclass(frozen=True)
class ReportMember:
    status: str = "ready"
    failed: bool = False
    generated_at: datetime | None = datetime(2026, 11, 20, 3, 4, tzinfo=UTC)
    as_of: date | None = date(2026, 11, 20)
    data_through: date | None = THROUGH
    data_version: int | None = 4
    report_version: int | None = 2
    data_json: str | None = None

    def holding(self, data: object) -> "ReportMember":
        return replace(self, data_json=json.dumps(data))


PENDING = ReportMember("pending", False, None, None, None, None, None)


def bundle(data: Mapping[str, Data]) -> dict[str, ReportMember]:
    """Return three members with status ready and these data."""
    return {kind: ReportMember().holding(each) for kind, each in data.items()}


def everything(months: int = 14, accounts: int = 2) -> dict[str, Data]:
    """Return the data of all three reports, every table with rows."""
    return {"completeness": completeness(accounts), "risk": risk(), "aggregate": {"tables": tables(months)}}


def completeness(accounts: int = 2) -> Data:
    return {
        "summary": {"completenessScore": 71.25, "completenessTier": "substantial", "totalMissingness": 0.1875},
        "freshness": {"dataThrough": "2026-10-31", "daysBehind": 20},
        "accounts": [account(number) for number in range(1, accounts + 1)],
        "gaps": [
            gap("balance_break", "2026-03-03", "2026-03-19", 15, -1234.5),
            gap("silence", "2026-07-01", "2026-08-20", 49, None),
        ],
        "reasons": [
            {
                "code": "Completeness.BalanceBreaks",
                "message": "Days whose balances do not follow from what came before: 1.",
                "settledBy": "Supply account ending 4821 from 3 Mar 2026.",
                "effect": 3.5,
            },
            {"code": "Completeness.Silences", "message": "Silences that are implausible: 1.", "settledBy": None},
        ],
        "resolvedTogether": {"completenessScore": 75.75, "effect": 4.5},
        "mentionedAccounts": [{"bsb": "062-000", "numberMasked": "••4821", "transferCount": 7, "totalAmount": 9100.1}],
    }


def account(number: int) -> Data:
    return {
        "accountId": f"00000000-0000-0000-0000-{number:012}",
        "accountName": "Harbour Coffee Pty Ltd",
        "bankName": "Harbour Bank",
        "accountNumberMasked": f"••••{1000 + number}",
        "accountType": "transaction",
        "score": 71.25,
        "firstDate": "2025-09-01",
        "lastDate": "2026-10-31",
        "daysBehind": 20,
        "daysSpanned": 426,
        "daysCovered": 361,
        "daysWithActivity": 300,
        "plausiblePauseDays": 14,
        "silences": 1,
        "transactionCount": 1734,
        "balanceShare": 0.985,
        "balanceBreaks": 1,
    }


def gap(evidence: str, last_seen: str, next_seen: str, silent_days: int, missing: float | None) -> Data:
    return {
        "accountId": MAIN,
        "evidence": evidence,
        "lastSeen": last_seen,
        "nextSeen": next_seen,
        "silentDays": silent_days,
        "missingAmount": missing,
        "likely": None if missing is None else "rows_missing",
    }


def risk() -> Data:
    return {
        "value": 0.3125,
        "interval": {"low": 0.25, "high": 0.4},
        "rating": "B",
        "pdConfidenceScore": 74.5,
        "pdConfidenceRating": "high",
        "calibration": "none",
        "errorCodes": [{"code": "Risk.Uncalibrated", "message": "Never fitted to outcomes: indicative."}],
        "drivers": [
            driver("buffer_days", "Buffer days", 12.25, "days", 5, 20, 31),
            driver("revenue_trend", "Revenue trend", 1.05, "ratio", 15, 15, 72),
            driver("dishonours_per_month", "Dishonours per month", None, "per month", 0, 20, None),
        ],
        "sensitivity": [
            {"metric": "buffer_days", "words": "Buffer days from 12.25 to 20 would lift the rating from B to A."}
        ],
    }


def driver(
    metric: str, name: str, reading: float | None, unit: str, points: int, most: int, percentile: int | None
) -> Data:
    return {
        "metric": metric,
        "name": name,
        "reading": reading,
        "unit": unit,
        "points": points,
        "maxPoints": most,
        "direction": "higher_is_better",
        "peerPercentile": percentile,
        "reason": "What is set aside carries a bad month.",
    }


def table(named: str, kind: str, units: Mapping[str, str], rows: list[list[Any]]) -> Data:
    values = [dict(zip(units, row, strict=True)) for row in rows]
    columns = [{"name": name, "unit": unit} for name, unit in units.items()]
    name = named.replace("_", " ").capitalize()
    return {"id": named, "name": name, "hierarchy": "customer", "type": kind, "columns": columns, "values": values}


def tables(months: int = 14) -> list[Data]:
    return [
        monthly(months),
        daily(months),
        categories(months),
        table(
            "top_counterparties",
            "summary",
            {
                "direction": "text",
                "rank": "count",
                "name": "text",
                "kind": "text",
                "amount": "AUD",
                "share": "ratio",
                "transactionCount": "count",
                "monthsSeen": "count",
                "trend": "ratio",
            },
            [
                ["in", 1, "TYRO PAYMENTS", "brand", 250000.5, 0.6125, 310, 14, 1.1],
                ["in", 2, "Lovely Events", "business", 10000, 0.0245, 3, 3, None],
                ["out", 1, "Bean Importers", "business", 90000.25, 0.3, 28, 14, 0.95],
            ],
        ),
        table(
            "recurring_commitments",
            "summary",
            {
                "seriesId": "text",
                "counterparty": "text",
                "category": "text",
                "direction": "text",
                "period": "text",
                "occurrences": "count",
                "usualAmount": "AUD",
                "lastDate": "date",
                "nextExpectedDate": "date",
                "monthlyAmount": "AUD",
            },
            [["s1", "Pier Property", "rent", "out", "monthly", 14, 4400, "2026-10-01", "2026-11-01", 4400]],
        ),
        table(
            "facilities",
            "summary",
            {
                "facilityId": "text",
                "lenderName": "text",
                "product": "text",
                "status": "text",
                "fundingDate": "date",
                "fundingAmount": "AUD",
                "repaymentCount": "count",
                "repaidTotal": "AUD",
                "lastRepaymentDate": "date",
                "missedPayments": "count",
                "estimatedRemaining": "AUD",
            },
            [
                ["f1", "Prospa", "term_loan", "active", "2026-02-11", 50000, 30, 27000.1, "2026-10-28", 2, 31000],
                ["f2", "Moula", "line_of_credit", "repaid", None, None, 12, 9000, "2026-01-12", 0, 0],
            ],
        ),
        table(
            "dishonours",
            "summary",
            {"date": "date", "amount": "AUD", "counterparty": "text", "description": "text"},
            [["2026-05-04", 412.15, "Bean Importers", "DISHONOUR DIRECT DEBIT BEAN IMPORTERS"]],
        ),
        table(
            "super_obligations",
            "summary",
            {
                "periodStart": "date",
                "kind": "text",
                "expectedSuper": "AUD",
                "superPaid": "AUD",
                "dueDate": "date",
                "status": "text",
            },
            [["2026-01-01", "quarterly", 3120.4, 3000, "2026-04-28", "short"]],
        ),
        table(
            "profit_and_loss",
            "time_series",
            {"month": "month", "revenue": "AUD", "costOfSales": "AUD", "operatingResult": "AUD", "net": "AUD"},
            [["2026-09-01", 30000.1, 9000, 21000.1, 20000], ["2026-10-01", 31000.2, 9100.1, 21900.1, -3]],
        ),
        table(
            "rolling_windows",
            "summary",
            {"days": "days", "moneyIn": "AUD", "moneyOut": "AUD", "net": "AUD", "revenue": "AUD"},
            [[30, 31000, 29000.5, 1999.5, 30500], [90, 93000, 88000, 5000, 91234.56]],
        ),
        table("seasonality", "summary", {"month": "month", "revenue": "AUD"}, [["2026-10-01", 77.77]]),
    ]


def monthly(months: int) -> Data:
    units = {"month": "month", "partial": "boolean", "openingBalance": "AUD", "closingBalance": "AUD",
             "meanBalance": "AUD", "minBalance": "AUD", "moneyIn": "AUD", "moneyOut": "AUD", "net": "AUD",
             "transfersIn": "AUD", "transfersOut": "AUD", "revenue": "AUD", "payroll": "AUD", "debtService": "AUD",
             "tax": "AUD", "dishonours": "count", "negativeDays": "days"}  # fmt: skip
    rows = []
    for place, start in enumerate(starts(months)):
        paid_in, paid_out = 30000.25 + 700 * (place % 5), 29000.75 + 1500 * (place % 3)
        rows.append([start, place == 0, 5000, 5000 + paid_in - paid_out, 4800, -150.5 + place, paid_in, paid_out,
                     paid_in - paid_out, 100, 200, paid_in - 50, 9000, 1200, 800, place % 2, place % 4])  # fmt: skip
    return table("monthly_cash_flow", "time_series", units, rows)


def daily(months: int) -> Data:
    first = THROUGH - timedelta(days=30 * months)
    rows: list[list[Any]] = []
    for count in range(0, 30 * months, 2):
        known = not 100 <= count < 120
        balance = round(5000 + 60 * (count % 70) - 90 * (count % 45), 2) if known else None
        rows.append([(first + timedelta(days=count)).isoformat(), 120.5, 80, balance])
    units = {"date": "date", "moneyIn": "AUD", "moneyOut": "AUD", "balance": "AUD"}
    return table("daily_balance", "time_series", units, rows)


def categories(months: int) -> Data:
    units = {"categoryGroup": "text", "category": "text", "ownTransfer": "boolean", "month": "month", "moneyIn": "AUD",
             "moneyOut": "AUD", "net": "AUD", "transactionCount": "count"}  # fmt: skip
    kinds = (("revenue", "card_settlement", 20000.1, 0), ("cost_of_sales", "suppliers", 0, 9000.2),
             ("payroll", "wages", 0, 8000), ("premises", "rent", 0, 4400),
             ("distress", "dishonour_fee", 0, 15))  # fmt: skip
    rows = [
        [group, category, False, start, paid_in, paid_out, paid_in - paid_out, 4]
        for group, category, paid_in, paid_out in kinds
        for start in starts(months)
    ]
    rows.append(["transfer", "own_transfer", True, "2026-10-01", 500000, 500000, 0, 2])
    return table("category_by_month", "time_series", units, rows)


def starts(months: int) -> list[str]:
    last = THROUGH.year * 12 + THROUGH.month - 1
    return [date(count // 12, count % 12 + 1, 1).isoformat() for count in range(last - months + 1, last + 1)]
