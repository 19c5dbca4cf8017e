"""Children end with their parent, and a lock has one holder."""

import os
import signal
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

# `Event.wait` holds this lock for a moment whenever it is called.
SIGNAL_WHILE_THE_EVENT_IS_LOCKED = f"""
import signal, sys
from assets.core.processes import stop_requested
stop = stop_requested(with_parent=False)
with stop._cond:
    signal.raise_signal({int(signal.SIGTERM)})
sys.exit(not stop.wait(10))
"""


def test_a_child_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    os.kill(int(parent.stdout.readline()), 0)  # it lives
    parent.kill()
    parent.communicate(timeout=20)  # returns when both parent and child have closed the pipe


def test_a_child_has_its_own_session_so_that_ctrl_c_reaches_only_the_parent() -> None:
    child = spawn("tests.assets.obedient", environment={})
    assert os.getsid(child.process.pid) == child.process.pid
    child.line.close()
    assert child.process.wait(20) == 1


def test_a_signal_is_noticed_even_if_it_interrupts_the_wait_for_it() -> None:
    subprocess.run([sys.executable, "-c", SIGNAL_WHILE_THE_EVENT_IS_LOCKED], timeout=20, check=True)


def test_a_lock_has_one_holder_and_the_next_holder_gets_the_same_id(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "worker.lock") as holder:
        with pytest.raises(AlreadyRunningError), hold_lock(tmp_path / "worker.lock"):
            pass
        with hold_lock(tmp_path / "platform.lock") as other:
            assert other != holder
    with hold_lock(tmp_path / "worker.lock") as successor:
        assert successor == holder
