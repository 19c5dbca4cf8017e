"""A synthetic portfolio is consistent, completely labelled, and the same for the same seed."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from stdnum import luhn
from stdnum.au import abn

from pipelines.synthetic import LABELLED, Business, business, portfolio
from pipelines.synthetic.businesses.trades import trades
from pipelines.synthetic.world.model import Condition
from pipelines.synthetic.world.styles import bank_styles
from tests.conftest import examples

pytestmark = pytest.mark.slow  # the generator of synthetic data alone; what is built on its rows is tested elsewhere

UNTIL = date(2025, 6, 30)
CARD = re.compile(  # Visa, Mastercard, American Express, Diners, JCB, Discover and UnionPay, with their lengths
    r"4\d{12}(\d{3}(\d{3})?)?|(5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|6[0245]\d{14}"
)


@pytest.fixture(scope="module")
def businesses() -> list[Business]:
    return list(portfolio(40, 12, seed=11, until=UNTIL))


@pytest.fixture(scope="module")
def rows(businesses: list[Business]) -> pl.DataFrame:
    return pl.concat(
        account.transactions.with_columns(
            business=pl.lit(one.abn), account=pl.lit(account.account_number), bank=pl.lit(account.bank_name)
        )
        for one in businesses
        for account in one.accounts
    )


def statements(businesses: list[Business]) -> Iterator[list[dict[str, Any]]]:
    for one in businesses:
        for account in one.accounts:
            yield account.transactions.to_dicts()


def same(left: Business, right: Business) -> bool:
    for one, other in zip(left.accounts, right.accounts, strict=True):
        assert_frame_equal(one.transactions, other.transactions)
        assert (one.bsb, one.account_number) == (other.bsb, other.account_number)
    described = ("abn", "name", "trade", "state", "condition", "related", "facilities", "outcome")
    return [getattr(left, name) for name in described] == [getattr(right, name) for name in described]


def broken_links(statement: list[dict[str, Any]]) -> list[int]:
    """Return rows whose balance is not the balance before plus the amount."""
    pairs = pairwise(statement)
    return [at for at, (row, after) in enumerate(pairs, 1) if row["balance"] + after["amount"] != after["balance"]]


def test_every_balance_is_the_one_before_plus_the_amount(businesses: list[Business]) -> None:
    assert [broken_links(statement) for statement in statements(businesses) if broken_links(statement)] == []


def test_statements_run_forward_inside_the_window(businesses: list[Business]) -> None:
    for statement in statements(businesses):
        dates = [row["date"] for row in statement]
        assert dates == sorted(dates)
        assert date(2024, 7, 1) <= dates[0]
        assert dates[-1] <= UNTIL


def test_amounts_are_whole_cents_and_never_zero(rows: pl.DataFrame) -> None:
    amounts: list[Decimal] = rows["amount"].to_list()
    assert all(amount.as_tuple().exponent == -2 for amount in amounts)
    assert Decimal(0) not in amounts


def test_a_pair_is_two_opposite_amounts_in_two_accounts_of_one_business(rows: pl.DataFrame) -> None:
    legs: defaultdict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.filter(pl.col("transfer_pair").is_not_null()).to_dicts():
        legs[row["business"], row["transfer_pair"]].append(row)
    assert len(legs) > 100
    for one, other in legs.values():
        assert one["amount"] == -other["amount"]
        assert one["account"] != other["account"]
        assert abs((one["date"] - other["date"]).days) <= 6


def test_some_transfers_arrive_after_a_weekend(rows: pl.DataFrame) -> None:
    spread = rows.group_by("business", "transfer_pair").agg(days=pl.col("date").max() - pl.col("date").min())
    paired = spread.filter(pl.col("transfer_pair").is_not_null())
    assert (paired["days"].dt.total_days() >= 3).any()


def test_every_row_is_labelled(rows: pl.DataFrame) -> None:
    assert rows["category"].null_count() == 0
    assert rows["held_out"].null_count() == 0
    assert rows["injected"].null_count() == rows.height
    assert (rows["description"] != "").all()


def test_frames_have_the_declared_columns(businesses: list[Business]) -> None:
    assert {account.transactions.schema == LABELLED for one in businesses for account in one.accounts} == {True}


def test_numbers_pass_the_abn_checksum_and_differ(businesses: list[Business]) -> None:
    numbers = [one.abn for one in businesses]
    assert all(abn.is_valid(number) and len(number) == 11 for number in numbers)
    assert len(set(numbers)) == len(numbers)


def test_no_card_number_is_printed_in_clear(rows: pl.DataFrame) -> None:
    def looks_like_a_card(text: str) -> bool:
        digits = [re.sub(r"\D", "", run) for run in re.findall(r"\d(?:[ -]?\d){12,18}", text)]
        return any(CARD.fullmatch(run) and luhn.is_valid(run) for run in digits)

    assert [text for text in rows["description"] if looks_like_a_card(text)] == []


def test_narratives_leave_no_blank_unfilled_and_are_accepted(rows: pl.DataFrame) -> None:
    texts = rows["description"]
    assert not texts.str.contains(r"[{¤}]|\{[a-z]+[0-9]*\}").filter(rows["bank"] != "ANZ").any()
    assert not texts.str.contains("  ").filter(~rows["bank"].is_in(["Bankwest", "Suncorp Bank"])).any()
    assert not texts.str.contains(r"^\s|\s$").any()
    assert (texts.str.len_chars() <= 1_000).all()


def test_every_trade_bank_condition_and_number_of_accounts_appears() -> None:
    many = list(portfolio(220, 2, seed=11, until=UNTIL))
    assert {one.trade for one in many} == {trade.slug for trade in trades()}
    assert {account.bank_name for one in many for account in one.accounts} == {style.name for style in bank_styles()}
    assert {one.condition for one in many} == set(get_args(Condition))
    assert {len(one.accounts) for one in many} == {1, 2, 3, 4, 5}


def test_only_some_banks_give_ids_and_those_differ(businesses: list[Business]) -> None:
    with_ids = [
        account.transactions["transaction_id"]
        for one in businesses
        for account in one.accounts
        if account.bank_name in ("NAB", "Macquarie Bank", "Zeller", "Up")
    ]
    assert all(ids.null_count() == 0 and ids.n_unique() == len(ids) for ids in with_ids)
    without = [a for one in businesses for a in one.accounts if a.bank_name == "Westpac"]
    assert all(account.transactions["transaction_id"].null_count() for account in without)


def test_a_returned_debit_has_its_debit_on_the_same_day_or_the_business_day_before(businesses: list[Business]) -> None:
    delays: set[bool] = set()
    for statement in statements(businesses):
        for at, row in enumerate(statement):
            if row["category"] == "returned_payment":
                debits = [one for one in statement[:at] if one["amount"] == -row["amount"]]
                assert debits, row
                days = (row["date"] - debits[-1]["date"]).days
                assert days <= 6
                delays.add(days > 0)
    assert delays == {False, True}


def test_some_banks_charge_for_a_dishonour_and_others_do_not(rows: pl.DataFrame) -> None:
    returned = set(rows.filter(pl.col("category") == "returned_payment")["bank"])
    charged = set(rows.filter(pl.col("category") == "dishonour_fee")["bank"])
    assert charged < returned


def test_a_business_alone_is_the_same_as_in_its_portfolio() -> None:
    fifth = [*portfolio(6, 3, seed=5, until=UNTIL)][5]
    assert same(fifth, business(5, 3, seed=5, until=UNTIL))


def test_another_seed_makes_another_business() -> None:
    assert business(0, 1, seed=1, until=UNTIL).abn != business(0, 1, seed=2, until=UNTIL).abn


def test_the_portfolio_is_made_as_it_is_read() -> None:
    endless = portfolio(10**9, 1, seed=1, until=UNTIL)
    assert isinstance(endless, Iterator)
    assert next(endless).accounts


def test_the_same_seed_gives_the_same_rows_in_every_process() -> None:
    program = (
        "from datetime import date; from pipelines.synthetic import portfolio;"
        "many = list(portfolio(12, 2, 9, date(2025, 6, 30), faults=True, lookalikes=True));"
        "print(*((one.outcome, one.facilities, one.lookalikes) for one in many));"
        "print(*(account.transactions.write_csv() for one in many for account in one.accounts))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert len(printed) == 1
    assert printed.pop().count(b"\n") > 500


@examples(1)
@given(
    n=st.integers(0, 10**6),
    months=st.integers(1, 4),
    until=st.dates(date(1990, 1, 1), date(2060, 12, 31)),
)
def test_any_business_at_any_time_chains(n: int, months: int, until: date) -> None:
    made = business(n, months, seed=0, until=until)
    for account in made.accounts:
        statement = account.transactions.to_dicts()
        assert broken_links(statement) == []
        assert statement[-1]["date"] <= until
