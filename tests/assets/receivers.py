"""Webhook receivers that misbehave, over real TLS on loopback: each is a function that is given the connection."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import trustme

Script = Callable[[ssl.SSLSocket], None]


@dataclass
class Misbehaving:
    """What a receiver saw: how many connections, how many of them became TLS, and the requests read from them."""

    port: int
    connections: int = 0
    secured: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/hooks"


def tls(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    """A server's context with a certificate for `names`, or for loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    return context


@contextmanager
def receiver(context: ssl.SSLContext | None, script: Script) -> Iterator[Misbehaving]:
    """Run `script` on every connection once its request was read. Without a context the handshake never happens."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as server:
        seen = Misbehaving(server.getsockname()[1])
        threads: list[threading.Thread] = []

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                if ended.is_set():
                    connection.close()
                    return
                seen.connections += 1
                threads.append(threading.Thread(target=answer, args=(connection,)))
                threads[-1].start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                if context is None:
                    ended.wait(10)
                    return
                with context.wrap_socket(connection, server_side=True) as secured:
                    secured.settimeout(10)
                    seen.secured += 1
                    seen.requests.append(read_request(secured))
                    script(secured)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield seen
        finally:
            ended.set()
            socket.create_connection(("127.0.0.1", seen.port)).close()
            for thread in (serving, *threads):
                thread.join()


def read_request(connection: ssl.SSLSocket) -> bytes:
    """One request: head and body."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(65_536)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def answering(status: str, body: bytes = b"", *headers: str) -> Script:
    """Answers with a status line, headers and body, and closes."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    return lambda connection: connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def saying(text: bytes) -> Script:
    """Sends these bytes and hangs up."""
    return lambda connection: connection.sendall(text)
