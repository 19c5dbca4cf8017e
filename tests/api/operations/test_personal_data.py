"""The search for a person's data reads every store."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from isolation import read_pdf_text
from pipelines.synthetic.pdf import statement_pdf
from storage.access import sessions, users
from storage.access.roles import Role
from storage.core.store import Store
from storage.operations.personal_data import Finding, find
from tests.api.conftest import Client, answering, new_client
from tests.api.work.test_records import add_note, attach
from tests.api.worker import end_submissions

NAME = 'Zélie "Zee" O\'Hara'
TYPED = NAME.upper()
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def store(own_store: Store) -> Store:
    """Provide a store with few rows, because the search reads everything."""
    return own_store


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    with answering(store) as url:
        yield new_client(store, url)


def find_traces(store: Store, *texts: str) -> dict[str, list[str]]:
    places = defaultdict[str, list[str]](list)
    for trace in find(store, texts, read_pdf_text):
        if trace.finding is Finding.CONTAINS:
            places[trace.place].append(trace.key)
    return places


def test_every_store_is_searched(store: Store, client: Client) -> None:
    customer_id = client.new_customer(name=NAME)
    client.submit_transactions(customer_id)
    end_submissions(store, [{"description": f"PAY {NAME}"}])
    add_note(client, customer_id, f"{NAME} rang.")
    sent = attach(client, customer_id, "note.txt", f"Dear {NAME}".encode()).json()["data"]["attachmentId"]
    log = store.settings.home / "trace.log"
    log.write_text(f"{'x' * (2**22 - 5)}{NAME}\n")  # across two chunks
    places = find_traces(store, TYPED)
    log.unlink()
    assert {"customers", "customer_summaries", "notes", "attachments", "segments", "home"} <= places.keys()
    assert len(places["notes"]) == 1
    assert [key for key in places["attachments"] if sent in key]
    assert places["home"] == ["trace.log"]
    assert find_traces(store, str(uuid4())) == {}


def test_a_user_is_found_by_name_and_their_sessions_by_id(store: Store, client: Client) -> None:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        user = users.create(w, client.client_id, f"{uuid4()}@example.com", NAME, Role.VIEWER, now)
        users.create_link(w, user, now + timedelta(minutes=5))
        sessions.start(w, user, now)
    assert user.user_id.hex in find_traces(store, user.email)["users"]
    assert {"users", "sign_in_links", "sessions"} <= find_traces(store, str(user.user_id)).keys()


def test_pdf_files_are_read_and_pictures_are_listed(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    statement = statement_pdf("nab", 7, pages=1)
    attach(client, customer_id, "statement.pdf", statement.content)
    attach(client, customer_id, "picture.png", PNG)
    [pdf] = find_traces(store, statement.rows[0].description)["attachments"]
    [picture] = [each for each in find(store, ["nobody"], read_pdf_text) if each.finding is Finding.UNREADABLE]
    assert pdf != picture.key


def test_the_copy_of_a_damaged_log_is_searched(store: Store) -> None:
    copy = store.settings.home / f"{Path(str(store.db.engine.url.database)).name}-wal-damaged"
    copy.write_text(f"page {NAME} page")
    places = find_traces(store, TYPED)
    copy.unlink()
    assert places["home"] == [copy.name]


def test_a_damaged_file_is_listed(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    attach(client, customer_id, "note.txt", b"It is damaged later.")
    [file] = [key for key in find_traces(store, "damaged later")["attachments"] if "/" in key]
    (store.lake.root / file).write_bytes(b"")
    assert file in [each.key for each in find(store, ["nobody"], read_pdf_text) if each.finding is Finding.UNREADABLE]
