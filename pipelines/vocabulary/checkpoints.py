"""Checkpoints, where long work may be stopped because its time is up or nobody waits for the result any more.

Work in a thread can't be stopped from outside. So it calls `checkpoint` between steps of bounded length: all of a
policy's columns, a step of a search, a table of a report. The caller decides what is checked there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


def checkpoint() -> None:
    """Return, or raise to end the work. Call it only where nothing is half written."""
    _check.get()()


@contextmanager
def checking(check: Callable[[], None]) -> Iterator[None]:
    """Make every checkpoint call `check`, in this thread and in threads that are started in its context."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)
