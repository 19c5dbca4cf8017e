"""What a route says of its answers, in one argument: the model of a success, and refusals that only it has.

The rest of an operation's documentation follows from its signature; see `api.service.openapi`.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel, create_model
from starlette.responses import HTMLResponse, Response

from api.core.schemas.common import Envelope, View

DAMAGED_FILE = ("Lake.ChecksumMismatch", "Lake.FileUnreadable")  # what reading from the lake may end in
REFUSALS, EXAMPLE = "x-refusals", "x-example"  # on their way from the route to the document, which replaces them


def gives(
    model: type[View],
    status: int = 200,
    *,
    also: int | None = None,
    refuses: Iterable[str] = (),
    example: str | None = None,
) -> dict[str, Any]:
    """Keyword arguments of a route whose success is `model` in the envelope.

    `also` is a second status of success, `refuses` are codes of problems, `example` names a variant of the
    model's example.
    """
    described = {"model": enveloped(model)}
    return {
        "status_code": status,
        "responses": dict.fromkeys(filter(None, (status, also)), described),
        "openapi_extra": {REFUSALS: list(refuses), EXAMPLE: example},
    }


def shows_page(refuses: Iterable[str] = ()) -> dict[str, Any]:
    """Keyword arguments of a route whose success is a page for people."""
    return {
        "response_class": HTMLResponse,
        "openapi_extra": {REFUSALS: list(refuses), EXAMPLE: "<!doctype html>"},
    }


def shows_picture(refuses: Iterable[str] = ()) -> dict[str, Any]:
    """Keyword arguments of a route whose success is a picture."""
    return {
        "response_class": PictureResponse,
        "openapi_extra": {REFUSALS: list(refuses)},
    }


def shows_metrics(refuses: Iterable[str] = ()) -> dict[str, Any]:
    """Keyword arguments of a route whose success is text for Prometheus."""
    return {
        "response_class": MetricsResponse,
        "openapi_extra": {REFUSALS: list(refuses), EXAMPLE: 'tidemark_webhook_deliveries{state="due"} 2.0\n'},
    }


class MetricsResponse(Response):
    media_type = "text/plain"


class PictureResponse(Response):
    media_type = "image/png"


@cache
def enveloped(model: type[View]) -> type[BaseModel]:
    """The model of an answer whose `data` is `model`."""
    return create_model(f"{model.__name__.removesuffix('View')}Answer", __base__=Envelope, data=(model, ...))
