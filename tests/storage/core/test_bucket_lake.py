"""A lake in a bucket: what is written, cached, checked and collected, and what happens if the object store fails."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from pipelines.vocabulary.errors import Corrupt, Unavailable
from storage.core import vault
from storage.core.bucket import ONE_REQUEST_BYTES, Bucket, Unreachable
from storage.core.database import UNREACHABLE
from storage.core.lake import Lake
from storage.core.models import file_intents
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment import transactions
from storage.operations import backup, health, integrity, resealing, retention
from storage.operations.integrity import Problem
from storage.operations.retention import ORPHAN_AGE, sweep
from tests.conftest import open_store
from tests.fake_statements import COFFEE, RENT, FakeReader, extract, extraction, statement, submit_files
from tests.object_store import CUT, LOST, SLOW, SLOW_S, Emulator, Fault, emulate_bucket
from tests.storage import values
from tests.storage.examples import a_client, a_customer
from tests.storage.values import commit, content, customers_of_a_bucket, place_of

HOUR = timedelta(hours=1)
AWAY: Sequence[Fault] = [503] * 20  # longer than requests are repeated
LARGE = bytes(ONE_REQUEST_BYTES + 1)


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with emulate_bucket() as running:
        yield running


@pytest.fixture
def prefix(emulator: Emulator) -> str:
    emulator.clear()
    return f"lakes/{uuid4().hex}"


@pytest.fixture
def store(emulator: Emulator, prefix: str, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(Settings(home=tmp_path / "home", **emulator.settings(prefix)))
    yield opened
    opened.close()


def utc_now() -> datetime:
    return datetime.now(UTC)


def intents(store: Store) -> set[str]:
    with store.db.reading() as r:
        return set(r.execute(select(file_intents.c.path)).scalars())


def age(store: Store, by: timedelta) -> None:
    """Make all intents older."""
    with store.db.writing() as w:
        for row in w.execute(select(file_intents)).all():
            mine = update(file_intents).where(file_intents.c.path == row.path)
            w.execute(mine.values(at=row.at - by, condemned_at=row.condemned_at and row.condemned_at - by))


def test_a_file_is_written_once_and_read_back(store: Store, emulator: Emulator, prefix: str) -> None:
    stored = store.lake.put("landing/a", b"first")
    assert store.lake.verified_path("landing/a", stored.sha256).read_bytes() == b"first"
    assert len(emulator.requests) == 1  # because its copy was written, too
    with pytest.raises(FileExistsError):
        store.lake.put("landing/a", b"second")
    assert emulator.paths(prefix) == {"landing/a"}
    assert store.lake.url_of("landing/a") == f"s3://tidemark/{prefix}/landing/a"


def test_a_path_is_never_overwritten(emulator: Emulator, prefix: str, tmp_path: Path) -> None:
    bucket = Bucket.of(Settings(home=tmp_path, **emulator.settings(prefix)))
    for path, first in (("small", b"first"), ("large", LARGE)):
        bucket.create(path, first)
        bucket.create(path, first)  # as the library does if an answer was lost
        with pytest.raises(FileExistsError):
            bucket.create(path, first + b"other")
        assert b"".join(bucket.chunks(path)) == first


def test_failed_requests_are_repeated(
    emulator: Emulator, prefix: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    bucket = Bucket.of(Settings(home=tmp_path, **emulator.settings(prefix)))
    sequences: Sequence[Sequence[Fault]] = ([500], [503, 503], [LOST], [CUT], [500, LOST, 503])
    for number, faults in enumerate(sequences):
        with subtests.test(faults=faults):
            written = bytes([number]) * 100_000
            emulator.faults.extend(faults)
            bucket.create(f"{number}", written)
            emulator.faults.extend(faults)
            assert b"".join(bucket.chunks(f"{number}")) == written
            emulator.clear()


def test_whichever_request_for_a_large_file_fails_it_is_whole_or_unreachable(
    emulator: Emulator, prefix: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    bucket = Bucket.of(Settings(home=tmp_path, **emulator.settings(prefix)))
    requests = ("whether the path is free", "the beginning", "a part", "another", "the last", "the end")
    for before, failing in enumerate(requests):
        for fault in (503, CUT):
            path = f"{before} {fault}"
            with subtests.test(failing, fault=fault):
                emulator.faults.extend([*[None] * before, fault])
                try:
                    bucket.create(path, LARGE)
                except Unreachable:
                    assert fault == CUT
                else:
                    assert b"".join(bucket.chunks(path)) == LARGE
                assert not emulator.faults
                emulator.clear()


def test_lasting_failures_are_those_of_an_unreachable_store(
    emulator: Emulator, prefix: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    impatient = Bucket.of(Settings(home=tmp_path, **emulator.settings(prefix, timeout_s=SLOW_S / 4)))
    nowhere = emulator.settings(prefix) | {"s3_endpoint": "http://127.0.0.1:1", "s3_timeout_s": 0.2}
    no_bucket = emulator.settings(prefix) | {"lake_url": "s3://nobodys/lake"}
    buckets = {
        "slow": impatient,
        "nowhere": Bucket.of(Settings(home=tmp_path, **nowhere)),
        "no bucket": Bucket.of(Settings(home=tmp_path, **no_bucket)),
    }
    for name, bucket in buckets.items():
        with subtests.test(name):
            emulator.faults.extend([SLOW] * 3 if name == "slow" else [])
            with pytest.raises(Unreachable) as failure:
                b"".join(bucket.chunks("a"))
            assert isinstance(failure.value, UNREACHABLE)
            with pytest.raises(Unreachable):
                bucket.create("a", b"content")
            with pytest.raises(Unreachable):
                bucket.probe()
            emulator.clear()


def test_a_file_is_fetched_once_and_checked(store: Store, emulator: Emulator, prefix: str) -> None:
    stored = store.lake.put("landing/a", b"content")
    copy = store.lake.verified_path(stored.path, stored.sha256)
    copy.unlink()
    emulator.clear()
    for _ in range(3):
        assert store.lake.verified_path(stored.path, stored.sha256).read_bytes() == b"content"
    assert len(emulator.requests) == 1
    emulator.overwrite(f"{prefix}/{stored.path}", b"c0ntent")
    copy.unlink()
    with pytest.raises(Corrupt, match="not what was written"):
        store.lake.verified_path(stored.path, stored.sha256)
    emulator.delete(f"{prefix}/{stored.path}")
    with pytest.raises(Corrupt, match="can't be read"):
        store.lake.verified_path(stored.path, stored.sha256)


def test_a_damaged_copy_is_fetched_again(store: Store) -> None:
    stored = store.lake.put("landing/a", b"content")
    store.lake.verified_path(stored.path, stored.sha256).write_bytes(b"rot")
    fresh = Store.open(store.settings)
    assert fresh.lake.verified_path(stored.path, stored.sha256).read_bytes() == b"content"
    fresh.close()


def test_while_the_store_is_away_copies_are_read_and_nothing_is_accepted(store: Store, emulator: Emulator) -> None:
    stored = store.lake.put("landing/a", b"content")
    emulator.faults.extend(AWAY)
    assert store.lake.verified_path(stored.path, stored.sha256).read_bytes() == b"content"
    assert health.check_disk(store)["lake"].reason == "The object store can't be used."
    with pytest.raises(Unreachable):
        store.lake.put("landing/b", b"content")
    emulator.clear()
    assert health.check_disk(store)["lake"].ok
    assert intents(store) == {"landing/a", "landing/b"}


def test_a_named_file_has_no_intent(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    assert intents(store) == set()
    assert values.read_place(store, place_of(store, number)) == content(number, 1, 2)


def test_an_orphan_of_a_killed_writer_is_collected(store: Store, emulator: Emulator, prefix: str) -> None:
    killed = store.lake.put("landing/a", b"its writer was killed before the commit")
    age(store, ORPHAN_AGE - HOUR)
    assert sweep(store, utc_now).orphans == 0
    age(store, 2 * HOUR)
    assert retention.count_orphans(store, utc_now()) == (1, killed.size)
    swept = sweep(store, utc_now)
    assert (swept.orphans, swept.bytes_freed) == (1, killed.size)
    assert emulator.paths(prefix) == set()
    assert list(store.lake.root.iterdir()) == []
    age(store, ORPHAN_AGE)
    sweep(store, utc_now)
    assert intents(store) == set()


def test_a_collected_file_cannot_be_named(store: Store) -> None:
    stored = store.lake.put("transactions/a", b"of a writer that was suspended for a day")
    age(store, ORPHAN_AGE + HOUR)
    sweep(store, utc_now)
    with pytest.raises(Unavailable, match="not stored in time"), store.db.writing() as w:
        store.lake.require(w, stored.path)


def test_what_a_suspended_writer_sends_after_the_sweep_is_removed(
    store: Store, emulator: Emulator, prefix: str
) -> None:
    store.lake.put("landing/a", b"first")
    age(store, ORPHAN_AGE + HOUR)
    sweep(store, utc_now)
    emulator.overwrite(f"{prefix}/landing/a", b"late")
    sweep(store, utc_now)
    assert emulator.paths(prefix) == set()


def test_a_sweep_that_is_cut_off_is_finished_by_the_next(store: Store, emulator: Emulator, prefix: str) -> None:
    store.lake.put("landing/a", b"first")
    age(store, ORPHAN_AGE + HOUR)
    emulator.faults.extend(AWAY)
    with pytest.raises(Unreachable):
        retention.collect_orphans(store, utc_now, lambda: None)
    emulator.clear()
    assert emulator.paths(prefix) == {"landing/a"}
    retention.collect_orphans(store, utc_now, lambda: None)
    assert emulator.paths(prefix) == set()


def test_replaced_versions_are_swept_without_listing(
    store: Store, emulator: Emulator, prefix: str, now: datetime
) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    replaced = place_of(store, number)
    commit(store, {number: 3}, now)
    emulator.clear()
    swept = sweep(store, lambda: now + store.settings.retention + HOUR, confirmed=True)
    assert (swept.versions, swept.files, swept.orphans) == (1, 1, 0)
    assert not any("?" in request or request.startswith("GET") for request in emulator.requests)
    assert emulator.paths(prefix) == {place_of(store, number).path} != {replaced.path}
    assert intents(store) == set()


def test_after_a_kill_between_rows_and_files_the_next_sweep_removes_them(
    store: Store, emulator: Emulator, prefix: str, now: datetime
) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    emulator.faults.extend(AWAY)
    with pytest.raises(Unreachable):
        sweep(store, lambda: now + store.settings.retention + HOUR, confirmed=True)
    emulator.clear()
    assert len(emulator.paths(prefix)) == 2
    age(store, ORPHAN_AGE + HOUR)
    retention.collect_orphans(store, utc_now, lambda: None)
    assert emulator.paths(prefix) == {place_of(store, number).path}


def test_the_integrity_pass_reads_objects_and_reports_no_outage_as_damage(
    store: Store, emulator: Emulator, prefix: str, now: datetime
) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    path = place_of(store, number).path
    emulator.faults.extend(AWAY)
    with pytest.raises(Unreachable):
        integrity.check(store, lambda: now)
    emulator.clear()
    assert integrity.check(store, lambda: now).damages == []
    emulator.overwrite(f"{prefix}/{path}", b"rot")
    found = integrity.check(store, lambda: now, afresh=True).damages
    assert [(damage.path, damage.problem) for damage in found] == [(path, Problem.CHANGED)]


def test_a_backup_copies_objects_into_a_folder(store: Store, emulator: Emulator, now: datetime, tmp_path: Path) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    place = place_of(store, number)
    done = backup.back_up(store, tmp_path / "backup")
    assert (done.files, done.damages) == (1, [])
    copied = Lake(tmp_path / "backup" / "lake")
    assert transactions.scan(copied, [place]).collect().height == 2
    emulator.faults.extend(AWAY)
    with pytest.raises(Unavailable, match="object store"):
        backup.back_up(store, tmp_path / "other")


def test_statements_are_extracted_and_resealed(
    store: Store, emulator: Emulator, prefix: str, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "FRESH_FOR_S", 0.0)  # nobody else seals
    submit_files(store, a_customer(store, a_client(store, now), now), "june")
    extract(store, FakeReader(june=extraction(statement(RENT, COFFEE))))
    assert len(emulator.paths(prefix)) == 3  # the original, the rows with their positions, the landing file
    assert intents(store) == set()
    original = next(path for path in emulator.paths(prefix) if path.endswith(".sealed"))
    resealing.reseal(store, lambda: now)
    assert intents(store) == {original}  # it stays for a day
    age(store, ORPHAN_AGE + HOUR)
    assert sweep(store, utc_now).orphans == 1
    assert original not in emulator.paths(prefix)
