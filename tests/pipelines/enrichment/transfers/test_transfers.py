"""Rows of two own accounts are paired as transfers by amount, date and text, as an oracle in plain Python does."""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.transfers.transfers import CONFIDENCE, MAX_BUSINESS_DAYS, MAX_CALENDAR_DAYS, mark_transfers
from pipelines.synthetic import Business, SyntheticAccount, portfolio
from pipelines.vocabulary.schemas import ACCEPTED, MONEY, TRANSACTIONS
from tests.pipelines.enrichment.examples import ACCOUNT, DEFAULTS, OTHER_ACCOUNT, held_rows

MONDAY = date(2026, 3, 2)
THIRD_ACCOUNT = b"c" * 16
NUMBERS = {ACCOUNT: "1111", OTHER_ACCOUNT: "2222", THIRD_ACCOUNT: "3333"}
Row = dict[str, Any]


def out(day: date = MONDAY, amount: str = "-100", **fields: Any) -> Row:
    return add_number({"account_id": ACCOUNT, "date": day, "amount": Decimal(amount), **fields})


def into(day: date = MONDAY, amount: str = "100", **fields: Any) -> Row:
    return add_number({"account_id": OTHER_ACCOUNT, "date": day, "amount": Decimal(amount), **fields})


def add_number(row: Row) -> Row:
    return {"account_number": f"06200{NUMBERS[row['account_id']]}", **row}


def pairs(*rows: Row) -> list[tuple[int, ...]]:
    """Return the positions of rows that were paired with each other."""
    linked = mark_transfers(held_rows(*rows)).filter("is_transfer")
    groups = linked.group_by("transfer_pair_id").agg(pl.col("position").sort())["position"].to_list()
    return sorted(tuple(group) for group in groups)


def pairs_with_all_accounts(rows: list[Row]) -> list[tuple[int, ...]]:
    """Return the pairs of a customer with all accounts supplied: one row of each account is added at the end."""
    return pairs(*rows, *(out(account_id=account, amount="-1") for account in NUMBERS))


def test_the_same_amount_out_of_one_account_and_into_another_is_a_pair() -> None:
    assert pairs(out(), into()) == [(0, 1)]


def test_an_account_has_the_type_that_was_stated_last() -> None:
    stated = into(amount="-1", account_type="credit_card", received_seq=1)
    silent = into(account_type=None, received_seq=2)
    assert mark_transfers(held_rows(out(), silent, stated))["category"].to_list()[:2] == ["card_repayment"] * 2


def test_both_sides_take_the_category_of_a_transfer() -> None:
    linked = mark_transfers(held_rows(out(), into()))
    assert linked["category"].to_list() == ["own_transfer"] * 2
    assert linked["category_group"].to_list() == ["transfer"] * 2


@pytest.mark.parametrize(
    "other",
    [
        into(amount="100.01"),
        into(account_id=ACCOUNT),
        into(customer_number=2),
        into(status="pending"),
        into(superseded_seq=9),
        into(MONDAY + timedelta(days=4)),  # Friday: four business days
        into(amount="-100"),
        into(counterparty_kind="business"),  # a named merchant gave money back
        into(category="interest_received"),
    ],
)
def test_different_rows_are_not_paired(other: Row) -> None:
    assert pairs(out(), other) == []


def test_rows_are_paired_over_a_weekend() -> None:
    thursday = date(2026, 3, 5)
    assert pairs(out(thursday), into(thursday + timedelta(days=5))) == [(0, 1)]


def test_rows_are_paired_over_public_holidays() -> None:
    thursday_before_easter = date(2026, 4, 2)
    assert pairs(out(thursday_before_easter), into(date(2026, 4, 8))) == [(0, 1)]  # Tuesday and Wednesday, after four
    wednesday = date(2026, 4, 1)
    assert pairs(out(wednesday), into(date(2026, 4, 8))) == [], "seven days"


def test_named_account_wins_over_the_nearer_date() -> None:
    near, named = into(account_id=THIRD_ACCOUNT), into(MONDAY + timedelta(days=2))
    assert pairs(out(other_account="2222"), near, named) == [(0, 2)]


def test_text_that_names_another_own_account_excludes_a_pair() -> None:
    elsewhere: Row = {"account_id": THIRD_ACCOUNT, "amount": "7"}
    assert pairs(out(other_account="3333"), into(), into(**elsewhere)) == []
    assert pairs(out(), into(other_account="3333"), into(**elsewhere)) == []
    assert pairs(out(other_account="9999"), into(), into(**elsewhere)) == [(0, 1)], "nobody knows whose that is"


