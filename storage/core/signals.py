"""What a process does when it is asked to stop: by SIGTERM, or by SIGINT, which Ctrl-C on a terminal sends."""

import os
import signal
import threading
from collections.abc import Callable


def call_when_asked_to_stop(action: Callable[[], None]) -> None:
    """Call `action` in a thread of its own at the first SIGTERM or SIGINT; further ones do nothing.

    A signal handler interrupts the main thread at any point. If it raises an exception, as Python's own handler of
    SIGINT does, a lock may never be released, such as one of the database or of a threading.Event. So this handler only
    writes to a pipe.
    """
    read_end, write_end = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(write_end, b"."))

    def run() -> None:
        os.read(read_end, 1)
        action()

    threading.Thread(target=run, name="stop", daemon=True).start()
