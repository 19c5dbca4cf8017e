"""Receive JSON bodies within limits, decode them strictly, and validate them against the route's model.

Headers are checked first, so that 415 and most 413 are answered before a body is received. A large body is decoded in a
child process. All faults of a body or query are reported at once, each with its place.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request

import isolation
from api.core.limits import Limits, Requester, Turns
from api.core.schemas.rules import MAX_FAULTS, Rule
from api.http import unknown
from pipelines.intake.lines import Decoded, Rows, decode
from pipelines.vocabulary.errors import Fault, InvalidRequest, TidemarkError, TooLarge, UnsupportedMedia, build_pointer
from storage.core.settings import Settings

# Such a body is decoded when it is read, without waiting for a turn, because that takes a few milliseconds at most.
MAX_DECODED_AT_ONCE_BYTES = 2**14
MAX_DECODED_HERE_BYTES = 2**20  # takes about ten milliseconds, less than starting a process
JSON, MULTIPART = "A JSON body", "A multipart body"


class Sent(Protocol):
    """A received body. Requests with the same `content` are the same request; `read` raises what is wrong with it."""

    @property
    def content(self) -> bytes: ...

    def read(self, caller: object, /) -> object: ...


@dataclass(frozen=True)
class Body:
    """A request's JSON as received."""

    model: type[BaseModel]
    content: bytes
    decoded: Callable[[], Decoded]
    """Raises InvalidRequest if it isn't strict JSON, and Unavailable if the child process ended without a response."""

    def read(self, caller: object = None) -> BaseModel:
        """Return the model that the body holds.

        Args:
            caller: whose request it is, for rules that depend on settings or on what is stored.

        Raises:
            InvalidRequest: not strict JSON, or not valid for the model.
            Unavailable: the child process ended without a response.
        """
        body = self.decoded()
        unknown.note_fields(self.model, body.document)
        return _validate(self.model, body.document, {"faults": Counter[str](), "caller": caller, "lines": body.lines})


@asynccontextmanager
async def receive_json(model: type[BaseModel], request: Request) -> AsyncIterator[Body]:
    """Receive a JSON body within the limit, and count its memory as taken for the length of the block.

    Faults of the content are not raised here but by `Body.read`, because 404 takes precedence over 400.

    Raises:
        UnsupportedMedia: not JSON in UTF-8, or compressed.
        TooLarge: over the limit.
        Unavailable: more than the requester's share of the memory for bodies.
    """
    settings: Settings = request.app.state.store.settings
    limits: Limits = request.app.state.limits
    requester: Requester = request.state.held.requester
    if not is_json(request.headers):
        raise UnsupportedMedia("Request.NotJson", "The body must be application/json in UTF-8.")
    require_plain(request.headers)
    require_length(request.headers, settings.max_json_bytes, JSON)
    member: str | None = getattr(model, "ROWS", None)
    rows = Rows(member, settings.max_transactions) if member else None
    with limits.bodies.held(requester) as held:
        content = await _content(request, settings.max_json_bytes, held.take)
        yield Body(model, content, await _prepare_decoding(limits, requester, content, rows))


async def _prepare_decoding(
    limits: Limits, requester: Requester, content: bytes, rows: Rows | None
) -> Callable[[], Decoded]:
    """Decode a small body when it is read, and a larger one in its sender's turn. The largest are decoded in a child
    process, because decoding holds the GIL and would delay every other request.
    """
    if len(content) <= MAX_DECODED_AT_ONCE_BYTES:
        return cache(partial(decode, content, rows))
    if len(content) <= MAX_DECODED_HERE_BYTES:
        return await _outcome(limits.decoding_here, requester, partial(decode, content, rows))
    return await _outcome(limits.decoding, requester, partial(isolation.decode, content, rows))


async def _outcome(turns: Turns, requester: Requester, decode: Callable[[], Decoded]) -> Callable[[], Decoded]:
    """Decode now; return a function that returns or raises the outcome later, when the body is read."""
    outcome = Future[Decoded]()
    async with turns.turn(requester):
        try:
            outcome.set_result(await run_in_threadpool(decode))
        except TidemarkError as refusal:
            outcome.set_exception(refusal)
    return outcome.result


def is_json(headers: Headers) -> bool:
    """Return whether the headers declare a JSON body in UTF-8."""
    media, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return media.strip().lower() == "application/json" and charset in ("", "utf-8")


def require_plain(headers: Headers) -> None:
    """Raise UnsupportedMedia for a compressed body."""
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMedia("Request.EncodedBody", "The body must not be compressed.")


def require_length(headers: Headers, limit: int, what: str) -> None:
    """Raise TooLarge for a body whose Content-Length is over the limit."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large(limit, what)


async def _content(request: Request, limit: int, take: Callable[[int], None]) -> bytes:
    """Receive the whole body. A chunked body states no length, so it is cut off at the limit."""
    content = bytearray()
    async for chunk in request.stream():
        take(len(chunk))
        content += chunk
        if len(content) > limit:
            raise too_large(limit, JSON)
    return bytes(content)


def too_large(limit: int, what: str) -> TooLarge:
    return TooLarge("Request.TooLarge", f"{what} may have {limit:,} bytes at most.")


def parse_query(model: type[BaseModel], parameters: QueryParams) -> BaseModel:
    """Return the model that the query holds. A repeated parameter is validated as a list, which every rule refuses.

    Raises:
        InvalidRequest: not valid for the model.
    """
    names = [field.alias or name for name, field in model.model_fields.items()]
    sent = {name: parameters.getlist(name) for name in names if name in parameters}
    return _validate(model, {name: each[0] if len(each) == 1 else each for name, each in sent.items()})


def _validate(model: type[BaseModel], values: object, context: Mapping[str, object] | None = None) -> BaseModel:
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        raise _refusal(model, error.errors(include_url=False, include_context=False, include_input=False)) from None


def _refusal(model: type[BaseModel], errors: Sequence[ErrorDetails]) -> InvalidRequest:
    """Return the refusal of a body or query that doesn't fit its model.

    If all faults have the same code, the refusal has it too.
    """
    more = f" Only the first {MAX_FAULTS} faults are listed." if len(errors) > MAX_FAULTS else ""
    faults = [_fault(model, details) for details in errors[:MAX_FAULTS]]
    codes = {fault.code for fault in faults}
    if len(codes) == 1:
        return InvalidRequest(faults[0].code, faults[0].message + more, tuple(faults))
    return InvalidRequest("Request.Invalid", "Several things are wrong with the request." + more, tuple(faults))


def _fault(model: type[BaseModel], details: ErrorDetails) -> Fault:
    pointer = build_pointer(details["loc"])
    return Fault(pointer, *_code_and_message(model, details))


def _code_and_message(model: type[BaseModel], details: ErrorDetails) -> tuple[str, str]:
    kind = details["type"]
    if "." in kind:  # one of our codes, from a Rule; pydantic's have no dot
        return kind, details["msg"]
    if kind == "missing":
        return _describe_missing(model, str(details["loc"][-1]))
    if kind == "model_type" and not details["loc"]:
        return "Request.NotAnObject", "The body must be a JSON object."
    return "Request.WrongType", "The value has the wrong JSON type."


def _describe_missing(model: type[BaseModel], name: str) -> tuple[str, str]:
    """Return the code and sentence for a missing field: those of its rule, if it has one."""
    metadata = [item for field in model.model_fields.values() if field.alias == name for item in field.metadata]
    rule = next((item for item in metadata if isinstance(item, Rule)), None)
    return (rule.code, rule.sentence) if rule else ("Request.Missing", "The field is needed.")
