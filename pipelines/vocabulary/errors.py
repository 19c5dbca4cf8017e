"""The errors that users of Tidemark see, in one tree (a few modules add subclasses of their own):

    TidemarkError
    ├── InvalidRequest      400   a malformed request; may list every fault with a JSON pointer
    ├── Unauthenticated     401   no valid API key
    ├── Forbidden           403   a valid key without the scope
    ├── NotFound            404   unknown, or another client's: the answer is the same
    ├── Conflict            409   the request is valid, but the current state does not allow it
    ├── Gone                410   it existed, and is no longer stored
    ├── TooLarge            413   over a documented limit
    ├── UnsupportedMedia    415   a body that is compressed, or not of an accepted type
    ├── Unprocessable       422   well-formed, but can't be carried out
    ├── RateLimited         429   too many requests; says when to retry
    ├── HeadTooLarge        431   an address or headers over the limit
    ├── Unavailable         503   a store is down or the service is overloaded; retry later
    └── Corrupt             500   a stored file or record is missing, or not what was written

A rejected row, a refused delivery or a failed report is expected, so it is a value and not an exception. Codes
(`Area.Reason`) are stable and part of the public contract. The HTTP API maps the tree to responses in one place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Fault:
    """One fault of a request: its place (a JSON pointer), a stable code, and a message."""

    pointer: str
    code: str
    message: str


class TidemarkError(Exception):
    """The root of the tree. A class has an HTTP status; an instance has a stable code and a sentence."""

    status: ClassVar[int] = 500

    def __init__(self, code: str, detail: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.faults = faults


class InvalidRequest(TidemarkError):
    status = 400


class Unauthenticated(TidemarkError):
    status = 401


class Forbidden(TidemarkError):
    status = 403


class NotFound(TidemarkError):
    status = 404


class Conflict(TidemarkError):
    status = 409


class Gone(TidemarkError):
    status = 410


class TooLarge(TidemarkError):
    status = 413


class UnsupportedMedia(TidemarkError):
    status = 415


class Unprocessable(TidemarkError):
    status = 422


class RateLimited(TidemarkError):
    status = 429

    def __init__(self, code: str, detail: str, retry_after_s: int) -> None:
        super().__init__(code, detail)
        self.retry_after_s = retry_after_s


class HeadTooLarge(TidemarkError):
    status = 431


class Unavailable(TidemarkError):
    status = 503


class Corrupt(TidemarkError):
    status = 500


def build_pointer(steps: Iterable[int | str]) -> str:
    """Return the JSON pointer of these names and indexes, from the root."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
