"""A process that takes a second to end when it is told to. It makes the file it is named, when it would notice."""

import signal
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    Path(sys.argv[1]).touch()
    told.wait()
    time.sleep(1.0)


if __name__ == "__main__":
    main()
