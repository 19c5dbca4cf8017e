"""Document an operation's responses in FastAPI's decorators: examples, and the refusals that only this operation has.

`api.service.openapi` adds the refusals that follow from a route's signature (401, 403, 404 of ids, 400 of fields, …).
"""

from functools import cache
from typing import Any, Final

from fastapi.utils import deep_dict_update
from pydantic import BaseModel, create_model
from starlette.responses import HTMLResponse, Response

from api.core.schemas.common import Envelope, View
from api.http import problems
from pipelines.vocabulary.codes import catalogue
from pipelines.vocabulary.errors import Fault

Responses = dict[int | str, dict[str, Any]]
DAMAGED_FILE: Final = ("Lake.ChecksumMismatch", "Lake.FileUnreadable")  # for routes that read the lake
EXAMPLE_REQUEST_ID = "4f1c8f0e-8d0b-4b52-9b43-6b4f6c6a1f7e"


@cache
def envelope(model: type[View]) -> type[BaseModel]:
    """Return the model of a response whose `data` is `model`."""
    return create_model(f"{model.__name__.removesuffix('View')}Answer", __base__=Envelope, data=(model, ...))


def refuses(*codes: str | Fault) -> Responses:
    """Return the `responses` for these codes, each with an example; a fault is shown as a 400 with its message."""
    responses: Responses = {}
    for each in codes:
        code, status, sentence = (each.code, 400, each.message) if isinstance(each, Fault) else _problem(each)
        shown = {code: {"value": problems.body(status, code, sentence, EXAMPLE_REQUEST_ID)}}
        deep_dict_update(responses.setdefault(status, {}), {"content": {problems.MEDIA_TYPE: {"examples": shown}}})
    return responses


def _problem(code: str) -> tuple[str, int, str]:
    """Return a code with its status and meaning from the catalogue."""
    known = catalogue()[code]
    assert known.status is not None, f"{code} is never the code of a problem"
    return code, known.status, known.meaning


def shows(status: int, variant: str) -> Responses:
    """Return the `responses` of a success whose example is a variant of its model's (`api.core.schemas.examples`)."""
    return {status: {"content": {"application/json": {"example": variant}}}}


class Page(HTMLResponse):
    """An HTML page."""

    EXAMPLE = "<!doctype html>"


class Pdf(Response):
    media_type = "application/pdf"


class Metrics(Response):
    """Metrics in Prometheus's text format."""

    media_type = "text/plain"
    EXAMPLE = 'tidemark_webhook_deliveries{state="due"} 2.0\n'


class Picture(Response):
    media_type = "image/png"


class File(Response):
    """A file of any type."""

    media_type = "application/octet-stream"


def sends(kind: type[Response]) -> Responses:
    """Return the `responses` of a success that is a file of this kind."""
    return {200: {"content": {str(kind.media_type): {"schema": {"type": "string", "format": "binary"}}}}}
