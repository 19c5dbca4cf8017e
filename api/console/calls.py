"""Calls of the HTTP API in this process, as a signed-in user and without a key."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from api.console.refusals import SEVERAL, reword
from storage.access.keys import Principal

NO_CODES: Mapping[str, str] = MappingProxyType({})
OWN_ADDRESS = "http://console"  # never sent anywhere
ATTEMPTS: Final = 20  # to store something while others store something, too
Changed = TypeVar("Changed")
_NOT_CORRECTABLE = (401, 403, 404)  # no other input would give access, or find what doesn't exist
_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Refused(Exception):
    """The API refused a call. `faults` has a message for each faulty member of the body, by JSON pointer, and `codes`
    the code of each.

    Messages are in the words of forms.
    """

    def __init__(
        self, status: int, code: str, detail: str, faults: Mapping[str, str], codes: Mapping[str, str] = NO_CODES
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = faults
        self.codes = codes


class Correctable(Refused):
    """A refusal that is not about access or a missing object, so that the person can correct the form and retry."""


@dataclass(frozen=True)
class Calls:
    """Calls routes below `/v1` on behalf of `principal`. Decimals are exact.

    Args:
        address: the user's, as the application sees it.
        request_id: of the page that makes the calls; it connects their entries in the log and the audit trail.
    """

    app: FastAPI
    principal: Principal
    address: tuple[str, int]
    request_id: str

    async def data(self, method: str, segments: tuple[object, ...], query: Mapping[str, Any], json: Any = None) -> Any:
        """Return the `data` of the response. Members of the query that are None or empty are left out.

        Raises:
            Refused: the response is a problem.
        """
        content = None if json is None else _encode(json)
        headers = {} if json is None else {"content-type": "application/json"}
        response = await self.request(method, segments, query, content, headers)
        return _decode(response.content)["data"] if response.content else None

    async def request(
        self,
        method: str,
        segments: tuple[object, ...],
        query: Mapping[str, Any],
        content: bytes | AsyncIterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Return the whole response, for files and pages.

        Raises:
            Refused: the response is a problem.
        """
        params = {name: _text(value) for name, value in query.items() if value not in (None, "", [], ())}
        sent = {**(headers or {}), "x-request-id": self.request_id}
        transport = httpx.ASGITransport(self._as_user, client=self.address)
        async with httpx.AsyncClient(transport=transport, base_url=OWN_ADDRESS, timeout=None) as client:
            path = "/v1/" + "/".join(map(_segment, segments))
            response = await client.request(method, path, params=params, content=content, headers=sent)
        if response.status_code >= 400:
            raise _refusal(response)
        return response

    async def _as_user(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {"principal": self.principal}
        await self.app(scope, receive, send)


async def retry(change: Callable[[], Awaitable[Changed]], code: str) -> Changed:
    """Read, change and store something; again if a refusal with this code says that it was changed in between."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await change()
        except Correctable as refusal:
            if refusal.code != code:
                raise
    return await change()


def _segment(value: object) -> str:
    """Quote a part of a path. A dot is quoted, too, because `..` would lead elsewhere."""
    return quote(str(value), safe="").replace(".", "%2E")


def _text(value: object) -> str | list[str]:
    if isinstance(value, (list, tuple)):
        return [str(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(response: httpx.Response) -> Refused:
    problem = _decode(response.content)
    errors = problem.get("errors", ())
    faults = {fault["pointer"]: reword(fault["message"]) for fault in errors}
    codes = {fault["pointer"]: fault["code"] for fault in errors}
    detail = reword(problem["detail"])
    if detail.startswith(SEVERAL):
        detail = " ".join(dict.fromkeys(faults.values()))
    kind = Refused if response.status_code in _NOT_CORRECTABLE else Correctable
    return kind(response.status_code, problem["code"], detail, faults, codes)
