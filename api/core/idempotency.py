"""`Idempotency-Key`: a POST that creates, sent again with the same key, is answered again and creates nothing.

A route joins by `@once` and by giving its answer through `caller.keep` inside the transaction that creates. What it
refuses is kept too: only an answer that says "try again" (429, 5xx) leaves the key free. A key that is no key is
refused at the very end, in place of the commit: 404 goes before 400.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from api.core import problems
from api.core.deferred import Body
from api.core.dependencies import Caller
from api.core.uploads import Files
from pipelines.vocabulary.errors import InvalidRequest, RateLimited, TidemarkError
from storage.core import idempotency
from storage.core.database import Writing
from storage.core.idempotency import Answer, Claim

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
KEY_PATTERN = "[!-~]{1,255}"
STORED_HEADERS = ("content-type", "location", "retry-after")

log = logging.getLogger("tidemark.api")


def idempotent(endpoint: Callable[..., Response]) -> Callable[..., Response]:
    """Let a route honour `Idempotency-Key`; without one nothing changes."""

    @wraps(endpoint)
    def answered(caller: Caller, **given: Any) -> Response:
        sent = caller.request.headers.getlist(KEY_HEADER)
        if not sent:
            return endpoint(caller=caller, **given)
        if len(sent) > 1 or not re.fullmatch(KEY_PATTERN, sent[0]):
            return endpoint(caller=replace(caller, keeping=_refuse_key), **given)
        claim = Claim.to(caller.client_id, sent[0])
        if (earlier := _made(claim, caller, _content(given.values()))) is not None:
            return Response(earlier.body, earlier.status, {**earlier.headers, REPLAYED_HEADER: "true"})
        try:
            return endpoint(caller=replace(caller, keeping=partial(_keep, claim)), **given)
        except TidemarkError as error:
            if error.status >= 500 or isinstance(error, RateLimited):
                _release(claim, caller)
            else:
                _keep_refusal(claim, caller, error)
            raise
        except Exception:
            _release(claim, caller)
            raise

    answered.__dict__["honours_idempotency_keys"] = True
    return answered


def is_idempotent(endpoint: Callable[..., Any]) -> bool:
    return getattr(endpoint, "honours_idempotency_keys", False)


def _content(parameters: Iterable[object]) -> bytes:
    """The body's raw bytes, or what stands for them; none where the route reads no body."""
    return next((each.content for each in parameters if isinstance(each, (Body, Files))), b"")


def _made(claim: Claim, caller: Caller, content: bytes) -> Answer | None:
    """Make the claim; gives the answer when the key has got one already."""
    try:
        with caller.writing() as w:
            return idempotency.claim(w, claim, _fingerprint(caller, content), caller.now)
    except SQLAlchemyError:
        _release(claim, caller)  # it may have been committed all the same
        raise


def _fingerprint(caller: Caller, content: bytes) -> bytes:
    """What makes two requests one: method, path and the body's raw bytes (of files, see `api.core.uploads`)."""
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
