"""Calls to workers are answered at once, or fail with an error that says that there is no worker."""

import socketserver
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from assets.core.processes import LONGEST_SOCKET_PATH, AlreadyRunningError, hold_slot, socket_path
from assets.workers import worker_calls
from assets.workers.worker_calls import SLOT, Call, HomeWorkers, Verb, serve_calls
from assets.workers.workers import NoWorkerError, Run
from storage.core.models import Queue

pytestmark = pytest.mark.service  # each test starts child processes

RUN = Run("a run", 7)
TAKE, HOLDS = Call(Verb.TAKE, "a run", Queue.REFRESH, 7), Call(Verb.HOLDS, "a run")


class Worker:
    """A worker that answers from its slot and records its calls."""

    def __init__(self, home: Path, free: bool = True) -> None:
        self.home = home
        self.free = free
        self.heard: list[Call] = []

    @contextmanager
    def running(self) -> Iterator[int]:
        with hold_slot(self.home, SLOT) as (slot, _), serve_calls(self.home, slot, self.answer):
            yield slot

    def answer(self, question: Call) -> bool:
        self.heard.append(question)
        return question.verb is Verb.TAKE and (self.free or not question.only_if_free)


def test_a_call_arrives_unchanged_and_is_answered(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with worker.running():
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)
        assert not HomeWorkers(tmp_path).has_run(RUN.run_id)
    assert worker.heard == [replace(TAKE, only_if_free=True), HOLDS]


def test_a_run_goes_to_a_busy_worker_only_if_none_is_free(tmp_path: Path) -> None:
    busy, free = Worker(tmp_path, free=False), Worker(tmp_path)
    with busy.running() as first, free.running() as second:
        assert (first, second) == (1, 2)
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)
        assert [call.only_if_free for call in busy.heard + free.heard] == [True, True]
        free.free = False
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)
    assert [call.only_if_free for call in busy.heard] == [True, True, False]


def test_every_worker_is_asked_whether_it_holds_a_run(tmp_path: Path) -> None:
    workers = [Worker(tmp_path), Worker(tmp_path)]
    with ExitStack() as running:
        for worker in workers:
            running.enter_context(worker.running())
        assert not HomeWorkers(tmp_path).has_run(RUN.run_id)
    assert [worker.heard for worker in workers] == [[HOLDS], [HOLDS]]


def test_workers_that_answer_are_counted(tmp_path: Path) -> None:
    with ExitStack() as running:
        for expected in range(3):
            assert HomeWorkers(tmp_path).count() == expected
            running.enter_context(Worker(tmp_path, free=False).running())


def test_a_released_slot_is_taken_again_with_the_same_id(tmp_path: Path) -> None:
    with hold_slot(tmp_path, SLOT) as first:
        with hold_slot(tmp_path, SLOT) as second:
            assert [first[0], second[0]] == [1, 2]
            assert first[1] != second[1]
        with hold_slot(tmp_path, SLOT) as again:
            assert again == second


def test_the_number_of_slots_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.core.processes.MAX_SLOTS", 1)
    with hold_slot(tmp_path, SLOT), pytest.raises(AlreadyRunningError), hold_slot(tmp_path, SLOT):
        pass


def test_a_call_without_a_worker_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoWorkerError, match="start `tidemark worker`"):
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)
    assert not HomeWorkers(tmp_path).has_run(RUN.run_id)


def test_a_worker_that_does_not_answer_keeps_no_other_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_calls, "TIMEOUT_S", 0.2)
    release, slow, other = threading.Event(), Worker(tmp_path), Worker(tmp_path)
    monkeypatch.setattr(slow, "answer", lambda _: release.wait(10) and False)
    monkeypatch.setattr(other, "answer", lambda _: True)
    with slow.running():
        with pytest.raises(TimeoutError):
            HomeWorkers(tmp_path).has_run(RUN.run_id)
        with other.running():
            assert HomeWorkers(tmp_path).has_run(RUN.run_id)
        release.set()


def test_the_socket_of_a_killed_worker_is_not_a_worker_and_blocks_no_other(tmp_path: Path) -> None:
    killed, other = Worker(tmp_path), Worker(tmp_path)
    with killed.running():
        [socket] = tmp_path.glob("*.sock")
        socket.rename(tmp_path / "retained")
    (tmp_path / "retained").rename(socket)

    assert not HomeWorkers(tmp_path).has_run(RUN.run_id)
    with hold_slot(tmp_path, SLOT), other.running():  # slot 1 is held, but its new worker doesn't listen yet
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)
    with killed.running():
        HomeWorkers(tmp_path).launch(RUN, Queue.REFRESH)


def test_only_its_user_may_open_the_socket(tmp_path: Path) -> None:
    with Worker(tmp_path).running():
        [socket] = tmp_path.glob("*.sock")
        assert socket.stat().st_mode & 0o077 == 0


def test_opening_the_socket_changes_no_mode_of_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread creates a folder at that moment. A umask would affect the whole process."""
    bind = socketserver.ThreadingUnixStreamServer.server_bind

    def bind_and_create_folder(server: socketserver.ThreadingUnixStreamServer) -> None:
        (tmp_path / "lake").mkdir(mode=0o700)
        bind(server)

    monkeypatch.setattr(socketserver.ThreadingUnixStreamServer, "server_bind", bind_and_create_folder)
    with Worker(tmp_path).running():
        assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o700


def test_a_home_whose_path_is_too_long_for_a_socket_still_has_one(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    path = socket_path(deep, "worker-01.sock")
    assert len(str(path)) <= LONGEST_SOCKET_PATH
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path == socket_path(deep, "worker-01.sock") != socket_path(tmp_path / ("deep" * 31), "worker-01.sock")
    with Worker(deep).running():
        HomeWorkers(deep).launch(RUN, Queue.REFRESH)
