"""Dagster's code server, which ends with its parent (`python -m assets.dagster_internals.code_server SOCKET MODULE`).

The web server and the daemon get the assets' definitions from it; the ticks of sensors run in it.
"""

import runpy
import sys

from dagster._cli import api

from assets.core.processes import end_with_parent
from assets.core.runs import CODE_LOCATION
from storage.core import logs
from storage.core.settings import Settings


def main() -> None:
    socket, module = sys.argv[1:]
    end_with_parent()
    sys.argv = ["dagster", "api", "grpc", "--socket", socket, "--module-name", module]
    sys.argv += ["--location-name", CODE_LOCATION]
    logs.to_stderr("dagster", Settings())
    vars(api)["configure_loggers"] = _configure_no_loggers
    runpy.run_module("dagster", run_name="__main__")


def _configure_no_loggers(**_: str) -> None:
    """Do nothing. Dagster's own function would replace our log format."""


if __name__ == "__main__":
    main()
