"""Group calls that come at the same time, so that they share one thread and one transaction."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

Q = TypeVar("Q")
A = TypeVar("A")


class GroupedCalls(Generic[Q, A]):
    """Answers questions in groups. While one group is being answered, the next one gathers. For the event loop only.

    A question is never answered by work that began before it was asked, so an answer is as current as if it had been
    asked alone.

    Args:
        answer: takes the questions of a group, and returns an answer or an error for each. It runs in a thread.
    """

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A | Exception]]) -> None:
        self._answer = answer
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._answering: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """Return the answer, or raise its error. An error of the whole group is raised to all who wait."""
        answered = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answered))
        if self._answering is None:
            self._answering = asyncio.create_task(self._answer_all(), context=Context())  # of no request
        answer: A = await answered
        return answer

    async def _answer_all(self) -> None:
        while self._waiting:
            group = self._take_group()
            try:
                answers = await run_in_threadpool(self._answer, [question for question, _ in group])
            except Exception as error:  # whatever it is, nobody may wait for ever
                group += self._take_group()  # or they would wait as long again for a database that doesn't answer
                answers = [error] * len(group)
            for (_, future), answer in zip(group, answers, strict=True):
                _settle(future, answer)
        self._answering = None

    def _take_group(self) -> list[tuple[Q, asyncio.Future[A]]]:
        group, self._waiting = self._waiting, list[tuple[Q, asyncio.Future[A]]]()
        return group


def _settle(future: asyncio.Future[A], answer: A | Exception) -> None:
    if future.done():  # the request was cancelled meanwhile
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
