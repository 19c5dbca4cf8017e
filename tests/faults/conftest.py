"""Fixtures of the fault harness."""

from collections.abc import Iterator

import pytest

from api.webhooks.listen import Receiver
from tests.faults.world import World, running


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(home=tmp_path_factory.mktemp("receiver")) as listening:
        yield listening


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    """Return one running service for all experiments of a module: each starts with what the last one left behind."""
    with running(tmp_path_factory.mktemp("world") / "tidemark", receiver) as ready:
        yield ready
