"""Where the search for a person's data looks. What it reads in files: `tests.api.operations.test_personal_data`."""

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from socket import gethostname
from uuid import uuid4

import polars as pl
import pytest
from pydantic import SecretStr

from assets.workers.broker import make_app, publish
from assets.workers.workers import Run
from storage.access import users
from storage.access.roles import Role
from storage.core import homes
from storage.core.models import Queue
from storage.core.settings import Settings
from storage.core.store import Store, open_lake
from storage.jobs import batches
from storage.operations.personal_data import Finding, Trace, find
from storage.work import attachments
from tests.brokers import RABBITMQ, REDIS, broker, waiting
from tests.conftest import open_store
from tests.fake_statements import submit_files
from tests.object_store import Emulator, emulate_bucket
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.values import commit, content, customers_of_a_bucket, on_postgresql, on_sqlite, place_of
from tests.waiting import until

NAME = "Ada Lovelace"
STATED = pl.DataFrame({"description": [f"PAY {NAME.upper()}"]})


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with emulate_bucket() as running:
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


def test_objects_that_a_row_names_are_searched(
    with_bucket: Store, emulator: Emulator, prefix: str, now: datetime
) -> None:
    emulator.refused = ("versions=",)  # which lists all objects
    (number,) = customers_of_a_bucket(with_bucket, 1, now)
    commit(with_bucket, {number: 2}, now)
    path = place_of(with_bucket, number).path
    [trace] = [trace for trace in traces(with_bucket, content(number, 1, 2)[1]) if trace.place == "transactions"]
    assert (trace.key, trace.finding) == (path, Finding.CONTAINS)
    with_bucket.lake.discard(path)
    [missing] = [trace for trace in traces(with_bucket) if trace.place == "transactions"]
    assert (missing.key, missing.finding) == (path, Finding.UNREADABLE)
    emulator.overwrite(f"{prefix}/{path}", b"another content")
    [damaged] = [trace for trace in traces(with_bucket) if trace.place == "transactions"]
    assert (damaged.key, damaged.finding) == (path, Finding.UNREADABLE)


def test_objects_that_only_an_intent_names_are_searched(with_bucket: Store, emulator: Emulator) -> None:
    emulator.refused = ("versions=",)  # which lists all objects
    stored = with_bucket.lake.put_frame("transactions/2026-07-01/a.parquet", STATED)
    with_bucket.lake.put("landing/of-another", b"somebody else")
    [copy] = with_bucket.lake.root.glob("transactions*")
    copy.unlink()
    trace, _ = traces(with_bucket)
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


@pytest.fixture
def keeping_versions(emulator: Emulator, with_bucket: Store) -> Store:
    """A Tidemark whose lake is in a bucket that keeps versions."""
    emulator.keep_versions()
    return with_bucket


def test_versions_that_were_replaced_or_deleted_are_searched(
    keeping_versions: Store, emulator: Emulator, prefix: str
) -> None:
    content = STATED.write_ipc(None).getvalue()
    for path in ("landing/deleted", "landing/replaced"):
        emulator.overwrite(f"{prefix}/{path}", content)
        emulator.overwrite(f"{prefix}/{path}", b"somebody else")
    emulator.delete(f"{prefix}/landing/deleted")
    deleted, replaced = traces(keeping_versions)
    for trace in (deleted, replaced):
        assert (trace.place, trace.finding) == ("versions", Finding.CONTAINS)
        assert re.fullmatch(r"written 20\d\d-\d\d-\d\d \d\d:\d\dZ", trace.note)
    assert deleted.key.startswith("landing/deleted?versionId=")
    assert replaced.key.startswith("landing/replaced?versionId=")


