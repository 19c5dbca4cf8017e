"""Of several processes that share the tests (pytest-xdist), each computes in one thread.

With a thread for each core they take turns at every small frame. What the tests start computes as it does in service.
It is settled here, before any other import: Polars looks at its variable once.
"""

import os
import sys

import pytest


def compute_in_one_thread() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLARS_MAX_THREADS", "1")
        import polars as pl  # noqa: PLC0415  # after its variable is set

    assert pl.thread_pool_size() == 1, "Polars was imported before"


# A process that a test starts bears the variable, too, but not the plugin.
if "PYTEST_XDIST_WORKER" in os.environ and "xdist" in sys.modules:
    compute_in_one_thread()
