"""Synthetic histories become request bodies that the service accepts, exact and without labels."""

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest

from pipelines.synthetic import Business, business, plain_rows, submissions
from pipelines.synthetic.submissions import MAX_ROWS

UNTIL = date(2025, 6, 30)
ACCOUNT_FIELDS = {"accountName", "bsb", "accountNumber", "bankName", "accountType"}


@pytest.fixture(scope="module")
def one() -> Business:
    return business(0, 3, seed=2, until=UNTIL)


def test_a_body_is_an_account_and_its_items(one: Business) -> None:
    bodies = list(submissions(one))
    assert len(bodies) == len(one.accounts)
    for body, account in zip(bodies, one.accounts, strict=True):
        assert body.keys() - {"creditLimit"} == ACCOUNT_FIELDS | {"transactions"}
        assert len(body["transactions"]) == account.transactions.height


def test_money_survives_json_exactly_and_labels_stay_behind(one: Business) -> None:
    body = json.loads(json.dumps(next(submissions(one))))
    sent = body["transactions"]
    retained = one.accounts[0].transactions
    assert [Decimal(item["amount"]) for item in sent] == retained["amount"].to_list()
    assert [Decimal(item["balance"]) for item in sent] == retained["balance"].to_list()
    assert [date.fromisoformat(item["date"]) for item in sent] == retained["date"].to_list()
    assert {key for item in sent for key in item} <= {"date", "description", "amount", "balance", "transactionId"}


def test_large_accounts_are_sent_in_parts_the_service_accepts(one: Business) -> None:
    main = one.accounts[0]
    times = MAX_ROWS // main.transactions.height + 1
    long = replace(one, accounts=(replace(main, transactions=pl.concat([main.transactions] * times)),))
    sizes = [len(body["transactions"]) for body in submissions(long)]
    assert sizes == [MAX_ROWS, main.transactions.height * times - MAX_ROWS]


def test_a_resubmission_is_a_body_of_its_own() -> None:
    made = (business(n, 3, seed=2, until=UNTIL, faults=True) for n in range(30))
    overlapping = next(one for one in made if one.accounts[0].transactions["submission"].max() == 1)
    first, second, *_ = submissions(overlapping)
    assert first["accountNumber"] == second["accountNumber"]
    assert second["transactions"][0] in first["transactions"]


@pytest.mark.parametrize("count", [0, 1, 500, 3_000])
def test_plain_rows_are_as_many_as_asked_for_and_chain(count: int) -> None:
    items = plain_rows(count, seed=4, until=UNTIL)
    balance = Decimal(25_000)
    assert len(items) == count
    for item in items:
        balance += Decimal(item["amount"])
        assert Decimal(item["balance"]) == balance
        assert date.fromisoformat(item["date"]) <= UNTIL


def test_a_history_and_the_days_after_it_are_the_whole(one: Business) -> None:
    start = date(2025, 6, 10)
    sent = [*submissions(one, through=start)]
    for day in range(20):
        sent += submissions(one, start + timedelta(days=day), start + timedelta(days=day + 1))
    whole = sorted(
        (body["accountNumber"], *item.values()) for body in submissions(one) for item in body["transactions"]
    )
    assert sorted((body["accountNumber"], *item.values()) for body in sent for item in body["transactions"]) == whole
    assert max(item["date"] for item in sent[0]["transactions"]) <= "2025-06-10"


def test_a_day_without_rows_sends_nothing(one: Business) -> None:
    assert [*submissions(one, UNTIL, UNTIL + timedelta(days=1))] == []
