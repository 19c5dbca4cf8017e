"""Every metric computed again in plain Python, with loops over dicts and Decimal, from the definitions' docstrings."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cached_property, reduce
from typing import Any, TypeVar

from pipelines.metrics.definition import (
    Arithmetic,
    Balances,
    Days,
    Groups,
    History,
    Metrics,
    Months,
    Transactions,
    Where,
)

Row = Mapping[str, Any]
T = TypeVar("T")
Outcome = tuple[Decimal | None, str | None]
PLACES = Decimal("0.0001")
CASH = {"transaction", "savings", "term_deposit", "other", None}
DAY = timedelta(days=1)


class Unavailable(Exception):
    pass


class Customer:
    """One customer's metrics.

    `rows`: of TRANSACTIONS, as dicts, in any order; `excluded`: ids of rows left out; `incomes`: the probability of
    each kind of regular income, by the row's id.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        as_of: date,
        metrics: Metrics,
        excluded: frozenset[bytes] = frozenset(),
        incomes: Mapping[bytes, Mapping[str, float]] | None = None,
    ) -> None:
        known = incomes or {}
        rows = [
            {**row, "is_excluded": row["transaction_id"] in excluded, "income": known.get(row["transaction_id"], {})}
            for row in rows
            if row["date"] <= as_of
        ]
        self.stating: defaultdict[bytes, list[Row]] = defaultdict(list)  # by account, rows that aren't posted included
        for each in rows:
            self.stating[each["account_id"]].append(each)
        rows = [
            {**each, "type_of_account": _last_stated(self.stating[each["account_id"]], "account_type")} for each in rows
        ]
        counted = (each for each in rows if each["status"] == "posted" and each["superseded_seq"] is None)
        order = ("date", "received_seq", "position")
        self.rows = sorted(counted, key=lambda row: [row[name] for name in order])
        self.as_of = as_of
        self.metrics = metrics
        self._described: dict[str, Outcome] = {}
        self._found: dict[object, list[tuple[Row, Decimal]]] = {}

    def outcomes(self) -> dict[str, Outcome]:
        with localcontext(Context(prec=90)):
            return {slug: self.outcome(slug) for slug in self.metrics}

    def outcome(self, slug: str) -> Outcome:
        if slug not in self._described:
            try:
                self._described[slug] = _round(self._value(slug)), None
            except Unavailable as reason:
                self._described[slug] = None, str(reason)
        return self._described[slug]

    def _value(self, slug: str) -> Decimal:  # noqa: PLR0911  one each
        metric = self.metrics[slug]
        if not self.rows:
            raise Unavailable("no_transactions")
        if metric.fresh_days is not None and (self.as_of - self.last).days > metric.fresh_days:
            raise Unavailable("stale")
        if (self.last - self.first).days + 1 < metric.history_days or len(self.months) < metric.history_months:
            raise Unavailable("insufficient_history")
        match metric.definition:
            case Transactions() as each if each.aggregate.startswith("monthly"):
                return self.monthly(each)
            case Transactions() as each:
                return self.transactions(each)
            case Balances() as each:
                return self.balances(each)
            case Groups() as each:
                return self.groups(each)
            case History(figure="days"):
                return Decimal((self.last - self.first).days + 1)
            case History(figure="days_behind"):
                return Decimal((self.as_of - self.last).days)
            case History():
                return Decimal(len(self.months))
            case each:
                return self.arithmetic(each)

    # Time

    @cached_property
    def first(self) -> date:
        day: date = self.rows[0]["date"]
        return day

    @cached_property
    def last(self) -> date:
        day: date = self.rows[-1]["date"]
        return day

    @cached_property
    def months(self) -> list[date]:
        """First days of the months that the history covers, the latest first."""
        found, month = list[date](), self.last.replace(day=1)
        while month >= self.first:
            if _next_month(month) - DAY <= self.last:
                found.append(month)
            month = (month - DAY).replace(day=1)
        return found

    def within(self, day: date, window: Days | Months | None) -> bool:
        match window:
            case None:
                return True
            case Days(days=days, offset=offset):
                return offset <= (self.last - day).days < offset + days
            case Months(months=months, offset=offset):
                return day.replace(day=1) in self.months[offset : offset + months]

    # Rows

    def matching_rows(self, where: Where, measure: str, window: Days | Months | None) -> list[tuple[Row, Decimal]]:
        asked = (where, measure, window)
        if asked not in self._found:
            self._found[asked] = [
                (row, value)
                for row in self.rows
                if self.within(row["date"], window) and _meets(row, where)
                for value in _contributions(row, measure)
            ]
        return self._found[asked]

    def transactions(self, each: Transactions) -> Decimal:  # noqa: PLR0911, PLR0912  one each
        found = self.matching_rows(each.where, each.measure, each.window)
        values = [value for _, value in found]
        match each.aggregate:
            case "sum":
                return _total(values)
            case "count":
                return Decimal(len(values))
            case "distinct":
                return Decimal(len({self.key(row, each.by) for row, _ in found} - {None}))
            case "share" | "largest_share":
                whole = sum(
                    (v for _, v in self.matching_rows(each.of or each.where, each.measure, each.window)), Decimal(0)
                )
                if whole == 0:
                    raise Unavailable("division_by_zero")
                if whole < 0:
                    raise Unavailable("not_applicable")
                if each.aggregate == "share":
                    return _total(values) / whole
                sums: dict[Any, Decimal] = defaultdict(Decimal)
                for row, value in found:
                    if (key := self.key(row, each.by)) is not None:
                        sums[key] += value
                return (max(_some(list(sums.values()))) if found else Decimal(0)) / whole
            case "days_since":
                end = self.last - timedelta(days=each.window.offset if isinstance(each.window, Days) else 0)
                return Decimal((end - max(_some([row["date"] for row, _ in found]))).days)
            case "mean":
                return sum(_some(values), Decimal(0)) / len(values)
            case "median":
                return _median(_some(values))
            case "min":
                return min(_some(values))
            case _:
                return max(_some(values))

    def key(self, row: Row, by: str | None) -> Any:  # noqa: PLR0911  one each
        match by:
            case "counterparty":
                return row["counterparty_group"]
            case "lender":
                return row["counterparty_lender_id"] or row["counterparty_group"]
            case "day":
                return row["date"]
            case "month":
                return row["date"].year, row["date"].month
            case "thirty_days":
                return (self.last - row["date"]).days // 30
            case "category":
                return row["category"]
            case name:
                return row[f"{name}_id"]

    def monthly(self, each: Transactions) -> Decimal:
        assert isinstance(each.window, Months)
        offset, months = each.window.offset, each.window.months
        chosen = self.months[offset : offset + months][::-1]
        if len(chosen) < (2 if each.aggregate in {"monthly_slope", "monthly_volatility"} else 1):
            raise Unavailable("insufficient_history")
        by_month = Counter[date]()
        for row, value in self.matching_rows(each.where, each.measure, each.window):
            by_month[row["date"].replace(day=1)] += value  # pyrefly: ignore[unsupported-operation]
        sums = [Decimal(by_month[month]) for month in chosen]
        count, total = len(sums), _total(sums)
        match each.aggregate:
            case "monthly_mean":
                return total / count
            case "monthly_median":
                return _median(sums)
            case "monthly_min":
                return min(sums)
            case "monthly_slope":
                xs = [Decimal(x) - Decimal(count - 1) / 2 for x in range(count)]
                return _total(x * y for x, y in zip(xs, sums, strict=True)) / _total(x * x for x in xs)
            case "monthly_volatility":
                if total == 0:
                    raise Unavailable("division_by_zero")
                if total < 0:
                    raise Unavailable("not_applicable")
                mean = total / count
                return (_total((y - mean) ** 2 for y in sums) / (count - 1)).sqrt() / mean
            case _:
                assert each.below is not None
                return Decimal(sum(y < each.below * _median(sums) for y in sums)) / count

    def groups(self, each: Groups) -> Decimal:
        name = "facility_id" if each.source == "facilities" else "series_id"
        days: dict[bytes, list[date]] = defaultdict(list)
        for row, _ in self.matching_rows(each.where, "amount", each.window):
            if row[name] is not None:
                days[row[name]].append(row["date"])
        if each.aggregate == "count":
            return Decimal(len(days))
        at_once = (sum(min(o) <= min(run) <= max(o) for o in days.values()) for run in days.values())
        return Decimal(max(at_once, default=0))

    # Balances

    @cached_property
    def daily(self) -> list[tuple[int, list[Decimal | None], bool]]:
        """Each day: age, closing balances of the stating accounts (None: unknown), whether one is over its limit."""
        accounts = defaultdict(list)
        for row in self.rows:
            accounts[row["account_id"]].append(row)
        stated = {}
        for account, rows in accounts.items():
            kind, limit = (_last_stated(self.stating[account], name) for name in ("account_type", "credit_limit"))
            by_day = dict(_ends_of_days(rows))
            if kind in CASH and any(balance is not None for balance in by_day.values()):
                stated[account] = by_day, -(limit or Decimal(0))
        figures: list[tuple[int, list[Decimal | None], bool]] = []
        held: dict[bytes, Decimal | None] = {}
        for ahead in range((self.last - self.first).days + 1):
            day = self.first + ahead * DAY
            for account, (by_day, _) in stated.items():
                if day in by_day:
                    held[account] = by_day[day]
            beyond = any(b is not None and b < stated[account][1] for account, b in held.items())
            figures.append(((self.last - day).days, list(held.values()), beyond))
        return figures

    def balances(self, each: Balances) -> Decimal:  # noqa: PLR0911  one each
        latest = len(self.daily) - each.window.offset
        days = self.daily[max(latest - each.window.days, 0) : max(latest, 0)]
        seen = [beyond for _, held, beyond in days if any(balance is not None for balance in held)]
        totals = [
            (age, sum((b for b in held if b is not None), Decimal(0)))
            for age, held, _ in days
            if held and None not in held
        ]
        values = [total for _, total in totals]
        if each.aggregate in {"days_beyond_limit", "share_beyond_limit"}:
            if not seen:
                raise Unavailable("no_balances")
            return Decimal(sum(seen)) / (len(seen) if each.aggregate == "share_beyond_limit" else 1)
        if not values:
            raise Unavailable("no_balances")
        match each.aggregate:
            case "mean":
                return sum(values) / Decimal(len(values))
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "last":
                return min(totals)[1]
            case "share_short" | "longest_short" | "days_since_short":
                return self.short(each, totals, len(days))
            case "days_below":
                return Decimal(sum(value < (each.threshold or 0) for value in values))
            case _:
                if len(values) < 2:
                    raise Unavailable("insufficient_history")
                x, y = Decimal(sum(-age for age, _ in totals)) / len(totals), sum(values) / Decimal(len(values))
                increase = _total((-age - x) * (total - y) for age, total in totals)
                return 30 * increase / _total((-age - x) ** 2 for age, _ in totals)

    def short(self, each: Balances, totals: list[tuple[int, Decimal]], seen: int) -> Decimal:
        assert each.usual is not None
        moved = sum(
            (abs(value) for _, value in self.matching_rows(Where(external=True), each.usual, each.window)), Decimal(0)
        )
        is_short = {age: total * seen < (each.threshold or 0) * moved for age, total in totals}
        ages = [age for age, low in is_short.items() if low]
        if each.aggregate == "share_short":
            return Decimal(len(ages)) / len(totals)
        if each.aggregate == "days_since_short":
            return Decimal(min(ages) - each.window.offset if ages else len(totals))
        spells = [0]
        for age in range(max(is_short), -1, -1):
            spells.append(spells[-1] + 1 if is_short.get(age) else 0)
        return Decimal(max(spells))

    # Other metrics

    def arithmetic(self, each: Arithmetic) -> Decimal:
        operands = []
        for operand in each.operands:
            value, cause = self.outcome(operand) if operand[0].isalpha() else (Decimal(operand), None)
            if value is None:
                raise Unavailable(cause)
            operands.append(value)
        return reduce(lambda left, right: _step(each.operation, left, right), operands)