@pytest.mark.parametrize("digits", ["2222", "62002222", "062002222"])
@pytest.mark.parametrize("printed", ["062-002222", "06200 2222", "xxxxx2222"])
def test_an_account_is_named_by_as_many_digits_as_are_printed(digits: str, printed: str) -> None:
    decoy = into(account_id=THIRD_ACCOUNT)
    found = pairs(out(other_account=digits), decoy, into(MONDAY + timedelta(days=1), account_number=printed))
    known_digits = 4 if printed.startswith("x") else 9
    assert found == [(0, 2) if len(digits) <= known_digits else (0, 1)]


def test_a_row_without_its_other_side_is_a_transfer_if_it_names_an_own_account_and_nothing_else() -> None:
    unknown: Row = {"category": "unknown_debit", "category_group": "unknown"}
    cases = {
        "an own account": (out(other_account="2222", **unknown), "own_transfer"),
        "an account of somebody else": (out(other_account="9999", **unknown), "unknown_debit"),
        "its own account": (out(other_account="1111", **unknown), "unknown_debit"),
        "somebody else, too": (out(other_account="2222", counterparty_name="Vale", **unknown), "unknown_debit"),
        "a purpose": (out(other_account="2222", category="rent", category_group="premises"), "rent"),
    }
    for name, (row, category) in cases.items():
        marked = mark_transfers(held_rows(row, into(amount="7")))
        assert marked["category"][0] == category, name
        assert not marked["is_transfer"][0], name


def test_same_reference_wins_over_the_nearer_date() -> None:
    rows = out(reference="J0123456"), into(), into(MONDAY + timedelta(days=1), reference="J0123456")
    assert pairs(*rows) == [(0, 2)]


def test_words_of_a_transfer_win_over_the_nearer_date() -> None:
    rows = out(description="TRANSFER TO SAVINGS"), into(), into(MONDAY + timedelta(days=1), description="TFR FROM MAIN")
    assert pairs(*rows) == [(0, 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"related_party": "John Smith"},
        {"category": "cash_deposit"},
        {"category": "card_settlement"},
        {"category": "customer_transfer", "category_source": "correction", "counterparty_kind": "business"},
        {"category": "returned_payment"},
        {"channel": "eftpos"},
        {"category": "term_loan_funding"},  # borrowed, but nothing is owed on the other account
    ],
)
def test_rows_with_others_are_paired_only_if_an_own_account_is_named(other: Row) -> None:
    usual: Row = {"category_group": "debt_inflow" if other.get("category") == "term_loan_funding" else None}
    assert pairs(out(), into(**usual, **other)) == []
    assert pairs(out(), into(**usual, **other, other_account="1111")) == [(0, 1)]


def test_holders_name_counts_like_an_own_account() -> None:
    account: Row = {"account_name": "Anderson Legal Pty Ltd Business Transaction Account"}
    text: Row = {"description": "PAYMENT 935437 TO ANDERSON LEGAL", "category": "payg_withholding"}
    assert pairs(out(**account, **text), into()) == [(0, 1)]
    elsewhere = out(date(2026, 1, 5), "-1", **account)
    assert pairs(elsewhere, out(**text, received_seq=2), into()) == [(1, 2)], "stated by another submission"
    text = {**text, "description": "BUSINESS PAYMENT"}
    assert pairs(out(account_name="Business Transaction Account", **text), into()) == [], "nobody's name"


def test_guess_of_the_model_does_not_prevent_a_pair() -> None:
    guessed: Row = {"category": "wages", "category_source": "learned"}
    assert pairs(out(**guessed, confidence=0.5), into()) == [(0, 1)]
    assert pairs(out(**guessed, confidence=0.95), into()) == []


def test_paying_off_an_own_card_is_a_repayment_on_both_sides() -> None:
    linked = mark_transfers(held_rows(out(), into(account_type="credit_card")))
    assert linked["category"].to_list() == ["card_repayment"] * 2
    assert linked["category_group"].to_list() == ["debt_service"] * 2
    assert linked["is_transfer"].all()


def test_money_from_an_own_card_is_an_advance_where_it_arrives() -> None:
    linked = mark_transfers(held_rows(out(account_type="credit_card"), into()))
    assert linked["category"].to_list() == ["own_transfer", "card_advance"]


def test_transfer_that_mentions_a_card_is_not_a_purchase() -> None:
    rows = out(description="BIB TRANSFER 5JEYKJXW CARD 0018", channel="card"), into(account_type="credit_card")
    assert pairs(*rows) == [(0, 1)]


def test_a_drawdown_from_an_own_loan_account_keeps_its_category() -> None:
    funded: Row = {"category": "term_loan_funding", "category_group": "debt_inflow"}
    linked = mark_transfers(held_rows(out(account_type="loan"), into(**funded)))
    assert linked["is_transfer"].to_list() == [True, True]
    assert linked["category"].to_list() == ["own_transfer", "term_loan_funding"]


