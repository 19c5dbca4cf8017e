"""Measure the cost of hostile bodies and connections, and how another client is served meanwhile."""

import json
import random
import resource
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psutil
import requests

from api.core.commands.console import now
from benchmarks.filling import UNTIL
from benchmarks.service import Service, new_home, seconds_until, start
from benchmarks.table import Row, milliseconds, percentile
from pipelines.synthetic import plain_rows
from storage.access import keys

TITLE = "Hostile clients"
MB = 10**6
ANOTHER_ASKS_EVERY_S = 0.05
DRIPS_EVERY_S = 3.0
AROUND = 100  # bytes, at most, of a submission without its rows
SPAN = 32  # ratio of the largest body to the smallest, which is still decoded in a child process
Result = TypeVar("Result")


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    bodies: int
    largest_bytes: int
    good_rows: int
    slow: int  # connections
    slow_s: float


FULL = Scale(300, 35 * 2**20, 50_000, 900, 30.0)
ABOUT = (
    f"The API alone, one process. One client sends {FULL.bodies} generated bodies one after another: first each kind "
    f"at the limit of 35 MiB, then bodies of 1.1 to 35 MiB, 5 MiB on average. Then it holds {FULL.slow} slow "
    f"connections for {FULL.slow_s:.0f} s and opens each again when it is closed: half send a head that never ends, "
    "half (with the client's key) a body that never ends. Meanwhile another client requests its jobs twenty times a "
    f"second, each time over a new connection. The good body has {FULL.good_rows:,} plain transactions. Processor time "
    "is that of the service and its children, including the cost of the other client."
)


def measure(folder: Path, database: str, scale: Scale = FULL) -> Sequence[Row]:
    with new_home(folder, database) as home, start(home, "api") as service:
        seconds_until(service.base_url, "/health/live", time.monotonic())
        with home.store() as store, store.db.writing() as w:
            client = keys.create_client(w, "hostile", decision_policies=False, now=now())
            key = keys.create_key(w, client.client_id, keys.SCOPES, None, home.settings.key_prefix, now())[1]
        hostile = replace(service, home=replace(home, client_id=client.client_id, key=key))
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # so that the attack does not delay the other client
            return [
                *_rows_of_bodies(pool, service, hostile, scale),
                *_rows_of_connections(pool, service, hostile, scale),
            ]


def _rows_of_bodies(pool: ProcessPoolExecutor, service: Service, hostile: Service, scale: Scale) -> list[Row]:
    target = _target(hostile)
    good, _ = _measure_served_meanwhile(service, pool.submit(_cost, target, _good_body(scale.good_rows)))
    costs = list[Cost]()
    served = list[float]()
    for number in range(scale.bodies):
        cost, meanwhile = _measure_served_meanwhile(service, pool.submit(_cost_of, target, number, scale.largest_bytes))
        costs.append(cost)
        served += meanwhile
    worst = max(costs, key=lambda cost: cost.per_mb_s)
    return [
        Row("a good body, processor time per MB", milliseconds(good.per_mb_s)),
        Row(
            f"the costliest of {scale.bodies} hostile bodies ({worst.kind}), as a multiple of this",
            f"{worst.per_mb_s / good.per_mb_s:.1f} ×",
            "≤ 3 ×",
        ),
        Row("hostile bodies with a status other than 202, 400 or 413", str(sum(not each.answered for each in costs))),
        *_rows_of_other_client(served, "meanwhile", "< 250 ms"),
    ]


def _rows_of_connections(pool: ProcessPoolExecutor, service: Service, hostile: Service, scale: Scale) -> list[Row]:
    slow = pool.submit(_hold_connections, hostile.base_url, hostile.home.key, scale.slow, scale.slow_s)
    _, served = _measure_served_meanwhile(service, slow)
    return _rows_of_other_client(served, f"beside {scale.slow} slow connections")


def _rows_of_other_client(served: Sequence[float], when: str, target: str = "") -> list[Row]:
    answered = [took for took in served if took < float("inf")]
    return [
        Row(f"another client {when}, p99 of {len(served)}", milliseconds(percentile(answered, 0.99)), target),
        Row(f"another client {when}, requests that failed", str(len(served) - len(answered)), "0"),
    ]


