"""Calls to the workers are answered at once, or say clearly that there is no worker."""

import socketserver
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from assets.core.processes import LONGEST_SOCKET_PATH, AlreadyRunningError, hold_slot, socket_path
from assets.workers.worker_calls import SLOT, Call, NoWorkerError, Verb, answering, ask_all, offer

TAKE, HOLDS = Call(Verb.TAKE, "a run", "refresh", 7), Call(Verb.HOLDS, "a run")


class Worker:
    """Answers from its slot, and remembers what it heard."""

    def __init__(self, home: Path, free: bool = True) -> None:
        self.home = home
        self.free = free
        self.heard: list[Call] = []

    @contextmanager
    def seated(self) -> Iterator[int]:
        with hold_slot(self.home, SLOT) as (slot, _), answering(self.home, slot, self.answer):
            yield slot

    def answer(self, question: Call) -> bool:
        self.heard.append(question)
        return question.verb is Verb.TAKE and (self.free or not question.only_if_free)


def test_a_call_arrives_as_it_was_made_and_its_answer_comes_back(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    with worker.seated():
        assert offer(tmp_path, TAKE)
        assert not ask_all(tmp_path, HOLDS)
    assert worker.heard == [replace(TAKE, only_if_free=True), HOLDS]


def test_a_run_goes_to_the_worker_that_is_free_and_to_a_busy_one_only_where_none_is(tmp_path: Path) -> None:
    busy, free = Worker(tmp_path, free=False), Worker(tmp_path)
    with busy.seated() as first, free.seated() as second:
        assert (first, second) == (1, 2)
        assert offer(tmp_path, TAKE)
        assert [call.only_if_free for call in busy.heard + free.heard] == [True, True]
        free.free = False
        assert offer(tmp_path, TAKE)
    assert [call.only_if_free for call in busy.heard] == [True, True, False]


def test_every_worker_is_asked_whether_it_holds_a_run(tmp_path: Path) -> None:
    workers = [Worker(tmp_path), Worker(tmp_path)]
    with ExitStack() as seated:
        for worker in workers:
            seated.enter_context(worker.seated())
        assert not ask_all(tmp_path, HOLDS)
    assert [worker.heard for worker in workers] == [[HOLDS], [HOLDS]]


def test_a_slot_that_was_left_is_taken_again_under_the_same_id(tmp_path: Path) -> None:
    with hold_slot(tmp_path, SLOT) as first:
        with hold_slot(tmp_path, SLOT) as second:
            assert [first[0], second[0]] == [1, 2]
            assert first[1] != second[1]
        with hold_slot(tmp_path, SLOT) as again:
            assert again == second


def test_slots_are_many_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.core.processes.MOST_SLOTS", 1)
    with hold_slot(tmp_path, SLOT), pytest.raises(AlreadyRunningError), hold_slot(tmp_path, SLOT):
        pass


def test_without_a_worker_a_call_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoWorkerError, match="start `tidemark worker`"):
        ask_all(tmp_path, HOLDS)


def test_what_a_killed_worker_left_behind_is_no_worker_and_in_no_one_s_way(tmp_path: Path) -> None:
    killed, other = Worker(tmp_path), Worker(tmp_path)
    with killed.seated():
        [socket] = tmp_path.glob("*.sock")
        socket.rename(tmp_path / "retained")
    (tmp_path / "retained").rename(socket)

    with pytest.raises(NoWorkerError):
        ask_all(tmp_path, HOLDS)
    with hold_slot(tmp_path, SLOT), other.seated():  # slot 1 is about to be answered from again
        assert offer(tmp_path, TAKE)
    with killed.seated():
        assert offer(tmp_path, TAKE)


def test_only_its_user_may_open_the_socket(tmp_path: Path) -> None:
    with Worker(tmp_path).seated():
        [socket] = tmp_path.glob("*.sock")
        assert socket.stat().st_mode & 0o077 == 0


def test_what_is_made_while_the_socket_opens_keeps_its_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread makes a folder just then: a umask is the whole process's."""
    bind = socketserver.ThreadingUnixStreamServer.server_bind

    def beside_another_thread(server: socketserver.ThreadingUnixStreamServer) -> None:
        (tmp_path / "lake").mkdir(mode=0o700)
        bind(server)

    monkeypatch.setattr(socketserver.ThreadingUnixStreamServer, "server_bind", beside_another_thread)
    with Worker(tmp_path).seated():
        assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o700


def test_a_home_whose_path_is_too_long_for_a_socket_still_has_one(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    path = socket_path(deep, "worker-01.sock")
    assert len(str(path)) <= LONGEST_SOCKET_PATH
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path == socket_path(deep, "worker-01.sock") != socket_path(tmp_path / ("deep" * 31), "worker-01.sock")
    with Worker(deep).seated():
        assert offer(deep, TAKE)
