"""Connections without a token can use up neither files nor memory nor time of Dagster's web server."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
import requests
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from assets.access import gate
from assets.access.gate import Gate, allowed_hosts
from assets.access.gate_connections import MAX_CONNECTIONS, MAX_STRANGER_BYTES, SERVER
from assets.access.gate_tokens import Role
from tests.waiting import until

TOKENS = {Role.OPERATOR: "operator's", Role.READER: "reader's"}
OPERATOR = {"Authorization": "Bearer operator's"}
READER = {"Authorization": "Bearer reader's"}
WITHIN_S = 10.0


async def _answer(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    while True:
        await websocket.send_text(str(len(await websocket.receive_text())))


@pytest.fixture
def server() -> Iterator[uvicorn.Server]:
    routes = [
        Route("/{path:path}", _answer, methods=["GET", "POST"]),
        WebSocketRoute("/graphql", _echo),
    ]
    app = Gate(Starlette(routes=routes), TOKENS, allowed_hosts("127.0.0.1", ()))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # No idle connection ends while a busy machine opens many others: that is not the subject here.
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", timeout_keep_alive=600, **SERVER))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        server.config.port = listener.getsockname()[1]
        yield server
        server.should_exit = True
        thread.join()


@pytest.fixture
def address(server: uvicorn.Server) -> tuple[str, int]:
    return "127.0.0.1", server.config.port


def test_half_open_connections_are_limited_and_block_nobody(server: uvicorn.Server, address: tuple[str, int]) -> None:
    retained = requests.Session()
    url = f"http://127.0.0.1:{address[1]}/graphql"
    with ExitStack() as many, connect(f"ws{url[4:]}", additional_headers=OPERATOR) as websocket:
        assert retained.post(url, json={}, headers=OPERATOR).status_code == 200
        for _ in range(2 * MAX_CONNECTIONS):
            one = many.enter_context(socket.create_connection(address))
            with suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\nHost: local")
        until(lambda: len(server.server_state.connections) <= MAX_CONNECTIONS + 1)
        assert retained.post(url, json={}, headers=OPERATOR).status_code == 200
        websocket.send("still here")
        assert websocket.recv() == "10"
    retained.close()


def test_an_operator_keeps_a_connection_whose_next_request_has_only_begun(address: tuple[str, int]) -> None:
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer operator's\r\n\r\n"
    with ExitStack() as many, socket.create_connection(address, timeout=WITHIN_S) as retained:
        retained.sendall(head)
        assert retained.recv(4096).startswith(b"HTTP/1.1 200")
        retained.sendall(head[:20])
        for _ in range(2 * MAX_CONNECTIONS):
            many.enter_context(socket.create_connection(address))
        last = many.enter_context(socket.create_connection(address, timeout=WITHIN_S))
        last.sendall(head)
        assert last.recv(4096).startswith(b"HTTP/1.1 200")  # so all earlier ones were accepted
        retained.sendall(head[20:])
        assert retained.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_stranger_may_send_only_as_much_as_a_request_needs(
    address: tuple[str, int], subtests: pytest.Subtests
) -> None:
    endless = {
        "head": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        "trailers": b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        "body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n",
    }
    for kind, beginning in endless.items():
        with subtests.test(kind), socket.create_connection(address, timeout=WITHIN_S) as one:
            one.sendall(beginning)
            sent = 0
            with suppress(ConnectionError):
                while sent < 400 * MAX_STRANGER_BYTES:
                    sent += one.send(b"x" * MAX_STRANGER_BYTES)
                pytest.fail("it takes whatever comes")


def test_a_signed_in_user_may_send_more(address: tuple[str, int]) -> None:
    url = f"http://127.0.0.1:{address[1]}/graphql"
    body = json.dumps({"query": "{ version }", "variables": "x" * 900_000})
    headers = {"Content-Type": "application/json"}
    for who in (OPERATOR, READER):
        assert requests.post(url, body, headers=headers | who).text == str(len(body))


def test_the_size_of_a_websocket_message_is_limited(address: tuple[str, int]) -> None:
    with connect(f"ws://127.0.0.1:{address[1]}/graphql", additional_headers=OPERATOR) as websocket:
        websocket.send("x" * 60_000)
        assert websocket.recv() == "60000"
        websocket.send("x" * 70_000)
        with pytest.raises(ConnectionClosed):
            websocket.recv()


def test_a_body_that_never_arrives_times_out(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BODY_WITHIN_S", 0.2)
    head = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 10\r\n\r\n"
    with socket.create_connection(address, timeout=WITHIN_S) as one:
        one.sendall(head)
        answer = one.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408")
        while one.recv(4096):
            pass


def test_a_websocket_ends_with_its_session(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SESSION_S", 2)
    host = f"localhost:{address[1]}"
    origin = {"Origin": f"http://{host}"}
    with requests.Session() as browser:
        form = {"token": TOKENS[Role.OPERATOR]}
        signed_in = browser.post(f"http://{host}/sign-in", form, headers=origin, allow_redirects=False)
        cookie = {"Cookie": f"{gate.COOKIE}={signed_in.cookies[gate.COOKIE]}"}
    with connect(f"ws://{host}/graphql", additional_headers=origin | cookie) as websocket:
        websocket.send("early")
        assert websocket.recv() == "5"
        with pytest.raises(ConnectionClosed):
            websocket.recv(timeout=WITHIN_S)
