"""A process that ends only when it and all of its peers were asked to end.

It creates the file named by its argument when it is ready, and others beside it when it is asked to end and when it
ends.
"""

import sys
import time
from pathlib import Path

from assets.core.processes import stop_requested


def main() -> None:
    stop = stop_requested(with_parent=True)
    mark, peers = Path(sys.argv[1]), int(sys.argv[2])
    mark.touch()
    stop.wait()
    mark.with_suffix(".told").touch()
    while len(list(mark.parent.glob("*.told"))) < peers:
        time.sleep(0.01)
    mark.with_suffix(".ended").touch()


if __name__ == "__main__":
    main()