def _step(operation: str, left: Decimal, right: Decimal) -> Decimal:
    if operation in {"divide", "ratio"} and right == 0:
        raise Unavailable("division_by_zero")
    if operation == "ratio" and right < 0:
        raise Unavailable("not_applicable")
    match operation:
        case "add":
            result = left + right
        case "subtract":
            result = left - right
        case "multiply":
            result = left * right
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case _:
            result = left / right
    if abs(result) >= Decimal("1e30"):
        raise Unavailable("overflow")
    return _round(result)


def _meets(row: Row, where: Where) -> bool:
    size = abs(row["amount"])
    own = row["category_group"] == "transfer" or (
        row["is_transfer"] is True and row["category_source"] not in {"correction", "client_rule"}
    )
    listed = where.categories or where.groups
    return all(
        (
            not listed or row["category"] in where.categories or row["category_group"] in where.groups,
            row["category"] not in where.not_categories,
            row["counterparty_group"] not in where.not_counterparties,
            not where.counterparty_kinds or row["counterparty_kind"] in where.counterparty_kinds,
            not where.counterparties or row["counterparty_group"] in where.counterparties,
            not where.channels or row["channel"] in where.channels,
            not where.flags or bool(set(where.flags) & set(row["flags"] or ())),
            not set(where.not_flags) & set(row["flags"] or ()),
            not where.account_types or row["type_of_account"] in where.account_types,
            where.direction != "credit" or row["amount"] > 0,
            where.direction != "debit" or row["amount"] < 0,
            where.external is None or where.external is not own,
            where.recurring is None or where.recurring is (row["series_id"] is not None),
            where.facility is None or where.facility is (row["facility_id"] is not None),
            where.unreconciled is None or where.unreconciled is is_unreconciled(row),
            where.excluded is None or where.excluded is row["is_excluded"],
            not where.income_kinds or sum(row["income"].get(kind, 0) for kind in where.income_kinds) >= 0.5,
            where.at_least is None or size >= where.at_least,
            where.at_most is None or size <= where.at_most,
        )
    )


