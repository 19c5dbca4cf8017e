"""Memory of processes that run for long."""

import gc


def freeze_loaded() -> None:
    """Leave what is loaded by now out of future garbage collections.

    It stays for as long as the process does. With it, a full collection takes a fifth of a second, in the middle of a
    request or a run.
    """
    gc.collect()
    gc.freeze()
