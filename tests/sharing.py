"""How test processes share the tests among themselves (pytest-xdist). This is a plugin of pytest.

A file stays together, for what its tests share. So do all tests that start whole services: two of these at once would
be too much for two cores, and for the hundred connections of a PostgreSQL that nobody tuned.
"""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_OF_SERVICES = {PurePosixPath("tests/flows"), PurePosixPath("tests/faults")}


class ByFileAndServicesTogether(LoadFileScheduling):  # type: ignore[misc]  # untyped
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "services" if PurePosixPath(file).parent in _OF_SERVICES else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndServicesTogether:
    return ByFileAndServicesTogether(config, log)
