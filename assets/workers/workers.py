"""The interface between Dagster's launcher and the workers, whether they run on this machine or elsewhere."""

from dataclasses import dataclass
from typing import Protocol

from storage.core.models import Queue


@dataclass(frozen=True)
class Run:
    run_id: str
    batch: int | None  # fencing token; None for a run that was started by hand


class NoWorkerError(ConnectionError):
    """No worker took the run."""


class Workers(Protocol):
    """The workers that a launcher reaches. No method waits for a run to end."""

    def launch(self, run: Run, queue: Queue) -> None:
        """Give a run to a worker.

        Raises:
            NoWorkerError: no worker took it. The message is for the operator.
            TimeoutError: no answer in time; a worker may have taken it.
        """

    def count(self) -> int:
        """Return how many workers can take runs. Raise TimeoutError if that can't be found out in time."""

    def has_run(self, run_id: str) -> bool:
        """Return whether a worker has the run. Raise TimeoutError if that can't be found out in time."""

    def interrupt(self, run_id: str) -> bool:
        """Stop a run. Return True if it is executing, so that it will report its own end; a waiting run is dropped.

        Raises:
            TimeoutError: no answer in time; the run may end.
        """

    def close(self) -> None: ...
