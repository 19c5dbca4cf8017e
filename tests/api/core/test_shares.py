"""Capacity is shared by clients, and by each client's keys; nobody gets all of it, unless it is only one."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from api.core.limits import Requester, Shares, Turns
from pipelines.vocabulary.errors import Unavailable

ONE, TWIN, OTHER = Requester("one", "key"), Requester("one", "another key"), Requester("other", "key")


def take_all(shares: Shares, requester: Requester) -> int:
    """Return how much the requester can take."""
    number = 0
    while shares.fits(requester, 1):
        shares.take(requester, 1)
        number += 1
    return number


def test_a_key_and_a_client_always_leave_something_for_others() -> None:
    shares = Shares(256)
    assert [take_all(shares, requester) for requester in (ONE, TWIN, OTHER)] == [144, 36, 42]
    assert shares.fits(Requester("third", "key"), 1)


def test_an_amount_is_available_again_after_it_is_given_back() -> None:
    shares = Shares(256)
    for _ in range(2):
        with shares.held(ONE) as held:
            held.take(144)
            with pytest.raises(Unavailable):
                held.take(1)


def test_the_smallest_service_does_one_thing_at_a_time() -> None:
    shares = Shares(1)
    assert [take_all(shares, requester) for requester in (ONE, OTHER)] == [1, 0]


def order(turns: Turns, requesters: Sequence[Requester]) -> list[str]:
    """Return the order of turns of requesters that come at once, if each ends its work before the next begins."""

    async def work() -> list[str]:
        async with asyncio.timeout(5), asyncio.TaskGroup() as all_of_them:
            for requester in requesters:
                all_of_them.create_task(one(requester))
        return served

    async def one(requester: Requester) -> None:
        async with turns.turn(requester):
            served.append(f"{requester.client} {requester.key}")
            await asyncio.sleep(0)

    served: list[str] = []
    asyncio.run(work())
    return served


def test_the_requester_with_the_fewest_turns_is_next() -> None:
    served = order(Turns(2), [ONE] * 5 + [TWIN] + [OTHER] * 2)
    assert len(served) == 8
    assert served[:2] == ["one key", "other key"]


def test_a_requester_that_leaves_while_waiting_takes_no_turn() -> None:
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
