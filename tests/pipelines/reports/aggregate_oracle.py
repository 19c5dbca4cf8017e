"""The aggregate tables computed again in plain Python: loops over rows and days, one table after the other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any
from uuid import UUID

from pipelines.vocabulary.taxonomy import TAXONOMY

Row = dict[str, Any]
ZERO, DAY = Decimal(0), timedelta(days=1)
CASH = ("transaction", "savings", "term_deposit", "other", None)


def tables(rows: Iterable[Row], as_of: date) -> dict[str, list[Row]]:
    """Return each table's rows, in order, from rows of one customer in any order, with their `position` set."""
    seen = Seen(rows, as_of)
    return {name: make(seen) if seen.rows else [] for name, make in TABLES.items()}


def divide(numerator: Decimal | None, denominator: Decimal | int | None, places: int) -> Decimal | None:
    if numerator is None or not denominator:
        return None
    with localcontext(prec=80):
        return (numerator / Decimal(denominator)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def ratio(numerator: Decimal | None, denominator: Decimal | None) -> Decimal | None:
    return divide(numerator, denominator, 4)


def shift_month(month: date, months: int) -> date:
    place = month.year * 12 + month.month - 1 + months
    return date(place // 12, place % 12 + 1, 1)


def text(account: bytes | None) -> str | None:
    return None if account is None else str(UUID(bytes=account))


class Seen:
    """The posted rows in order, with what each counts as; the calendar of the history; balances day by day."""

    def __init__(self, rows: Iterable[Row], as_of: date) -> None:
        posted = [r for r in rows if r["status"] == "posted" and r.get("superseded_seq") is None and r["date"] <= as_of]
        posted.sort(key=lambda r: (r["date"], r["received_seq"], r["position"]))
        self.rows = [classify_row(r) for r in posted]
        if self.rows:
            self.first, self.through = self.rows[0]["date"], self.rows[-1]["date"]
            self.days = calendar(self.first, self.through)
            self.accounts = sorted({r["account_id"] for r in self.rows})
            self.months = months_between(self.first, self.through)
            self.closings = {account: closings(self.of(account)) for account in self.accounts}

    def of(self, account: bytes) -> list[Row]:
        return [r for r in self.rows if r["account_id"] == account]

    def recent(self, days: int) -> list[Row]:
        return [r for r in self.rows if (self.through - r["date"]).days < days]

    def is_cash(self, account: bytes) -> bool:
        return self.of(account)[-1].get("account_type") in CASH

    def balances(self, accounts: Sequence[bytes], through: date) -> dict[date, Decimal | None]:
        """Return the total balance of these cash accounts on each day from the first known one; None where unknown."""
        standing: dict[bytes, Decimal | None] = {}
        result: dict[date, Decimal | None] = {}
        for day in calendar(self.first, through):
            for account in accounts:
                if self.is_cash(account) and day in self.closings[account]:
                    standing[account] = self.closings[account][day]
            if standing:
                result[day] = None if None in standing.values() else sum(known_values(standing.values()), ZERO)
        return result


def known_values(values: Iterable[Decimal | None]) -> list[Decimal]:
    return [value for value in values if value is not None]


def calendar(first: date, last: date) -> list[date]:
    return [first + DAY * n for n in range((last - first).days + 1)]


def months_between(first: date, last: date) -> list[date]:
    return sorted({day.replace(day=1) for day in calendar(first, last)})


def is_partial(month: date, first: date, last: date) -> bool:
    return first > month or last < shift_month(month, 1) - DAY


def classify_row(row: Row) -> Row:
    amount, group, category = row["amount"], row["category_group"], row["category"]
    described = row.get("category_source") in ("correction", "client_rule")
    own = group == "transfer" or (bool(row["is_transfer"]) and not described)
    counterparty = row.get("counterparty_group") or row.get("counterparty_name")
    return {
        **row,
        "own": own,
        "in": max(amount, ZERO),
        "out": max(-amount, ZERO),
        "month": row["date"].replace(day=1),
        "is_revenue": group == "revenue" and not own,
        "dishonour": category == "returned_payment" and amount > 0,
        "party": counterparty,
        "line": TAXONOMY.categories[category].line if category in TAXONOMY.categories else "unallocated",
    }


def closings(rows: Sequence[Row]) -> dict[date, Decimal | None]:
    """Return an account's closing balance on each day, by following its balances from row to row."""
    result: dict[date, Decimal | None] = {}
    for day in sorted({r["date"] for r in rows}):
        today = [r for r in rows if r["date"] == day]
        stated = [r for r in today if r.get("balance") is not None]
        ends = Counter(r["balance"] for r in stated)
        ends.subtract(r["balance"] - r["amount"] for r in stated)
        last = [r["balance"] for r in stated if ends[r["balance"]] > 0]
        if last or len(stated) < len(today):
            result[day] = last[-1] if last else None
    return result


def sum_spending(rows: Sequence[Row], group: str) -> Decimal:
    return sum((r["out"] for r in rows if r["category_group"] == group and not r["own"]), ZERO)


def flows(rows: Sequence[Row]) -> Row:
    others = [r for r in rows if not r["own"]]
    own = [r for r in rows if r["own"]]
    money_in, money_out = sum((r["in"] for r in others), ZERO), sum((r["out"] for r in others), ZERO)
    return {
        "moneyIn": money_in,
        "moneyOut": money_out,
        "net": money_in - money_out,
        "transfersIn": sum((r["in"] for r in own), ZERO),
        "transfersOut": sum((r["out"] for r in own), ZERO),
        "creditCount": sum(r["amount"] > 0 for r in others),
        "debitCount": sum(r["amount"] < 0 for r in others),
        "revenue": sum((r["amount"] for r in rows if r["is_revenue"]), ZERO),
        "payroll": sum_spending(rows, "payroll"),
        "debtService": sum_spending(rows, "debt_service"),
        "tax": sum_spending(rows, "tax"),
        "dishonours": sum(r["dishonour"] for r in rows),
    }


def some_flows(rows: Sequence[Row], *left_out: str) -> Row:
    return {name: value for name, value in flows(rows).items() if name not in left_out}


_TRANSFERS, _COUNTS = ("transfersIn", "transfersOut"), ("creditCount", "debitCount")


def over_days(balances: Iterable[Decimal | None]) -> Row:
    stated = known_values(balances)
    return {
        "meanBalance": divide(sum(stated, ZERO), len(stated), 2),
        "minBalance": min(stated, default=None),
        "knownDays": len(stated),
        "negativeDays": sum(balance < 0 for balance in stated),
    }


def cash_flow(seen: Seen, rows: Sequence[Row], accounts: Sequence[bytes]) -> list[Row]:
    first, through = rows[0]["date"], rows[-1]["date"]
    balances = seen.balances(accounts, through)
    result = []
    for month in months_between(first, through):
        end = min(shift_month(month, 1) - DAY, through)
        result.append(
            {
                "month": month,
                "partial": is_partial(month, first, through),
                "openingBalance": opening(seen, accounts, balances, month),
                "closingBalance": balances.get(end),
                **over_days(balance for day, balance in balances.items() if day.replace(day=1) == month),
                **flows([r for r in rows if r["month"] == month]),
            }
        )
    return result


def opening(
    seen: Seen, accounts: Sequence[bytes], balances: Mapping[date, Decimal | None], month: date
) -> Decimal | None:
    parts = []
    if month - DAY in balances:
        parts.append(balances[month - DAY])
    for account in accounts:
        days = seen.closings[account]
        begun = min(days, default=None)
        if begun and begun.replace(day=1) == month and seen.is_cash(account):
            moved = sum((r["amount"] for r in seen.of(account) if r["date"] <= begun), ZERO)
            closed = days[begun]
            parts.append(None if closed is None else closed - moved)
    return None if not parts or None in parts else sum(known_values(parts), ZERO)


def monthly_cash_flow(seen: Seen) -> list[Row]:
    return cash_flow(seen, seen.rows, seen.accounts)


def account_cash_flow(seen: Seen) -> list[Row]:
    return [
        {"accountId": text(account), **month}
        for account in seen.accounts
        for month in cash_flow(seen, seen.of(account), [account])
    ]


def account_summary(seen: Seen) -> list[Row]:
    result = []
    for account in seen.accounts:
        rows = seen.of(account)
        stated = {day: balance for day, balance in seen.closings[account].items() if balance is not None}
        last = max(stated, default=None)
        result.append(
            {
                "accountId": text(account),
                "accountName": rows[-1]["account_name"],
                "bankName": rows[-1]["bank_name"],
                "accountNumberMasked": "xxxx" + rows[-1]["account_number"][-4:],
                "accountType": rows[-1]["account_type"],
                "firstDate": rows[0]["date"],
                "lastDate": rows[-1]["date"],
                "closingBalanceDate": last,
                "closingBalance": None if last is None else stated[last],
                "transactionCount": len(rows),
                **some_flows(rows, "revenue", "payroll", "debtService", "tax", "dishonours"),
            }
        )
    return result


def own_transfers(seen: Seen) -> list[Row]:
    moved = [r for r in seen.rows if r["own"] and r["amount"] != 0]
    pairs = [r for r in moved if r.get("transfer_pair_id")]
    received = {
        r["transfer_pair_id"]: r["account_id"]
        for r in sorted(pairs, key=lambda r: r["account_id"], reverse=True)
        if r["amount"] > 0
    }
    paid = {r["transfer_pair_id"] for r in pairs if r["amount"] < 0}
    found: dict[Any, list[Decimal]] = defaultdict(list)
    for r in moved:
        pair, related = r.get("transfer_pair_id"), r["category"] == "related_entity"
        if r["amount"] < 0:
            found[text(r["account_id"]), text(received.get(pair)), related].append(-r["amount"])
        elif pair not in paid:
            found[None, text(r["account_id"]), related].append(r["amount"])
    keys = sorted(found, key=lambda key: [(part is not None, part) for part in key])
    return [
        {
            "fromAccountId": key[0],
            "toAccountId": key[1],
            "relatedParty": key[2],
            "transferCount": len(found[key]),
            "amount": sum(found[key], ZERO),
        }
        for key in keys
    ]


def daily_balance(seen: Seen) -> list[Row]:
    balances = seen.balances(seen.accounts, seen.through)
    result = []
    for day in sorted({r["date"] for r in seen.rows}):
        described = flows([r for r in seen.rows if r["date"] == day])
        result.append(
            {"date": day, "balance": balances.get(day), **{n: described[n] for n in ("moneyIn", "moneyOut", "net")}}
        )
    return result


def rolling_windows(seen: Seen) -> list[Row]:
    balances = seen.balances(seen.accounts, seen.through)
    result = []
    for days in (30, 60, 90, 180, 365):
        first = seen.through - DAY * (days - 1)
        result.append(
            {
                "days": days,
                "firstDate": first,
                "lastDate": seen.through,
                "coversHistory": seen.first <= first,
                **over_days(balance for day, balance in balances.items() if day >= first),
                **some_flows(seen.recent(days), *_TRANSFERS, *_COUNTS),
            }
        )
    return result


def by_period(seen: Seen, start: Callable[[date], date], length: int, name: Callable[[date], str]) -> list[Row]:
    result = []
    for each in sorted({start(month) for month in seen.months}):
        last = shift_month(each, length) - DAY
        rows = [r for r in seen.rows if each <= r["date"] <= last]
        result.append(
            {
                "start": each,
                "name": name(each),
                "firstDate": max(each, seen.first),
                "lastDate": min(last, seen.through),
                "complete": seen.first <= each and seen.through >= last,
                **some_flows(rows, *_TRANSFERS, *_COUNTS),
            }
        )
    return result


def financial_year(seen: Seen) -> list[Row]:
    def start(month: date) -> date:
        return date(month.year if month.month >= 7 else month.year - 1, 7, 1)

    return by_period(seen, start, 12, lambda day: f"{day.year}-{(day.year + 1) % 100:02}")


def quarters(seen: Seen) -> list[Row]:
    def start(month: date) -> date:
        return date(month.year, (month.month - 1) // 3 * 3 + 1, 1)

    return by_period(seen, start, 3, lambda day: f"{day.year}-Q{(day.month + 2) // 3}")


def seasonality(seen: Seen) -> list[Row]:
    result = []
    for month in seen.months:
        earlier = shift_month(month, -12)
        if earlier not in seen.months:
            continue
        now, before = (flows([r for r in seen.rows if r["month"] == each]) for each in (month, earlier))
        compared = {
            name: value
            for of in ("revenue", "moneyIn", "moneyOut")
            for name, value in (
                (of, now[of]),
                (f"{of}YearBefore", before[of]),
                (f"{of}Growth", ratio(now[of] - before[of], before[of]) if before[of] > 0 else None),
            )
        }
        partial = any(is_partial(each, seen.first, seen.through) for each in (month, earlier))
        result.append({"month": month, "partial": partial, **compared})
    return result


def profile(seen: Seen, key: str, numbers: Iterable[int], number: Callable[[date], int]) -> list[Row]:
    result = []
    for each in numbers:
        described = flows([r for r in seen.rows if number(r["date"]) == each])
        days = sum(number(day) == each for day in seen.days)
        result.append(
            {
                key: each,
                **{name: described[name] for name in ("moneyIn", "moneyOut", *_COUNTS)},
                "daysInHistory": days,
                "meanMoneyIn": divide(described["moneyIn"], days, 2),
                "meanMoneyOut": divide(described["moneyOut"], days, 2),
            }
        )
    return result


def weekday_profile(seen: Seen) -> list[Row]:
    return profile(seen, "weekday", range(1, 8), date.isoweekday)


def day_of_month_profile(seen: Seen) -> list[Row]:
    return profile(seen, "day", range(1, 32), lambda day: day.day)


def sides(rows: Sequence[Row]) -> tuple[Decimal, Decimal, int]:
    return sum((r["in"] for r in rows), ZERO), sum((r["out"] for r in rows), ZERO), len(rows)


def in_order(keys: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(keys, key=lambda key: [(part is not None, part) for part in key])


def category_by_month(seen: Seen) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for r in seen.rows:
        groups[r["category_group"], r["category"], r["own"], r["month"]].append(r)
    result = []
    for key in in_order(groups):
        money_in, money_out, count = sides(groups[key])
        named = dict(zip(("categoryGroup", "category", "ownTransfer", "month"), key, strict=True))
        figures = {"moneyIn": money_in, "moneyOut": money_out, "transactionCount": count, "net": money_in - money_out}
        result.append({**named, **figures})
    return result


def category_summary(seen: Seen) -> list[Row]:
    complete = [month for month in seen.months if not is_partial(month, seen.first, seen.through)][-12:]
    groups: dict[Any, list[Row]] = defaultdict(list)
    for r in seen.rows:
        groups[r["category_group"], r["category"], r["own"]].append(r)
    all_in, all_out, _ = sides([r for r in seen.rows if r["month"] in complete and not r["own"]])
    result = []
    for key in in_order(groups):
        money_in, money_out, count = sides(groups[key])
        late_in, late_out, late_count = sides([r for r in groups[key] if r["month"] in complete])
        own = key[2]
        result.append(
            {
                **dict(zip(("categoryGroup", "category", "ownTransfer"), key, strict=True)),
                "moneyIn": money_in,
                "moneyOut": money_out,
                "transactionCount": count,
                "net": money_in - money_out,
                "moneyIn12m": late_in,
                "moneyOut12m": late_out,
                "transactionCount12m": late_count,
                "shareOfMoneyIn12m": None if own else ratio(late_in, all_in),
                "shareOfMoneyOut12m": None if own else ratio(late_out, all_out),
            }
        )
    return result


_COSTS = {
    "costOfSales": "cost_of_sales",
    "payroll": "payroll",
    "premises": "premises",
    "operations": "operations",
    "vehicleTravel": "vehicle_travel",
    "financeCosts": "finance_costs",
    "tax": "tax",
}
_INCOME = {
    "revenue": "revenue",
    "otherIncome": "other_income",
    "financing": "financing",
    "investing": "investing",
    "owner": "owner",
    "returnedPayments": "none",
    "unallocated": "unallocated",
}


def profit_and_loss(seen: Seen) -> list[Row]:
    result = []
    for month in seen.months:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for r in seen.rows:
            if r["month"] == month and not r["own"]:
                sums[r["line"]] += r["amount"]
        income = {name: sums[line] for name, line in _INCOME.items()}
        costs = {name: -sums[line] for name, line in _COSTS.items()}
        gross = income["revenue"] - costs["costOfSales"]
        running = costs["payroll"] + costs["premises"] + costs["operations"] + costs["vehicleTravel"]
        operating = gross + income["otherIncome"] - running
        results = {
            "grossProfit": gross,
            "operatingResult": operating,
            "resultAfterTax": operating - costs["financeCosts"] - costs["tax"],
            "net": sum(sums.values(), ZERO),
        }
        partial = is_partial(month, seen.first, seen.through)
        result.append({"month": month, "partial": partial, **income, **costs, **results})
    return result


FEES = {"card_settlement": Decimal("0.0150"), "platform_payout": Decimal("0.0300")}


def revenue_sources(seen: Seen) -> list[Row]:
    rows = [r for r in seen.recent(365) if r["is_revenue"]]
    whole = sum((r["in"] for r in rows), ZERO)
    result = []
    for category in sorted({r["category"] for r in rows}):
        received, given, count = sides([r for r in rows if r["category"] == category])
        rate = FEES.get(category, ZERO)
        gross = divide(received, 1 - rate, 2)
        assert gross is not None
        result.append(
            {
                "category": category,
                "netOfFees": category in FEES,
                "assumedFeeRate": rate,
                "receipts": received,
                "givenBack": given,
                "revenue": received - given,
                "transactionCount": count,
                "shareOfReceipts": ratio(received, whole),
                "grossReceipts": gross,
                "feesKeptBack": gross - received,
            }
        )
    return result


def why_excluded(r: Row) -> str:
    if r["category"] == "related_entity":
        return "related_party"
    if r["own"]:
        return "own_transfer"
    if r["category"] == "director_loan_in":
        return "director_loan"
    if r["dishonour"]:
        return "returned_payment"
    group: str = r["category_group"]
    return group if group in ("debt_inflow", "owner", "other_income", "unknown") else "other"


def excluded_receipts(seen: Seen) -> list[Row]:
    whole = sum((r["in"] for r in seen.recent(365)), ZERO)
    reasons: dict[str, list[Decimal]] = defaultdict(list)
    for r in seen.recent(365):
        if r["amount"] > 0 and not r["is_revenue"]:
            reasons[why_excluded(r)].append(r["amount"])
    return [
        {
            "reason": reason,
            "transactionCount": len(reasons[reason]),
            "amount": sum(reasons[reason], ZERO),
            "share": ratio(sum(reasons[reason], ZERO), whole),
        }
        for reason in sorted(reasons)
    ]


def revenue_concentration(seen: Seen) -> list[Row]:
    result = []
    for basis in ("all_payers", "direct_payers"):
        received = [
            r
            for r in seen.recent(365)
            if r["is_revenue"]
            and r["amount"] > 0
            and (basis == "all_payers" or not (r.get("counterparty_kind") == "processor" or r["category"] in FEES))
        ]
        if not received:
            continue
        whole = sum((r["amount"] for r in received), ZERO)
        paid: dict[str, Decimal] = defaultdict(Decimal)
        for r in received:
            if r["party"] is not None:
                paid[r["party"]] += r["amount"]
        largest = sorted(paid.values(), reverse=True)
        shares = {f"largest{n}Share": ratio(sum(largest[:n], ZERO), whole) for n in (1, 3, 5, 10)}
        squares = sum((each * each for each in largest), ZERO)
        hhi = ratio(squares, whole * whole)
        result.append({"basis": basis, "receipts": whole, "payerCount": len(paid), **shares, "hhi": hhi})
    return result


def usual(values: Iterable[Any]) -> Any:
    counts = Counter(value for value in values if value is not None)
    most = max(counts.values(), default=0)
    return min((value for value, count in counts.items() if count == most), default=None)


def top_counterparties(seen: Seen) -> list[Row]:
    result = []
    for direction, sign in (("in", 1), ("out", -1)):
        rows = [{**r, "size": abs(r["amount"])} for r in seen.recent(365) if not r["own"] and r["amount"] * sign > 0]
        whole = sum((r["size"] for r in rows), ZERO)
        parties: dict[str, list[Row]] = defaultdict(list)
        for r in rows:
            if r["party"] is not None:
                parties[r["party"]].append(r)
        ranked = sorted(parties, key=lambda party: (-sum(r["size"] for r in parties[party]), party))[:10]
        for rank, party in enumerate(ranked, 1):
            its = parties[party]
            ages = [(seen.through - r["date"]).days for r in its]
            late = sum((r["size"] for r, age in zip(its, ages, strict=True) if age < 90), ZERO)
            before = sum((r["size"] for r, age in zip(its, ages, strict=True) if 90 <= age < 180), ZERO)
            amount = sum((r["size"] for r in its), ZERO)
            result.append(
                {
                    "direction": direction,
                    "rank": rank,
                    "name": usual(r.get("counterparty_name") for r in its),
                    "kind": usual(r.get("counterparty_kind") for r in its),
                    "firstDate": its[0]["date"],
                    "lastDate": its[-1]["date"],
                    "amount": amount,
                    "transactionCount": len(its),
                    "monthsSeen": len({r["month"] for r in its}),
                    "lastQuarter": late,
                    "quarterBefore": before,
                    "share": ratio(amount, whole),
                    "trend": ratio(late, before),
                }
            )
    return result


A_YEAR = {"weekly": 52, "fortnightly": 26, "monthly": 12, "quarterly": 4, "business_daily": 250}


def recurring_commitments(seen: Seen) -> list[Row]:
    series: dict[bytes, list[Row]] = defaultdict(list)
    for r in seen.rows:
        if r.get("series_id"):
            series[r["series_id"]].append(r)
    result = []
    for each, rows in sorted(series.items()):
        last, sizes = rows[-1], sorted(abs(r["amount"]) for r in rows)
        middle = sizes[(len(sizes) - 1) // 2]
        following = last.get("series_next_date")
        named = [r["counterparty_name"] for r in rows if r.get("counterparty_name") is not None]
        result.append(
            {
                "seriesId": text(each),
                "accountId": text(last["account_id"]),
                "counterparty": named[-1] if named else None,
                "category": usual(r["category"] for r in rows),
                "direction": "out" if last["amount"] < 0 else "in",
                "period": last["series_period"],
                "lastDate": last["date"],
                "nextExpectedDate": following,
                "occurrences": len(rows),
                "usualAmount": middle,
                "lastAmount": abs(last["amount"]),
                "monthlyAmount": divide(middle * A_YEAR[last["series_period"]], 12, 2) if following else None,
            }
        )
    return result


def dishonours(seen: Seen) -> list[Row]:
    rows = sorted((r for r in seen.rows if r["dishonour"]), key=lambda r: (r["date"], r["transaction_id"]))
    return [
        {
            "transactionId": text(r["transaction_id"]),
            "date": r["date"],
            "accountId": text(r["account_id"]),
            "counterparty": r.get("counterparty_name"),
            "description": r.get("description"),
            "amount": r["in"],
        }
        for r in rows
    ]


TABLES: Mapping[str, Callable[[Seen], list[Row]]] = {
    make.__name__: make
    for make in (
        monthly_cash_flow,
        account_cash_flow,
        account_summary,
        own_transfers,
        daily_balance,
        rolling_windows,
        financial_year,
        quarters,
        seasonality,
        weekday_profile,
        day_of_month_profile,
        category_by_month,
        category_summary,
        profit_and_loss,
        revenue_sources,
        excluded_receipts,
        revenue_concentration,
        top_counterparties,
        recurring_commitments,
        dishonours,
    )
}
