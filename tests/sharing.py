"""How test processes share the tests among themselves (pytest-xdist). This is a plugin of pytest.

A file stays together, for what its tests share. So do all tests that start whole services: two of these at once would
be too much for two cores, and for the hundred connections of a PostgreSQL that nobody tuned. A file of a few long tests
is shared out, though.
"""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_OF_SERVICES = {PurePosixPath("tests/flows"), PurePosixPath("tests/faults")}
_OF_LONG_TESTS = {"tests/api/test_contract.py"}


class ByFileAndServicesTogether(LoadFileScheduling):  # type: ignore[misc]  # untyped
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file in _OF_LONG_TESTS:
            return nodeid
        return "services" if PurePosixPath(file).parent in _OF_SERVICES else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndServicesTogether:
    return ByFileAndServicesTogether(config, log)
