"""Notes and attachments: what is left of a deleted one, and who knows the files."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Gone, InvalidRequest, NotFound
from storage.core.store import Store
from storage.core.vault_keys import count_sealed
from storage.customers.customers import Customer
from storage.operations import integrity, resealing, retention
from storage.operations.backup import back_up
from storage.work import attachments, notes
from storage.work.attachments import Attachment
from storage.work.notes import NewNote, Note
from tests.storage.examples import a_client, a_customer
from tests.storage.work.test_items import Team

CONTENT = b"MZ any bytes \x00\xff"


@pytest.fixture
def customer(store: Store, now: datetime) -> Customer:
    return a_customer(store, a_client(store, now), now)


def a_note(store: Store, customer: Customer, now: datetime, new: NewNote | None = None) -> Note:
    with store.db.writing() as w:
        return notes.add(w, customer, new or NewNote("Rang the owner."), "dana", now)


def add_attachment(store: Store, customer: Customer, now: datetime) -> Attachment:
    new = attachments.seal(store, uuid4(), "loan.docx", b"of the file".ljust(32), CONTENT, now)
    with store.db.writing() as w:
        return attachments.add(w, store.lake, customer, new, "dana", now)


def delete_attachment(store: Store, customer: Customer, attachment_id: UUID, now: datetime) -> str | None:
    with store.db.writing() as w:
        return attachments.delete(w, customer, attachment_id, "kim", now)


def test_of_a_deleted_note_the_fact_is_left(store: Store, customer: Customer, now: datetime) -> None:
    first, second = a_note(store, customer, now), a_note(store, customer, now)
    for later in (now + timedelta(hours=1), now + timedelta(hours=2)):
        with store.db.writing() as w:
            gone = notes.delete(w, customer, first.note_id, "kim", later)
        assert (gone.text, gone.created_by, gone.deleted_by) == (None, "dana", "kim")
        assert gone.deleted_at == now + timedelta(hours=1), "only the first deletion counts"
    with store.db.reading() as r:
        assert notes.find(r, customer).items == [second, gone]


def test_notes_are_found_by_what_they_are_about(store: Store, now: datetime) -> None:
    team = Team(store, now)
    match, evaluation = team.alert(team.one), team.decision(team.one, "conditional")
    of_match = a_note(store, team.one, now, NewNote("Match.", match_id=match))
    of_evaluation = a_note(store, team.one, now, NewNote("Evaluation.", evaluation_id=evaluation))
    plain = a_note(store, team.one, now)
    with store.db.reading() as r:
        assert notes.find(r, team.one).items == [plain, of_evaluation, of_match]
        assert notes.find(r, team.one, match_id=match).items == [of_match]
        assert notes.find(r, team.one, evaluation_id=evaluation).items == [of_evaluation]
        assert notes.find(r, team.other).items == []
        with pytest.raises(NotFound):
            notes.get(r, team.other, plain.note_id)
    for new in (NewNote("?", match_id=match), NewNote("?", evaluation_id=evaluation), NewNote("?", match_id=uuid4())):
        with pytest.raises(InvalidRequest):
            a_note(store, team.other, now, new)


def test_an_attachment_is_sealed_and_its_file_goes_with_it(store: Store, customer: Customer, now: datetime) -> None:
    made = add_attachment(store, customer, now)
    assert made.path is not None
    assert CONTENT not in (store.lake.root / made.path).read_bytes()
    assert attachments.open_content(store, made) == CONTENT
    assert delete_attachment(store, customer, made.attachment_id, now) == made.path
    assert delete_attachment(store, customer, made.attachment_id, now) is None
    with store.db.reading() as r:
        [gone] = attachments.find(r, customer).items
        assert list(integrity.find_all_named(r)) == []
    assert (gone.file_name, gone.path, gone.deleted_by, gone.size) == (None, None, "kim", len(CONTENT))
    with pytest.raises(Gone):
        attachments.open_content(store, gone)


def test_attachments_are_another_customers(store: Store, customer: Customer, now: datetime) -> None:
    made, other = add_attachment(store, customer, now), a_customer(store, customer.client_id, now)
    with store.db.reading() as r:
        assert attachments.find(r, other).items == []
        with pytest.raises(NotFound):
            attachments.get(r, other, made.attachment_id)
    with pytest.raises(NotFound):
        delete_attachment(store, other, made.attachment_id, now)


def test_backup_integrity_and_sweep_know_attachments(
    store: Store, customer: Customer, now: datetime, subtests: pytest.Subtests
) -> None:
    made = add_attachment(store, customer, now)
    assert made.path is not None
    later = now + timedelta(days=3650)
    with subtests.test("a backup has the file"):
        done = back_up(store, store.settings.home / "backup")
        assert (done.files, done.damages) == (1, [])
    with subtests.test("a sweep leaves it"):
        retention.sweep(store, lambda: later, confirmed=True)
        assert attachments.open_content(store, made) == CONTENT
    with subtests.test("damage names the customer"):
        (store.lake.root / made.path).write_bytes(b"damaged")
        [damage] = integrity.check(store, lambda: now).damages
        assert (damage.path, damage.customers) == (made.path, [customer.customer_id])
    with subtests.test("a deleted one that was not removed is an orphan"):
        delete_attachment(store, customer, made.attachment_id, now)
        assert retention.sweep(store, lambda: later, confirmed=True).orphans == 1
        assert integrity.check(store, lambda: now).damages == []


def test_attachments_are_resealed_and_their_keys_are_kept(
    store: Store, customer: Customer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add_attachment(store, customer, now)
    monkeypatch.setattr(resealing.vault, "FRESH_FOR_S", 0)
    with store.db.reading() as r:
        [before] = count_sealed(r)
    done = resealing.reseal(store, lambda: now)
    assert (done.originals, list(done.unreadable)) == (1, [])
    with store.db.reading() as r:
        again = attachments.get(r, customer, made.attachment_id)
        assert set(count_sealed(r)) == {done.data_key} != {before}
    assert again.path != made.path
    assert attachments.open_content(store, again) == CONTENT
