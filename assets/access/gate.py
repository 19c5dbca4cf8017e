"""The gate in front of Dagster's web server, which has no authentication of its own and executes mutations sent by GET:
an image on any web page could stop every schedule.

Every request and websocket passes four checks: its host is one of ours (otherwise an attacker could point a name of
theirs at this machine) and its path is printable; it carries a session or a token; it comes from our own pages; its
role allows the action. A reader may only send queries, of which few run at a time. GraphQL by GET is always refused.
"""

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack
from urllib.parse import parse_qs

from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from assets.access.gate_tokens import Role

COOKIE = "tidemark_dagster"
SESSION_S = 12 * 3_600  # a working day: our judgement
SIGN_IN = "/sign-in"
GRAPHQL = "/graphql"
LONGEST_BODY = 2**20  # bytes of a reader's query; Dagster's pages send a few thousand
LONGEST_FORM = 4_096  # bytes
BODY_WITHIN_S = 10.0
NOT_ALLOWED = 1008  # RFC 6455, 7.4.1
MAX_TOKENS = 10_000  # of a reader's query: parsing them takes under a second
READERS_AT_ONCE = 2  # queries of readers; each slows everything else in the process. Our judgement
ROLE = "tidemark.role"  # the key of the role in the scope of an allowed request
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::[0-9]{1,5})?")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in – Tidemark</title>
<style>body {{ font: 1rem system-ui; max-width: 30rem; margin: 15vh auto; padding: 0 1rem }}
input, button {{ font: inherit; padding: .4rem; width: 100%; box-sizing: border-box; margin-top: .5rem }}</style>
<h1>Dagster of this Tidemark</h1>
<p>{line}</p>
<form method="post" action="/sign-in">
<label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Sign in</button>
</form></html>
"""
WELCOME = (
    "Sign in with the operator’s token, which <code>tidemark up</code> prints, to act, or with the reader’s to view. "
    "Both are files in Tidemark’s home folder: <code>operator.token</code> and <code>reader.token</code>."
)
WRONG = "This is not a token of this Tidemark."


class Refused(Exception):
    """A request that the gate refuses, with the response to send."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.response: Response = PlainTextResponse(f"{detail}\n", status, headers)


def role_of(connection: object) -> Role | None:
    """Return the role with which the gate allowed a request or websocket; None for anything else."""
    return connection.scope.get(ROLE) if isinstance(connection, HTTPConnection) else None


def allowed_hosts(address: str, others: Sequence[str]) -> Set[str]:
    """Return the host names, without port, that the pages are served under: loopback names, the server's address, and
    those in the settings.
    """
    own = f"[{address}]" if ":" in address else address
    return {name.lower() for name in (*LOOPBACK_NAMES, own, *others)}


