"""Wait for other threads and processes, and repeat work while they run."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


def until(true: Callable[[], object], within_s: float = 90) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def again_and_again(work: Callable[[], object], every_s: float = 0) -> Iterator[None]:
    """Repeat work in a thread for the duration of a block, and fail if the work fails."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(every_s):
            work()

    with ThreadPoolExecutor(1) as beside:
        repeating = beside.submit(repeat)
        try:
            yield
        finally:
            over.set()
            repeating.result()
