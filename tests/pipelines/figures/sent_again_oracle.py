"""Rows that were sent again, found by loops over one account's posted rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Any

Row = Mapping[str, Any]


def repeated_by_day(rows: Sequence[Row]) -> dict[date, list[Row]]:
    """Return the repeated rows of one account by their day, given in order of receipt."""
    sides = [[r for r in rows if r["amount"] > 0], [r for r in rows if r["amount"] < 0]]
    judged = [_judge(side) for side in sides]
    days = sorted({day for of_side in judged for day in of_side})
    weights = [max(-1, min(1, sum(of_side[day][0] for of_side in judged if day in of_side))) for day in days]
    strong = {day for nth, day in enumerate(days) if _best(weights, nth) >= 5}
    copies = [of_side[day][1] for of_side in judged for day in strong & of_side.keys()]
    often = Counter(each for each in copies if each)
    usual = min((each for each in often if often[each] == max(often.values())), default=1)
    found: dict[date, list[Row]] = defaultdict(list)
    for side, of_side in zip(sides, judged, strict=True):
        for day in strong & of_side.keys():
            if its := of_side[day][1]:
                of_day = [r for r in side if r["date"] == day]
                found[day] += _extra(of_day, its if its % usual else usual)
    return dict(found)


def _judge(side: Sequence[Row]) -> dict[date, tuple[int, int | None]]:
    """Return the days on which several submissions have rows, with their weight and number of copies."""
    days_of_amount: dict[Decimal, set[date]] = defaultdict(set)
    by_day: dict[date, list[Row]] = defaultdict(list)
    for r in side:
        days_of_amount[r["amount"]].add(r["date"])
        by_day[r["date"]].append(r)
    judged = dict[date, tuple[int, int | None]]()
    seen = set[tuple[int, Decimal]]()
    for day, its in sorted(by_day.items()):
        sent: dict[int, Counter[Decimal]] = defaultdict(Counter)
        for r in its:
            sent[r["received_seq"]][r["amount"]] += 1
        if len(sent) < 2:
            continue
        copies = _copies(list(sent.values()))
        if copies is None or (len(its) == len(sent) and all(r.get("balance_verified") is True for r in its)):
            judged[day] = (-1, None)
            continue
        once = {amount: sum(each[amount] for each in sent.values()) // copies for amount in _shared(sent.values())}
        content = (sum(once.values()), sum((amount * count for amount, count in once.items()), Decimal(0)))
        same = len({frozenset(each.items()) for each in sent.values()}) == 1
        is_evidence = any(len(days_of_amount[amount]) == 1 for amount in once) or (same and content not in seen)
        seen.add(content)
        judged[day] = (int(is_evidence), copies)
    return judged


def _best(weights: Sequence[int], nth: int) -> int:
    """Return the largest sum of the stretches of weights that contain the n-th."""
    before = max(accumulate(reversed(weights[:nth]), initial=0))
    return before + weights[nth] + max(accumulate(weights[nth + 1 :], initial=0))


def _extra(rows: Sequence[Row], copies: int) -> Iterable[Row]:
    """Yield the rows of a day beyond the first copy."""
    shared = {r["amount"] for r in rows if len({e["received_seq"] for e in rows if e["amount"] == r["amount"]}) > 1}
    held = Counter(r["amount"] for r in rows)
    stay = {amount: held[amount] // copies for amount in shared}
    for r in rows:
        if r["amount"] in shared:
            stay[r["amount"]] -= 1
            if stay[r["amount"]] < 0:
                yield r


def _shared(sent: Iterable[Counter[Decimal]]) -> set[Decimal]:
    holders = Counter(amount for each in sent for amount in each)
    return {amount for amount, count in holders.items() if count > 1}


def _copies(sent: Sequence[Counter[Decimal]]) -> int | None:
    """Return in how many copies the day's shared amounts came; None if the day is not repeated."""
    shared = _shared(sent)
    if not shared or sum(bool(set(each) - shared) for each in sent) > 1:
        return None
    totals = {amount: sum(each[amount] for each in sent) for amount in shared}
    copies = min(total // max(each[amount] for each in sent) for amount, total in totals.items())
    return copies if copies > 1 and all(total % copies == 0 for total in totals.values()) else None