class Gate:
    """ASGI middleware around Dagster's web server.

    Args:
        tokens: the token of each role.
        hosts: the host names that the pages are served under, without port, in lower case.
        clock: seconds since the epoch, for the end of sessions.
    """

    def __init__(
        self, app: ASGIApp, tokens: Mapping[Role, str], hosts: Set[str], clock: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts
        self._clock = clock
        self._readers_turns = asyncio.Semaphore(READERS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            answer, receive = await self._answer(HTTPConnection(scope), receive)
        except Refused as refused:
            answer = WebSocketClose() if scope["type"] == "websocket" else refused.response
        await answer(scope, receive, _with_headers(send))

    async def _answer(self, connection: HTTPConnection, receive: Receive) -> tuple[ASGIApp, Receive]:
        """Return the application that answers, and the `receive` that it reads the body from.

        Raises:
            Refused: the request is not allowed.
        """
        check_host(connection, self._hosts)
        check_path(connection)
        is_http = connection.scope["type"] == "http"
        if is_http and connection.scope["path"] == SIGN_IN:
            return await self._sign_in(Request(connection.scope, receive)), receive
        role = self._role(connection)
        if role is None:
            raise _not_signed_in(connection)
        connection.scope[ROLE] = role
        if is_http:
            check_method(connection)
        check_origin(connection, required=not _is_safe(connection) and "authorization" not in connection.headers)
        if not is_http:
            check_subscriber(role)
            return self._app, self._while_signed_in(connection, receive)
        if _is_safe(connection):
            return self._app, receive
        receive = await _check_action(connection, role, receive)
        return (self._app if role is Role.OPERATOR else self._in_turn), receive

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run few of the readers' queries at a time, because runs are launched in the same threads."""
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._readers_turns)

            async def send_after_turn(message: Message) -> None:
                await turn.aclose()  # a reader that receives the response slowly delays nobody
                await send(message)

            await self._app(scope, receive, send_after_turn)

    def _while_signed_in(self, websocket: HTTPConnection, receive: Receive) -> Receive:
        """Return a `receive` that ends a websocket together with its session; a websocket with a token has no end."""
        if "authorization" in websocket.headers:
            return receive
        ends_in_s = int(websocket.cookies[COOKIE].split(".")[1]) - self._clock()
        deadline = asyncio.get_running_loop().time() + ends_in_s

        async def receive_in_time() -> Message:
            try:
                async with asyncio.timeout_at(deadline):
                    return await receive()
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": NOT_ALLOWED}

        return receive_in_time

    def _role(self, connection: HTTPConnection) -> Role | None:
        header = connection.headers.get("authorization")
        if header is None:
            return self._role_of_session(connection.cookies.get(COOKIE, ""))
        scheme, _, text = header.partition(" ")
        return self._role_of_token(text) if scheme.lower() == "bearer" else None

    def _role_of_token(self, text: str) -> Role | None:
        return next((role for role, token in self._tokens.items() if _equal(text, token)), None)

    def _role_of_session(self, cookie: str) -> Role | None:
        for role in self._tokens:
            ends, _, proof = cookie.removeprefix(f"{role}.").partition(".")
            # check the proof first: only a value with a valid proof was written here and can be parsed
            if _equal(proof, self._proof(role, ends)) and self._clock() < int(ends):
                return role
        return None

    def _session(self, role: Role) -> str:
        """Return a session cookie's value. It holds no token, because browsers send cookies to every port of a host."""
        ends = str(int(self._clock()) + SESSION_S)
        return f"{role}.{ends}.{self._proof(role, ends)}"

    def _proof(self, role: Role, ends: str) -> str:
        return hmac.new(self._tokens[role].encode(), f"{role}.{ends}".encode(), hashlib.sha256).hexdigest()

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            return _page(WELCOME, 200)
        check_origin(request, required=True)
        body = await _read_body(request.receive, LONGEST_FORM)
        [entered] = parse_qs(body.decode("latin-1")).get("token", [""])[:1]
        role = self._role_of_token(entered)
        if role is None:
            return _page(WRONG, 403)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            COOKIE,
            self._session(role),
            max_age=SESSION_S,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        response.headers["Cache-Control"] = "no-store"
        return response


def check_host(connection: HTTPConnection, hosts: Set[str]) -> None:
    """Refuse a request with no host, several hosts, or a host that is not in the list."""
    matches = [HOST.fullmatch(text.lower()) for text in connection.headers.getlist("host")]
    if len(matches) != 1 or matches[0] is None or matches[0][1] not in hosts:
        detail = "This host is not served: add its name to TIDEMARK_DAGSTER_HOSTS."
        raise Refused(421, detail, **{"Cache-Control": "no-store"})


def check_path(connection: HTTPConnection) -> None:
    """Refuse a path that Dagster's router could read differently: it ignores a line feed at the end."""
    if not connection.scope["path"].isprintable():
        raise Refused(404, "There is nothing at this path.", **{"Cache-Control": "no-store"})


def check_method(connection: HTTPConnection) -> None:
    """Refuse methods that Dagster's pages don't use, and GraphQL by GET, which any web page can send."""
    method = connection.scope["method"]
    if method not in ("GET", "HEAD", "POST"):
        raise Refused(405, "Only GET, HEAD and POST are served.", Allow="GET, HEAD, POST")
    wants_page = "text/html" in connection.headers.get("accept", "")  # as Dagster decides it
    if connection.scope["path"] == GRAPHQL and method != "POST" and not wants_page:
        raise Refused(405, "GraphQL is sent by POST.", Allow="POST")


def check_origin(connection: HTTPConnection, *, required: bool) -> None:
    """Refuse a request from another site's page and, if `required`, a request without an Origin."""
    host = connection.headers.get("host", "").lower()
    origins = [text.lower() for text in connection.headers.getlist("origin")]
    ours = {f"http://{host}", f"https://{host}"}  # a proxy may end TLS
    if any(origin not in ours for origin in origins) or (required and not origins):
        raise Refused(403, "This request does not come from Dagster's own pages.")


def check_subscriber(role: Role) -> None:
    """Refuse a reader's websocket, because subscriptions are computed in the event loop without a limit.

    Dagster's pages poll when they get no websocket.
    """
    if role is not Role.OPERATOR:
        raise Refused(403, "Readers get no websocket.")


async def _check_action(connection: HTTPConnection, role: Role, receive: Receive) -> Receive:
    """Check that the role allows this action. Return the `receive` that the body can be read from.

    Raises:
        Refused: a reader sends more than queries, or GraphQL is not sent as JSON. Dagster would also accept it in the
            query string or as plain text, both of which a form on any web page can send.
    """
    if connection.scope["path"] != GRAPHQL:
        if role is not Role.OPERATOR:
            raise Refused(403, "A reader may only view.")
        return receive
    if connection.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "GraphQL is sent as application/json.")
    _leave_only_body(connection.scope)
    if role is Role.OPERATOR:
        return receive
    body = await _read_body(receive, LONGEST_BODY)
    await run_in_threadpool(check_only_queries, body)
    return _replay(body, receive)


