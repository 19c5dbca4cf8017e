"""A process that gives signs of life, as all parts do, until it is told to stop."""

from assets.core.processes import stop_requested

if __name__ == "__main__":
    stop_requested(tethered=True).wait()
