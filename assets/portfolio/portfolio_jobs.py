"""The run of a job over a client's portfolio: however it goes wrong, the job ends with it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from pipelines.vocabulary.errors import TidemarkError
from storage.core.store import Store
from storage.portfolio import portfolio_jobs


@contextmanager
def failing_with_its_run(
    store: Store, client_id: UUID, job_id: UUID, kind: str, clock: Callable[[], datetime]
) -> Iterator[None]:
    """Where the work fails or is stopped, the job fails, too.

    Args:
        kind: what it is, as codes of errors begin.
    """
    try:
        yield
    except BaseException as error:  # stopped from Dagster's pages, too
        with store.db.writing() as w:
            portfolio_jobs.fail(w, client_id, job_id, _in_words(error, kind), clock())
        raise


def _in_words(error: BaseException, kind: str) -> Mapping[str, str]:
    if isinstance(error, TidemarkError):
        return {"code": error.code, "message": error.detail}
    if not isinstance(error, Exception):
        return {"code": f"{kind}.Stopped", "message": "The run was stopped."}
    return {"code": f"{kind}.Failed", "message": f"The {kind.lower()} could not be computed."}