def test_corrected_rows_keep_their_category() -> None:
    corrected: Row = {"category": "owner_drawings", "category_source": "correction", "confidence": 1.0}
    linked = mark_transfers(held_rows(out(**corrected), into()))
    assert linked["is_transfer"].all()
    assert linked["category"].to_list() == ["owner_drawings", "own_transfer"]
    assert linked["confidence"].to_list()[0] == 1


def test_confidence_of_a_pair_depends_on_its_texts() -> None:
    silent = mark_transfers(held_rows(out(), into()))["confidence"]
    named = mark_transfers(held_rows(out(other_account="2222"), into(other_account="1111")))["confidence"]
    assert silent.to_list() == [CONFIDENCE[-1]] * 2
    assert named.to_list() == [CONFIDENCE[0]] * 2


def test_rows_of_one_day_are_paired_in_their_order() -> None:
    rows = [out(position=position, transaction_id=bytes([90 - position]) * 16) for position in (0, 1)]
    rows += [into(position=position, transaction_id=bytes([70 - position]) * 16) for position in (2, 3)]
    assert pairs(*rows) == [(0, 2), (1, 3)]


def test_nearer_date_wins() -> None:
    assert pairs(out(), into(MONDAY + timedelta(days=2)), into(MONDAY)) == [(0, 2)]