def _measure_served_meanwhile(service: Service, attack: Future[Result]) -> tuple[Result, Sequence[float]]:
    """Return the result of an attack, and the seconds that each request of another client took meanwhile.

    A request that failed took infinitely long.
    """
    served = list[float]()
    while not attack.done():
        served.append(_ask(service))
        time.sleep(ANOTHER_ASKS_EVERY_S)
    return attack.result(), served


def _ask(service: Service) -> float:
    began = time.perf_counter()
    with suppress(requests.RequestException), service.session() as http:
        if http.get(f"{service.base_url}/v1/jobs?page=1", timeout=30).ok:
            return time.perf_counter() - began
    return float("inf")


@dataclass(frozen=True)
class Target:
    """The service to which hostile bodies are sent."""

    url: str
    key: str
    pid: int


@dataclass(frozen=True)
class Cost:
    """The cost of one body for the service."""

    kind: str
    per_mb_s: float  # processor time
    answered: bool  # accepted, or refused as it should be


def _target(hostile: Service) -> Target:
    customer_id = hostile.customer(hostile.session())
    url = f"{hostile.base_url}/v1/customer/{customer_id}/transactions"
    return Target(url, hostile.home.key, hostile.process.pid)


def _cost_of(target: Target, number: int, largest_bytes: int) -> Cost:
    """Return the cost of a hostile body, chosen by number."""
    chance = random.Random(number)
    kind = list(HOSTILE)[number % len(HOSTILE)]
    size = largest_bytes if number < len(HOSTILE) else int(largest_bytes / SPAN ** chance.random() ** 0.5)
    return replace(_cost(target, HOSTILE[kind](size)), kind=kind)


