"""A request's checkpoint: stop its work if the caller has disconnected or the time is up."""

import time
from collections.abc import Callable

from anyio import from_thread
from starlette.requests import ClientDisconnect, Request

from pipelines.vocabulary.errors import Unavailable

LONGEST_S = 60.0  # as long as proxies wait for a response by default (nginx's proxy_read_timeout)
POLL_EVERY_S = 0.25  # between checks of the connection; most requests end before the first


class StillWanted:
    """Lets the work of a request go on in its thread while its caller is connected, for LONGEST_S at most."""

    def __init__(self, request: Request, clock: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._clock = clock
        self._ends_at = clock() + LONGEST_S
        self._checks_at = clock() + POLL_EVERY_S

    def __call__(self) -> None:
        """Check whether the work should go on.

        Raises:
            ClientDisconnect: the caller has disconnected.
            Unavailable: the work takes too long.
        """
        now = self._clock()
        if now >= self._ends_at:
            raise Unavailable("Service.TookTooLong", "The response took too long to work out.")
        if now >= self._checks_at:
            self._checks_at = now + POLL_EVERY_S
            if from_thread.run(self._request.is_disconnected):
                raise ClientDisconnect
