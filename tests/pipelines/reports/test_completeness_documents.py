"""PDF statements as evidence: what they cover, state and leave out, and what is odd about their files."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.context import STATEMENTS, Context
from pipelines.reports import REPORTS
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import (
    add_ids,
    codes,
    completeness,
    daily,
    facts_of,
    score,
    some_of,
    statements,
)
from tests.pipelines.reports.examples import MAIN, SAVINGS, START, Row, add_balances, mark_balances, row

KINDS = ("statement", "listing", "interim")
VERDICTS = ("reconciled", "reconciled_dates_doubtful", "partial", "unreconciled")
SIGNAL = {"code": "OverlayAnnotation", "severity": "alert", "message": "Something lies over the text.", "page": 2}


def document(number: int, first: int | None, last: int | None, **described: Any) -> Row:
    """Return a statement from one day to another, as the context has it."""
    blank = {"customer_number": 1, "account_id": MAIN, "file_name": "june.pdf", "kind": "statement"}
    period = {"period_start": day(first), "period_end": day(last)}
    rest: Row = {"verdict": "reconciled", "opening_balance": None, "closing_balance": None, "signals": []}
    return {**blank, "statement_id": number.to_bytes(16), **period, **rest, **described}


def day(number: int | None) -> date | None:
    return None if number is None else START + timedelta(days=number)


def context_of(*documents: Row) -> Context:
    return Context(statements=pl.DataFrame(documents, schema=STATEMENTS, orient="row"))


def report(rows: Sequence[Row], *documents: Row, as_of: int = 400) -> dict[str, Any]:
    return completeness(rows, as_of, context_of(*documents))


def mark_unreconciled(rows: Sequence[Row]) -> list[Row]:
    return [{**each, "statement_verdict": "unreconciled"} for each in rows]


def test_without_statements_the_document_tables_are_empty() -> None:
    data = completeness(daily(range(10)), 10)
    assert [data[name] for name in ("documents", "statements", "tamperSignals")] == [[], [], []]


def test_a_statement_is_listed_with_the_balances_of_the_rows() -> None:
    rows = mark_balances(add_balances(daily(range(10)), opening=100))  # 110 at the end of day 0, 200 of day 9
    described = document(1, 2, 9, opening_balance=Decimal(120), closing_balance=Decimal(205))
    [found] = report(rows, described)["statements"]
    assert found == {
        "statementId": str(UUID(int=1)),
        "accountId": str(UUID(bytes=MAIN)),
        "fileName": "june.pdf",
        "kind": "statement",
        "verdict": "reconciled",
        "periodStart": "2025-01-03",
        "periodEnd": "2025-01-10",
        "openingBalance": Decimal("120.00"),
        "closingBalance": Decimal("205.00"),
        "openingInRows": Decimal("120.00"),
        "closingInRows": Decimal("200.00"),
        "openingDifference": Decimal("0.00"),
        "closingDifference": Decimal("5.00"),
    }
    assert "StatementBalanceDiffers" in codes(report(rows, described))


def test_documents_are_counted_by_kind_and_days_once() -> None:
    rows = daily(range(20))
    listing = document(2, 5, 14, kind="listing", verdict="partial")
    [account] = report(rows, document(1, 0, 9), listing, document(3, None, None, kind="interim"))["documents"]
    assert account == {
        "accountId": str(UUID(bytes=MAIN)),
        "statementCount": 1,
        "listingCount": 1,
        "interimCount": 1,
        "unreconciledCount": 0,
        "coveredDays": 15,
        "documentedDays": 15,
        "documentedShare": Decimal("0.7500"),
    }


def test_a_missing_period_between_two_statements_is_a_gap() -> None:
    rows = daily([*range(0, 30, 3), *range(60, 90, 3)])
    data = report(rows, document(1, 0, 30), document(2, 60, 90))
    [gap] = [each for each in data["gaps"] if each["evidence"] == "statement_missing"]
    assert (gap["lastSeen"], gap["nextSeen"], gap["silentDays"]) == ("2025-01-31", "2025-03-02", 29)
    [described] = [each for each in data["reasons"] if each["code"] == "Completeness.StatementMissing"]
    assert described["settledBy"] == "supply account ending 2233 again from 31 Jan 2025 to 2 Mar 2025"


def test_consecutive_statements_and_proven_days_leave_no_gap() -> None:
    rows = daily(range(0, 90, 3))
    assert report(rows, document(1, 0, 30), document(2, 31, 90))["gaps"] == []
    assert report(mark_balances(add_balances(rows)), document(1, 0, 30), document(2, 60, 90))["gaps"] == []


def test_an_unreconciled_statement_is_named_and_its_rows_prove_nothing() -> None:
    rows = mark_balances(add_balances(daily(range(100))))
    data = report(mark_unreconciled(rows), document(1, 0, 99, verdict="unreconciled"))
    assert "UnreconciledStatement" in codes(data)
    assert {each["evidence"] for each in data["coverage"]} == {"plausible"}
    assert score(mark_unreconciled(rows), 100) == score(
        [{**each, "balance": None, "balance_verified": None} for each in rows], 100
    )


def test_a_statement_without_rows_names_an_account_without_rows() -> None:
    elsewhere = {"account_id": SAVINGS, "verdict": "unreconciled"}
    data = report(daily(range(10)), document(1, 0, 3, **elsewhere), document(2, 9, 9, **elsewhere))
    assert [each["accountId"] for each in data["documents"]] == [str(UUID(bytes=SAVINGS))]
    assert data["gaps"] == []
    described = [each["message"] for each in data["reasons"] if each["code"] == "Completeness.UnreconciledStatement"]
    assert described[0].startswith("The statement of an account without rows from 1 Jan 2025 to 4 Jan 2025")


def test_signals_state_page_and_resolution_and_do_not_change_the_score() -> None:
    rows = daily(range(10))
    data = report(rows, document(1, 0, 9, signals=[SIGNAL, {**SIGNAL, "code": "Producer", "severity": "information"}]))
    assert [(each["code"], each["severity"], each["page"]) for each in data["tamperSignals"]] == [
        ("OverlayAnnotation", "alert", 2),
        ("Producer", "information", 2),
    ]
    [described] = [each for each in data["reasons"] if each["code"] == "Completeness.TamperSignals"]
    assert "OverlayAnnotation" in described["message"]
    assert "Producer" not in described["message"]
    assert "original file" in described["settledBy"]
    assert data["summary"] == report(rows, document(1, 0, 9))["summary"]


def test_an_informational_signal_gives_no_reason() -> None:
    informing = document(1, 0, 9, signals=[{**SIGNAL, "severity": "information"}])
    assert "TamperSignals" not in codes(report(daily(range(10)), informing))


@pytest.mark.parametrize("path", ["/statements/0/closingDifference", "/documents/0/documentedShare"])
def test_figures_of_documents_are_explained(path: str) -> None:
    context = context_of(document(1, 0, 9, closing_balance=Decimal(205)))
    facts = facts_of(mark_balances(add_balances(daily(range(10)))), 20, context)
    data = completeness(mark_balances(add_balances(daily(range(10)))), 20, context)
    member, nth, figure = path[1:].split("/")
    traced = REPORTS["completeness"].explain(facts, data, (member, nth, figure))
    assert traced.value == data[member][int(nth)][figure]


# The oracle: days one by one.


def drawn_documents(random: Random, count: int) -> list[Row]:
    made = []
    for number in range(1, count + 1):
        first = random.randint(0, 60)
        known = random.random() < 0.9
        described: Row = {
            "account_id": random.choice((MAIN, MAIN, SAVINGS)),
            "kind": random.choice(KINDS),
            "verdict": random.choice(VERDICTS),
            "opening_balance": random.choice((None, Decimal(random.randint(-90, 90)))),
            "closing_balance": random.choice((None, Decimal(random.randint(-90, 90)))),
        }
        period = (first, first + random.randint(0, 25)) if known else (None, None)
        made.append(document(number, *period, **described))
    return made


def expected_documents(rows: Sequence[Row], documents: Sequence[Row]) -> list[Row]:
    found = []
    for account in sorted({each["account_id"] for each in documents}):
        its = [each for each in documents if each["account_id"] == account]
        days = {
            each["period_start"] + timedelta(days=nth)
            for each in its
            if each["period_start"] is not None
            for nth in range((each["period_end"] - each["period_start"]).days + 1)
        }
        posted = [each["date"] for each in rows if each["account_id"] == account]
        found.append(
            {
                "accountId": str(UUID(bytes=account)),
                **{f"{kind}Count": sum(each["kind"] == kind for each in its) for kind in KINDS},
                "unreconciledCount": sum(each["verdict"] == "unreconciled" for each in its),
                "coveredDays": len(days),
                "documentedDays": sum(bool(posted) and min(posted) <= each <= max(posted) for each in days),
            }
        )
    return found


def find_holes(documents: Sequence[Row], rows: Sequence[Row]) -> set[tuple[str, str, str]]:
    """Return holes between the periods of statements, for accounts with rows without balances."""
    found = set()
    for account in {each["account_id"] for each in rows}:
        covered = sorted(
            {
                each["period_start"] + timedelta(days=nth)
                for each in documents
                if each["account_id"] == account and each["period_start"] is not None
                for nth in range((each["period_end"] - each["period_start"]).days + 1)
            }
        )
        found |= {
            (str(UUID(bytes=account)), str(before), str(after))
            for before, after in pairwise(covered)
            if (after - before).days > 1
        }
    return found


@examples(1)
@given(st.randoms(use_true_random=True), st.integers(0, 8))
def test_documented_days_agree_with_counting(random: Random, count: int) -> None:
    accounts = ({"account_id": MAIN}, {"account_id": SAVINGS, "account_type": "savings"})
    rows = add_ids(row(random.randint(0, 90), "5", **random.choice(accounts)) for _ in range(12))
    documents = drawn_documents(random, count)
    data = report(rows, *documents)
    described = [{name: each[name] for name in each if name != "documentedShare"} for each in data["documents"]]
    assert described == expected_documents(rows, documents)
    gaps = [each for each in data["gaps"] if each["evidence"] == "statement_missing"]
    assert {(each["accountId"], each["lastSeen"], each["nextSeen"]) for each in gaps} == find_holes(documents, rows)


# Leaving data out never raises the score.


@examples(1)
@given(statements(), st.data(), st.integers(0, 900))
def test_removing_rows_or_days_of_unreconciled_statements_never_raises_the_score(
    whole: list[Row], data: st.DataObject, as_of: int
) -> None:
    doubted = data.draw(st.sets(st.sampled_from(sorted({each["date"] for each in whole}))))
    rows = [{**each, "statement_verdict": VERDICTS[3] if each["date"] in doubted else VERDICTS[0]} for each in whole]
    less = data.draw(some_of(rows, data.draw(st.sampled_from(("position", "date")))))
    assert score(mark_balances(less), as_of) <= score(mark_balances(rows), as_of)


@examples(1)
@given(statements(), st.integers(0, 900))
def test_an_unreconciled_statement_never_raises_the_score(whole: list[Row], as_of: int) -> None:
    assert score(mark_unreconciled(mark_balances(whole)), as_of) <= score(mark_balances(whole), as_of)


def replace_rows(rows: Sequence[Row], seq: int, **others: Any) -> list[Row]:
    """Mark rows of a first statement as replaced by submission `seq`."""
    of_statement = {"statement_verdict": "reconciled", "revision": 1}
    return [{**each, **of_statement, "received_seq": 1, "superseded_seq": seq, **others} for each in rows]


def test_rows_that_the_later_statement_lacks_are_listed_and_named() -> None:
    standing = mark_balances(add_balances(daily(range(10), received_seq=2), opening=100))
    gone = [row(day, amount, transaction_id=bytes([200 + day] * 16)) for day, amount in ((3, "-15"), (5, "-700"))]
    early, late = document(1, 0, 9, closing_balance=Decimal(85)), document(2, 0, 9, closing_balance=Decimal(200))
    data = report([*standing, *replace_rows(gone, 2)], early, late)
    assert [(each["date"], each["amount"]) for each in data["replacedRows"]] == [
        ("2025-01-04", Decimal("-15.00")),
        ("2025-01-06", Decimal("-700.00")),
    ]
    [reason] = [each for each in data["reasons"] if each["code"] == "Completeness.ReplacedRows"]
    assert reason["subject"] == str(UUID(bytes=MAIN))
    assert reason["message"].endswith("lacks 2 rows of it: −$700.00 on 6 Jan 2025, −$15.00 on 4 Jan 2025.")
    assert "StatementBalanceDiffers" not in codes(data)
    assert data["summary"] == report(standing, early, late)["summary"]
    wrong = document(2, 0, 9, closing_balance=Decimal(201))
    assert "StatementBalanceDiffers" in codes(report([*standing, *replace_rows(gone, 2)], early, wrong))
    assert "StatementBalanceDiffers" in codes(report(standing, early, late))


def test_many_replaced_rows_are_counted_and_retracted_or_later_ones_are_not_listed() -> None:
    standing = daily(range(10), received_seq=2)
    gone = [row(day, "-15", transaction_id=bytes([200 + day] * 16)) for day in range(5)]
    [reason] = [
        each
        for each in report([*standing, *replace_rows(gone, 2)])["reasons"]
        if each["code"] == "Completeness.ReplacedRows"
    ]
    assert reason["message"].endswith("on 3 Jan 2025 and 2 more.")
    assert report([*standing, *replace_rows(gone, 2, retracted_seq=3)])["replacedRows"] == []
    assert report([*standing, *replace_rows(gone, 2, statement_verdict=None)])["replacedRows"] == []
    assert len(report([*standing, *replace_rows(gone, 2)], as_of=2)["replacedRows"]) == 3
