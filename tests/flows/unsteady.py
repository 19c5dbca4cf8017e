"""An address of the service where each request fails in every way that passes, before it succeeds."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import requests

HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding"}
REFUSED, CARRIED_OUT_BUT_REFUSED, CARRIED_OUT_BUT_LOST = range(3)


@contextmanager
def unsteady(base_url: str) -> Iterator[str]:
    """Provide the address. A request is refused with 429; then it is carried out, but answered with 503; then it is
    carried out, but the connection is lost.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(base_url)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _handler(base_url: str) -> type[BaseHTTPRequestHandler]:
    tries = Counter[tuple[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = self.command, self.path
            failure = tries[request]
            tries[request] += 1
            if failure == REFUSED:
                return self._answer(429, b"", {"Retry-After": "0"})
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            answer = requests.request(*request[:1], base_url + self.path, data=body, headers=headers, timeout=60)
            if failure == CARRIED_OUT_BUT_REFUSED:
                return self._answer(503, b"", {"Retry-After": "0"})
            if failure == CARRIED_OUT_BUT_LOST:
                self.close_connection = True
                return None
            return self._answer(answer.status_code, answer.content, {"Content-Type": answer.headers["Content-Type"]})

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815

        def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object, **_named: object) -> None:
            """Print nothing."""

    return Handler
