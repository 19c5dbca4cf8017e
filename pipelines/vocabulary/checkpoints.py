"""Where long work asks whether to go on: its time may be over, or nobody waits for it any more.

Work in a thread can't be ended from outside. So it asks itself, between steps that are bounded each: a level of a
policy's columns, a look of a search, a table of a report. Whoever starts it says what is asked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ask: ContextVar[Callable[[], None]] = ContextVar("ask", default=lambda: None)


def checkpoint() -> None:
    """Go on, or raise what ends the work. To be called where nothing is half written."""
    _ask.get()()


@contextmanager
def asking(ask: Callable[[], None]) -> Iterator[None]:
    """Meanwhile every checkpoint of this thread, and of threads that are started in its context, asks this."""
    before = _ask.set(ask)
    try:
        yield
    finally:
        _ask.reset(before)