def test_many_accounts_that_name_each_other_stay_bounded() -> None:
    """Each of many rows names one of fifty accounts; a join must not multiply them with each other."""
    rows = held_rows(out())
    nth = pl.int_range(pl.len())
    ending = pl.format("9{}", (nth % 7).cast(pl.String).str.zfill(5))
    many = pl.concat([rows] * 20_000).with_columns(
        position=nth.cast(pl.UInt32),
        transaction_id=nth.cast(pl.String).cast(pl.Binary),
        account_id=(nth % 50).cast(pl.String).cast(pl.Binary),
        account_number=pl.format("9{}", (nth % 50).cast(pl.String).str.zfill(5)),
        other_account=ending,
        amount=pl.when(nth // 50 % 2 == 0).then(pl.lit(Decimal(-1))).otherwise(pl.lit(Decimal(1))).cast(MONEY),
    )
    found = mark_transfers(many).filter("is_transfer")
    assert found.height > 1_000
    assert found["transfer_pair_id"].n_unique() == found.height // 2


def test_each_row_has_one_partner() -> None:
    assert pairs(out(), out(), into(), into(), into()) == [(0, 2), (1, 3)]


def test_many_equal_amounts_on_one_day_are_all_paired() -> None:
    found = pairs(*(out() for _ in range(5_000)), *(into() for _ in range(5_000)))
    assert len(found) == 5_000
    assert {len(pair) for pair in found} == {2}


sides = st.builds(
    lambda account, day, sign, **texts: add_number(
        {"account_id": account, "date": MONDAY + timedelta(days=day), "amount": Decimal(100 * sign), **texts}
    ),
    st.sampled_from(list(NUMBERS)),
    st.integers(0, 12),
    st.sampled_from([1, -1]),
)
speaking = st.builds(
    lambda side, named, reference, category: {
        **side,
        "other_account": named if named != NUMBERS[side["account_id"]] else None,
        "reference": reference,
        "category": category,
    },
    sides,
    st.sampled_from([None, None, *NUMBERS.values()]),
    st.sampled_from([None, None, "J0123", "J0456"]),
    st.sampled_from([None, "own_transfer"]),
)


@given(st.lists(sides, max_size=8) | st.lists(speaking, max_size=8))
def test_pairs_follow_the_rule_and_no_possible_pair_is_left(rows: list[Row]) -> None:
    found = pairs_with_all_accounts(rows)
    taken = [position for pair in found for position in pair]
    assert len(taken) == len(set(taken))
    assert all(len(pair) == 2 and is_possible(rows[pair[0]], rows[pair[1]]) for pair in found)
    left = [row for position, row in enumerate(rows) if position not in taken]
    assert not any(is_possible(a, b) for a in left for b in left)


@given(st.lists(sides, max_size=8))
def test_no_two_rows_prefer_each_other_by_date_to_their_pairs(rows: list[Row]) -> None:
    """No amount out and amount in are both in pairs farther apart than they are from each other."""
    partner = {one: other for pair in pairs_with_all_accounts(rows) for one, other in (pair, pair[::-1])}
    for left, one in enumerate(rows):
        for right, other in enumerate(rows):
            if one["amount"] < 0 < other["amount"] and is_possible(one, other) and left in partner and right in partner:
                near = distance(one, other)
                assert distance(one, rows[partner[left]]) <= near or distance(rows[partner[right]], other) <= near


@given(st.lists(speaking, max_size=8))
def test_no_two_rows_prefer_each_other_by_text_to_their_pairs(rows: list[Row]) -> None:
    """No amount out and amount in are both in pairs with weaker texts than they would have together."""
    partner = {one: other for pair in pairs_with_all_accounts(rows) for one, other in (pair, pair[::-1])}
    for left, one in enumerate(rows):
        for right, other in enumerate(rows):
            if one["amount"] < 0 < other["amount"] and is_possible(one, other) and left in partner and right in partner:
                score = text_score(one, other)
                assert text_score(one, rows[partner[left]]) >= score or text_score(rows[partner[right]], other) >= score


def text_score(one: Row, other: Row) -> int:
    """Return how strongly the texts of two rows suggest a pair, in plain Python."""
    if one["reference"] is not None and one["reference"] == other["reference"]:
        return 7
    names: list[bool] = [a["other_account"] == NUMBERS[b["account_id"]] for a, b in ((one, other), (other, one))]
    if any(names):
        return 4 + sum(names)
    categories: list[str | None] = [one["category"], other["category"]]
    return categories.count("own_transfer")


def distance(out: Row, into: Row) -> int:
    days: int = abs((into["date"] - out["date"]).days)
    return days


def is_possible(a: Row, b: Row) -> bool:
    """Apply the rule in plain Python: opposite amounts in two accounts, close in time, no text names a third one."""
    first, last = sorted((a["date"], b["date"]))
    days = [first + timedelta(days=n) for n in range((last - first).days)]
    business = sum(day.weekday() < 5 for day in days)
    apart = len(days) <= MAX_CALENDAR_DAYS and business <= MAX_BUSINESS_DAYS
    named = all(one.get("other_account") in (None, NUMBERS[other["account_id"]]) for one, other in ((a, b), (b, a)))
    return bool(a["account_id"] != b["account_id"] and a["amount"] == -b["amount"] and apart and named)


@dataclass(frozen=True)
class Measured:
    precision: float
    recall: float


def measure(customers: int, months: int, seed: int) -> Measured:
    """Measure precision and recall of pairs in the synthetic portfolio.

    Pairs with the same accounts, days and amount can't be distinguished, so they are only counted.
    """
    sent = pl.concat(
        label_business(n, each) for n, each in enumerate(portfolio(customers, months, seed, until=date(2026, 6, 30)))
    )
    rows = enrich(pl.DataFrame(schema=TRANSACTIONS), sent.select(ACCEPTED.names())).transactions.collect()
    key = ["customer_number", "received_seq", "position"]
    places = rows.join(sent.select(*key, "transfer_pair"), on=key, validate="1:1")
    true, found = (_twins(places, mark) for mark in ("transfer_pair", "transfer_pair_id"))
    right = found.join(true, on=["customer_number", "legs"]).select(pl.min_horizontal("pairs", "pairs_right").sum())
    return Measured(right.item() / found["pairs"].sum(), right.item() / true["pairs"].sum())


def _twins(places: pl.DataFrame, mark: str) -> pl.DataFrame:
    """Count the pairs with the same customer, accounts, days and amounts."""
    legs = pl.struct("amount", "account_id", "date").sort().alias("legs")
    pairs = places.drop_nulls(mark).group_by("customer_number", mark).agg(legs)
    return pairs.group_by("customer_number", "legs").agg(pairs=pl.len())


def label_business(n: int, business: Business) -> pl.DataFrame:
    """Return a business's statements as accepted rows, with the true pairs."""
    return pl.concat(
        account.transactions.filter(pl.col("injected").is_null()).select(
            *("date", "description", "amount", "balance", "transfer_pair"),
            **_account_columns(n, place, account),
            position=pl.int_range(pl.len(), dtype=pl.UInt32),
        )
        for place, account in enumerate(business.accounts)
    ).select(pl.col(name).cast(kind) for name, kind in {**ACCEPTED, "transfer_pair": pl.UInt32()}.items())


def _account_columns(n: int, place: int, account: SyntheticAccount) -> dict[str, pl.Expr]:
    submission = {
        **dict.fromkeys(ACCEPTED.names()),
        **DEFAULTS,
        "customer_number": n,
        "received_seq": 10 * n + place,
        "account_id": (10 * n + place).to_bytes(16),
        "account_name": account.account_name,
        "bsb": account.bsb,
        "account_number": account.account_number,
        "account_type": account.account_type,
        "appended": True,
    }
    described = ("date", "description", "amount", "balance", "position")
    return {name: pl.lit(value, ACCEPTED[name]) for name, value in submission.items() if name not in described}


@pytest.mark.service  # a whole portfolio
def test_pairs_of_the_synthetic_portfolio_are_correct_and_complete() -> None:
    found = measure(customers=15, months=12, seed=41)
    assert found.precision >= 0.995
    assert found.recall >= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5, 8])
def test_pairs_of_a_larger_portfolio_are_correct_and_complete(seed: int) -> None:
    found = measure(customers=80, months=24, seed=seed)
    assert found.precision >= 0.995
    assert found.recall >= 0.98