def is_unreconciled(row: Row) -> bool:
    """Tell whether the row is on a PDF statement that doesn't prove it."""
    if row["statement_verdict"] is None:
        return False
    if row["statement_proved"] is None:
        return row["statement_verdict"] in {"partial", "unreconciled"}
    return not row["statement_proved"]


def _contributions(row: Row, measure: str) -> Iterator[Decimal]:
    amount: Decimal = row["amount"]
    match measure:
        case "rows":
            yield Decimal(1)
        case "size":
            yield abs(amount)
        case "money_in":
            yield from [amount] if amount > 0 else []
        case "money_out":
            yield from [-amount] if amount < 0 else []
        case _:
            yield amount


def _last_stated(rows: Sequence[Row], name: str) -> Any:
    """Return the account's detail beside the last row of the last submission that states it."""
    stating = [row for row in rows if row[name] is not None]
    return max(stating, key=lambda row: (row["received_seq"], row["date"]))[name] if stating else None


def _ends_of_days(rows: Sequence[Row]) -> Iterator[tuple[date, Decimal | None]]:
    """Yield each day's balance, as stated or else as it follows from those before and after; the lower if they differ.

    A day that ends where it began yields nothing.
    """
    stated, moved = dict(_stated_ends_of_days(rows)), {}
    for day in stated:
        moved[day] = sum((row["amount"] for row in rows if row["date"] <= day), Decimal(0))
    known = {day: balance - moved[day] for day, (balance, _) in stated.items() if balance is not None}
    doubtful = {day for day in known if stated[day][1] and not _continues(day, known)}
    offsets = {day: offset for day, offset in known.items() if day not in doubtful}
    for day in stated:
        before = [offset for other, offset in offsets.items() if other <= day][-1:]
        after = [offset for other, offset in offsets.items() if other >= day][:1]
        yield day, min(before + after) + moved[day] if offsets else None


