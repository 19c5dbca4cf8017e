"""Successful answers: the envelope `{data, message}` in exact JSON.

Decimals are written as numbers with all their digits, times as UTC with `Z`. The encoder is msgspec's, because it never
turns money into a float.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

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


def answer(
    data: object, message: str | None = None, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    content = encode({"data": data, "message": unknown.message(message)})
    return Response(content, status, dict(headers or {}), MEDIA_TYPE)


def accepted(data: object, location: str) -> Response:
    """Return a 202: the work is stored and will be done; the client polls `location`, first after a second."""
    return answer(data, status=202, headers={"Location": location, "Retry-After": "1"})


def accepted_job(job: Job) -> Response:
    return accepted(JobView.of(job), f"/v1/jobs/{job.job_id}/status")


def listing(name: str, paged: Paged[Any], view: type[BaseModel] | None = None) -> Response:
    """Return one page, or everything, as a list called `name`; `view` is the public model of an item."""
    items = paged.items if view is None else [view.model_validate(item) for item in paged.items]
    return answer({name: items, **totals(paged)})


def totals(paged: Paged[Any]) -> dict[str, int | None]:
    return {
        "totalCount": paged.total,
        "currentPage": paged.current_page,
        "pageSize": paged.page_size,
        "totalPages": paged.total_pages,
    }


def streamed(
    name: str, counts: Mapping[str, int | None], slices: Iterable[bytes], message: str | None = None
) -> Response:
    """Stream a list of any length; each slice is its items' JSON, joined by commas.

    The first slice is made before the answer begins, so that a failure to read it can still be answered as a problem.
    """
    rest = iter(slices)
    first = next(rest, b"")
    return StreamingResponse(
        _pieces(name, counts, chain([first], rest), unknown.message(message)), media_type=MEDIA_TYPE
    )


def _pieces(
    name: str, counts: Mapping[str, int | None], slices: Iterable[bytes], message: str | None
) -> Iterator[bytes]:
    yield encode({"data": counts})[:-2] + b"," + encode(name) + b":["
    comma = b""
    for items in filter(None, slices):
        yield comma + items
        comma = b","
    yield b']},"message":' + encode(message) + b"}"
