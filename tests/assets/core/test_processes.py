"""Children end with their parent, and a home has one of each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assets.core.processes import AlreadyRunningError, hold_lock, spawn

PARENT = """
import time
from assets.core.processes import spawn
print(spawn("tests.assets.obedient", environment={}).process.pid, flush=True)
time.sleep(60)
"""


def test_a_child_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    os.kill(int(parent.stdout.readline()), 0)  # it lives
    parent.kill()
    parent.communicate(timeout=20)  # returns when nobody has the pipe any more: neither parent nor child


def test_a_child_has_a_session_of_its_own_so_that_ctrl_c_reaches_the_parent_alone() -> None:
    child = spawn("tests.assets.obedient", environment={})
    assert os.getsid(child.process.pid) == child.process.pid
    child.line.close()
    assert child.process.wait(20) == 1


def test_the_second_one_in_a_home_is_refused_and_a_successor_takes_the_first_one_s_id(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "worker.lock") as holder:
        with pytest.raises(AlreadyRunningError), hold_lock(tmp_path / "worker.lock"):
            pass
        with hold_lock(tmp_path / "platform.lock") as other:
            assert other != holder
    with hold_lock(tmp_path / "worker.lock") as successor:
        assert successor == holder
