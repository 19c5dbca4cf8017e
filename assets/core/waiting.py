"""Work on the portfolio waits while the database or the object store is away, as submitted jobs do."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dagster import RetryRequested

from storage.core.database import UNREACHABLE

log = logging.getLogger(__name__)

AGAIN_AFTER_S: Final = 10
UNLIMITED: Final = 10**9  # the run's longest time limits them, too


@contextmanager
def waits_for_storage() -> Iterator[None]:
    """Let Dagster repeat the step until database and object store can be reached. Use it as the decorator of a step.

    The step must continue where it was interrupted.
    """
    try:
        yield
    except UNREACHABLE as error:
        log.warning("a run of the portfolio waits, because storage can't be reached: %s", type(error).__name__)
        raise RetryRequested(UNLIMITED, AGAIN_AFTER_S) from error
