"""Whatever a child does, its parent gets an answer, lives on, and leaves nothing behind."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from isolation import LIMITS, ChildLimits, extract, page_png
from isolation.limits import MIB
from pipelines.intake.pdf.page.result import Extraction, Refusal
from tests.patience import until

CHILDREN = Path(__file__).with_name("children.py")
SHORT = ChildLimits(wall_s=1.5, cpu_s=1)
NARROW = ChildLimits(memory_bytes=64 * MIB)


@pytest.fixture
def mark() -> Iterator[str]:
    """What all processes of a test have on their command line, and none has after it."""
    made = uuid4().hex
    yield made
    until(lambda: not processes(made), within_s=10)


def processes(mark: str) -> list[int]:
    return [each.pid for each in psutil.process_iter(["cmdline"]) if mark in (each.info["cmdline"] or ())]


def command(kind: str, mark: str) -> list[str]:
    return [sys.executable, "-I", str(CHILDREN), kind, mark]


def asked(
    kind: str, mark: str, content: bytes = b"%PDF", limits: ChildLimits = ChildLimits(), **more: Any
) -> Extraction:
    return extract(content, None, limits, command=command(kind, mark), **more)


def reported(kind: str, mark: str, content: bytes = b"") -> Any:
    """What a child says in its answer."""
    answer = asked(kind, mark, content)
    assert answer.refusal is Refusal.NOT_A_STATEMENT, answer.message
    assert answer.message is not None
    return json.loads(answer.message)


@pytest.mark.parametrize(
    ("kind", "limits", "refusal", "why"),
    [
        ("is_killed", LIMITS, Refusal.LIMITS_EXCEEDED, "ended from outside"),
        ("hangs", SHORT, Refusal.LIMITS_EXCEEDED, "longer than 1.5 s"),
        ("stands_still", SHORT, Refusal.LIMITS_EXCEEDED, "longer than 1.5 s"),
        ("burns", ChildLimits(cpu_s=1), Refusal.LIMITS_EXCEEDED, "more than 1 s of computing"),
        ("eats", NARROW, Refusal.LIMITS_EXCEEDED, "more memory"),
        ("eats_and_aborts", NARROW, Refusal.LIMITS_EXCEEDED, "more memory"),
        ("announces_much", LIMITS, Refusal.LIMITS_EXCEEDED, "holds more"),
        ("breaks", LIMITS, Refusal.CORRUPT, "damaged"),
        ("says_nothing", LIMITS, Refusal.CORRUPT, "damaged"),
        ("babbles", LIMITS, Refusal.CORRUPT, "damaged"),
        ("lies", LIMITS, Refusal.CORRUPT, "damaged"),
        ("fails", LIMITS, Refusal.CORRUPT, "to its end"),
    ],
)
def test_a_child_without_an_answer_is_a_refusal(
    mark: str, kind: str, limits: ChildLimits, refusal: Refusal, why: str
) -> None:
    answer = asked(kind, mark, limits=limits)
    assert (answer.refusal, answer.statements) == (refusal, ())
    assert why in (answer.message or "")


def test_one_that_never_reads_is_given_up(mark: str) -> None:
    sleeps = [sys.executable, "-I", "-c", "import time; time.sleep(3600)", mark]
    answer = extract(bytes(4 * MIB), None, SHORT, command=sleeps)
    assert answer.refusal is Refusal.LIMITS_EXCEEDED


def test_one_that_ends_while_it_is_fed_is_given_up(mark: str) -> None:
    ends = [sys.executable, "-I", "-c", "import sys; sys.stdin.buffer.read(100)", mark]
    assert extract(bytes(4 * MIB), None, command=ends).refusal is Refusal.CORRUPT


def test_one_that_can_not_be_started_is_a_refusal() -> None:
    answer = extract(b"%PDF", None, command=["/nowhere/python"])
    assert answer.refusal is Refusal.LIMITS_EXCEEDED


def test_a_picture_that_never_comes_is_none(mark: str) -> None:
    for kind in ("breaks", "fails", "hangs", "echoes"):
        assert page_png(b"%PDF", None, 1, limits=SHORT, command=command(kind, mark)) is None


def test_what_libraries_print_garbles_nothing(mark: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert reported("prints", mark) == "done"
    assert capfd.readouterr() == ("", "")


def test_of_a_fault_of_ours_the_log_says_where_and_quotes_nothing(mark: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asked("fails", mark, b"account 12345678")
    (record,) = caplog.records
    fields = getattr(record, "fields", {})
    assert fields["error"] == "ValueError"
    assert fields["raisedAt"][-1].endswith(" fails")
    assert "12345678" not in f"{record.getMessage()} {fields}"


def test_a_child_has_limits_and_nothing_of_its_parent(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", "secret")
    with socket.socket() as listener:
        os.set_inheritable(listener.fileno(), True)
        around = reported("inspects_surroundings", mark)
    assert set(around["environment"]) <= {"OPENBLAS_NUM_THREADS", "LC_CTYPE"}  # the latter is Python's own
    assert around["folder"] == "/"
    assert around["niceness"] > os.nice(0) or os.nice(0) == 19
    assert around["open files"] == [0, 1, 2, 3]
    limits = around["limits"]
    assert limits.pop("AS") < 1024 * MIB
    assert limits == {"CPU": 30, "FSIZE": 0, "CORE": 0, "NOFILE": 32, "NPROC": 0}


def test_a_child_has_one_thread_and_a_network_of_its_own(mark: str) -> None:
    """With more than one thread it could not leave the network behind."""
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(asked, "hangs", mark, limits=ChildLimits(wall_s=120))
        until(lambda: any(map(_is_confined, processes(mark))))
        (pid,) = processes(mark)
        assert psutil.Process(pid).num_threads() == 1
        if _holds("unshare --user --net true"):
            assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
        os.kill(pid, signal.SIGKILL)
        assert asking.result().refusal is Refusal.LIMITS_EXCEEDED


def test_a_child_reaches_nobody(mark: str) -> None:
    if not _holds("unshare --user --net true") and not _landlock() >= 4:
        pytest.skip("this system forbids namespaces to its processes, and has no Landlock")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        said = reported("connects", mark, str(server.getsockname()[1]).encode())
        assert said in ("OSError", "PermissionError")
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_child_writes_nothing(mark: str, tmp_path: Path) -> None:
    if _landlock() < 1:
        pytest.skip("this system has no Landlock")
    assert reported("writes", mark, bytes(tmp_path / "made")) == "PermissionError"
    assert list(tmp_path.iterdir()) == []


def test_a_child_reads_no_secret(mark: str, tmp_path: Path) -> None:
    if _landlock() < 1:
        pytest.skip("this system has no Landlock")
    (tmp_path / "master.key").write_text("secret")
    for path in (tmp_path / "master.key", Path("/proc") / str(os.getpid()) / "environ", Path("/etc/passwd")):
        assert reported("reads", mark, bytes(path)) == "PermissionError"


def test_what_a_child_leaves_ends_with_it(mark: str) -> None:
    assert reported("leaves_another", mark) == ("born" if os.geteuid() == 0 else "alone")
    until(lambda: not processes(mark), within_s=10)


def test_a_child_dies_with_its_parent(mark: str) -> None:
    starts = f"from isolation import extract; extract(b'%PDF', None, command={command('hangs', mark)!r})"
    with subprocess.Popen([sys.executable, "-I", "-c", starts]) as parent:
        until(lambda: any(_is_confined(pid) for pid in processes(mark)), within_s=20)
        parent.send_signal(signal.SIGKILL)
    until(lambda: not processes(mark), within_s=10)


def test_a_large_file_and_a_password_arrive_whole(mark: str) -> None:
    content = bytes(range(256)) * 4096 * 8
    answer = extract(content, "Grüße 🔑", command=command("echoes", mark))
    assert json.loads(answer.message or "") == [len(content), sum(content[:1000]), "Grüße 🔑"]


def test_progress_is_told(mark: str) -> None:
    seen: list[tuple[int, int]] = []
    asked("counts", mark, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_whoever_is_told_may_call_it_off(mark: str) -> None:
    def enough(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked("counts", mark, on_progress=enough)
    assert processes(mark) == []


def test_threads_read_side_by_side(mark: str) -> None:
    """The faults of some are nothing to the others."""
    kinds = ["echoes", "breaks", "is_killed", "fails"] * 2
    with ThreadPoolExecutor(4) as threads:
        contents = [b"%%PDF %d" % number for number in range(len(kinds))]
        answers = list(threads.map(asked, kinds, [mark] * len(kinds), contents))
    for kind, content, answer in zip(kinds, contents, answers, strict=True):
        if kind == "echoes":
            assert json.loads(answer.message or "")[:2] == [len(content), sum(content)]
        else:
            assert answer.refusal in (Refusal.CORRUPT, Refusal.LIMITS_EXCEEDED)


def test_nothing_stays_open(mark: str) -> None:
    asked("echoes", mark)
    before = psutil.Process().num_fds()
    for kind in ("echoes", "breaks", "hangs", "babbles"):
        asked(kind, mark, limits=SHORT)
    assert psutil.Process().num_fds() == before


def _holds(line: str) -> bool:
    return subprocess.run(line.split(), capture_output=True, check=False).returncode == 0


def _landlock() -> int:
    """Its version here."""
    ask = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))"
    return int(subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True).stdout)


def _is_confined(pid: int) -> bool:
    try:
        return psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE)[0] == 0
    except psutil.Error:
        return False
