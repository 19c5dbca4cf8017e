"""Programs that a test needs, which the project doesn't install."""

import fcntl
import os
import shutil
import subprocess
from functools import cache

import pytest

from tests.root import ROOT


def tool(name: str) -> str:
    """Return the tool's path; if it is missing, skip the test, or fail where all tools are required."""
    path = shutil.which(name)
    if path is None and os.environ.get("CI"):
        pytest.fail(f"{name} is needed to run this test")
    if path is None:
        pytest.skip(f"install {name} to run this test")
    return path


@cache
def build_clients() -> None:
    """Build the client libraries of this code, once for all processes of a test run: each build removes the former."""
    tool("npm")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "clients-built-by").open("a+") as built_by:
        fcntl.flock(built_by, fcntl.LOCK_EX)
        built_by.seek(0)
        if built_by.read() != run:
            subprocess.run(["make", "clients"], cwd=ROOT, check=True)
            built_by.truncate(0)
            built_by.write(run)
