"""A process that gives signs of life, as all parts do, until it is told to stop."""

from assets.core.processes import told_to_stop

if __name__ == "__main__":
    told_to_stop(tethered=True).wait()
