"""A process that ends only when it and all of its peers were asked to end.

It creates the file named by its argument when it is ready, and others beside it when it is asked to end and when it
ends.
"""

import signal
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    reported = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: reported.set())
    mark, peers = Path(sys.argv[1]), int(sys.argv[2])
    mark.touch()
    reported.wait()
    mark.with_suffix(".told").touch()
    while len(list(mark.parent.glob("*.told"))) < peers:
        time.sleep(0.01)
    mark.with_suffix(".ended").touch()


if __name__ == "__main__":
    main()