def test_all_pages_of_a_list_are_read(
    keeping_versions: Store, emulator: Emulator, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for number in range(3):
        emulator.overwrite(f"{prefix}/landing/{number}", f"{NAME} {number}".encode())
        emulator.overwrite(f"{prefix}/landing/{number}", b"somebody else")
    assert [trace.key[:9] for trace in traces(keeping_versions)] == ["landing/0", "landing/1", "landing/2"]


def test_objects_that_nothing_announced_are_searched(with_bucket: Store, emulator: Emulator, prefix: str) -> None:
    emulator.overwrite(f"{prefix}/landing/of-a-later-database", NAME.encode())
    emulator.overwrite(f"{prefix}-of-another-lake/landing/a", NAME.encode())
    [trace] = traces(with_bucket)
    assert (trace.place, trace.key) == ("landing", "landing/of-a-later-database")


def test_unfinished_uploads_are_listed_with_the_customers_of_their_keys(
    with_bucket: Store, emulator: Emulator, prefix: str, now: datetime
) -> None:
    customer = a_customer(with_bucket, a_client(with_bucket, now), now)
    submit_files(with_bucket, customer, "june")
    [original] = emulator.paths(prefix)
    emulator.begin_upload(f"{prefix}/landing/of-nobody", NAME.encode())
    emulator.begin_upload(f"{prefix}/{original}", NAME.encode())
    of_nobody, of_customer = traces(with_bucket)
    began = "began 2010-11-10 20:48Z"  # says the emulator of every upload
    assert of_nobody == Trace("uploads", "landing/of-nobody", Finding.UNREADABLE, f"{began}; its parts can't be read")
    assert f"{began}, of customer {customer.customer_id};" in of_customer.note


def test_lists_that_the_bucket_refuses_are_reported(with_bucket: Store, emulator: Emulator) -> None:
    emulator.refused = ("versions=", "uploads=")
    why = "the object store answers with AccessDenied"
    assert traces(with_bucket) == [Trace(place, "", Finding.UNSEARCHED, why) for place in ("versions", "uploads")]


def test_without_an_access_key_the_bucket_is_not_listed(with_bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    of_role = with_bucket.settings.model_copy(update={"s3_access_key_id": "", "s3_secret_access_key": SecretStr("")})
    lake = open_lake(of_role, with_bucket.db)
    for trace in traces(replace(with_bucket, lake=lake)):
        assert trace.finding is Finding.UNSEARCHED
        assert "needs an access key" in trace.note


@on_postgresql
@pytest.mark.parametrize("url", [RABBITMQ, REDIS])
def test_waiting_runs_are_listed_with_whether_they_concern_what_is_searched(
    store: Store, now: datetime, url: str
) -> None:
    customer = a_customer(store, a_client(store, now), now)
    a_submission(store, customer, now)
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, store.settings, now)
    assert batch is not None
    with broker(url) as given:
        in_fleet = replace(store, settings=store.settings.model_copy(update=given))
        assert runs(in_fleet, "nobody") == {}, "no process has made the queues yet"
        app = make_app(in_fleet.settings)
        for run, queue in ((Run("a", batch.token), Queue.ENRICHMENT), (Run("run-of-all", None), Queue.PORTFOLIO)):
            publish(app, in_fleet.settings, run, queue)
        app.close()
        until(lambda: waiting(in_fleet.settings, Queue.PORTFOLIO) == 1)
        concerned = {"enrichment: run a": Finding.CONTAINS, "portfolio: run run-of-all": Finding.UNRELATED}
        assert runs(in_fleet, str(customer.customer_id)) == concerned
        assert runs(in_fleet, "RUN-OF-ALL")["portfolio: run run-of-all"] is Finding.CONTAINS
        assert set(runs(in_fleet, "nobody").values()) == {Finding.UNRELATED}
        for queue in (Queue.ENRICHMENT, Queue.PORTFOLIO):
            until(lambda queue=queue: waiting(in_fleet.settings, queue) == 1)


def runs(store: Store, text: str) -> dict[str, Finding]:
    return {trace.key: trace.finding for trace in traces(store, text) if trace.place == "broker"}


@on_sqlite
def test_a_broker_that_is_away_is_reported(store: Store) -> None:
    away = store.settings.model_copy(update={"broker_url": "amqp://tidemark:secret@127.0.0.1:1/lending"})
    [trace] = traces(replace(store, settings=away))
    assert (trace.place, trace.finding) == ("broker", Finding.UNSEARCHED)
    assert "amqp://tidemark:**@127.0.0.1:1/lending can't be used" in trace.note


@on_postgresql
def test_other_homes_must_be_searched_by_themselves(store: Store, tmp_path: Path) -> None:
    assert traces(store) == []
    others = [store.settings.model_copy(update={"home": tmp_path / name}) for name in ("of-an-api", "of-a-worker")]
    for settings in others:
        settings.home.mkdir()
        shutil.copy(store.settings.key_file, settings.key_file)
        with closing(Store.open(settings)) as opened, opened.db.reading():
            pass
    assert {(trace.place, trace.finding) for trace in traces(store)} == {("homes", Finding.UNSEARCHED)}
    assert {trace.key for trace in traces(store)} == {f"{homes.identity(each)} of {gethostname()}" for each in others}
    gone, remaining = map(homes.identity, others)
    with store.db.writing() as w:
        assert homes.forget(w, gone)
    [trace] = traces(store)
    assert trace.key.startswith(remaining)
    assert f"tidemark homes forget {remaining}" in trace.note
