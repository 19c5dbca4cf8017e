"""Compute in one thread if several processes share the tests (pytest-xdist).

With one thread per core in each, processes would take turns at every small frame. Processes that tests start compute as
in service. This comes before any other import, because Polars reads its variable only once.
"""

import os
import sys

import pytest


def compute_in_one_thread() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLARS_MAX_THREADS", "1")
        import polars as pl  # noqa: PLC0415  # after its variable is set

    assert pl.thread_pool_size() == 1, "Polars was imported before"


# A process that a test starts has the variable, too, but not the plugin.
if "PYTEST_XDIST_WORKER" in os.environ and "xdist" in sys.modules:
    compute_in_one_thread()
