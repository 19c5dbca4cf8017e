"""Respond to every refusal and failure as RFC 9457 `application/problem+json`; errors are mapped to problems only here.

A problem says what was wrong and where, never what was sent, because bank data don't belong in clients' error logs.
`code` is stable and part of the public contract, `type` is the address of its page, and `title` is the status phrase.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from api.core.schemas.common import PartView, Problem
from pipelines.vocabulary.errors import Corrupt, Fault, RateLimited, TidemarkError, Unauthenticated, Unavailable
from storage.core.database import UNREACHABLE
from storage.operations.health import Parts

MEDIA_TYPE = "application/problem+json"
PAGES = "/docs/errors"  # a page for each code (api.service.routes.docs)
CHALLENGE = 'ApiKey realm="tidemark", header="x-api-key"'
RETRY_AFTER_S = 5  # our judgement
FILE_METHODS = ("GET", "HEAD")  # of mounted static files, whose routes list no methods

log = logging.getLogger("tidemark.api")


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    faults: tuple[Fault, ...] = (),
    headers: Mapping[str, str] | None = None,
    parts: Parts | None = None,
) -> Response:
    content = body(status, code, detail, request.state.request_id, faults, parts)
    return Response(msgspec.json.encode(content), status, dict(headers or {}), MEDIA_TYPE)


def body(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    faults: tuple[Fault, ...] = (),
    parts: Parts | None = None,
) -> dict[str, Any]:
    view = Problem(
        type=f"{PAGES}/{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        request_id=request_id,
        errors=faults or None,
        parts=parts and {name: PartView.of(part) for name, part in parts.items()},
    )
    return view.model_dump(by_alias=True, exclude_none=True)


def unexpected_failure(request: Request) -> Response:
    """Return the response to an unexpected failure; the details are only in the log, under the request's id."""
    return problem(request, 500, "Service.Failure", "Something failed inside the service.")


def install(app: FastAPI) -> None:
    """Register the handlers of all known exceptions in `app`."""
    app.add_exception_handler(TidemarkError, _refusal)
    app.add_exception_handler(HTTPException, respond_to_unrouted)
    app.add_exception_handler(ClientDisconnect, _cut_off)
    for error_type in UNREACHABLE:
        app.add_exception_handler(error_type, _unavailable)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, TidemarkError)
    if isinstance(error, Corrupt):
        log.error("%s", error.detail)
    return from_error(request, error)


def from_error(request: Request, error: TidemarkError) -> Response:
    return problem(request, error.status, error.code, error.detail, error.faults, _headers(error))


def _headers(error: TidemarkError) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": CHALLENGE}
    if isinstance(error, RateLimited):
        return {"Retry-After": str(error.retry_after_s)}
    return {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, Unavailable) else {}


async def respond_to_unrouted(request: Request, error: Exception) -> Response:
    """Respond to what the router refuses: an unknown path, or a method that the path doesn't have."""
    assert isinstance(error, HTTPException)
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return problem(request, 404, "Request.UnknownPath", "There is nothing at this path.")
    allowed = {"Allow": ", ".join(methods_of_path(request))}
    return problem(request, 405, "Request.MethodNotAllowed", "The path doesn't have this method.", headers=allowed)


def methods_of_path(request: Request) -> list[str]:
    """Return the methods of all routes with this path; each route alone lists only its own."""
    routes = [context.original_route for context in iter_route_contexts(request.app.routes)]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in matching for method in getattr(route, "methods", None) or ()}
    return sorted(methods or FILE_METHODS)


async def _cut_off(request: Request, _error: Exception) -> Response:
    """Respond to a client that disconnected while sending. Nothing was done; the response is for the log."""
    return problem(request, 400, "Request.Incomplete", "The request's body ended early.")


async def _unavailable(request: Request, error: Exception) -> Response:
    """Respond with 503 for a database that is down, full, locked or too slow."""
    log.error("a store is unavailable", exc_info=error)
    return await _refusal(request, Unavailable("Service.Unavailable", "A store is not available. Try again."))
