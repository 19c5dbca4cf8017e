"""A process that sends heartbeats, like all parts, until it is stopped."""

from assets.core.processes import stop_requested

if __name__ == "__main__":
    stop_requested(with_parent=True).wait()
