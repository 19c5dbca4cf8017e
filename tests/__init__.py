"""Compute in one thread if several processes share the tests (pytest-xdist).

With one thread per core in each, processes would take turns at every small frame, and threads of OpenBLAS that wait for
each other use a core. Processes that tests start compute as in service. This comes before any other import, because
libraries read their variables only once.
"""

import os
import sys

import pytest


def compute_in_one_thread() -> None:
    assert not {"numpy", "polars", "scipy"} & sys.modules.keys(), "imported before their variables are set"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        patch.setenv("POLARS_MAX_THREADS", "1")
        import polars as pl  # noqa: PLC0415  # after its variable is set
        import scipy.linalg  # noqa: F401, PLC0415  # has an OpenBLAS of its own, beside numpy's

    assert pl.thread_pool_size() == 1


# A process that a test starts has the variable, too, but not the plugin.
if "PYTEST_XDIST_WORKER" in os.environ and "xdist" in sys.modules:
    compute_in_one_thread()
