"""Checkpoints, where long work may be stopped because its time is up or nobody waits for the result any more.

Work in a thread can't be stopped from outside. So it calls `checkpoint` between steps of bounded length: a level of a
policy's columns, a step of a search, a table of a report. The caller decides what is checked there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ask: ContextVar[Callable[[], None]] = ContextVar("ask", default=lambda: None)


def checkpoint() -> None:
    """Return, or raise to end the work. Call it only where nothing is half written."""
    _ask.get()()


@contextmanager
def asking(ask: Callable[[], None]) -> Iterator[None]:
    """Make every checkpoint call `ask`, in this thread and in threads that are started in its context."""
    before = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(before)
