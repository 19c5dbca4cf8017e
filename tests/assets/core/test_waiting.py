"""Work on the portfolio waits while storage is away. How a run continues: `tests.assets.portfolio`."""

from collections.abc import Iterator

import pytest
from dagster import OpDefinition, RetryRequested
from dagster._core.definitions.decorators.op_decorator import DecoratedOpFunction

from assets.core.runs import PORTFOLIO_ASSETS, QUEUE_TAG
from assets.core.waiting import waits_for_storage
from assets.definitions import definitions
from storage.core.bucket import Unreachable
from storage.core.models import Queue


@waits_for_storage()
def be_away() -> None:
    raise Unreachable


@waits_for_storage()
def fail() -> None:
    raise ValueError("not of storage")


def test_only_storage_that_is_away_repeats_a_step() -> None:
    with pytest.raises(RetryRequested):
        be_away()
    with pytest.raises(ValueError, match="not of storage"):
        fail()


def portfolio_steps() -> Iterator[OpDefinition]:
    for job in definitions().resolve_all_job_defs():
        steps = [node.definition for node in job.graph.nodes]
        in_queue = job.tags.get(QUEUE_TAG) == Queue.PORTFOLIO
        yield from (
            step for step in steps if isinstance(step, OpDefinition) and (in_queue or step.name in PORTFOLIO_ASSETS)
        )


def test_every_step_of_the_portfolio_waits(subtests: pytest.Subtests) -> None:
    steps = {step.name: step for step in portfolio_steps()}
    assert len(steps) >= 12
    for name, step in steps.items():
        with subtests.test(name):
            compute = step.compute_fn
            assert isinstance(compute, DecoratedOpFunction)
            assert compute.decorated_fn.__code__ is be_away.__code__, "has the decorator waits_for_storage"
