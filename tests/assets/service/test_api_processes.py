"""Several API processes share a port, and a failure to start is reported clearly."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from time import monotonic, sleep

import psutil
import pytest
import requests

from assets.service.parts import free_port

pytestmark = pytest.mark.service


@contextmanager
def api(home: Path, port: int, processes: int) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "api.cli", "api", "--port", str(port), "--processes", str(processes)]
    environment = os.environ | {"TIDEMARK_HOME": str(home), "TIDEMARK_DATABASE_URL": ""}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        yield psutil.Process(process.pid)
        process.terminate()


def answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/health/live", timeout=30).ok
    except requests.ConnectionError:
        return False


def servers(root: psutil.Process, count: int) -> list[psutil.Process]:
    """Return the root's API processes when all of them answer."""
    deadline = monotonic() + 30
    while monotonic() < deadline:
        children = [child for child in root.children() if child.status() != psutil.STATUS_ZOMBIE]
        if len(children) == count and all(has_event_loop(child) for child in children):
            return children
        sleep(0.1)
    raise TimeoutError(f"{count} API processes did not start")


def has_event_loop(process: psutil.Process) -> bool:
    """Return whether the process accepts connections: before that it has no event loop."""
    return any(".epoll" in file or "eventpoll" in file for file in open_files(process))


def open_files(process: psutil.Process) -> list[str]:
    folder = Path(f"/proc/{process.pid}/fd")
    return [os.readlink(file) for file in folder.iterdir() if file.is_symlink()]


def test_requests_are_answered_while_a_process_restarts(tmp_path: Path) -> None:
    port = free_port()
    with api(tmp_path / "home", port, processes=2) as root:
        first, second = servers(root, 2)
        first.kill()
        assert all(answers(port) for _ in range(20))
        second.kill()
        assert servers(root, 2)
        assert answers(port)


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "api.cli", "api", "--port", port]
        environment = os.environ | {"TIDEMARK_HOME": str(tmp_path)}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [f"tidemark: can't listen on 127.0.0.1:{port}: Address already in use"]


def test_an_unusable_home_is_reported_once_and_not_retried(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file, where a folder is needed")
    environment = os.environ | {"TIDEMARK_HOME": str(tmp_path), "TIDEMARK_DATABASE_URL": ""}
    command = [sys.executable, "-m", "api.cli", "api", "--port", str(free_port())]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    why, closing = ended.stderr.splitlines()
    assert str(tmp_path / "lake") in why
    assert closing == "tidemark: the API could not be started"
