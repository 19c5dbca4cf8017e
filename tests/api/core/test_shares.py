"""Capacity is shared by clients, and by each client's keys; nobody gets all of it, unless it is only one."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from api.core.limits import Asker, Shares, Turns
from pipelines.vocabulary.errors import Unavailable

ONE, TWIN, OTHER = Asker("one", "key"), Asker("one", "another key"), Asker("other", "key")


def take_all(shares: Shares, asker: Asker) -> int:
    """Return how much the asker can take."""
    number = 0
    while shares.fits(asker, 1):
        shares.take(asker, 1)
        number += 1
    return number


def test_a_key_and_a_client_always_leave_something_for_others() -> None:
    shares = Shares(256)
    assert [take_all(shares, asker) for asker in (ONE, TWIN, OTHER)] == [144, 36, 42]
    assert shares.fits(Asker("third", "key"), 1)


def test_an_amount_is_available_again_after_it_is_given_back() -> None:
    shares = Shares(256)
    for _ in range(2):
        with shares.held(ONE) as held:
            held.take(144)
            with pytest.raises(Unavailable):
                held.take(1)


def test_the_smallest_service_does_one_thing_at_a_time() -> None:
    shares = Shares(1)
    assert [take_all(shares, asker) for asker in (ONE, OTHER)] == [1, 0]


def order(turns: Turns, askers: Sequence[Asker]) -> list[str]:
    """Return the order of turns of askers that come at once, if each ends its work before the next begins."""

    async def work() -> list[str]:
        async with asyncio.timeout(5), asyncio.TaskGroup() as all_of_them:
            for asker in askers:
                all_of_them.create_task(one(asker))
        return served

    async def one(asker: Asker) -> None:
        async with turns.turn(asker):
            served.append(f"{asker.client} {asker.key}")
            await asyncio.sleep(0)

    served: list[str] = []
    asyncio.run(work())
    return served


def test_the_asker_with_the_fewest_turns_is_next() -> None:
    served = order(Turns(2), [ONE] * 5 + [TWIN] + [OTHER] * 2)
    assert len(served) == 8
    assert served[:2] == ["one key", "other key"]


def test_an_asker_that_leaves_while_waiting_takes_no_turn() -> None:
    async def leave() -> bool:
        turns = Turns(1)
        async with asyncio.timeout(5), AsyncExitStack() as working:
            await working.enter_async_context(turns.turn(ONE))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0), turns.turn(OTHER):
                    raise AssertionError("two turns at once")
            await working.aclose()
            async with turns.turn(TWIN):
                return True

    assert asyncio.run(leave())
