"""Where the search for a person's data looks. What it reads in files: `tests.api.operations.test_personal_data`."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest

from storage.access import users
from storage.access.roles import Role
from storage.core.settings import Settings
from storage.core.store import Store
from storage.operations.personal_data import Finding, Trace, find
from storage.work import attachments
from tests.conftest import open_store
from tests.object_store import Emulator, emulated
from tests.storage.examples import a_client
from tests.storage.values import on_sqlite

NAME = "Ada Lovelace"
STATED = pl.DataFrame({"description": [f"PAY {NAME.upper()}"]})


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with emulated() as running:
        yield running


@pytest.fixture
def prefix(emulator: Emulator) -> str:
    emulator.clear()
    return f"lakes/{uuid4().hex}"


@pytest.fixture
def with_bucket(emulator: Emulator, prefix: str, tmp_path: Path) -> Iterator[Store]:
    """A Tidemark whose lake is in a bucket."""
    opened = open_store(Settings(home=tmp_path / "home", **emulator.settings(prefix)))
    yield opened
    opened.close()


def traces(store: Store, text: str = NAME) -> list[Trace]:
    return [*find(store, [text], lambda _: ("", True))]


def test_tables_are_searched(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    email = f"ada@{uuid4()}.example"
    with store.db.writing() as w:
        user = users.create(w, client_id, email, "Ada", Role.VIEWER, now)
    [trace] = traces(store, email.upper())
    assert trace in (Trace("users", str(user.user_id)), Trace("users", user.user_id.hex))


@on_sqlite
def test_files_of_a_folder_that_no_row_names_are_searched(store: Store) -> None:
    stored = store.lake.put_frame("transactions/2026-07-01/a.parquet", STATED)
    (store.lake.root / "transactions" / "torn").write_bytes(b"PAR1 and no more")
    found = {trace.key: trace.finding for trace in traces(store)}
    assert found == {stored.path: Finding.CONTAINS, "transactions/torn": Finding.UNREADABLE}


def test_objects_that_only_an_intent_names_are_searched(with_bucket: Store) -> None:
    stored = with_bucket.lake.put_frame("transactions/2026-07-01/a.parquet", STATED)
    with_bucket.lake.put("landing/of-another", b"somebody else")
    [copy] = with_bucket.lake.root.glob("transactions*")
    copy.unlink()
    [trace] = traces(with_bucket)
    assert (trace.place, trace.key, trace.finding) == ("transactions", stored.path, Finding.CONTAINS)
    assert not copy.exists(), "the search fills no cache"


def test_sealed_objects_that_only_an_intent_names_are_opened(with_bucket: Store) -> None:
    attachment_id = uuid4()
    sealed = with_bucket.vault.seal(f"Dear {NAME}".encode(), attachments.sealing_context(attachment_id))
    readable = with_bucket.lake.put(f"attachments/2026-07-01/{attachment_id}.sealed", sealed)
    resealed = with_bucket.lake.put(f"attachments/2026-07-01/{uuid4()}.sealed", sealed)  # it tells no id
    in_bucket = {trace.key: trace.finding for trace in traces(with_bucket) if trace.place == "attachments"}
    assert in_bucket == {readable.path: Finding.CONTAINS, resealed.path: Finding.UNREADABLE}


def test_copies_in_the_cache_are_searched_even_if_nothing_names_them(with_bucket: Store) -> None:
    STATED.write_parquet(with_bucket.lake.root / "transactions+2026-07-01+b.parquet")
    (with_bucket.lake.root / ".0f").write_bytes(b"PAR1 and no more")
    (with_bucket.lake.root / "landing+of-another").write_bytes(b"somebody else")
    torn, stale = traces(with_bucket)
    assert (torn.place, torn.key, torn.finding) == ("cache", ".0f", Finding.UNREADABLE)
    assert (stale.place, stale.key, stale.finding) == ("cache", "transactions+2026-07-01+b.parquet", Finding.CONTAINS)