def _cost(target: Target, body: bytes) -> Cost:
    before = _cpu_s(target.pid)
    headers = {"x-api-key": target.key, "Content-Type": "application/json"}
    with requests.Session() as http:
        http.trust_env = False
        response = http.post(target.url, data=body, headers=headers, timeout=120)
    spent = _cpu_s(target.pid) - before
    return Cost("good", spent / (len(body) / MB), response.status_code in (202, 400, 413))


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and all its children, including those that have ended."""
    process = psutil.Process(pid)
    return sum(sum(each.cpu_times()[:4]) for each in [process, *process.children(recursive=True)])


def _good_body(rows: int) -> bytes:
    return json.dumps({"transactions": plain_rows(rows, 1, UNTIL)}).encode()


def _rows(size: int, row: bytes) -> bytes:
    """Return a submission of as many equal rows as fit, at most 50,000."""
    return _different_rows(size, lambda _: row)


def _different_rows(size: int, row: Callable[[int], bytes]) -> bytes:
    rows = map(row, range(min(50_000, (size - AROUND) // (len(row(50_000)) + 1))))
    return b'{"transactions":[' + b",".join(rows) + b"]}"


def _members(size: int, each: Callable[[int], str]) -> bytes:
    """Return a submission of one row with as many members as fit."""
    members = (each(number) for number in range((size - AROUND) // (len(each(size)) + 1)))
    return ('{"transactions":[{' + ",".join(members) + "}]}").encode()


def _fill(size: int, start: bytes, piece: bytes, end: bytes = b"") -> bytes:
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


ITEM = b'"date":"2026-06-01","description":"COFFEE","amount":-4.5'
HOSTILE: Mapping[str, Callable[[int], bytes]] = {
    "commas, then escaped quotes": lambda size: _fill(size, b"," * 2_100_000, b'"\\'),
    "one row of many members": lambda size: _members(size, lambda number: f'"k{number:07}":1'),
    "one member many times": lambda size: _members(size, lambda _: '"k":1'),
    "escaped quotes in one text": lambda size: _fill(size, b'{"transactions":"', b'\\"', b'"}'),
    "surrogates in one text": lambda size: _fill(size, b'{"transactions":"', b"\\ud83d", b'"}'),
    "a text without an end": lambda size: _fill(size, b'{"transactions":"', b"\\\\"),
    "empty texts": lambda size: _fill(size, b"[", b'"",', b'""]'),
    "empty texts without commas": lambda size: _fill(size, b"[", b'"" '),
    "empty objects": lambda size: _fill(min(size, 4 * MB), b"[", b"{},", b"{}]") + b" " * (size - 4 * MB),
    "nested lists": lambda size: _fill(size, b"", b"["),
    "closing brackets": lambda size: _fill(size, b"[", b"]"),
    "one number": lambda size: _fill(size, b"[", b"1", b"]"),
    "numbers of the maximum length": lambda size: _fill(size, b"[", b"1" * 4_300 + b",", b"1]"),
    "digits in texts": lambda size: _fill(size, b'{"transactions":"', b"1" * 4_300 + b" ", b'"}'),
    "white space": lambda size: _fill(size, b"{", b" \n", b"}"),
    "invalid UTF-8": lambda size: _fill(size, b'{"transactions":"', b"\xff", b'"}'),
    "wide characters": lambda size: _fill(size, b'{"transactions":"', "🏦".encode(), b'"}'),
    "rows of many members": lambda size: _rows(
        size, b"{" + ITEM + b"".join(b',"extra%d":1' % number for number in range(16)) + b"}"
    ),
    "rows of a long text": lambda size: _rows(size, b"{" + ITEM + b',"extra":"' + b"\\u00e9" * 95 + b'"}'),
    "rows of nested lists": lambda size: _rows(size, b"{" + ITEM + b',"extra":' + b"[" * 15 + b"]" * 15 + b"}"),
    "rows that are not objects": lambda size: _rows(size, b"7".ljust(size // 50_001)),
    "rows of different card numbers": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"4111 1111 1111 1111 " * 20 + b'%05d"}' % number
    ),
    "rows of digits by themselves": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"4 " * 200 + b'%05d"}' % number
    ),
    "rows of digits joined by hyphens": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"4-0-0-" * 66 + b'%05d"}' % number
    ),
    "rows of almost card numbers": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"4111111111111," * 28 + b'%05d"}' % number
    ),
    "rows of tax file numbers": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"TFN 123 456 789 " * 25 + b'%05d"}' % number
    ),
    "rows of valid tax file numbers": lambda size: _different_rows(
        size, lambda number: b"{" + ITEM + b',"extra":"' + b"TFN 123 456 782 " * 25 + b'%05d"}' % number
    ),
    "rows of card numbers among words": lambda size: _different_rows(
        size,
        lambda number: b"{" + ITEM + b',"extra":"' + "é 4111\u00a01111  1111 1111 ".encode() * 15 + b'%05d"}' % number,
    ),
    "rows of card numbers": lambda size: _rows(
        size, b"{" + ITEM + b',"extra":"' + b"4111 1111 1111 1111 " * 20 + b'"}'
    ),
}


def _hold_connections(base_url: str, key: str, connections: int, for_s: float) -> None:
    """Keep slow connections open that send a byte now and then, half of them with a key and the start of a body."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(allowed, connections + 256), allowed))
    address = urlsplit(base_url)
    assert address.hostname is not None
    assert address.port is not None
    starts = (
        b"GET /v1/jobs HTTP/1.1\r\nX-Slow: ",
        f"POST /v1/customer HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\nContent-Type: application/json\r\n"
        "Content-Length: 30000000\r\n\r\n{".encode(),
    )
    held: list[socket.socket | None] = [None] * connections
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        for number, line in enumerate(held):
            if time.monotonic() > until:
                return
            held[number] = _drip(line) or _open_connection((address.hostname, address.port), starts[number % 2])
        time.sleep(DRIPS_EVERY_S)


def _open_connection(address: tuple[str, int], start: bytes) -> socket.socket | None:
    with suppress(OSError):
        line = socket.create_connection(address, timeout=5)
        line.sendall(start)
        line.setblocking(False)
        return line
    return None


def _drip(line: socket.socket | None) -> socket.socket | None:
    """Send a byte; return the connection unless the service has responded or closed it."""
    if line is None:
        return None
    try:
        line.send(b" ")
        line.recv(1)
    except BlockingIOError:
        return line
    except OSError:
        pass
    line.close()
    return None
