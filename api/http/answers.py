"""Successful answers: the envelope `{data, message}` in exact JSON.

Decimals leave as numbers with the digits they have, times as UTC with `Z`: the encoder is msgspec's, which never turns
money into a float.
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
    """What the encoder doesn't know by itself: our view models, under their public names."""
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
    """202: the work is durable and goes on; `location` is where to look, in a second or so."""
    return answer(data, status=202, headers={"Location": location, "Retry-After": "1"})


def accepted_job(job: Job) -> Response:
    return accepted(JobView.of(job), f"/v1/jobs/{job.job_id}/status")


def listing(name: str, found: Paged[Any], view: type[BaseModel] | None = None) -> Response:
    """One page, or everything, under `name`; `view` turns each item into its public form."""
    items = found.items if view is None else [view.model_validate(item) for item in found.items]
    return answer({name: items, **totals(found)})


def totals(found: Paged[Any]) -> dict[str, int | None]:
    return {
        "totalCount": found.total,
        "currentPage": found.current_page,
        "pageSize": found.page_size,
        "totalPages": found.total_pages,
    }


def streamed(
    name: str, counts: Mapping[str, int | None], slices: Iterable[bytes], message: str | None = None
) -> Response:
    """A list of any length, sent slice by slice; each slice is its items' JSON, joined by commas.

    The first slice is made before the answer begins, so that a failure to read is still a clean problem.
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
