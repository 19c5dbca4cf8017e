"""Successful responses: the envelope `{data, message}` in exact JSON.

Decimals are written as numbers with all their digits, times as UTC with `Z`. The encoder is msgspec's, because it never
turns money into a float.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from api.core.limits import Limits, Requester, Turns
from api.core.schemas.jobs import JobView
from api.http import unknown
from storage.core.paging import Paged
from storage.jobs.jobs import Job

MEDIA_TYPE = "application/json"


def _plain(value: Any) -> Any:
    """Convert a view model, which msgspec doesn't know, to a dictionary with its public names."""
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    raise NotImplementedError(type(value))


encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_plain).encode


def respond(
    data: object, message: str | None = None, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    content = encode({"data": data, "message": unknown.message(message)})
    return Response(content, status, dict(headers or {}), MEDIA_TYPE)


def respond_accepted(data: object, location: str) -> Response:
    """Return a 202: the work is stored and will be done; the client polls `location`, first after a second."""
    return respond(data, status=202, headers={"Location": location, "Retry-After": "1"})


def respond_accepted_job(job: Job) -> Response:
    return respond_accepted(JobView.of(job), f"/v1/jobs/{job.job_id}/status")


def respond_list(name: str, paged: Paged[Any], view: type[BaseModel] | None = None) -> Response:
    """Return one page, or everything, as a list called `name`; `view` is the public model of an item."""
    items = paged.items if view is None else [view.model_validate(item) for item in paged.items]
    return respond({name: items, **totals(paged)})


def totals(paged: Paged[Any]) -> dict[str, int | None]:
    return {
        "totalCount": paged.total,
        "currentPage": paged.current_page,
        "pageSize": paged.page_size,
        "totalPages": paged.total_pages,
    }


def stream_list(
    name: str, counts: Mapping[str, object], slices: Iterable[bytes], message: str | None = None
) -> Response:
    """Stream a list of any length; each slice is its items' JSON, joined by commas."""
    return _InTurns(_pieces(name, counts, slices, unknown.message(message)), media_type=MEDIA_TYPE)


class _InTurns(StreamingResponse):
    """A streamed response. Each piece is made when it is the client's turn, so that many listings of one client leave
    threads to others. While the client reads a piece, it holds no turn.

    The first piece is made before the response begins, so that a failure can still be answered as a problem.
    """

    def __init__(self, pieces: Iterator[bytes], media_type: str) -> None:
        super().__init__(pieces, media_type=media_type)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits: Limits = scope["app"].state.limits
        made = self._made_in_turns(limits.slicing, scope["state"]["held"].requester)
        self.body_iterator = _with_first(await anext(made), made)
        await super().__call__(scope, receive, send)

    async def _made_in_turns(self, turns: Turns, requester: Requester) -> AsyncGenerator[bytes, None]:
        while True:
            async with turns.turn(requester):
                piece = await run_in_threadpool(next, self._pieces, None)
            if piece is None:
                return
            yield piece


async def _with_first(first: bytes, rest: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def _pieces(name: str, counts: Mapping[str, object], slices: Iterable[bytes], message: str | None) -> Iterator[bytes]:
    """Yield the response; the first piece ends with the first slice."""
    opening, comma = encode({"data": counts})[:-2] + b"," + encode(name) + b":[", b""
    for items in filter(None, slices):
        yield opening + comma + items
        opening, comma = b"", b","
    yield opening + b']},"message":' + encode(message) + b"}"
