"""What can go wrong, as exceptions. A service that can't be reached raises an error of httpx."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidemark_client.models import Fault, JobStatusView


class TidemarkError(Exception):
    """The base class of this package's errors."""


class ProblemError(TidemarkError):
    """A refusal of the service.

    Attributes:
        code: what programs should branch on; empty if the answer came from something between, such as a proxy.
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


class JobFailed(TidemarkError):
    """A job that was waited for has failed; `job` says why in its `error`."""

    def __init__(self, job: JobStatusView) -> None:
        self.job = job
        error = job["error"]
        super().__init__(f"job {job['jobId']} failed" + (f": {error['code']}: {error['message']}" if error else ""))


class WebhookRefused(TidemarkError):
    """A delivery that doesn't come from the service, or is old: answer it with 400."""
