"""However a child misbehaves, its parent gets an answer, keeps running, and leaves no process or file open."""

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

from isolation import LIMITS, ChildLimits, decode, draw_page, extract, read_pdf_text
from isolation.limits import MIB
from isolation.parent import ENVIRONMENT, ReaderBug
from pipelines.intake.pdf.page.result import Extraction, Refusal
from tests.waiting import until

pytestmark = pytest.mark.service  # each test starts child processes

CHILDREN = Path(__file__).with_name("children.py")
SHORT = ChildLimits(wall_s=1.5, cpu_s=1)
NARROW = ChildLimits(memory_bytes=64 * MIB)


@pytest.fixture
def mark() -> Iterator[str]:
    """Return an argument that all processes of a test have; when the test ends, all of them must be gone."""
    unique = uuid4().hex
    yield unique
    until(lambda: not processes(unique), within_s=10)


def processes(mark: str) -> list[int]:
    return [process.pid for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())]


def command(kind: str, mark: str) -> list[str]:
    return [sys.executable, "-I", str(CHILDREN), kind, mark]


def run(kind: str, mark: str, content: bytes = b"%PDF", limits: ChildLimits = ChildLimits(), **more: Any) -> Extraction:
    return extract(content, None, limits, command=command(kind, mark), **more)


def run_and_parse(kind: str, mark: str, content: bytes = b"") -> Any:
    """Run a child and return the value in its answer."""
    answer = run(kind, mark, content)
    assert answer.refusal is Refusal.NOT_A_STATEMENT, answer.message
    assert answer.message is not None
    return json.loads(answer.message)


@pytest.mark.parametrize(
    ("kind", "limits", "refusal", "why"),
    [
        ("is_killed", LIMITS, Refusal.LIMITS_EXCEEDED, "was killed"),
        ("hangs", SHORT, Refusal.LIMITS_EXCEEDED, "longer than 1.5 s"),
        ("stands_still", SHORT, Refusal.LIMITS_EXCEEDED, "longer than 1.5 s"),
        ("burns", ChildLimits(cpu_s=1), Refusal.LIMITS_EXCEEDED, "more than 1 s of processor time"),
        ("eats", NARROW, Refusal.LIMITS_EXCEEDED, "more memory"),
        ("eats_and_aborts", NARROW, Refusal.LIMITS_EXCEEDED, "more memory"),
        ("announces_much", LIMITS, Refusal.LIMITS_EXCEEDED, "larger than allowed"),
        ("breaks", LIMITS, Refusal.CORRUPT, "damaged"),
        ("says_nothing", LIMITS, Refusal.CORRUPT, "damaged"),
        ("babbles", LIMITS, Refusal.CORRUPT, "damaged"),
        ("lies", LIMITS, Refusal.CORRUPT, "damaged"),
        ("fails", LIMITS, Refusal.CORRUPT, "not be read completely"),
    ],
)
def test_a_child_without_an_answer_is_a_refusal(
    mark: str, kind: str, limits: ChildLimits, refusal: Refusal, why: str
) -> None:
    answer = run(kind, mark, limits=limits)
    assert (answer.refusal, answer.statements) == (refusal, ())
    assert why in (answer.message or "")


def test_a_child_that_never_reads_is_killed(mark: str) -> None:
    sleeps = [sys.executable, "-I", "-c", "import time; time.sleep(3600)", mark]
    answer = extract(bytes(4 * MIB), None, SHORT, command=sleeps)
    assert answer.refusal is Refusal.LIMITS_EXCEEDED


def test_a_child_that_ends_while_reading_is_a_refusal(mark: str) -> None:
    ends = [sys.executable, "-I", "-c", "import sys; sys.stdin.buffer.read(100)", mark]
    assert extract(bytes(4 * MIB), None, command=ends).refusal is Refusal.CORRUPT


def test_a_child_that_can_not_be_started_is_a_refusal() -> None:
    answer = extract(b"%PDF", None, command=["/nowhere/python"])
    assert answer.refusal is Refusal.LIMITS_EXCEEDED


def test_a_picture_that_is_never_sent_is_none(mark: str) -> None:
    for kind in ("breaks", "fails", "hangs", "echoes"):
        assert draw_page(b"%PDF", None, 1, limits=SHORT, command=command(kind, mark)) is None


def test_failures_to_draw_or_to_read_text_are_logged(mark: str, caplog: pytest.LogCaptureFixture) -> None:
    for kind, logged in (
        ("is_killed", "was killed"),
        ("fails", "a bug in its reader"),
        ("hangs", "longer than"),
        ("eats", "more memory"),
    ):
        limits = NARROW if kind == "eats" else SHORT
        caplog.clear()
        assert draw_page(b"%PDF", None, 1, limits=limits, command=command(kind, mark)) is None
        assert read_pdf_text(b"%PDF", limits, command=command(kind, mark)) == ("", False)
        assert [logged in message for message in caplog.messages] == [True, True], (kind, caplog.messages)


def test_a_bug_in_the_decoder_is_not_reported_as_a_busy_service(mark: str) -> None:
    with pytest.raises(ReaderBug):
        decode(b"[]", limits=SHORT, command=command("fails", mark))


