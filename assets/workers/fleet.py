"""The workers of a fleet, as launchers see them: runs go through the broker, and SQL says what became of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from assets.workers.broker import UNREACHABLE, make_app, publish
from assets.workers.workers import NoWorkerError, Run
from storage.core import leases
from storage.core.database import Database
from storage.core.models import Queue
from storage.core.settings import Settings


class FleetWorkers:
    """All workers that share a broker and a database, as `assets.workers.workers.Workers`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._db = Database(settings.database)
        self._app = make_app(settings)

    def launch(self, run: Run, queue: Queue) -> None:
        if not self.count():
            raise NoWorkerError("No Tidemark worker of the fleet is running: start `tidemark worker`.")
        try:
            publish(self._app, self._settings, run, queue)
        except UNREACHABLE as error:
            raise NoWorkerError(f"The broker can't be reached: {type(error).__name__}.") from error

    def count(self) -> int:
        with _translate_errors():
            now = leases.clock(self._db)
            with self._db.reading() as r:
                return leases.count_holders(r, leases.FLEET, now)

    def has_run(self, run_id: str) -> bool:
        with _translate_errors():
            now = leases.clock(self._db)
            with self._db.reading() as r:
                return leases.is_held(r, leases.run_role(run_id), now)

    def interrupt(self, run_id: str) -> bool:
        """Revoke the run's lease. Its worker notices when it renews the lease, and stops the run."""
        with _translate_errors(), self._db.writing() as w:
            return leases.revoke(w, leases.run_role(run_id))

    def close(self) -> None:
        self._app.close()
        self._db.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn a database that can't be used into a TimeoutError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise TimeoutError(f"The database can't be used: {type(error).__name__}.") from error
