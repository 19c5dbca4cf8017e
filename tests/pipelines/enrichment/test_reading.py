"""A row's text is read only once: the row stores what was read, exactly as reading it again would give it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.enrichment import reading
from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.enrichment import enrich, find_changed_customers, fingerprint_customers
from pipelines.enrichment.knowledge import CORRECTIONS, CUSTOMERS, RELATED_PARTIES, Activated, Knowledge
from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.enrichment.matching.retractions import NO_RETRACTIONS, RETRACTED, Retractions
from pipelines.enrichment.own_rules import parse_own_rules
from pipelines.vocabulary.schemas import ACCEPTED, OVERWRITTEN, READ, TRANSACTIONS
from tests.pipelines.enrichment.counterparties.test_categories import Sure
from tests.pipelines.enrichment.examples import ACCOUNT, OTHER_ACCOUNT, submission

NOTHING, NOTHING_NEW = pl.DataFrame(schema=TRANSACTIONS), pl.DataFrame(schema=ACCEPTED)
TEXTS = {  # and the amount
    "EFTPOS BUNNINGS 4410 ALEXANDRIA": -82.15,
    "DIRECT DEBIT PROSPA ADVANCE 88123": -310.00,
    "PROSPA ADVANCE FUNDING": 9_000.00,
    "ATO PAYMENT 551009871166": -1_250.00,
    "TRANSFER TO XX4410 SAVINGS": -500.00,
    "TRANSFER FROM XX1200": 500.00,
    "PAYMENT FROM NORTHSIDE DENTAL INV 20418": 2_310.00,
    "SQUARE AU PTY LTD 0321": 764.20,
    "WAGES K NGUYEN": -1_480.00,
    "DISHONOUR FEE": -15.00,
    "VALUE DATE 03/03/2026 CARD 1234 WOOLWORTHS 1234 SYDNEY AUS": -41.90,
    "qqq zzz": -19.00,
    "JANE CITIZEN LOAN": 1_000.00,
    "CASH DEPOSIT BRANCH": 300.00,
}
OWN_RULES = {"counterparties/shops.yaml": "fuel:\n  Zorbly: [QQQ]\n"}


def rows_of(customer: int, days: range, seq: int) -> pl.DataFrame:
    rng = Random(customer)
    rows: list[dict[str, Any]] = []
    for day in days:
        texts = rng.sample(list(TEXTS), 3)
        rows += [
            {
                "customer_number": customer,
                "account_id": (OTHER_ACCOUNT if text.startswith("TRANSFER FROM") else ACCOUNT)[:15] + bytes([customer]),
                "account_number": "1200" if text.startswith("TRANSFER FROM") else "4410",
                "date": date(2026, 1, 1) + timedelta(days=day),
                "description": text,
                "amount": Decimal(str(TEXTS[text])),
            }
            for text in texts
        ]
    return submission(seq, rows)


def know(**other: Any) -> Knowledge:
    """Return knowledge with which later steps overwrite much of what was read."""
    correction = {"customer_number": 1, "position": 0, "correction_id": UUID(int=1).bytes}
    corrections = [
        {**correction, "words": "qqq", "category": "fuel", "counterparty_name": "Zorbly"},
        {**correction, "position": 1, "counterparty_group": "bunnings", "category": "materials"},
    ]
    return Knowledge(
        corrections=pl.DataFrame(corrections, schema=CORRECTIONS),
        related_parties=pl.DataFrame([(1, "Jane Citizen", None, "director")], schema=RELATED_PARTIES, orient="row"),
        customers=pl.DataFrame([(1, "Northside Dental", None), (2, "Acme", None)], schema=CUSTOMERS, orient="row"),
        **other,
    )


def forget(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.lit(None, TRANSACTIONS[name]).alias(name) for name in ("read_by", "as_read"))


@cache
def own_lists() -> Lists:
    return parse_own_rules(OWN_RULES).lists


def own_model() -> Model:
    return Sure()  # pyrefly: ignore[bad-return]  # it can predict, and has a name


@pytest.fixture
def read_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the texts of all rows that are read are added."""
    texts = list[str]()
    read: Callable[..., pl.DataFrame] = reading.read_narratives

    def read_and_note(rows: pl.DataFrame, *others: Any) -> pl.DataFrame:
        texts.extend(rows["description"])
        return read(rows, *others)

    monkeypatch.setattr(reading, "read_narratives", read_and_note)
    return texts


@pytest.fixture(scope="module")
def held() -> pl.DataFrame:
    both = pl.concat([rows_of(1, range(60), 1), rows_of(2, range(60), 2)])
    return enrich(NOTHING, both, knowledge=know()).transactions.collect()


