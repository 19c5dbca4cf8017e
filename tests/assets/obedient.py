"""A process with the protocol of a warm one, but without Dagster. A run's id says how to behave."""

import os
import signal
import threading
import time
from queue import SimpleQueue

from assets.core.processes import line_to_parent
from assets.workers.queues import INTERRUPT, RUN, Signals


def main() -> None:
    line = line_to_parent()
    signals = Signals(line)
    interrupted = threading.Event()
    waiting: SimpleQueue[str | None] = SimpleQueue()

    def listen() -> None:
        while True:
            try:
                what, run_id = line.recv()
            except EOFError:
                os._exit(1)
            if what == INTERRUPT:
                interrupted.set()
            else:
                waiting.put(run_id if what == RUN else None)

    threading.Thread(target=listen, daemon=True).start()
    signals.report_free()
    while (run_id := waiting.get()) is not None:
        if run_id.startswith("hangs"):
            os.kill(os.getpid(), signal.SIGSTOP)
        if run_id.startswith("blocked"):
            time.sleep(600)
        if run_id.startswith("dies"):
            os._exit(9)
        if run_id.startswith("long"):
            interrupted.wait(1.0 if run_id == "long" else 60.0)
        signals.report_free()


if __name__ == "__main__":
    main()
