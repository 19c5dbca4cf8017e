"""Every request to Dagster's pages passes the gate, which allows only what the role permits."""

import asyncio
import json
from collections import Counter
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from assets.access.gate import COOKIE, LONGEST_BODY, READERS_AT_ONCE, SESSION_S, Gate, allowed_hosts, role_of
from assets.access.gate_tokens import Role, token, token_file
from assets.service.up import shown_token
from storage.core.settings import Settings, SettingsError
from tests.assets.asgi import Answer, ask, ask_async, open_websocket

TOKENS = {Role.OPERATOR: "operator's", Role.READER: "reader's"}
ORIGIN = "http://localhost:3000"
MUTATION = b'{"query": "mutation { stopSensor(id: 1) { id } }"}'
QUERY = b'{"query": "query { runs { id } }"}'


class Dagster:
    """A replacement for Dagster's web server that records the requests that reach it."""

    def __init__(self) -> None:
        self.reached: list[tuple[str, str, Role | None, bytes]] = []

    async def http(self, request: Request) -> Response:
        self.reached.append((request.method, request.url.path, role_of(request), await request.body()))
        return JSONResponse({"data": {}})

    async def websocket(self, websocket: WebSocket) -> None:
        await websocket.accept(subprotocol="graphql-ws")
        self.reached.append(("websocket", websocket.url.path, role_of(websocket), b""))
        await websocket.close()

    def app(self) -> Starlette:
        every = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
        return Starlette(
            routes=[Route("/{path:path}", self.http, methods=every), WebSocketRoute("/graphql", self.websocket)]
        )


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dagster() -> Dagster:
    return Dagster()


class Browser:
    """A client of the gate that stores the cookie, as a browser does."""

    def __init__(self, dagster: Dagster, clock: Clock) -> None:
        self.gate = Gate(dagster.app(), TOKENS, allowed_hosts("127.0.0.1", ()), clock)
        self.cookie = ""

    def send(self, method: str, url: str, body: bytes, **headers: str) -> Answer:
        return ask(self.gate, method, url, self._headers(headers), body)

    def get(self, url: str, **headers: str) -> Answer:
        return self.send("GET", url, b"", **headers)

    def query(self, body: bytes, **headers: str) -> Answer:
        return self.send("POST", "/graphql", body, **{"Content-Type": "application/json", **headers})

    def open_websocket(self, **headers: str) -> Answer:
        return open_websocket(self.gate, "/graphql", self._headers(headers))

    def sign_in(self, text: str, scheme: str = "http", **headers: str) -> Answer:
        body = urlencode({"token": text}).encode()
        answer = ask(self.gate, "POST", "/sign-in", self._headers({"Origin": ORIGIN, **headers}), body, scheme)
        cookies = SimpleCookie(answer.headers.get("Set-Cookie", ""))
        self.cookie = cookies[COOKIE].value if COOKIE in cookies else ""
        return answer

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        retained = {"Cookie": f"{COOKIE}={self.cookie}"} if self.cookie else {}
        return {"Host": "localhost:3000", **retained, **headers}


@pytest.fixture
def browser(dagster: Dagster, clock: Clock) -> Browser:
    return Browser(dagster, clock)


def bearer(role: Role) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[role]}"}


def test_without_signing_in_no_request_reaches_dagster(
    browser: Browser, dagster: Dagster, subtests: pytest.Subtests
) -> None:
    attempts = [
        ("GET", "/", {}, 401),
        ("GET", "/overview", {"Accept": "text/html"}, 303),
        ("GET", "/server_info", {}, 401),
        ("GET", "/graphql?query={version}", {}, 401),
        ("POST", "/graphql", {"Origin": ORIGIN}, 401),
        ("POST", "/report_asset_materialization/x", {"Origin": ORIGIN}, 401),
        ("POST", "/graphql", {"Authorization": "Bearer wrong"}, 401),
        ("POST", "/graphql", {"Authorization": f"Basic {TOKENS[Role.OPERATOR]}"}, 401),
        ("GET", "/", {"Cookie": f"{COOKIE}=operator.99999999999.AAAA"}, 401),
        ("GET", "/", {"Cookie": f"{COOKIE}=boss.99999999999.AAAA"}, 401),
        ("GET", "/", {"Cookie": f"{COOKIE}={TOKENS[Role.OPERATOR]}"}, 401),
        ("GET", "/", {"Cookie": f"{COOKIE}="}, 401),
    ]
    for method, path, headers, status in attempts:
        with subtests.test(method=method, path=path, headers=headers):
            answer = browser.send(method, path, QUERY, **headers)
            assert answer.status == status
            assert answer.headers["Cache-Control"] == "no-store"
    assert dagster.reached == []


