"""Completeness computed again by loops: missing and similar accounts, tax, and the quality of the data.

The narratives of transfers are not parsed here: `MENTIONS` lists the texts that are drawn, with what they mention.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import combinations
from typing import Any, NamedTuple

from tests.pipelines.figures.sent_again_oracle import repeated_by_day
from tests.pipelines.reports.aggregate_oracle import Row, classify_row, divide, ratio, text
from tests.pipelines.reports.examples import posted_rows

ZERO = Decimal(0)


class Mention(NamedTuple):
    """What a text mentions: digits after `card` or `visa`; digits that only the words of a transfer distinguish from a
    reference; whether it names the account; and the BSB."""

    card: str | None = None
    behind_words: str | None = None
    calls: bool = True
    bank: str | None = None


MENTIONS: Mapping[str, Mention] = {
    "SAVER": Mention(),
    "TFR LINKED ACCOUNT": Mention(),
    "TFR WESTPAC BUS 3950": Mention(behind_words="3950"),
    "TRANSFER TO MAIN xx2233": Mention(behind_words="2233"),
    "TFR SAVINGS 2024": Mention(),  # a year
    "TRANSFER 71Q4 CARD 9242": Mention(card="9242"),
    "PAYMENT TO VISA 8670 REFERENCE NO 76796904": Mention(card="8670"),
    "E-BANKING TRANSFER 1856252981": Mention(calls=False),
    "INTERNET TRANSFER": Mention(calls=False),
    "TRANSFER TO 062-000 12344821": Mention(calls=False, bank="Commonwealth Bank"),
}


def members(rows: Iterable[Row], as_of: date, described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of the report that this module knows, from rows of one customer and its `described` data
    (`attributes`, `duplicates`, `rejected`)."""
    posted = [classify_row(r) for r in posted_rows(rows) if r["date"] <= as_of]
    posted.sort(key=lambda r: (r["date"], r["received_seq"], r["position"]))
    return {
        "freshness": freshness(posted, as_of),
        "accounts": accounts(posted, as_of),
        "mentionedAccounts": mentioned_accounts(posted),
        "unsharedLenders": unshared_lenders(posted),
        "similarAccounts": similar(posted),
        "repeatedSubmissions": repeated(posted),
        "transfers": one_sided_transfers(posted),
        "basQuarters": bas_quarters(posted, described.get("attributes", {})),
        "quality": quality(posted, described),
    }


def format_date(value: date) -> str:
    return value.isoformat()


def most_often(values: Iterable[str]) -> str | None:
    """Return the most frequent value; of several, the alphabetically first."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


def newest(rows: Sequence[Row], name: str) -> Any:
    """Return an account's detail as stated by the last submission that states it."""
    stating = [r for r in rows if r[name] is not None]
    last = max((r["received_seq"] for r in stating), default=None)
    return max((r[name] for r in stating if r["received_seq"] == last), default=None)


def group_by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for r in rows:
        found[key(r)].append(r)
    return found


# What there is.


def freshness(rows: Sequence[Row], as_of: date) -> Row:
    if not rows:
        return {"firstDate": None, "dataThrough": None, "daysBehind": None}
    first, last = rows[0]["date"], rows[-1]["date"]
    return {"firstDate": format_date(first), "dataThrough": format_date(last), "daysBehind": (as_of - last).days}


def accounts(rows: Sequence[Row], as_of: date) -> list[Row]:
    """Return accounts without figures that depend on balances, which the score's own oracle covers."""
    found = []
    for account, its in sorted(group_by(rows, lambda r: r["account_id"]).items()):
        first, last = its[0]["date"], its[-1]["date"]
        active, spanned = len({r["date"] for r in its}), (last - first).days + 1
        found.append(
            {
                "accountId": text(account),
                "bankName": newest(its, "bank_name"),
                "accountType": newest(its, "account_type"),
                "firstDate": format_date(first),
                "lastDate": format_date(last),
                "transactionCount": len(its),
                "daysWithActivity": active,
                "daysSpanned": spanned,
                "daysWithoutActivity": spanned - active,
                "daysBehind": (as_of - last).days,
                "balanceShare": divide(Decimal(sum(r["balance"] is not None for r in its)), len(its), 4),
            }
        )
    return found


# Accounts that transfers mention.


def mentioned_accounts(rows: Sequence[Row]) -> list[Row]:
    missing: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for r in rows:
        if mentions_account(r) and not is_supplied(r, rows):
            digits = digits_of(r)
            missing[(None, counterparty_text(r)) if digits is None else ("xx" + digits[-4:], None)].append(r)
    entries = [
        {
            "maskedNumber": number,
            "name": most_often(counterparty_text(r) for r in its),
            "bankName": most_often(known_text(MENTIONS[r["description"]].bank for r in its)),
            "firstDate": format_date(min(r["date"] for r in its)),
            "lastDate": format_date(max(r["date"] for r in its)),
            "transferCount": len(its),
            "totalIn": sum((r["in"] for r in its), ZERO),
            "totalOut": sum((r["out"] for r in its), ZERO),
        }
        for (number, _), its in missing.items()
    ]
    return sorted(entries, key=lambda each: (each["maskedNumber"] is not None, each["maskedNumber"], each["name"]))


