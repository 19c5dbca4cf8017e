"""Every error Tidemark raises on purpose, in one tree:

    TidemarkError
    ├── InvalidRequest      400   a malformed request; may list every fault with a JSON pointer
    ├── Unauthenticated     401   no usable API key
    ├── Forbidden           403   a good key without the scope
    ├── NotFound            404   unknown, or another client's: the same answer
    ├── Conflict            409   the request is fine, the state is not
    ├── Gone                410   it was there, and is kept no longer
    ├── TooLarge            413   over a documented limit
    ├── UnsupportedMedia    415   not JSON
    ├── Unprocessable       422   well-formed, but can't be honoured
    ├── RateLimited         429   too many requests; says when to come again
    ├── HeadTooLarge        431   an address or headers over the limit
    ├── Unavailable         503   a store is down, or too much is asked at once; try again
    └── Corrupt             500   a stored file is not what was written

A rejected row, a refused delivery or a failed report is expected and therefore a value, not an error here.
Codes are stable (`Area.Reason`) and part of the public contract; the HTTP API maps the tree once.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a request: where (a JSON pointer), which (a stable code) and in words."""

    pointer: str
    code: str
    message: str


class TidemarkError(Exception):
    """The root: an HTTP status for the class, a stable code and a sentence for the instance."""

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
