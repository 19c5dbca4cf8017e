"""HTTP by hand: bytes on a socket, for requests that no client library would send."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

LONGEST_S = 30


@contextmanager
def line(base_url: str, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """Open a connection to the service."""
    address = urlsplit(base_url)
    with closing(socket.socket()) as made:
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.settimeout(LONGEST_S)
        made.connect((address.hostname, address.port))
        yield made


def head(method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request, with its empty line."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: tidemark", *headers, "", ""]).encode()


def rest_of(made: socket.socket) -> bytes:
    """Receive everything until the service closes the connection."""
    received = bytearray()
    try:
        while piece := made.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return bytes(received)


def until_closed(base_url: str, *pieces: bytes) -> bytes:
    """Send these bytes and return everything that the service answers until it closes the connection."""
    with line(base_url) as made:
        for piece in pieces:
            made.sendall(piece)
        return rest_of(made)


def statuses(received: bytes) -> list[int]:
    """Return the status of each answer."""
    return [int(status) for status in re.findall(rb"^HTTP/1\.1 (\d{3}) ", received, re.MULTILINE)]


def problem(received: bytes) -> dict[str, Any]:
    """Return the body of the only answer."""
    body: dict[str, Any] = json.loads(received.partition(b"\r\n\r\n")[2])
    return body