def _leave_only_body(scope: Scope) -> None:
    """Remove the query string, and write the content type in lower case: Dagster doesn't recognise any other spelling,
    and would then read the query from the query string.
    """
    scope["query_string"] = b""
    MutableHeaders(scope=scope)["content-type"] = "application/json"


def check_only_queries(body: bytes) -> None:
    """Refuse the body of a GraphQL request that holds an operation other than a query, or can't be parsed."""
    try:
        document = parse(json.loads(body)["query"], max_tokens=MAX_TOKENS)
    except (ValueError, TypeError, KeyError, GraphQLError, RecursionError) as error:
        raise Refused(400, "This is not a GraphQL request.") from error
    operations = [definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)]
    if any(operation.operation is not OperationType.QUERY for operation in operations):
        raise Refused(403, "A reader may only view.")


async def _read_body(receive: Receive, longest: int) -> bytes:
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            return await _join_parts(receive, longest)
    except TimeoutError:
        raise Refused(408, "The request's body took too long.", Connection="close") from None


async def _join_parts(receive: Receive, longest: int) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "The request ended early.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > longest:
            raise Refused(413, f"The request's body may have at most {longest} bytes.", Connection="close")
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body again, and then further messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _is_safe(connection: HTTPConnection) -> bool:
    """Return whether a request only views. A websocket doesn't count, because another site's page must not open one."""
    return connection.scope["type"] == "http" and connection.scope["method"] in ("GET", "HEAD")


def _not_signed_in(connection: HTTPConnection) -> Refused:
    no_store = {"Cache-Control": "no-store"}
    refused = Refused(401, f"Sign in at {SIGN_IN}.", **no_store, **{"WWW-Authenticate": "Bearer"})
    if _is_safe(connection) and "text/html" in connection.headers.get("accept", ""):
        refused.response = RedirectResponse(SIGN_IN, 303, no_store)
    return refused


def _page(line: str, status: int) -> Response:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    return HTMLResponse(PAGE.format(line=line), status, headers)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _with_headers(send: Send) -> Send:
    """Add headers that forbid framing by other origins (clickjacking) and guessing of content types."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("X-Frame-Options", "SAMEORIGIN")
            headers.setdefault("X-Content-Type-Options", "nosniff")
        await send(message)

    return send_with_headers