def test_signing_in_sets_a_cookie_that_is_hidden_from_scripts_and_other_sites(
    browser: Browser, dagster: Dagster
) -> None:
    assert b"<form" in browser.get("/sign-in").body
    answer = browser.sign_in(TOKENS[Role.OPERATOR])
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))
    assert TOKENS[Role.OPERATOR] not in cookie, "other servers of this host are sent the cookie, too"
    assert browser.get("/").status == 200
    assert dagster.reached == [("GET", "/", Role.OPERATOR, b"")]


def test_a_wrong_token_is_refused(browser: Browser, subtests: pytest.Subtests) -> None:
    for wrong in ("", "wrong", "operator’s", "x" * 100_000):
        with subtests.test(wrong=wrong[:20]):
            assert browser.sign_in(wrong).status in (403, 413)
            assert not browser.cookie


def test_over_tls_the_cookie_is_secure(browser: Browser) -> None:
    answer = browser.sign_in(TOKENS[Role.READER], scheme="https", Origin="https://localhost:3000")
    assert "Secure" in answer.headers["Set-Cookie"].split("; ")


def test_a_session_ends(browser: Browser, clock: Clock) -> None:
    browser.sign_in(TOKENS[Role.READER])
    clock.now_s += SESSION_S - 1
    assert browser.get("/").status == 200
    clock.now_s += 2
    assert browser.get("/").status == 401


def test_a_session_can_not_be_rewritten(browser: Browser, subtests: pytest.Subtests) -> None:
    browser.sign_in(TOKENS[Role.READER])
    role, ends, proof = browser.cookie.split(".")
    for forged in (f"operator.{ends}.{proof}", f"{role}.{int(ends) + 1}.{proof}", f"{role}.{ends}.", proof, "é.é.é"):
        with subtests.test(forged=forged):
            browser.cookie = forged
            assert browser.get("/").status == 401


