"""What a client does for a request: retries, and what becomes of responses. No network and no clock.

An exchange yields what to do next: a request to send, or a pause. It gets back the response to a request, or the error
of the connection. `Client` and `AsyncClient` carry out the same exchanges.
"""

import json
import logging
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from tidemark_client import operations
from tidemark_client.errors import JobFailedError, ProblemError
from tidemark_client.models import JobStatusView
from tidemark_client.requests import PagedRequest, Request

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
ONE_WAIT_S = 30  # the longest `wait` that the service takes
SUCCEEDED = ("Completed", "CompletedWithErrors")
NOT_CARRIED_OUT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

log = logging.getLogger("tidemark_client")

Data = TypeVar("Data")


@dataclass(frozen=True)
class Pause:
    seconds: float


Outcome = httpx.Response | httpx.TransportError | None
Exchange = Generator[httpx.Request | Pause, Outcome, Data]


@dataclass(frozen=True)
class Exchanges:
    """Makes the exchanges of a client.

    Attributes:
        build: makes an httpx request with the client's address and key.
        retries: how often a request is sent again.
    """

    build: Callable[..., httpx.Request]
    retries: int

    def send(self, request: Request[Data], idempotency_key: str | None = None) -> Exchange[Data]:
        """Send a request, retry it while the failure is temporary, and return the response's `data`."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())} if request.takes_idempotency_key else {}
        for retry in range(self.retries + 1):
            outcome = yield self._build_request(request, headers)
            if isinstance(outcome, httpx.Response) and outcome.is_success:
                data: Data = _data(outcome)
                return data
            if retry == self.retries or not _is_worth_a_retry(request, outcome):
                break
            yield Pause(_seconds_before(retry, outcome))
        raise outcome if isinstance(outcome, httpx.TransportError) else _problem(outcome)

    def wait(self, job_id: str, seconds_left: Callable[[], float]) -> Exchange[JobStatusView]:
        """Wait until a job has ended, and return it.

        Raises:
            JobFailedError: if it has failed.
            TimeoutError: if no time is left.
        """
        while True:
            left = seconds_left()
            request = operations.get_job_status(job_id, wait=max(0, min(ONE_WAIT_S, int(left))))
            job = yield from self.send(request)
            if job["status"] in SUCCEEDED:
                return job
            if job["status"] == "Failed":
                raise JobFailedError(job)
            if left <= 0:
                raise TimeoutError(f"job {job_id} has not ended: {job['status']}")

    def _build_request(self, request: Request[Any], headers: dict[str, str]) -> httpx.Request:
        query = {name: _plain(value) for name, value in request.query.items() if value is not None}
        content = None if request.body is None else json.dumps(request.body, default=_plain).encode()
        if content is not None:
            headers = headers | {"Content-Type": "application/json"}
        return self.build(request.method, request.path, params=query, content=content, headers=headers)


def first_page(request: PagedRequest[Any, Any], count: int) -> PagedRequest[Any, Any]:
    """Return the request for the first page. Where the service has cursors, no row is missed or repeated."""
    if "cursor" in request.query:
        return request.with_query(cursor="", count=count)
    size = "pageSize" if "pageSize" in request.query else "count"
    return request.with_query(page=1, **{size: count})


def next_page(request: PagedRequest[Any, Any], data: Any) -> PagedRequest[Any, Any] | None:
    """Return the request for the page after `data`, or None if that was the last one."""
    items = data[request.items]
    if "cursor" in request.query:
        return request.with_query(cursor=data["nextCursor"]) if data["nextCursor"] else None
    if "before" in request.query:  # new deliveries would shift the pages
        return request.with_query(before=items[-1]["deliveryId"]) if len(items) == data["pageSize"] else None
    page: Any = request.query["page"]
    return request.with_query(page=page + 1) if page * data["pageSize"] < data["totalCount"] else None


def _plain(value: Any) -> str:
    """Write a query value, or a decimal, a date or an id of a body, as text, which the service takes exactly."""
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _data(response: httpx.Response) -> Any:
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("text/"):
        return response.text
    if kind.startswith("image/"):
        return response.content
    envelope = json.loads(response.content, parse_float=Decimal)
    if envelope["message"]:
        log.warning("%s %s: %s", response.request.method, response.request.url.path, envelope["message"])
    return envelope["data"]


def _problem(outcome: httpx.Response | None) -> ProblemError:
    assert outcome is not None
    try:
        problem = json.loads(outcome.content)
    except ValueError:
        problem = None
    return ProblemError(outcome.status_code, problem if isinstance(problem, dict) else {"detail": outcome.text[:500]})


def _is_worth_a_retry(request: Request[Any], outcome: Outcome) -> bool:
    """Whether to send a request again: it was certainly not carried out, or carrying it out twice changes nothing."""
    if not isinstance(outcome, httpx.Response):
        return request.is_repeatable or isinstance(outcome, NOT_CARRIED_OUT)
    if outcome.status_code == httpx.codes.CONFLICT:  # the first try, whose connection was lost, is still in progress
        return _problem(outcome).code == "Idempotency.InFlight"
    if outcome.status_code in (httpx.codes.BAD_GATEWAY, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.GATEWAY_TIMEOUT):
        return request.is_repeatable
    return outcome.status_code == httpx.codes.TOO_MANY_REQUESTS


def _seconds_before(retry: int, outcome: Outcome) -> float:
    """Return what the service asks for, or else twice as long each time, with jitter so that clients spread."""
    retry_after = outcome.headers.get("Retry-After", "") if isinstance(outcome, httpx.Response) else ""
    if retry_after.isdecimal():
        return float(retry_after)
    return random.uniform(0.5, 1) * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**retry)
