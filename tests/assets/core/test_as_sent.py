"""Ids, accounts and narratives that look alike after masking stay distinct, even after key rotation and restore."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import polars as pl
import pytest
from stdnum import luhn

from pipelines.figures.facts import select_as_known
from pipelines.intake.rows import land_lines
from storage.core import vault, vault_keys
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment import transactions
from storage.operations import backup, resealing
from tests.assets.lender import COFFEE, RENT, Item, Lender
from tests.conftest import open_store
from tests.fake_statements import FakeReader, entry, extract, extraction, statement, submit_files

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

# Sixteen digits of one issuer with a valid check digit, alike in the first six and the last four.
ALIKE = list(islice(filter(luhn.is_valid, (f"453912{middle:06d}1234" for middle in range(1_000))), 5))
SHOWN = "453912xxxxxx1234"


@pytest.fixture
def lender(store: Store) -> Lender:
    return Lender(store)


def with_id(number: str) -> Item:
    return {**COFFEE, "transactionId": number}


def payment_to(number: str) -> Item:
    return {**COFFEE, "description": f"Payment to {number}"}


def items_with(numbers: Sequence[str]) -> list[Item]:
    return [*map(with_id, numbers), *map(payment_to, numbers)]


def ids(lender: Lender) -> set[bytes]:
    return {row["transaction_id"] for row in lender.rows()}


def test_rows_that_are_masked_alike_stay_separate_transactions(lender: Lender) -> None:
    jobs = [lender.submit_and_end(with_id(number), payment_to(number)) for number in ALIKE]
    assert [(job.enriched_rows, job.duplicate_rows) for job in jobs] == [(2, 0)] * 5
    assert {row["revision"] for row in lender.rows()} == {1}
    assert len(ids(lender)) == 10


def test_one_submission_may_contain_several_ids_that_are_masked_alike(lender: Lender) -> None:
    job = lender.submit_and_end(
        *({**RENT, "amount": f"-{nth}", "transactionId": number} for nth, number in enumerate(ALIKE))
    )
    assert (job.enriched_rows, job.rejected_rows) == (5, 0)
    assert {row["client_transaction_id"] for row in lender.rows()} == {SHOWN}


def test_overlapping_submissions_add_only_new_rows(lender: Lender) -> None:
    lender.submit_and_end(*items_with(ALIKE[:3]))
    before = ids(lender)
    job = lender.submit_and_end(*items_with(ALIKE[1:]))
    assert (job.enriched_rows, job.duplicate_rows) == (4, 4)
    assert before < ids(lender)


def test_another_card_number_in_the_same_narrative_is_a_revision(lender: Lender) -> None:
    one, other = ({**payment_to(number), "transactionId": "A"} for number in ALIKE[:2])
    lender.submit_and_end(one)
    assert lender.submit_and_end(other).enriched_rows == 1
    assert [row["revision"] for row in lender.rows()] == [2]


def test_cards_that_are_masked_alike_are_separate_accounts(lender: Lender) -> None:
    for number in ALIKE[:2]:
        lender.submit_and_end(COFFEE, account_number=number)
    assert (
        lender.submit_and_end(COFFEE, account_number=f"{ALIKE[0][:4]} {ALIKE[0][4:8]}-{ALIKE[0][8:]}").duplicate_rows
        == 1
    )
    rows = lender.rows()
    assert len({row["account_id"] for row in rows}) == len(rows) == 2
    assert {row["account_number"] for row in rows} == {SHOWN}


def test_ids_that_are_not_masked_have_no_digest(lender: Lender) -> None:
    lender.submit_and_end(with_id("20260630-0007"), COFFEE)
    assert {row["client_transaction_id_digest"] for row in lender.rows()} == {None}
    assert {row["description_digest"] for row in lender.rows()} == {None}


def test_new_keys_change_no_identity(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "FRESH_FOR_S", 0.0)  # nobody else seals
    lender.submit_and_end(*items_with(ALIKE))
    before, store, now = ids(lender), lender.store, datetime.now(UTC)
    vault_keys.rotate_master_key(store.db, store.settings, now)
    resealing.reseal(store, lambda: now)
    lender.store = replace(store, vault=vault_keys.open_vault(store.db, store.settings))  # another process
    job = lender.submit_and_end(*items_with(ALIKE))
    assert (job.enriched_rows, job.duplicate_rows) == (0, 10)
    assert ids(lender) == before


def test_a_restored_service_recognises_the_same_rows(tmp_path: Path) -> None:
    store = open_store(Settings(home=tmp_path / "home"))
    lender = Lender(store)
    lender.submit_and_end(*items_with(ALIKE))
    before = ids(lender)
    assert backup.back_up(store, tmp_path / "backup").damages == []
    store.close()

    home = tmp_path / "restored"
    home.mkdir()
    shutil.copytree(tmp_path / "backup" / "lake", home / "lake")
    shutil.copy(tmp_path / "backup" / "tidemark.db", home)
    shutil.copy(store.settings.key_file, home)
    lender.store = open_store(Settings(home=home))
    job = lender.submit_and_end(*items_with(ALIKE))
    assert (job.enriched_rows, job.duplicate_rows) == (0, 10)
    assert ids(lender) == before
    lender.store.close()


def test_after_a_retraction_shared_rows_belong_to_the_later_submission(lender: Lender) -> None:
    first, second = lender.submit_and_end(*items_with(ALIKE[:3])), lender.submit_and_end(*items_with(ALIKE[1:]))
    before = ids(lender)
    lender.retract_and_end(first)
    assert ids(lender) < before
    assert len(lender.rows()) == len(lender.rows(second)) == 8


def test_rows_known_at_an_earlier_time_are_counted_separately(lender: Lender) -> None:
    jobs = [lender.submit_and_end(with_id(number)) for number in ALIKE[:2]]
    revised = lender.submit_and_end({**with_id(ALIKE[0]), "amount": "-5.00"})
    with lender.store.db.reading() as r:
        held = transactions.scan(lender.store.lake, transactions.current_locations(r)).collect()
    for count, job in enumerate(jobs, start=1):
        assert select_as_known(held, job.received_seq or 0).height == count
    last = select_as_known(held, revised.received_seq or 0).filter(pl.col("superseded_seq").is_null())
    assert (last.height, last.filter(pl.col("revision") == 2).height) == (2, 1)


def test_statements_of_cards_that_are_masked_alike_stay_two_accounts_when_sent_again(lender: Lender) -> None:
    cards = {
        name: extraction(replace(statement(entry("COFFEE", "-4.50", "95.50"), account_number=number), bsb=None))
        for name, number in zip(("one", "other"), ALIKE, strict=False)
    }

    def read(*names: str) -> tuple[int, int]:
        job = submit_files(lender.store, lender.customer, *names)
        extract(lender.store, FakeReader(**cards))
        lender.end_all()
        ended = lender.now(job)
        return ended.enriched_rows or 0, ended.duplicate_rows or 0

    assert read("one", "other") == (2, 0)
    assert read("one", "other")[0] == 0, "the stored statements keep their accounts"
    assert len({row["account_id"] for row in lender.rows()}) == len(lender.rows()) == 2


def test_landing_files_without_digests_are_read_together_with_newer_ones(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        columns = ("masked", "transactionIdDigest", "descriptionDigest")
        before.setattr("tests.assets.lender.land_lines", lambda items, digest: land_lines(items, digest).drop(columns))
        lender.submit(COFFEE)
    lender.submit_and_end(RENT)
    assert lender.descriptions() == ["COFFEE", "RENT"]
