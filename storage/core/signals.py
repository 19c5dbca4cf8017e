"""What a process does when it is asked to stop: by SIGTERM, or by SIGINT, which Ctrl-C on a terminal sends."""

import os
import signal
import threading
from collections.abc import Callable


def call_when_asked_to_stop(action: Callable[[], None]) -> None:
    """Call `action` in a thread of its own at the first SIGTERM or SIGINT; further ones do nothing.

    A signal's handler interrupts the main thread anywhere. An exception raised there, as Python does for SIGINT, can
    leave a lock held for good: one of the database's, or that of the event which says to stop. So the handler only
    writes to a pipe.
    """
    signals, signalled = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(signalled, b"."))

    def run() -> None:
        os.read(signals, 1)
        action()

    threading.Thread(target=run, name="stop", daemon=True).start()
