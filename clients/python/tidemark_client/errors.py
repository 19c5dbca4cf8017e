"""Exceptions of this package. If the service can't be reached, httpx raises an error of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidemark_client.models import Fault, JobStatusView


class TidemarkError(Exception):
    """The base class of this package's errors."""


class ProblemError(TidemarkError):
    """The service, or a proxy before it, responded with an error status.

    Attributes:
        status: the HTTP status.
        code: what programs should branch on; empty if the response came from an intermediary such as a proxy.
        detail: what was wrong, for people; empty as `code` is.
        request_id: the id to quote to the operator of the service, if there is one.
        errors: every fault of the request, with a pointer to its place.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", "")
        self.request_id: str | None = problem.get("requestId")
        self.errors: Sequence[Fault] = problem.get("errors") or []
        faults = "".join(f"\n{each['pointer']}: {each['code']}: {each['message']}" for each in self.errors)
        super().__init__(f"{status} {self.code}: {self.detail}{faults}")


class JobFailedError(TidemarkError):
    """A job that was waited for has failed; `job` says why in its `error`."""

    def __init__(self, job: JobStatusView) -> None:
        self.job = job
        error = job["error"]
        super().__init__(f"job {job['jobId']} failed" + (f": {error['code']}: {error['message']}" if error else ""))


class WebhookRefusedError(TidemarkError):
    """A delivery that doesn't come from the service, or is old: respond with 400."""