def _continues(day: date, known: Mapping[date, Decimal]) -> bool:
    """Return whether the balance agrees with the one stated before or after, if there is any."""
    nearest = [other for other in known if other < day][-1:] + [other for other in known if other > day][:1]
    return not nearest or any(abs(known[other] - known[day]) <= Decimal("0.02") for other in nearest)


def _stated_ends_of_days(rows: Sequence[Row]) -> Iterator[tuple[date, tuple[Decimal | None, bool]]]:
    """Yield each day's stated balance (one that no other row of the day starts from; of several, the one received last)
    and whether other rows of the day state none.
    """
    for day in sorted({row["date"] for row in rows}):
        today = [row for row in rows if row["date"] == day]
        stated = [row for row in today if row["balance"] is not None]
        uses = Counter(row["balance"] for row in stated)
        uses.subtract(row["balance"] - row["amount"] for row in stated)
        ends = [row for row in stated if uses[row["balance"]] > 0]
        if ends:
            last = max(ends, key=lambda row: (row["received_seq"], row["position"]))
            yield day, (last["balance"], len(stated) < len(today))
        elif len(stated) < len(today):
            yield day, (None, True)


def _some(values: list[T]) -> list[T]:
    if not values:
        raise Unavailable("not_applicable")
    return values


def _total(values: Iterable[Decimal]) -> Decimal:
    return sum(values, Decimal(0))


def _median(values: Sequence[Decimal]) -> Decimal:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _next_month(month: date) -> date:
    return (month + timedelta(days=32)).replace(day=1)


def _round(value: Decimal) -> Decimal:
    return value.quantize(PLACES, ROUND_HALF_EVEN)