def known_text(values: Iterable[str | None]) -> list[str]:
    return [value for value in values if value is not None]


def counterparty_text(r: Row) -> str:
    return str(r["counterparty_name"] or r["clean_description"] or r["description"])


def is_between_own(r: Row) -> bool:
    return r["category"] in ("own_transfer", "card_repayment")


def digits_of(r: Row) -> str | None:
    """Return the digits that name the other account: as the bank prints it, of a card, or at a transfer's end."""
    printed = r["other_account"] if r["other_account"] and len(r["other_account"]) >= 3 else None
    mention = MENTIONS[r["description"]]
    return printed or mention.card or (mention.behind_words if is_between_own(r) else None)


def mentions_account(r: Row) -> bool:
    if r["is_transfer"]:
        return False
    digits, mention = digits_of(r), MENTIONS[r["description"]]
    if is_between_own(r):
        by_client = r["category_source"] in ("correction", "client_rule")
        named_somebody = r["category"] == "own_transfer" and r["counterparty_kind"] in ("business", "processor")
        guessed = r["category_source"] == "learned" and r["confidence"] is not None and r["confidence"] < 0.8
        calls = counterparty_text(r) not in MENTIONS or MENTIONS[counterparty_text(r)].calls
        return by_client or digits is not None or (calls and not named_somebody and not guessed)
    if digits is None or (r["counterparty_name"] and r["counterparty_kind"]):
        return False
    return not r["counterparty_name"] or r["channel"] == "transfer" or mention.card is not None


def is_supplied(r: Row, rows: Sequence[Row]) -> bool:
    """Tell whether the mentioned account was supplied: by its digits, or by its name if at least as many transfers of
    that name in the same account were paired."""
    digits = digits_of(r)
    if digits is not None:
        numbers = (number_of(its) for its in group_by(rows, lambda each: each["account_id"]).values())
        return any(number is not None and number.endswith(digits) for number in numbers)
    alike = [
        each
        for each in rows
        if each["account_id"] == r["account_id"] and counterparty_text(each) == counterparty_text(r)
    ]
    lone = [each for each in alike if mentions_account(each) and digits_of(each) is None]
    return sum(bool(each["is_transfer"]) for each in alike) >= len(lone)


def number_of(rows: Sequence[Row]) -> str | None:
    """Return BSB and number in digits; of a masked number, the part that isn't masked."""
    number: str | None = next((r["account_number"] for r in rows if r["account_number"]), None)
    bsb: str = next((r["bsb"] for r in rows if r["bsb"]), "").replace("-", "")
    if number is None:
        return None
    digits = "".join(each for each in number if each not in " -")
    return bsb + digits if digits.isdecimal() else digits.rsplit("x", 1)[-1]


# Lenders, accounts twice, one side of transfers.


def unshared_lenders(rows: Sequence[Row]) -> list[Row]:
    accounts = group_by(rows, lambda r: r["account_id"]).values()
    owed = [its for its in accounts if newest(its, "account_type") in ("loan", "credit_card")]
    shared = {str(newest(its, "bank_name")).lower() for its in owed}
    repayments = (r for r in rows if r["category_group"] == "debt_service" and r["amount"] < 0 and not r["own"])
    unshared = group_by((r for r in repayments if r["counterparty_name"]), lambda r: r["counterparty_name"])
    return [
        {
            "lender": lender,
            "firstDate": format_date(unshared[lender][0]["date"]),
            "lastDate": format_date(unshared[lender][-1]["date"]),
            "repaymentCount": len(unshared[lender]),
            "totalRepaid": sum((r["out"] for r in unshared[lender]), ZERO),
        }
        for lender in sorted(unshared)
        if lender.lower() not in shared
    ]


def similar(rows: Sequence[Row]) -> list[Row]:
    accounts = group_by(rows, lambda r: r["account_id"])
    days = {account: days_of(its) for account, its in accounts.items()}
    found = []
    for one, other in combinations(sorted(accounts), 2):
        same_number = bool(spellings(accounts[one]) & spellings(accounts[other]))
        same = sum(days[other].get(day) == moved for day, moved in days[one].items())
        first, last = (edge(edge_of(days[each]) for each in (one, other)) for edge, edge_of in ((max, min), (min, max)))
        fewer = min(sum(first <= day <= last for day in days[each]) for each in (one, other))
        if same_number or (same >= 5 and 2 * same >= fewer):
            pair = {"accountId": text(one), "otherAccountId": text(other)}
            found.append({**pair, "sameNumber": same_number, "sameDays": same})
    return found


