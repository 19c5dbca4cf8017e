"""`Route`: the checks before FastAPI calls a route's function, in the contract's order.

The order is: the key (401) and its scope (403), the headers of the body (415, 413), the body itself, a turn, the
idempotency key. Only then are the body and the query validated, in the thread of the route's function. If one of them
is invalid (400), the ids in the path are looked up first, because a missing resource is a 404.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from api.core.limits import Limits
from api.core.still_wanted import StillWanted
from api.http import bodies, idempotency, uploads
from api.http.bodies import Sent
from api.http.dependencies import Allow, Caller, Named, require_found
from api.http.uploads import Files
from pipelines.vocabulary.checkpoints import checking
from pipelines.vocabulary.errors import InvalidRequest, TooLarge

Dependency = TypeVar("Dependency")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Response])

_heavy: set[object] = set()


def heavy(endpoint: Endpoint) -> Endpoint:
    """Mark a route that computes in Python for about a second, so that at most one runs per core.

    Each further one makes every other request wait up to 5 ms longer (`sys.getswitchinterval`) whenever it needs the
    interpreter.
    """
    _heavy.add(endpoint)
    return endpoint


class Route(APIRoute):
    """A route that needs a key. Its function runs in a thread, when it is its caller's turn."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        [allow] = self.dependencies_of(Allow)
        parameters, is_idempotent = self._query_names, self.is_idempotent

        async def checked(request: Request, body: Sent | None) -> Response:
            caller: Caller = request.state.caller
            try:
                return await self._call(caller, body)
            except (InvalidRequest, TooLarge):
                await run_in_threadpool(require_found, caller, request.path_params, self.path_resources)
                raise

        async def in_order(request: Request) -> Response:
            request.state.caller = caller = await allow.admit(request, parameters)
            async with self._receive(request) as body, self._turn(request, caller):
                work = partial(checked, request, body)
                content = b"" if body is None else body.content
                return await (idempotency.respond(request, content, work) if is_idempotent else work())

        return in_order

    async def _call(self, caller: Caller, body: Sent | None) -> Response:
        """Call the route's function: in one thread with the validation of its arguments, unless it is async."""
        if iscoroutinefunction(self.endpoint):
            return cast("Response", await self.endpoint(**self._arguments(caller, body)))
        return await run_in_threadpool(lambda: cast("Response", self.endpoint(**self._arguments(caller, body))))

    def _arguments(self, caller: Caller, body: Sent | None) -> dict[str, Any]:
        """Return the arguments of the route's function.

        FastAPI only documents the signature: it would validate a body on the event loop or in another thread.

        Raises:
            InvalidRequest, TooLarge: the body or the query is invalid.
        """
        request, needed = caller.request, self.dependant
        sent = {} if body is None else {needed.body_params[0].name: body.read(caller)}
        queries = zip(needed.query_params, self.query_models, strict=True)
        return {
            **{each.name: caller for each in needed.dependencies if each.name is not None},
            **{each.name: request.path_params[each.alias] for each in needed.path_params},
            **{each.name: bodies.parse_query(model, request.query_params) for each, model in queries},
            **sent,
        }

    def dependencies_of(self, kind: type[Dependency]) -> list[Dependency]:
        """Return the route's dependencies of one class."""
        return [needed.call for needed in self.dependant.dependencies if isinstance(needed.call, kind)]

    @property
    def is_idempotent(self) -> bool:
        return any(needed.call is idempotency.key for needed in self.dependant.dependencies)

    @property
    def body_model(self) -> type[BaseModel] | None:
        """The model of the body's JSON."""
        if self.files is not None:
            return self.files.accepted.model
        return None if self.body_field is None else cast("type[BaseModel]", self.body_field.field_info.annotation)

    @property
    def files(self) -> type[Files] | None:
        """The kind of files that the body holds."""
        declared = None if self.body_field is None else self.body_field.field_info.annotation
        return declared if isinstance(declared, type) and issubclass(declared, Files) else None

    @property
    def query_models(self) -> list[type[BaseModel]]:
        return [cast("type[BaseModel]", each.field_info.annotation) for each in self.dependant.query_params]

    @property
    def path_resources(self) -> list[Named]:
        """The resources that the ids in the path name, in order."""
        every = (each for parameter in self.dependant.path_params for each in parameter.field_info.metadata)
        return [each for each in every if isinstance(each, Named)]

    @property
    def _query_names(self) -> list[str]:
        fields = (item for model in self.query_models for item in model.model_fields.items())
        return [field.alias or name for name, field in fields]

    def _receive(self, request: Request) -> AbstractAsyncContextManager[Sent | None]:
        if self.body_model is None:
            return nullcontext()
        if self.files is not None:
            return uploads.receive_files(self.files, request)
        return bodies.receive_json(self.body_model, request)

    def _turn(self, request: Request, caller: Caller) -> AbstractAsyncContextManager[None]:
        """Wait for the caller's turn. An async function takes no thread, so it needs no turn."""
        return nullcontext() if iscoroutinefunction(self.endpoint) else _turn(request, caller, self.endpoint in _heavy)


@asynccontextmanager
async def _turn(request: Request, caller: Caller, is_heavy: bool) -> AsyncIterator[None]:
    """Wait for the caller's turn, so that one client's heavy requests don't take every thread.

    A turn begins when the body has been received, or slow senders would hold all turns. It ends when the response
    begins, because what is streamed afterwards depends on how fast the client reads.
    """
    limits: Limits = request.app.state.limits
    computing = limits.computing.turn(caller.requester) if is_heavy else nullcontext()
    async with computing, limits.working.turn(caller.requester):
        with checking(StillWanted(request)):
            yield
