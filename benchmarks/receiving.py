"""A webhook receiver in a separate process, so that its cost is not counted.

It serves HTTPS on loopback and keeps connections open if the client does. It responds to a POST to `/answer/MS` with
204 after MS milliseconds, and never to a POST to `/hang`. It records when the head of each request arrived, by the
monotonic clock, which all processes of a machine share.
"""

import asyncio
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from api.webhooks.certificates import for_this_machine

HANG = "/hang"
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
BACKLOG = 1_024


class Arrival(NamedTuple):
    """One POST: its event (if stated), its path, and its time (monotonic)."""

    event_id: str
    path: str
    at: float


@dataclass(frozen=True)
class Receiver:
    """A running receiver."""

    port: int
    ca_path: Path
    process: subprocess.Popen[str]

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    def url_that_answers(self, after_s: float = 0.0) -> str:
        """Return a URL that gets a response after this many seconds."""
        return self.url(f"/answer/{after_s * 1000:.0f}")

    @property
    def url_that_hangs(self) -> str:
        """Return a URL that never gets a response."""
        return self.url(HANG)

    def report(self) -> tuple[list[Arrival], int]:
        """Return the arrivals since the last report, and the most that were unanswered at once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("report", file=self.process.stdin, flush=True)
        arrivals, most_unanswered = json.loads(self.process.stdout.readline())
        return [Arrival(*each) for each in arrivals], most_unanswered


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    """Run a receiver for the duration of a block; its certificates are in the folder."""
    authority, _ = for_this_machine(folder)
    command = [sys.executable, "-m", "benchmarks.receiving", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Receiver(int(process.stdout.readline()), authority, process)
        finally:
            process.terminate()


class _Arrivals:
    """The arrivals since the last report."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.unanswered = self.most_unanswered = 0

    def note_arrival(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        self.unanswered += 1
        self.most_unanswered = max(self.most_unanswered, self.unanswered)

    def start_over(self) -> tuple[Sequence[Arrival], int]:
        """Return the arrivals and the most that were unanswered at once, and begin again."""
        reported = self.arrivals, self.most_unanswered
        self.arrivals, self.most_unanswered = list[Arrival](), self.unanswered
        return reported


async def _serve(certificate: Path) -> None:
    arrivals = _Arrivals()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await answer_request(reader, writer)
        writer.close()

    async def answer_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        arrival, length = _parse_head(head)
        arrivals.note_arrival(arrival)
        try:
            await reader.readexactly(length)
            await _wait(arrival.path, reader)
            writer.write(ANSWER)
            await writer.drain()
        finally:
            arrivals.unanswered -= 1

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201  # for the parent process
    loop = asyncio.get_running_loop()
    threading.Thread(target=_report_on_request, args=(loop, arrivals), daemon=True).start()
    await server.serve_forever()


def _parse_head(head: bytes) -> tuple[Arrival, int]:
    """Parse the head of a request: its path and event, and the length of its body."""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    arrival = Arrival(headers.get("webhook-id", ""), first.split(" ")[1], time.monotonic())
    return arrival, int(headers["content-length"])


async def _wait(path: str, reader: asyncio.StreamReader) -> None:
    """Wait as long as the path says; `/hang` waits until the sender gives up."""
    if path == HANG:
        await reader.readexactly(1)  # which never comes
    elif after_ms := int(path.removeprefix("/answer/")):
        await asyncio.sleep(after_ms / 1000)


def _report_on_request(loop: asyncio.AbstractEventLoop, arrivals: _Arrivals) -> None:
    """Write a report for each line on standard input; at its end, the process ends."""

    async def start_over() -> tuple[Sequence[Arrival], int]:  # in the loop, which changes the arrivals
        return arrivals.start_over()

    for _ in sys.stdin:
        print(json.dumps(asyncio.run_coroutine_threadsafe(start_over(), loop).result()), flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_serve(for_this_machine(Path(sys.argv[1]))[1]))
