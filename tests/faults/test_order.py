"""The answer comes last: everything that a 202 depends on is synced before its first byte is sent.

SIGKILL can't show this, for what was written survives it; a power cut would.
"""

import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.faults import attach_strace, untrace
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CALLS = "write,pwrite64,fsync,fdatasync,link,linkat,rename,sendto"
LINE = re.compile(r"^(?P<thread>\d+) +(?P<call>\w+)\((?P<rest>.*)$")


class Call(NamedTuple):
    name: str
    rest: str  # arguments, with the files' paths, and result


def test_the_last_sync_of_data_precedes_the_202(world: World, tmp_path: Path) -> None:
    lender = world.lender(seed=1)
    customer, rows = lender.customer(), lender.rows(200)
    tracer = attach_strace(world.process("api"), tmp_path / "trace", "-y", "-s", "64", "-e", f"trace={CALLS}")
    lender.submit(customer, rows)
    time.sleep(0.5)  # for the last lines of the trace
    untrace(tracer)
    calls = calls_in(tmp_path / "trace")
    answered = first(calls, "HTTP/1.1 202", "write", "sendto")
    before = calls[:answered]
    draft_written, draft_synced = first(before, ".parquet.", "write"), first(before, ".parquet.", "fsync")
    named, folder_synced = first(before, "/landing/", "link", "linkat"), last(before, "/landing/", "fsync")
    log_written, log_synced = last(before, ".db-wal", "pwrite64"), last(before, ".db-wal", "fdatasync", "fsync")
    assert draft_written < draft_synced < named < folder_synced < log_written < log_synced


def calls_in(trace: Path) -> list[Call]:
    """Return the calls in the order in which they ended."""
    found: list[Call] = []
    begun: dict[str, str] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if resumed := re.match(r"^(\d+) +<\.\.\. (\w+) resumed>", line):
            found.append(Call(resumed[2], begun.pop(resumed[1])))
        elif call := LINE.match(line):
            if line.endswith("<unfinished ...>"):
                begun[call["thread"]] = call["rest"]
            else:
                found.append(Call(call["call"], call["rest"]))
    return found


def positions(calls: list[Call], what: str, *names: str) -> list[int]:
    found = [at for at, call in enumerate(calls) if call.name in names and what in call.rest]
    assert found, f"no {names} of {what}"
    return found


def first(calls: list[Call], what: str, *names: str) -> int:
    return positions(calls, what, *names)[0]


def last(calls: list[Call], what: str, *names: str) -> int:
    return positions(calls, what, *names)[-1]
