"""Routes work in turns: one client's heavy requests must not take every thread from the others.

The turn begins once the body is there, or slow senders would hold all turns, and it ends with the answer's head: what
is streamed afterwards is bound by how fast the client reads.
"""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.core.dependencies import Caller
from api.core.limits import Limits
from api.core.still_wanted import StillWanted
from pipelines.vocabulary.checkpoints import asking


class InTurn(APIRoute):
    """A route whose function runs in a thread when it is its caller's turn."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_turn(endpoint), **options)


def _in_turn(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    if iscoroutinefunction(endpoint):  # it takes no thread; or it is in turn already: an included route is made anew
        return endpoint

    @wraps(endpoint)
    async def working(**given: Any) -> Response:
        caller = next(value for value in given.values() if isinstance(value, Caller))
        limits: Limits = caller.request.app.state.limits
        async with limits.working.turn(caller.asker):
            with asking(StillWanted(caller.request)):
                answer: Response = await run_in_threadpool(endpoint, **given)
            return answer

    return working