def test_output_of_libraries_is_discarded(mark: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_and_parse("prints", mark) == "done"
    assert capfd.readouterr() == ("", "")


def test_the_log_of_an_exception_says_where_and_quotes_nothing(mark: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        run("fails", mark, b"account 12345678")
    (record,) = caplog.records
    fields = getattr(record, "fields", {})
    assert fields["error"] == "ValueError"
    assert fields["raisedAt"][-1].endswith(" fails")
    assert "12345678" not in f"{record.getMessage()} {fields}"


def test_a_child_has_limits_and_nothing_of_its_parent(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", "secret")
    with socket.socket() as listener:
        os.set_inheritable(listener.fileno(), True)
        around = run_and_parse("inspects_surroundings", mark)
    assert set(around["environment"]) <= {*ENVIRONMENT, "LC_CTYPE"}  # the latter is Python's own
    assert around["folder"] == "/"
    assert around["niceness"] > os.nice(0) or os.nice(0) == 19
    assert around["open files"] == [0, 1, 2, 3]
    limits = around["limits"]
    assert limits.pop("AS") < 1024 * MIB
    assert limits == {"CPU": 30, "FSIZE": 0, "CORE": 0, "NOFILE": 32, "NPROC": 0}


def test_a_child_has_one_thread_and_a_network_of_its_own(mark: str) -> None:
    """A process with more than one thread could not enter a network namespace."""
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(run, "hangs", mark, limits=ChildLimits(wall_s=120))
        until(lambda: any(map(_is_confined, processes(mark))))
        (pid,) = processes(mark)
        assert psutil.Process(pid).num_threads() == 1
        if _succeeds("unshare --user --net true"):
            assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
        os.kill(pid, signal.SIGKILL)
        assert result.result().refusal is Refusal.LIMITS_EXCEEDED


def test_a_child_has_no_network(mark: str) -> None:
    if not _succeeds("unshare --user --net true") and not _landlock() >= 4:
        pytest.skip("this system forbids namespaces to its processes, and has no Landlock")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        error = run_and_parse("connects", mark, str(server.getsockname()[1]).encode())
        assert error in ("OSError", "PermissionError")
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_child_writes_nothing(mark: str, tmp_path: Path) -> None:
    if _landlock() < 1:
        pytest.skip("this system has no Landlock")
    assert run_and_parse("writes", mark, bytes(tmp_path / "made")) == "PermissionError"
    assert list(tmp_path.iterdir()) == []


def test_a_child_reads_no_secret(mark: str, tmp_path: Path) -> None:
    if _landlock() < 1:
        pytest.skip("this system has no Landlock")
    (tmp_path / "master.key").write_text("secret")
    for path in (tmp_path / "master.key", Path("/proc") / str(os.getpid()) / "environ", Path("/etc/passwd")):
        assert run_and_parse("reads", mark, bytes(path)) == "PermissionError"


def test_processes_started_by_a_child_end_with_it(mark: str) -> None:
    assert run_and_parse("leaves_another", mark) == ("born" if os.geteuid() == 0 else "alone")
    until(lambda: not processes(mark), within_s=10)


def test_a_child_dies_with_its_parent(mark: str) -> None:
    starts = f"from isolation import extract; extract(b'%PDF', None, command={command('hangs', mark)!r})"
    with subprocess.Popen([sys.executable, "-I", "-c", starts]) as parent:
        until(lambda: any(_is_confined(pid) for pid in processes(mark)), within_s=20)
        parent.send_signal(signal.SIGKILL)
    until(lambda: not processes(mark), within_s=10)


def test_a_large_file_and_a_password_arrive_complete(mark: str) -> None:
    content = bytes(range(256)) * 4096 * 8
    answer = extract(content, "Grüße 🔑", command=command("echoes", mark))
    assert json.loads(answer.message or "") == [len(content), sum(content[:1000]), "Grüße 🔑"]


def test_progress_is_reported(mark: str) -> None:
    seen: list[tuple[int, int]] = []
    run("counts", mark, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_progress_callback_may_cancel(mark: str) -> None:
    def cancel(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("counts", mark, on_progress=cancel)
    assert processes(mark) == []


def test_failures_in_one_thread_do_not_affect_others(mark: str) -> None:
    kinds = ["echoes", "breaks", "is_killed", "fails"] * 2
    with ThreadPoolExecutor(4) as threads:
        contents = [b"%%PDF %d" % number for number in range(len(kinds))]
        answers = list(threads.map(run, kinds, [mark] * len(kinds), contents))
    for kind, content, answer in zip(kinds, contents, answers, strict=True):
        if kind == "echoes":
            assert json.loads(answer.message or "")[:2] == [len(content), sum(content)]
        else:
            assert answer.refusal in (Refusal.CORRUPT, Refusal.LIMITS_EXCEEDED)


def test_no_file_stays_open(mark: str) -> None:
    run("echoes", mark)
    before = psutil.Process().num_fds()
    for kind in ("echoes", "breaks", "hangs", "babbles"):
        run(kind, mark, limits=SHORT)
    assert psutil.Process().num_fds() == before


def _succeeds(line: str) -> bool:
    return subprocess.run(line.split(), capture_output=True, check=False).returncode == 0


def _landlock() -> int:
    """Return the version of Landlock on this system."""
    script = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))"
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)


def _is_confined(pid: int) -> bool:
    try:
        return psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE)[0] == 0
    except psutil.Error:
        return False