def test_only_hosts_in_the_list_are_served(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    """Otherwise a page could point its own name at this machine (DNS rebinding) and have the same origin."""
    for host in ("evil.example", "evil.example:3000", "localhost.evil.example", "", "localhost:3000:1", "127.0.0.1@x"):
        with subtests.test(host=host):
            assert browser.get("/", **bearer(Role.OPERATOR), Host=host).status == 421
    assert dagster.reached == []
    for host in ("localhost", "LOCALHOST:3000", "127.0.0.1:8", "[::1]:3000"):
        with subtests.test(host=host):
            assert browser.get("/", **bearer(Role.OPERATOR), Host=host).status == 200


def test_hosts_are_the_address_loopback_and_those_in_the_setting() -> None:
    assert allowed_hosts("10.1.2.3", ("Dagster.lender.example",)) == {
        "localhost",
        "127.0.0.1",
        "[::1]",
        "10.1.2.3",
        "dagster.lender.example",
    }
    assert "[fd00::1]" in allowed_hosts("fd00::1", ())


def test_a_request_from_another_origin_is_refused(
    browser: Browser, dagster: Dagster, subtests: pytest.Subtests
) -> None:
    browser.sign_in(TOKENS[Role.OPERATOR])
    foreign = ("http://evil.example", "null", "http://localhost:8000", "http://localhost", "ftp://localhost:3000", "")
    for origin in foreign:
        for headers in ({}, bearer(Role.OPERATOR)):
            with subtests.test(origin=origin, headers=headers):
                assert browser.query(MUTATION, Origin=origin, **headers).status == 403
    with subtests.test("a browser says where a request comes from"):
        assert browser.query(MUTATION).status == 403
    with subtests.test("nor can it sign somebody in"):
        assert browser.sign_in(TOKENS[Role.OPERATOR], Origin="http://evil.example").status == 403
    assert dagster.reached == []


def test_graphql_by_get_is_refused(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    browser.sign_in(TOKENS[Role.OPERATOR])
    for query in ("mutation{stopSensor(id:1){id}}", "{version}", "query A{version} mutation B{x}"):
        for path in ("/graphql", "/%67raphql", "/graphql%0A"):
            with subtests.test(query=query, path=path):
                answer = browser.get(f"{path}?{urlencode({'query': query})}", Accept="image/*")
                assert answer.status == (404 if path.endswith("%0A") else 405)
    assert dagster.reached == []
    with subtests.test("the page for queries is shown"):
        assert browser.get("/graphql", Accept="text/html").status == 200


def test_a_path_that_a_router_may_read_differently_is_refused(
    browser: Browser, dagster: Dagster, subtests: pytest.Subtests
) -> None:
    """Starlette's router reads `/graphql` followed by a line feed as `/graphql`."""
    for path in ("/graphql%0A", "/graphql%00", "/%0Agraphql", "/graphql%E2%80%A8", "/sign-in%0A", "/runs%7F"):
        for method in ("GET", "POST"):
            with subtests.test(method=method, path=path):
                assert browser.send(method, path, MUTATION, **bearer(Role.OPERATOR)).status == 404
    with subtests.test("websocket"):
        assert (
            open_websocket(browser.gate, "/graphql%0A", {"Host": "localhost:3000", **bearer(Role.READER)}).status == 403
        )
    assert dagster.reached == []
    with subtests.test("a name in another script"):
        assert browser.get("/assets/caf%C3%A9", **bearer(Role.READER)).status == 200


def test_other_methods_are_refused(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        with subtests.test(method=method):
            answer = browser.send(method, "/graphql", b"", **bearer(Role.OPERATOR))
            assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert dagster.reached == []


def test_operators_may_act(browser: Browser, dagster: Dagster) -> None:
    assert browser.query(MUTATION, **bearer(Role.OPERATOR)).status == 200
    browser.sign_in(TOKENS[Role.OPERATOR])
    assert browser.query(MUTATION, Origin=ORIGIN).status == 200
    assert browser.send("POST", "/report_asset_check/x", b"", Origin=ORIGIN).status == 200
    assert dagster.reached[:2] == [("POST", "/graphql", Role.OPERATOR, MUTATION)] * 2


def test_readers_may_view(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    for query in ("{ version }", "query A { a } query B { b }", "query { ...f } fragment f on Query { a }"):
        with subtests.test(query=query):
            body = json.dumps({"query": query}).encode()
            assert browser.query(body, **bearer(Role.READER)).status == 200
            assert dagster.reached.pop() == ("POST", "/graphql", Role.READER, body)
    with subtests.test("pages"):
        assert browser.get("/runs", **bearer(Role.READER)).status == 200


def test_readers_may_not_act(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    sneaky = [
        MUTATION.decode(),
        json.dumps({"query": "query A { a } mutation B { b }", "operationName": "A"}),
        json.dumps({"query": "#{\nmutation { b }"}),
        '{"query": "{a}", "query": "mutation { b }"}',
        json.dumps([{"query": "mutation { b }"}]),
        json.dumps({"query": "subscription { a }"}),
        json.dumps({"query": ["mutation { b }"]}),
        json.dumps({"query": None}),
        json.dumps({"query": "{"}),
        json.dumps({"query": "{a" * 5_000}),
        "[" * 50_000,
        "{}",
        "mutation { b }",
        "",
    ]
    for body in sneaky:
        with subtests.test(body=body[:60]):
            assert browser.query(body.encode(), **bearer(Role.READER)).status in (400, 403)
    with subtests.test("too large to be looked at"):
        assert browser.query(b" " * (LONGEST_BODY + 1), **bearer(Role.READER)).status == 413
    with subtests.test("other endpoints"):
        answer = browser.send("POST", "/report_asset_materialization/x", b"", **bearer(Role.READER))
        assert answer.status == 403
    assert dagster.reached == []


def test_graphql_is_accepted_only_as_json(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    """Dagster would also read it from a POST's query string or as plain text, which a form on any page can send."""
    kinds = (
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "text/plain; application/json",
        "",
    )
    for role in Role:
        for kind in kinds:
            with subtests.test(role=role, kind=kind):
                headers = bearer(role) | {"Content-Type": kind}
                assert browser.send("POST", "/graphql?query=mutation{x}", b"{}", **headers).status == 415
    assert dagster.reached == []


def test_dagster_reads_the_same_query_as_the_gate(subtests: pytest.Subtests) -> None:
    """Dagster recognises JSON only in lower case: for `Application/JSON` it would execute the query string."""
    read: list[tuple[list[str], str, bytes]] = []

    async def graphql(request: Request) -> Response:
        read.append((request.headers.getlist("content-type"), request.url.query, await request.body()))
        return JSONResponse({})

    gate = Gate(Starlette(routes=[Route("/graphql", graphql, methods=["POST"])]), TOKENS, allowed_hosts("::1", ()))
    for role in Role:
        for kind in ("application/json", "Application/JSON", "APPLICATION/JSON; charset=utf-8"):
            with subtests.test(role=role, kind=kind):
                headers = {"Host": "localhost", "Content-Type": kind, **bearer(role)}
                assert ask(gate, "POST", "/graphql?query=mutation{x}", headers, QUERY).status == 200
                assert read.pop() == (["application/json"], "", QUERY)


def test_websockets_pass_the_same_checks(browser: Browser, dagster: Dagster, subtests: pytest.Subtests) -> None:
    browser.sign_in(TOKENS[Role.OPERATOR])
    session = {"Cookie": f"{COOKIE}={browser.cookie}"}
    browser.cookie = ""
    refused = [
        {"Origin": ORIGIN},
        session,
        session | {"Origin": "http://evil.example"},
        session | {"Origin": ORIGIN, "Host": "evil.example"},
        bearer(Role.OPERATOR) | {"Origin": "http://localhost:8000"},
        bearer(Role.READER),
    ]
    for headers in refused:
        with subtests.test(headers=headers):
            assert browser.open_websocket(**headers).status == 403
    assert dagster.reached == []
    for headers in (session | {"Origin": ORIGIN}, bearer(Role.OPERATOR)):
        with subtests.test(headers=headers):
            assert browser.open_websocket(**headers).status == 101
            assert dagster.reached.pop() == ("websocket", "/graphql", Role.OPERATOR, b"")


def test_other_sites_may_not_frame_pages(browser: Browser) -> None:
    assert browser.get("/", **bearer(Role.READER)).headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'none'" in browser.get("/sign-in").headers["Content-Security-Policy"]


def test_tokens_are_created_once_and_private(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    made = {role: token(settings, role) for role in Role}
    assert len(set(made.values())) == len(Role)
    assert made == {role: token(settings, role) for role in Role}
    for role in Role:
        assert token_file(settings, role).stat().st_mode & 0o777 == 0o600
        assert len(made[role]) >= 43, "32 random bytes"


def test_the_token_is_printed_on_a_terminal_but_not_in_logs(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    secret = token(settings, Role.OPERATOR)
    assert shown_token(settings, on_terminal=True) == secret
    assert shown_token(settings, on_terminal=False) == f"in {tmp_path / 'operator.token'}"


def test_a_token_file_that_is_empty_or_readable_by_others_is_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    token(settings, Role.READER)
    token_file(settings, Role.READER).chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        token(settings, Role.READER)
    token_file(settings, Role.READER).write_text("\n")
    token_file(settings, Role.READER).chmod(0o600)
    with pytest.raises(SettingsError, match="empty"):
        token(settings, Role.READER)


def test_few_queries_of_readers_run_at_a_time() -> None:
    under_way, done = Counter[Role | None](), Counter[Role | None]()

    async def slow(request: Request) -> Response:
        under_way[role_of(request)] += 1
        await release.wait()
        return Response()

    async def query(gate: Gate, role: Role) -> None:
        headers = {"Host": "localhost", "Content-Type": "application/json", **bearer(role)}
        await ask_async(gate, "POST", "/graphql", headers, QUERY)
        done[role] += 1

    async def crowd() -> None:
        gate = Gate(Starlette(routes=[Route("/graphql", slow, methods=["POST"])]), TOKENS, {"localhost"})
        async with asyncio.TaskGroup() as group:
            for role in [Role.READER] * 5 + [Role.OPERATOR] * 3:
                group.create_task(query(gate, role))
            while under_way[Role.OPERATOR] < 3 or under_way[Role.READER] < READERS_AT_ONCE:
                await asyncio.sleep(0.01)
            assert under_way[Role.READER] == READERS_AT_ONCE
            release.set()
        assert done == {Role.READER: 5, Role.OPERATOR: 3}

    release = asyncio.Event()
    asyncio.run(crowd())
