"""A part that dies is started again; asked to end, it ends."""

import os
import signal
import time

import pytest

from assets.parts import Address, Part


def test_a_part_that_was_killed_is_started_again_and_ends_when_told() -> None:
    part = Part("obedient one", "tests.assets.obedient", environment={})
    first = part.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while part.pid in (None, first):
        assert time.monotonic() < deadline
        part.look_after()
        time.sleep(0.05)
    second = part.pid
    assert second is not None
    part.end()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:3000"),
        ("0.0.0.0", "http://127.0.0.1:3000"),
        ("10.1.2.3", "http://10.1.2.3:3000"),
        ("::1", "http://[::1]:3000"),
    ],
)
def test_whoever_is_on_this_machine_knows_how_to_reach_a_server(host: str, base: str) -> None:
    assert Address(host, 3000).from_here == base
