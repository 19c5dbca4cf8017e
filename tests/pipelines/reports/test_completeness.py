"""Completeness of accounts: what they cover, what is missing, who holds them, and the quality of the data."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.context import Context
from pipelines.figures.lineage import Formula, Sum, Trace, value_of
from pipelines.reports.completeness import explain_completeness
from pipelines.vocabulary.errors import NotFound
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import (
    NOBODY_KNOWN,
    add_ids,
    codes,
    completeness,
    context_of_customer,
    daily,
    facts_of,
    in_savings,
    statements,
)
from tests.pipelines.reports.examples import LOAN, SAVINGS, Row, add_balances, any_row, mark_balances, row

MAIN_ID, SAVINGS_ID = (f"00000000-0000-0000-0000-00000000000{nth}" for nth in (1, 2))
LISTS = (
    *("accounts", "gaps", "coverage", "reconciliation", "reconciliationByMonth", "reconciliationBySubmission"),
    *(
        "mentionedAccounts",
        "unsharedLenders",
        "similarAccounts",
        "repeatedSubmissions",
        "accountHolders",
        "basQuarters",
    ),
)


def resolutions(data: dict[str, Any]) -> dict[str, str]:
    return {each["code"].removeprefix("Completeness."): each["settledBy"] for each in data["reasons"]}


def sales(days: Sequence[int], amount: str = "10", **others: object) -> list[Row]:
    return [row(day, amount, kind="revenue/card_settlement", **others) for day in days]


def test_a_customer_without_posted_rows_has_that_reason() -> None:
    for rows in ([row(0, "5", status="pending")], [row(0, "5", superseded_seq=2)]):
        data = completeness(rows, 10)
        assert data["summary"] == {
            "completenessScore": Decimal("0.00"),
            "completenessTier": "insufficient",
            "totalMissingness": Decimal("1.0000"),
        }
        assert data["freshness"] == {"firstDate": None, "dataThrough": None, "daysBehind": None}
        assert all(data[name] == [] for name in LISTS)
        assert data["reasons"] == [
            {
                "code": "Completeness.NoTransactions",
                "subject": None,
                "message": "There are no posted transactions.",
                "settledBy": "supply the transactions of all accounts",
                "effect": None,
            }
        ]


def test_every_account_has_its_own_coverage() -> None:
    main = mark_balances(add_balances([row(0, "10"), row(1, "10"), row(40, "10")]))
    first, second = completeness([*main, *in_savings([row(20, "10")])], 50)["accounts"]
    assert first == {
        "accountId": MAIN_ID,
        "accountName": "Harbour Coffee",
        "bankName": "Bank",
        "accountNumberMasked": "xxxx2233",
        "accountType": "transaction",
        "identified": True,
        "firstDate": "2025-01-01",
        "lastDate": "2025-02-10",
        "transactionCount": 3,
        "daysWithActivity": 3,
        "daysCovered": 41,
        "balanceBreaks": 0,
        "score": Decimal("10.00"),  # 39 proven days of 365, one plausible and one open, times 90
        "daysBehind": 10,
        "daysSpanned": 41,
        "daysWithoutActivity": 38,
        "balanceShare": Decimal("1.0000"),
    }
    assert (second["transactionCount"], second["daysBehind"], second["balanceShare"]) == (1, 30, 0)


def test_coverage_is_listed_as_dated_ranges() -> None:
    rows = [*mark_balances(add_balances(daily([0, 3]))), *daily([5, 30])]
    assert [
        (each["firstDate"], each["lastDate"], each["evidence"], each["days"])
        for each in completeness(rows, 40)["coverage"]
    ] == [
        ("2025-01-01", "2025-01-01", "plausible", 1),
        ("2025-01-02", "2025-01-04", "proven", 3),
        ("2025-01-05", "2025-01-06", "plausible", 2),
        ("2025-01-07", "2025-01-17", "unseen", 11),
        ("2025-01-18", "2025-01-31", "plausible", 14),
    ]


def test_the_state_of_the_data_gives_reasons() -> None:
    data = completeness(sales(range(80), account_identified=False, account_number=None), 120)
    assert codes(data) == ["Stale", "ShortHistory", "FewDaysSeen", "NoBalances", "UnidentifiedAccount"]
    assert resolutions(data)["Stale"] == "supply all accounts from 22 Mar 2025"
    assert data["accounts"][0]["accountNumberMasked"] is None


def test_partial_balances_score_between_none_and_all() -> None:
    rows = add_balances(daily(range(100)))
    some = [{**each, "balance": None} if place % 2 else each for place, each in enumerate(rows)]
    assert "PartialBalances" in codes(completeness(some, 99))


def transfer(day: int, amount: str, to: str | None, **others: object) -> Row:
    return row(day, amount, kind="transfer/own_transfer", other_account=to, clean_description="SAVER", **others)


def test_a_mentioned_account_is_listed_with_its_totals() -> None:
    rows = [transfer(59, "-500", "4821"), transfer(70, "200.50", "4821"), transfer(80, "-5", "2233"), *daily(range(90))]
    supplied = in_savings([row(80, "5", account_number="99002233")])
    data = completeness([*rows, *supplied], 90)
    assert data["mentionedAccounts"] == [
        {
            "maskedNumber": "xx4821",
            "name": "SAVER",
            "bankName": None,
            "firstDate": "2025-03-01",
            "lastDate": "2025-03-12",
            "transferCount": 2,
            "totalIn": Decimal("200.50"),
            "totalOut": Decimal("500.00"),
        }
    ]
    assert resolutions(data)["MentionedAccount"] == "supply account ending 4821 from 1 Mar 2025"


def test_a_one_sided_transfer_counts_as_share_of_turnover() -> None:
    rows = [transfer(5, "-30", "4821"), transfer(6, "-40", "4821", is_transfer=True), *daily(range(3))]
    assert completeness(rows, 9)["transfers"] == {
        "oneSidedCount": 1,
        "oneSidedTotal": 30,
        "turnover": 100,
        "oneSidedShare": Decimal("0.3000"),
    }


def test_a_lender_without_an_account_is_named() -> None:
    paid = {"kind": "debt_service/term_loan_repayment"}
    rows = [
        *(row(day, "-100", counterparty_name="Prospa", **paid) for day in (3, 10)),
        row(4, "-70", counterparty_name="BANK B", **paid),
        row(4, "70", account_id=LOAN, account_type="loan", bank_name="Bank B"),
    ]
    data = completeness(rows, 20)
    assert data["unsharedLenders"] == [
        {
            "lender": "Prospa",
            "firstDate": "2025-01-04",
            "lastDate": "2025-01-11",
            "repaymentCount": 2,
            "totalRepaid": Decimal("200.00"),
        }
    ]
    assert resolutions(data)["UnsharedLender"] == "supply the facility's statement by Prospa from 4 Jan 2025"


def test_accounts_with_the_same_rows_or_the_same_number_look_the_same() -> None:
    main = [row(day, f"{day + 1}") for day in range(10)]
    copied = in_savings(row(day, f"{day + 1}", account_number="77") for day in range(4, 10))
    assert completeness([*main, *copied], 20)["similarAccounts"] == [
        {"accountId": MAIN_ID, "otherAccountId": SAVINGS_ID, "sameNumber": False, "sameDays": 6}
    ]
    renamed = in_savings([row(3, "8")])
    [pair] = completeness([*main, *renamed], 20)["similarAccounts"]
    assert (pair["sameNumber"], pair["sameDays"]) == (True, 0)
    assert completeness([*main, *in_savings([row(3, "8", account_number="77")])], 20)["similarAccounts"] == []
    cards = [
        row(1, "1", account_number="453912xxxxxx1234"),
        *in_savings([row(3, "8", account_number="453912xxxxxx1234")]),
    ]
    assert completeness(cards, 20)["similarAccounts"] == []  # two cards may be shown alike


@pytest.mark.parametrize(
    ("bsb", "number", "is_same"),
    [
        ("062-000", "00112233", True),
        (None, "112233", True),
        ("062000", "0000112233", True),
        (None, "062-000 00112233", True),
        (None, "6200000112233", True),
        (None, "00112234", False),
        ("062-000", "2233", False),
        (None, "0000", False),
    ],
)
def test_an_account_under_another_spelling_of_its_number_looks_the_same(
    bsb: str | None, number: str, *, is_same: bool
) -> None:
    """Otherwise its rows would count twice without a word, because the number is what identifies an account."""
    main = [row(day, "5", bsb="062-000") for day in range(10)]
    other = in_savings(row(day, "7", bsb=bsb, account_number=number) for day in range(10))
    assert [each["sameNumber"] for each in completeness([*main, *other], 20)["similarAccounts"]] == [True] * is_same
    joined = [{**each, "bsb": None, "account_number": "06200000112233"} for each in main]
    assert len(completeness([*joined, *other], 20)["similarAccounts"]) == is_same


@pytest.mark.parametrize(("days", "ends"), [((*range(46), 46), False), (range(46), True), ((0, 20, 40), False)])
def test_an_account_that_stops_while_another_one_goes_on_is_a_reason(days: Sequence[int], *, ends: bool) -> None:
    """A file cut on a good day would otherwise look current, because a row of a savings account is."""
    savings = in_savings([row(0, "1"), row(60, "1")])
    reasons = completeness([*(row(day, "5") for day in days), *savings], 60)["reasons"]
    found = [each for each in reasons if each["code"] == "Completeness.AccountEnds"]
    assert [(each["subject"], each["effect"]) for each in found] == [(MAIN_ID, None)] * ends


def test_submissions_that_matching_did_not_recognise_as_repeated_are_a_reason() -> None:
    """Another source sends the same rows in other words and without balances."""
    first = [row(day, f"{day + 1}", description=f"SALE {day}") for day in range(0, 80, 2)]
    again = [{**each, "description": f"CREDIT {nth}", "received_seq": 2} for nth, each in enumerate(first)]
    data = completeness([*first, *again[30:]], 90)
    assert data["repeatedSubmissions"] == [{"accountId": MAIN_ID, "sameDays": 10}]
    assert resolutions(data)["RepeatedSubmissions"] == "retract the submissions that repeat others"
    few, others = again[36:], [row(2 * nth, f"{2 * nth + 1 + (nth % 3 > 0)}", received_seq=2) for nth in range(40)]
    later = [row(day, "5", received_seq=2) for day in range(80, 90)]
    for rows in (few, others, later):
        assert completeness([*first, *rows], 90)["repeatedSubmissions"] == []


def test_accounts_that_overlap_for_a_short_time_are_compared_in_that_time() -> None:
    """A feed that replaces another one may begin some days before the end of the other one."""
    first = [row(day, f"{day + 1}") for day in range(40)]
    renumbered = in_savings(row(day, f"{day + 1}", account_number="77") for day in range(34, 90))
    [pair] = completeness([*first, *renumbered], 90)["similarAccounts"]
    assert (pair["sameNumber"], pair["sameDays"]) == (False, 6)
    other = in_savings(row(day, f"{day + 1 + (day % 3 > 0)}", account_number="77") for day in range(20, 90))
    assert completeness([*first, *other], 90)["similarAccounts"] == [], "they agree on 7 of 20 days"


@pytest.mark.parametrize(
    ("account_name", "belongs_to"),
    [
        ("Harbour Coffee Business Transaction Account", "customer"),
        ("THE HARBOUR COFFEE PTY LTD ATF JONES TRUST", "customer"),
        ("J. O'Brien", "related_party"),
        ("Business Everyday Account", "unnamed"),
        ("Harbour Tiling", "somebody_else"),
    ],
)
def test_an_account_belongs_to_the_party_whose_words_its_name_contains(account_name: str, belongs_to: str) -> None:
    context = context_of_customer("Harbour Coffee Pty. Ltd.", related=("J OBrien",))
    data = completeness([row(0, "5", account_name=account_name)], 1, context)
    assert data["accountHolders"] == [{"accountId": MAIN_ID, "accountName": account_name, "belongsTo": belongs_to}]
    assert ("HeldBySomebodyElse" in codes(data)) == (belongs_to == "somebody_else")


def test_the_holder_is_unknown_if_the_customer_is() -> None:
    assert completeness([row(0, "5")], 1)["accountHolders"][0]["belongsTo"] is None


def test_declared_sales_are_compared_with_banked_revenue() -> None:
    described = {"basG1-2025Q1": "1100.00", "basG1-2024Q4": "50", "basG1-2025Q2": "many", "basG1-2019Q1": "7"}
    rows = sales(range(-20, 120))
    quarters = completeness(rows, 120, context_of_customer(attributes=described))["basQuarters"]
    assert [each["quarter"] for each in quarters] == ["2024Q4", "2025Q1"]
    assert quarters[1] == {
        "quarter": "2025Q1",
        "firstDate": "2025-01-01",
        "lastDate": "2025-03-31",
        "isCovered": True,
        "declaredG1": Decimal("1100.00"),
        "bankedRevenue": Decimal("900.00"),
        "variance": Decimal("-200.00"),
        "varianceShare": Decimal("-0.1818"),
    }
    assert quarters[0]["isCovered"] is False
    assert resolutions(completeness(rows, 120, context_of_customer(attributes=described)))["BasVariance"].endswith(
        "the lodged statement"
    )


def test_quality_counts_rows_and_shares() -> None:
    rows = [
        row(0, "-300", confidence=0.5),
        row(1, "100.50", kind="revenue/card_settlement", confidence=1.0, revision=2, balance=Decimal(7)),
    ]
    assert completeness(rows, 9, context_of_customer(duplicates=3, rejected=0))["quality"] == {
        "duplicateRows": 3,
        "rejectedRows": 0,
        "transactionCount": 2,
        "revisedRows": 1,
        "rowsWithBalance": 1,
        "roundSums": 1,
        "movedTotal": Decimal("400.50"),
        "uncategorisedTotal": Decimal("300.00"),
        "backdatedRows": 0,
        "balanceShare": Decimal("0.5000"),
        "uncategorisedShare": Decimal("0.7491"),
        "meanConfidence": Decimal("0.6255"),
        "roundShare": Decimal("0.5000"),
    }
    assert completeness(rows, 9)["quality"]["duplicateRows"] is None


def test_rows_added_to_a_past_already_sent_are_backdated() -> None:
    sent = daily(range(100))
    assert completeness([*sent, *daily([10, 67, 68, 99], received_seq=2)], 100)["quality"]["backdatedRows"] == 2
    assert completeness([*sent, *daily([10, 67], received_seq=1)], 100)["quality"]["backdatedRows"] == 0


# What holds of any customer.


@examples(1)
@given(st.lists(any_row(), min_size=1, max_size=20), st.lists(any_row(), max_size=10))
def test_another_accounts_rows_change_nothing_in_an_accounts_own_entries(rows: list[Row], more: list[Row]) -> None:
    def of_savings(data: dict[str, Any]) -> list[Any]:
        return [[each for each in data[name] if each["accountId"] == SAVINGS_ID] for name in LISTS[:5]]

    others = [each for each in more if each["account_id"] != SAVINGS]
    assert of_savings(completeness(add_ids([*rows, *others]), 400)) == of_savings(completeness(add_ids(rows), 400))


@examples(1)
@given(st.lists(any_row(), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_shuffling_the_rows_changes_nothing(rows: list[Row], random: Random) -> None:
    placed = add_ids([{**each, "position": place} for place, each in enumerate(rows)])
    assert completeness(random.sample(placed, len(placed)), 400) == completeness(placed, 400)


@pytest.mark.parametrize(
    "rows",
    [
        [row(0, "5", balance=Decimal(5))],
        [row(date(1970, 1, 1), "5", balance=Decimal(5)), row(date(2025, 6, 1), "5", balance=Decimal(9))],
        [row(day, sign * Decimal("9999999999999.99")) for day in range(60) for sign in (1, -1, 1)],
        [row(day, "5", account_id=bytes([nth] * 16)) for nth in range(50) for day in (0, 9)],
        [row(0, "0", balance=Decimal(0)), row(0, "0", balance=Decimal(0)), row(3, "0", balance=Decimal(1))],
    ],
)
def test_odd_histories_raise_no_error(rows: list[Row]) -> None:
    data = completeness(mark_balances(rows), 200)
    assert 0 <= data["summary"]["completenessScore"] <= 100
    assert_explained(mark_balances(rows)[:40], 200, NOBODY_KNOWN)


def numeric_leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(data, dict):
        for name, each in data.items():
            yield from numeric_leaves(each, (*path, name))
    elif isinstance(data, list):
        for nth, each in enumerate(data):
            yield from numeric_leaves(each, (*path, str(nth)))
    elif isinstance(data, int | Decimal) and not isinstance(data, bool):
        yield path, data


def sums(trace: Trace) -> Iterator[Sum]:
    if isinstance(trace, Sum):
        yield trace
    elif isinstance(trace, Formula):
        for each in trace.inputs.values():
            if isinstance(each, Sum | Formula):
                yield from sums(each)


def assert_explained(rows: Sequence[Row], as_of: int, context: Context) -> None:
    """Check that every number is explained by lineage, from the customer's transactions only."""
    data, facts = completeness(rows, as_of, context), facts_of(rows, as_of, context)
    ids = set(facts.rows["transaction_id"])
    for path, value in numeric_leaves(data):
        trace = explain_completeness(facts, data, path)
        assert value_of(trace) == value, path
        for each in sums(trace):
            assert set(each.contributions["transaction_id"]) <= ids


@examples(1)
@given(statements(most_days=200), st.lists(any_row(most_days=200), max_size=12))
def test_every_figure_is_explained(main: list[Row], others: list[Row]) -> None:
    speaking = [
        transfer(100, "-500", "4821"),
        row(9, "-7", kind="debt_service/term_loan_repayment", counterparty_name="Prospa"),
    ]
    rows = [*mark_balances(main), *(each for each in others if each["account_type"] != "transaction"), *speaking]
    assert_explained(
        rows, 210, context_of_customer("Harbour", attributes={"basG1-2025Q1": "500"}, duplicates=1, rejected=2)
    )


def test_an_unknown_figure_has_no_lineage() -> None:
    rows = daily(range(3))
    data, facts = completeness(rows, 5), facts_of(rows, 5)
    for path in (
        ("reasons", "0", "message"),
        ("accounts", "7", "score"),
        ("summary",),
        ("accounts", "x", "score"),
        ("nothing", "1"),
    ):
        with pytest.raises(NotFound):
            explain_completeness(facts, data, path)
