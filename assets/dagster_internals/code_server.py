"""Dagster's own code server, ended with its parent (`python -m assets.dagster_internals.code_server SOCKET MODULE`).

The web server and the daemon ask it what the assets are; the sensors' ticks run here.
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
    vars(api)["configure_loggers"] = _as_all_do
    runpy.run_module("dagster", run_name="__main__")


def _as_all_do(**_: str) -> None:
    """Dagster would log in a form of its own."""


if __name__ == "__main__":
    main()
