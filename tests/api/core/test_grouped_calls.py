"""Questions that are asked at the same time are answered at once, and never by work that began before them."""

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from api.core.grouped_calls import GroupedCalls


class Slow:
    """Answers each question with the number of its group; 'wrong' is an error, and 'down' one of the whole group."""

    def __init__(self) -> None:
        self.groups: list[Sequence[str]] = []
        self.may_end = Event()

    def answer(self, questions: Sequence[str]) -> list[int | Exception]:
        self.groups.append(questions)
        assert self.may_end.wait(5)
        if "down" in questions:
            raise ConnectionError
        return [ValueError(each) if each == "wrong" else len(self.groups) for each in questions]

    async def ask_together(self, first: str, *others: str) -> list[int | BaseException]:
        """Ask the others while the first is being answered."""
        together = GroupedCalls(self.answer)
        tasks = [asyncio.create_task(together.ask(first))]
        while not self.groups:
            await asyncio.sleep(0)
        tasks += [asyncio.create_task(together.ask(each)) for each in others]
        await asyncio.sleep(0.01)
        self.may_end.set()
        return await asyncio.gather(*tasks, return_exceptions=True)


def test_questions_that_come_meanwhile_are_one_group() -> None:
    slow = Slow()
    assert asyncio.run(slow.ask_together("a", "b", "c", "b")) == [1, 2, 2, 2]
    assert slow.groups == [["a"], ["b", "c", "b"]]


def test_an_error_is_of_its_question_alone() -> None:
    first, wrong, right = asyncio.run(Slow().ask_together("a", "wrong", "b"))
    assert (first, str(wrong), right) == (1, "wrong", 2)


def test_an_error_of_a_group_is_raised_to_all_who_wait() -> None:
    """They would wait as long again, one group after the other, while a database doesn't answer."""
    slow = Slow()
    found = asyncio.run(slow.ask_together("down", "b", "c"))
    assert [type(each) for each in found] == [ConnectionError] * 3
    assert slow.groups == [["down"]]


def test_questions_after_an_error_are_answered() -> None:
    slow = Slow()
    slow.may_end.set()

    async def one_after_the_other() -> int:
        together = GroupedCalls(slow.answer)
        with pytest.raises(ConnectionError):
            await together.ask("down")
        return await together.ask("a")

    assert asyncio.run(one_after_the_other()) == 2


def test_a_question_that_is_cancelled_does_not_disturb_others() -> None:
    slow = Slow()

    async def cancel_one() -> int:
        together = GroupedCalls(slow.answer)
        impatient, patient = (asyncio.create_task(together.ask(each)) for each in "ab")
        await asyncio.sleep(0.01)
        impatient.cancel()
        slow.may_end.set()
        return await patient

    assert asyncio.run(cancel_one()) == 1