def test_a_new_row_is_read_alone(held: pl.DataFrame, read_texts: list[str]) -> None:
    more = submission(3, [{"account_id": ACCOUNT[:15] + b"\1", "description": "TEA HOUSE"}])
    enrich(held, more, knowledge=know())
    assert read_texts == ["TEA HOUSE"]


def test_remembering_changes_nothing(held: pl.DataFrame, subtests: pytest.Subtests) -> None:
    """Whatever later steps overwrite: the result is that of reading all rows again."""
    taken_back = pl.DataFrame([(1, (1).to_bytes(16), 1, 4)], schema=RETRACTED, orient="row")
    more = pl.concat([rows_of(1, range(61, 70), 3), rows_of(2, range(58, 64), 4)])
    batches = {
        "nothing new": (NOTHING_NEW, NO_RETRACTIONS, know()),
        "new rows": (more, NO_RETRACTIONS, know()),
        "corrections withdrawn": (NOTHING_NEW, NO_RETRACTIONS, Knowledge()),
        "a retraction": (more, Retractions(taken_back, NOTHING_NEW), know()),
        "own rules": (more, NO_RETRACTIONS, know(own_lists=[Activated(frozenset({2}), own_lists())])),
        "an own model": (more, NO_RETRACTIONS, know(models=[Activated(frozenset({2}), own_model())])),
    }
    assert held.filter(pl.col("as_read").is_not_null())["description"].n_unique() > 4
    for name, (accepted, retractions, knowledge) in batches.items():
        with subtests.test(name):
            once = enrich(held, accepted, retractions, knowledge).transactions.collect()
            anew = enrich(forget(held), accepted, retractions, knowledge).transactions.collect()
            current = pl.col("retracted_seq").is_null()
            assert_frame_equal(once.filter(current), anew.filter(current))


def test_what_reads_differently_reads_again(
    held: pl.DataFrame, read_texts: list[str], monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    theirs, everybody = held.filter(customer_number=2).height, held.height
    unnamed = replace(own_lists(), name=None)
    cases = {
        "the same": (know(), 0),
        "own rules of one client": (know(own_lists=[Activated(frozenset({2}), own_lists())]), theirs),
        "other rules for all": (know(lists=own_lists()), everybody),
        "rules without a name": (know(lists=unnamed), everybody),
        "an own model of one client": (know(models=[Activated(frozenset({2}), own_model())]), theirs),
    }
    for name, (knowledge, rows) in cases.items():
        with subtests.test(name):
            read_texts.clear()
            again = enrich(held, NOTHING_NEW, knowledge=knowledge).transactions.collect()
            assert len(read_texts) == rows
            read_texts.clear()
            enrich(again, NOTHING_NEW, knowledge=knowledge)
            assert len(read_texts) == (everybody if knowledge.lists is unnamed else 0)
    monkeypatch.setattr(reading, "_hash_program", lambda: "another release")
    read_texts.clear()
    enrich(held, NOTHING_NEW, knowledge=know())
    assert len(read_texts) == everybody


def test_a_row_is_read_as_of_its_account_whatever_its_own_submission_states(read_texts: list[str]) -> None:
    """Else money paid into a card by a feed without the account's type would be new money in."""
    paid = {"description": "ONLINE PAYMENT", "amount": Decimal(500), "account_type": None}
    fed = enrich(NOTHING, submission(1, [paid])).transactions.collect()
    assert fed["category"].to_list() == ["unknown_credit"]
    statement = submission(2, [{"description": "MILK BAR", "account_type": "credit_card"}])
    stated = enrich(fed, statement).transactions.collect()
    assert dict(stated.select("description", "category").iter_rows())["ONLINE PAYMENT"] == "card_repayment"
    read_texts.clear()
    later = enrich(stated, submission(3, [{**paid, "date": date(2026, 4, 2)}])).transactions.collect()
    assert (later["category"][-1], read_texts) == ("card_repayment", ["ONLINE PAYMENT"])
    assert later["account_type"].to_list() == [None, "credit_card", None]


def test_only_what_as_read_can_hold_is_ever_overwritten(held: pl.DataFrame) -> None:
    """Otherwise a row would remember what a later step said."""
    alone = reading.read_rows(held.select(KNOWN.names()), NOTHING, know()).select("transaction_id", *READ)
    later = held.select("transaction_id", *READ)
    others = [name for name in READ if name not in OVERWRITTEN]
    both = (frame.sort("transaction_id").select(others) for frame in (alone, later))
    assert_frame_equal(*both)


def test_another_reader_alone_changes_no_customer(held: pl.DataFrame) -> None:
    assert find_changed_customers(fingerprint_customers(held), forget(held)).is_empty()
