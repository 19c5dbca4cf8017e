"""Bodies and queries that are parsed only when a route asks for them.

A route reads them after it has found the resource, because 404 goes before 400; what headers alone decide (415, 413) is
answered before a body is even received. Reading finds every fault at once.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request

import isolation
from api.core import unknown
from api.core.limits import Asker, Limits, Turns
from api.core.schemas.rules import MAX_FAULTS, Rule
from pipelines.intake.lines import Decoded, Rows, decoded
from pipelines.vocabulary.errors import Fault, InvalidRequest, TidemarkError, TooLarge, UnsupportedMedia
from storage.core.settings import Settings

MAX_DECODED_AT_ONCE_BYTES = 2**14  # some milliseconds at most
MAX_DECODED_HERE_BYTES = 2**20  # it takes some ten milliseconds, less than to start a process
JSON, MULTIPART = "A JSON body", "A multipart body"
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Body(Generic[Model]):
    """A request's body as received."""

    model: type[Model]
    content: bytes
    decoded: Callable[[], Decoded]  # raises InvalidRequest where it is no strict JSON

    def read(self, **context: object) -> Model:
        """The model that the body holds.

        Raises:
            InvalidRequest: not strict JSON, or not what the model asks for.
        """
        document = self.decoded().document
        unknown.note_fields(self.model, document)
        return _validated(self.model, document, context)


@dataclass(frozen=True)
class Query(Generic[Model]):
    """A request's query as received: repeated parameters are still there, unknown ones are ignored."""

    model: type[Model]
    parameters: QueryParams

    def read(self) -> Model:
        """The model that the query holds, or InvalidRequest."""
        given = {name: self.parameters.getlist(name) for name in self.parameters}
        unknown.note_fields(self.model, given)
        return _validated(self.model, given, {})


class JsonBody(Generic[Model]):
    """Receives a JSON body, within the limit, without reading it.

    Args:
        rows: the member that is a list of transactions, where the body has one.
    """

    def __init__(self, model: type[Model], rows: str | None = None) -> None:
        self.model = model
        self._rows = rows

    async def __call__(self, request: Request) -> AsyncIterator[Body[Model]]:
        settings: Settings = request.app.state.store.settings
        _require_json(request.headers)
        require_plain(request.headers)
        require_length(request.headers, settings.max_json_bytes, JSON)
        rows = Rows(self._rows, settings.max_transactions) if self._rows else None
        async with json_body(self.model, request, settings.max_json_bytes, rows) as body:
            yield body


class QueryOf(Generic[Model]):
    """Takes the query along without reading it."""

    def __init__(self, model: type[Model]) -> None:
        self.model = model

    async def __call__(self, request: Request) -> Query[Model]:
        return Query(self.model, request.query_params)


@asynccontextmanager
async def json_body(
    model: type[Model], request: Request, limit: int, rows: Rows | None = None
) -> AsyncIterator[Body[Model]]:
    """A body of `limit` bytes at most, for as long as the block; what is wrong with it is told when it is read."""
    limits: Limits = request.app.state.limits
    asker: Asker = request.state.held.asker
    with limits.bodies.held(asker) as held:
        content = await received(request, limit, held.take)
        yield Body(model, content, await _decoded(limits, asker, content, rows))


async def _decoded(limits: Limits, asker: Asker, content: bytes, rows: Rows | None) -> Callable[[], Decoded]:
    """Decode a body when it is its sender's turn; a large one in a child process, lest it hold up every thread of this
    one.
    """
    if len(content) <= MAX_DECODED_AT_ONCE_BYTES:
        return cache(partial(decoded, content, rows))
    if len(content) <= MAX_DECODED_HERE_BYTES:
        return await _outcome(limits.decoding_here, asker, partial(decoded, content, rows))
    return await _outcome(limits.decoding, asker, partial(isolation.decode, content, rows))


async def _outcome(turns: Turns, asker: Asker, decode: Callable[[], Decoded]) -> Callable[[], Decoded]:
    """What decoding gives or raises, for when the route asks."""
    outcome = Future[Decoded]()
    async with turns.turn(asker):
        try:
            outcome.set_result(await run_in_threadpool(decode))
        except TidemarkError as refusal:
            outcome.set_exception(refusal)
    return outcome.result


def is_json(headers: Headers) -> bool:
    """Whether the body says that it is JSON, in UTF-8."""
    media, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return media.strip().lower() == "application/json" and charset in ("", "utf-8")


def _require_json(headers: Headers) -> None:
    if not is_json(headers):
        raise UnsupportedMedia("Request.NotJson", "The body must be application/json in UTF-8.")


def require_plain(headers: Headers) -> None:
    """Raises UnsupportedMedia for a compressed body."""
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMedia("Request.EncodedBody", "The body must not be compressed.")


def require_length(headers: Headers, limit: int, what: str) -> None:
    """Raises TooLarge for a body that says itself that it is."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large(limit, what)


async def received(request: Request, limit: int, take: Callable[[int], None]) -> bytes:
    """The whole body; one sent in chunks, which states no length, is cut off at the limit."""
    content = bytearray()
    async for chunk in request.stream():
        take(len(chunk))
        content += chunk
        if len(content) > limit:
            raise too_large(limit, JSON)
    return bytes(content)


def too_large(limit: int, what: str) -> TooLarge:
    return TooLarge("Request.TooLarge", f"{what} may have {limit:,} bytes at most.")


def _validated(model: type[Model], document: Any, context: dict[str, object]) -> Model:
    try:
        return model.model_validate(document, context={"faults": Counter[str](), **context})
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        more = f" Only the first {MAX_FAULTS} faults are told." if len(found) > MAX_FAULTS else ""
        raise _refused([_fault(model, details) for details in found[:MAX_FAULTS]], more) from None


def _refused(faults: list[Fault], more: str) -> InvalidRequest:
    """The request's own code is its faults' code when they agree."""
    codes = {fault.code for fault in faults}
    if len(codes) == 1:
        return InvalidRequest(faults[0].code, faults[0].message + more, tuple(faults))
    return InvalidRequest("Request.Invalid", "Several things are wrong with the request." + more, tuple(faults))


def _fault(model: type[BaseModel], details: ErrorDetails) -> Fault:
    pointer = "".join(f"/{_escaped(str(step))}" for step in details["loc"])
    return Fault(pointer, *_code_and_message(model, details))


def _code_and_message(model: type[BaseModel], details: ErrorDetails) -> tuple[str, str]:
    kind = details["type"]
    if "." in kind:  # a code of ours, from a Rule
        return kind, details["msg"]
    if kind == "missing":
        return _of_missing(model, str(details["loc"][-1]))
    if kind == "model_type" and not details["loc"]:
        return "Request.NotAnObject", "The body must be a JSON object."
    return "Request.WrongType", "The value has the wrong JSON type."


def _of_missing(model: type[BaseModel], name: str) -> tuple[str, str]:
    """A field that has a rule is missed in the words of the rule."""
    metadata = [item for field in model.model_fields.values() if field.alias == name for item in field.metadata]
    rule = next((item for item in metadata if isinstance(item, Rule)), None)
    return (rule.code, rule.sentence) if rule else ("Request.Missing", "The field is needed.")


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
