"""What a request's work asks at its checkpoints: whether its caller still waits, and whether there is time left."""

import time
from collections.abc import Callable

from anyio import from_thread
from starlette.requests import ClientDisconnect, Request

from pipelines.vocabulary.errors import Unavailable

LONGEST_S = 60.0  # as long as proxies wait for an answer by default (nginx's proxy_read_timeout)
POLL_EVERY_S = 0.25  # how often the event loop is asked: most requests are answered before


class StillWanted:
    """Lets a request's work in a thread go on while its caller is there, for so long at most."""

    def __init__(self, request: Request, clock: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._clock = clock
        self._ends_at = clock() + LONGEST_S
        self._checks_at = clock() + POLL_EVERY_S

    def __call__(self) -> None:
        """
        Raises:
            ClientDisconnect: the caller has left.
            Unavailable: the work takes too long.
        """
        now = self._clock()
        if now >= self._ends_at:
            raise Unavailable("Service.TookTooLong", "The answer took too long to work out.")
        if now >= self._checks_at:
            self._checks_at = now + POLL_EVERY_S
            if from_thread.run(self._request.is_disconnected):
                raise ClientDisconnect