def repeated(rows: Sequence[Row]) -> list[Row]:
    days = {account: repeated_by_day(its) for account, its in group_by(rows, lambda r: r["account_id"]).items()}
    return [{"accountId": text(account), "sameDays": len(twice)} for account, twice in sorted(days.items()) if twice]


def spellings(rows: Sequence[Row]) -> set[str]:
    """Return how the account's number may be spelled, without leading zeros; nothing if it is masked or not stated."""
    number = (newest(rows, "account_number") or "").replace(" ", "").replace("-", "")
    bsb = (newest(rows, "bsb") or "").replace("-", "")
    if set(number) & set("xX*"):
        return set()
    joined = number[6:] if not bsb and len(number) >= 11 else ""
    return {each.lstrip("0") for each in (number, number and bsb and bsb + number, joined)} - {""}


def days_of(rows: Sequence[Row]) -> dict[date, tuple[int, Decimal, Decimal]]:
    return {
        day: (len(its), sum((r["in"] for r in its), ZERO), sum((r["out"] for r in its), ZERO))
        for day, its in group_by(rows, lambda r: r["date"]).items()
    }


def one_sided_transfers(rows: Sequence[Row]) -> Row:
    lone = [r for r in rows if r["category"] == "own_transfer" and not r["is_transfer"]]
    total, turnover = (sum((abs(r["amount"]) for r in some), ZERO) for some in (lone, rows))
    share = ratio(total, turnover)
    return {"oneSidedCount": len(lone), "oneSidedTotal": total, "turnover": turnover, "oneSidedShare": share}


# Tax.


def bas_quarters(rows: Sequence[Row], attributes: Mapping[str, str]) -> list[Row]:
    """Compare declared G1 with revenue, for quarters that the history reaches. `attributes`: AUD by `basG1-YYYYQn`."""
    if not rows:
        return []
    found = []
    for name, declared in sorted(attributes.items()):
        year, nth = int(name[6:10]), int(name[-1])
        first = date(year, 3 * nth - 2, 1)
        last = date(year + nth // 4, 3 * nth % 12 + 1, 1) - timedelta(days=1)
        begins, ends = rows[0]["date"], rows[-1]["date"]
        if last < begins or first > ends:
            continue
        banked = sum((r["amount"] for r in rows if r["is_revenue"] and first <= r["date"] <= last), ZERO)
        variance = banked - Decimal(declared)
        found.append(
            {
                "quarter": name[6:],
                "firstDate": format_date(first),
                "lastDate": format_date(last),
                "isCovered": begins <= first and last <= ends,
                "declaredG1": Decimal(declared),
                "bankedRevenue": banked,
                "variance": variance,
                "varianceShare": ratio(variance, Decimal(declared)),
            }
        )
    return found


# The data.


def quality(rows: Sequence[Row], described: Mapping[str, Any]) -> Row:
    moved = sum((abs(r["amount"]) for r in rows), ZERO)
    unknown = sum((abs(r["amount"]) for r in rows if r["category_group"] == "unknown"), ZERO)
    with_balance = sum(r["balance"] is not None for r in rows)
    rounds = sum(r["amount"] != 0 and r["amount"] % 100 == 0 for r in rows)
    confident = sum((weigh(r) for r in rows), ZERO)
    return {
        "duplicateRows": described.get("duplicates"),
        "rejectedRows": described.get("rejected"),
        "transactionCount": len(rows),
        "revisedRows": sum((r["revision"] or 0) > 1 for r in rows),
        "rowsWithBalance": with_balance,
        "roundSums": rounds,
        "movedTotal": moved,
        "uncategorisedTotal": unknown,
        "backdatedRows": sum(is_backdated(r, rows) for r in rows),
        "balanceShare": divide(Decimal(with_balance), len(rows), 4),
        "uncategorisedShare": ratio(unknown, moved),
        "meanConfidence": ratio(confident, moved),
        "roundShare": divide(Decimal(rounds), len(rows), 4),
    }


def weigh(r: Row) -> Decimal:
    """Return amount times confidence, in the four decimals of lineage's contributions."""
    confidence = ZERO if r["confidence"] is None else Decimal(str(r["confidence"]))
    return Decimal(abs(r["amount"]) * confidence).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)


def is_backdated(r: Row, rows: Sequence[Row]) -> bool:
    return any(
        before["account_id"] == r["account_id"]
        and before["received_seq"] < r["received_seq"]
        and (before["date"] - r["date"]).days > 31
        for before in rows
    )
