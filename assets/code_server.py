"""Dagster's code server (`python -m assets.code_server SOCKET MODULE`), the stock one, that ends with its parent.

The web server and the daemon ask it what the assets are; the sensors' ticks run here. What leans on private parts of
Dagster stands in this file; `tests/assets/test_private_dagster.py` fails when an upgrade moves one of them.
"""

import runpy
import sys

from dagster._cli import api

from assets.processes import end_with_parent
from assets.runs import CODE_LOCATION
from storage import logs
from storage.settings import Settings


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
