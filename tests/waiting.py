"""Wait for other threads and processes, and repeat work while they run."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


def until(condition: Callable[[], object], within_s: float = 90) -> None:
    """Wait for a condition, and fail if it stays false for too long."""
    assert eventually(condition, within_s)


def eventually(condition: Callable[[], object], within_s: float = 90) -> bool:
    """Wait for a condition, and return whether it became true in time."""
    deadline = time.monotonic() + within_s
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(holds)


@contextmanager
def again_and_again(work: Callable[[], object], every_s: float = 0) -> Iterator[None]:
    """Repeat work in a thread for the duration of a block, and fail if the work fails."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(every_s):
            work()

    with ThreadPoolExecutor(1) as pool:
        repeating = pool.submit(repeat)
        try:
            yield
        finally:
            stop.set()
            repeating.result()
