"""`Idempotency-Key`: a POST sent again with the same key gets the first response again and creates nothing.

A route declares `dependencies=[IDEMPOTENT]`, and passes its response to `caller.store_response` in the same transaction
as its changes. A refusal is stored like any response; only one that asks to try again (429, 5xx) leaves the key free. A
malformed key is refused just before the commit, so that an unknown resource is answered with 404 first, not with 400.
"""

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Header
from pydantic import WithJsonSchema
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from api.http import problems
from api.http.dependencies import Caller
from pipelines.vocabulary.errors import InvalidRequest, RateLimited, TidemarkError
from storage.core import idempotency, leases
from storage.core.database import Writing
from storage.core.idempotency import Claim, StoredResponse

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
KEY_PATTERN = "[!-~]{1,255}"
STORED_HEADERS = ("content-type", "location", "retry-after")

log = logging.getLogger("tidemark.api")


def key(
    _: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 255, "pattern": f"^{KEY_PATTERN}$"}),
        Header(
            alias=KEY_HEADER,
            description="A key of your choice, such as a UUID. The same request with the same key within 24 hours gets "
            "the first response again and is not carried out again; a 429 or 5xx leaves the key free.",
        ),
    ] = None,
) -> None:
    """Declare the header. `Route` handles it (`respond`) before the route's function is called."""


IDEMPOTENT = Depends(key)


async def respond(request: Request, content: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work of a request, or return the response that is stored for its key. Without a key, just do the work.

    Args:
        content: the body's raw bytes, or what identifies them (`api.http.uploads`); empty if the route has no body.
    """
    caller: Caller = request.state.caller
    sent = request.headers.getlist(KEY_HEADER)
    if not sent:
        return await work()
    if len(sent) > 1 or not re.fullmatch(KEY_PATTERN, sent[0]):
        request.state.caller = replace(caller, save_response=_refuse_key)
        return await work()
    claim = Claim.to(caller.client_id, sent[0])
    earlier = await run_in_threadpool(_claim, claim, caller, content)
    if earlier is not None:
        return Response(earlier.body, earlier.status, {**earlier.headers, REPLAYED_HEADER: "true"})
    request.state.caller = replace(caller, save_response=partial(_save, claim))
    try:
        return await work()
    except TidemarkError as error:
        if error.status >= 500 or isinstance(error, RateLimited):
            await run_in_threadpool(_release, claim, caller)
        else:
            await run_in_threadpool(_save_refusal, claim, caller, error)
        raise
    except Exception:
        await run_in_threadpool(_release, claim, caller)
        raise


def _claim(claim: Claim, caller: Caller, content: bytes) -> StoredResponse | None:
    """Claim the key for this request; return the stored response instead if it has one."""
    try:
        now = leases.clock(caller.store.db)
        with caller.writing() as w:
            return idempotency.claim(w, claim, _fingerprint(caller, content), now)
    except SQLAlchemyError:
        _release(claim, caller)  # the claim may have been committed although the database reported an error
        raise


def _fingerprint(caller: Caller, content: bytes) -> bytes:
    """Return a hash of method, path and body: requests with the same fingerprint are the same request."""
    line = f"{caller.request.method} {caller.request.url.path}\n".encode()
    return hashlib.sha256(line + content).digest()


def _save(claim: Claim, w: Writing, response: Response) -> None:
    headers = {name: response.headers[name] for name in STORED_HEADERS if name in response.headers}
    idempotency.store_response(w, claim, StoredResponse(response.status_code, headers, bytes(response.body)))


def _refuse_key(_w: Writing, _response: Response) -> None:
    raise InvalidRequest("Idempotency.InvalidKey", "Send one Idempotency-Key of 1 to 255 visible ASCII characters.")


def _save_refusal(claim: Claim, caller: Caller, error: TidemarkError) -> None:
    with caller.writing() as w:
        _save(claim, w, problems.from_error(caller.request, error))


def _release(claim: Claim, caller: Caller) -> None:
    """Free the key, so that the request can be tried again."""
    try:
        with caller.writing() as w:
            idempotency.release(w, claim)
    except SQLAlchemyError as error:
        log.warning("could not free an idempotency key; it stays claimed until it expires: %s", type(error).__name__)
