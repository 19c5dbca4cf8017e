"""Programs that a test needs, which the project doesn't install."""

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
    """Build the client libraries of this code."""
    tool("npm")
    subprocess.run(["make", "clients"], cwd=ROOT, check=True)
