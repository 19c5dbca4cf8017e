"""The operator's commands while things break: they may be killed, but must not fail otherwise."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.faults.world import World

WITHIN_S = 120


def run(world: World, *arguments: str, behind: Sequence[str] = (), **environment: str) -> Any:
    """Run `tidemark …` and return its JSON output; None if it was killed.

    Args:
        behind: a command that starts it, such as strace.
        environment: variables in addition to those of the service.
    """
    done = subprocess.run(
        [*behind, sys.executable, "-m", "api.cli", *arguments, "--json"],
        env=world.service.environment | environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, f"{arguments} ended with {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)
