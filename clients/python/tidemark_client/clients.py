"""The clients: the same exchanges over httpx, with and without asyncio."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self, TypeVar

import httpx

from tidemark_client.exchanges import Exchange, Exchanges, Outcome, Pause, first_page, next_page
from tidemark_client.models import JobStatusView
from tidemark_client.requests import PagedRequest, Request

Data = TypeVar("Data")
Item = TypeVar("Item")

RETRIES = 5
TIMEOUT_S = 60.0  # more than the service waits for a job
WAIT_S = 600.0  # for the end of a job
ITEMS_ON_A_PAGE = 500


class Client:
    """A lender's backend, as a client of the service.

    Args:
        key: an API key.
        base_url: address of the service.
        retries: how often a request is sent again after 429, 502, 503, 504 or a lost connection.
        options: further arguments of `httpx.Client`, such as `proxy` or `verify`.
    """

    def __init__(self, key: str, base_url: str, *, retries: int = RETRIES, **options: Any) -> None:
        self._http = httpx.Client(**_settings(key, base_url, options))
        self._exchanges = Exchanges(self._http.build_request, retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, request: Request[Data], *, idempotency_key: str | None = None) -> Data:
        """Send a request, and return `data` of the response.

        Args:
            idempotency_key: a key that you store before you send, so that a restarted program sends the same request
                only once. By default each call has a new key, which its retries share.

        Raises:
            ProblemError: if the service refuses the request.
            httpx.TransportError: if the service can't be reached.
        """
        return self._carry_out(self._exchanges.send(request, idempotency_key))

    def wait(self, job_id: str, *, timeout_s: float = WAIT_S) -> JobStatusView:
        """Wait until a job has ended, and return it. Its status is `Completed` or `CompletedWithErrors`.

        Raises:
            JobFailedError: if the job has failed.
            TimeoutError: if it has not ended in time.
        """
        return self._carry_out(self._exchanges.wait(job_id, _time_left(timeout_s)))

    def pages(self, request: PagedRequest[Data, Item], *, count: int = ITEMS_ON_A_PAGE) -> Iterator[Item]:
        """Yield the items of a list, page after page of `count` items."""
        page: PagedRequest[Any, Any] | None = first_page(request, count)
        while page is not None:
            data = self.send(page)
            yield from data[request.items]
            page = next_page(page, data)

    def _carry_out(self, exchange: Exchange[Data]) -> Data:
        outcome: Outcome = None
        while True:
            try:
                step = exchange.send(outcome)
            except StopIteration as ended:
                data: Data = ended.value
                return data
            outcome = self._do(step)

    def _do(self, step: httpx.Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        try:
            return self._http.send(step)
        except httpx.TransportError as error:
            return error


class AsyncClient:
    """The client for asyncio, with the methods of `Client`."""

    def __init__(self, key: str, base_url: str, *, retries: int = RETRIES, **options: Any) -> None:
        self._http = httpx.AsyncClient(**_settings(key, base_url, options))
        self._exchanges = Exchanges(self._http.build_request, retries)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, request: Request[Data], *, idempotency_key: str | None = None) -> Data:
        """Send a request, as `Client.send` does."""
        return await self._carry_out(self._exchanges.send(request, idempotency_key))

    async def wait(self, job_id: str, *, timeout_s: float = WAIT_S) -> JobStatusView:
        """Wait for the end of a job, as `Client.wait` does."""
        return await self._carry_out(self._exchanges.wait(job_id, _time_left(timeout_s)))

    async def pages(self, request: PagedRequest[Data, Item], *, count: int = ITEMS_ON_A_PAGE) -> AsyncIterator[Item]:
        """Yield the items of a list, as `Client.pages` does."""
        page: PagedRequest[Any, Any] | None = first_page(request, count)
        while page is not None:
            data = await self.send(page)
            for item in data[request.items]:
                yield item
            page = next_page(page, data)

    async def _carry_out(self, exchange: Exchange[Data]) -> Data:
        outcome: Outcome = None
        while True:
            try:
                step = exchange.send(outcome)
            except StopIteration as ended:
                data: Data = ended.value
                return data
            outcome = await self._do(step)

    async def _do(self, step: httpx.Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        try:
            return await self._http.send(step)
        except httpx.TransportError as error:
            return error


def _settings(key: str, base_url: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"base_url": base_url, "headers": {"x-api-key": key}, "timeout": TIMEOUT_S} | options


def _time_left(timeout_s: float) -> Callable[[], float]:
    ends_at = time.monotonic() + timeout_s
    return lambda: ends_at - time.monotonic()
