"""`Idempotency-Key`: a POST that creates, sent again with the same key, is answered again and creates nothing.

A route joins by `dependencies=[IDEMPOTENT]`, and gives its answer through `caller.keep` inside the transaction that
creates. A refusal is stored like any answer; only one that says "try again" (429, 5xx) leaves the key free. A malformed
key is refused at the very end, in place of the commit, because 404 goes before 400.
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
from storage.core import idempotency
from storage.core.database import Writing
from storage.core.idempotency import Answer, Claim

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
            description="A key of your choice, a UUID say. The same request with the same key within 24 hours is "
            "answered as it was the first time and does nothing again; a 429 or 5xx leaves the key free.",
        ),
    ] = None,
) -> None:
    """Declare the header. The route sees to it before its function is called (`answer`)."""


IDEMPOTENT = Depends(key)


async def answer(request: Request, content: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work of a request, or give the answer that its key has got already; without a key nothing changes.

    Args:
        content: the body's raw bytes, or what stands for them; none where the route reads no body.
    """
    caller: Caller = request.state.caller
    sent = request.headers.getlist(KEY_HEADER)
    if not sent:
        return await work()
    if len(sent) > 1 or not re.fullmatch(KEY_PATTERN, sent[0]):
        request.state.caller = replace(caller, keeping=_refuse_key)
        return await work()
    claim = Claim.to(caller.client_id, sent[0])
    earlier = await run_in_threadpool(_made, claim, caller, content)
    if earlier is not None:
        return Response(earlier.body, earlier.status, {**earlier.headers, REPLAYED_HEADER: "true"})
    request.state.caller = replace(caller, keeping=partial(_keep, claim))
    try:
        return await work()
    except TidemarkError as error:
        if error.status >= 500 or isinstance(error, RateLimited):
            await run_in_threadpool(_release, claim, caller)
        else:
            await run_in_threadpool(_keep_refusal, claim, caller, error)
        raise
    except Exception:
        await run_in_threadpool(_release, claim, caller)
        raise


def _made(claim: Claim, caller: Caller, content: bytes) -> Answer | None:
    """Make the claim; gives the answer when the key has got one already."""
    try:
        with caller.writing() as w:
            return idempotency.claim(w, claim, _fingerprint(caller, content), caller.now)
    except SQLAlchemyError:
        _release(claim, caller)  # it may have been committed all the same
        raise


def _fingerprint(caller: Caller, content: bytes) -> bytes:
    """What makes two requests one: method, path and the body's raw bytes (of files, see `api.http.uploads`)."""
    line = f"{caller.request.method} {caller.request.url.path}\n".encode()
    return hashlib.sha256(line + content).digest()


def _keep(claim: Claim, w: Writing, answer: Response) -> None:
    headers = {name: answer.headers[name] for name in STORED_HEADERS if name in answer.headers}
    idempotency.keep(w, claim, Answer(answer.status_code, headers, bytes(answer.body)))


def _refuse_key(_w: Writing, _answer: Response) -> None:
    raise InvalidRequest("Idempotency.InvalidKey", "Idempotency-Key must be 1 to 255 visible ASCII characters, once.")


def _keep_refusal(claim: Claim, caller: Caller, error: TidemarkError) -> None:
    with caller.writing() as w:
        _keep(claim, w, problems.of(caller.request, error))


def _release(claim: Claim, caller: Caller) -> None:
    """Free the key for another try."""
    try:
        with caller.writing() as w:
            idempotency.release(w, claim)
    except SQLAlchemyError as down:
        log.warning("an idempotency key is not free before its claim ends: %s", type(down).__name__)
