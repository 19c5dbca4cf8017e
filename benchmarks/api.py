"""Measure the API alone: start-up time, memory and throughput."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from api.service.commands.addresses import choose_port
from benchmarks.filling import UNTIL
from benchmarks.service import Home, Service, new_home, seconds_until, start
from benchmarks.table import Row, mebibytes, seconds
from pipelines.synthetic import plain_rows

TITLE = "The API alone"
CONNECTIONS = 16
FOR_S = 10.0
ROWS = 20  # per submission
ABOUT = (
    f"{CONNECTIONS} connections of one client on the same two cores, {FOR_S:.0f} s each; the API alone, no worker; "
    f"customers without history, submissions of {ROWS} rows."
)

Ask = Callable[[aiohttp.ClientSession, str], Any]


def measure(folder: Path, database: str) -> Sequence[Row]:
    rows = _measure_footprint(folder / "footprint", database)
    with new_home(folder / "throughput", database) as home:
        return [*rows, *(row for processes in (1, 2) for row in _measure_throughput(home, processes))]


def _measure_footprint(folder: Path, database: str) -> list[Row]:
    with new_home(folder, database) as home:
        began = time.monotonic()
        with start(home, "up", "--dagster-port", str(choose_port(0))) as everything:
            answering = seconds_until(everything.base_url, "/health/live", began)
            ready = seconds_until(everything.base_url, "/health/ready", began)
            time.sleep(5)
            whole = everything.pss()
        with _api(home, 1) as alone:
            api_alone = alone.pss()
    return [
        Row("`tidemark up`: API answering after", seconds(answering), "≤ 3 s"),
        Row("`tidemark up`: processing ready after", seconds(ready), "≤ 8 s"),
        Row("`tidemark up` idle, PSS of all its processes", mebibytes(whole), "≤ 750 MiB"),
        Row("`tidemark api` alone, PSS", mebibytes(api_alone), "≤ 200 MB"),
    ]


@contextmanager
def _api(home: Home, processes: int) -> Iterator[Service]:
    began = time.monotonic()
    with start(home, "api", "--processes", str(processes)) as service:
        seconds_until(service.base_url, "/health/live", began)
        yield service


def _measure_throughput(home: Home, processes: int) -> list[Row]:
    with _api(home, processes) as service:
        reads = asyncio.run(_measure_rate(service, _get_customer, 200))
        accepted = asyncio.run(_measure_rate(service, _submit, 202))
    where = f"{processes} API process{'es' if processes > 1 else ''}"
    return [
        Row(f"authenticated reads of a customer, {where}", f"{reads:,.0f}/s", "≥ 800/s on two cores"),
        Row(f"durable 202s from {CONNECTIONS} writers, no error, {where}", f"{accepted:,.0f}/s", "≥ 200/s on SQLite"),
    ]


async def _measure_rate(service: Service, ask: Ask, expected: int) -> float:
    """Return responses per second. A status other than `expected` ends the benchmark."""
    answered = 0
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers={"x-api-key": service.home.key}, connector=connector) as http:
        customer = await _customer(http, service.base_url)
        began = time.monotonic()

        async def ask_repeatedly() -> None:
            nonlocal answered
            while time.monotonic() - began < FOR_S:
                async with ask(http, customer) as response:
                    await response.read()
                    if response.status != expected:
                        raise RuntimeError(f"{response.status}: {await response.text()}")
                answered += 1

        await asyncio.gather(*(ask_repeatedly() for _ in range(CONNECTIONS)))
        return answered / (time.monotonic() - began)


async def _customer(http: aiohttp.ClientSession, base_url: str) -> str:
    async with http.post(f"{base_url}/v1/customer", json={"abn": "51824753556"}) as response:
        return f"{base_url}/v1/customer/{(await response.json())['data']['customerId']}"


def _get_customer(http: aiohttp.ClientSession, customer: str) -> Any:
    return http.get(customer)


def _submit(http: aiohttp.ClientSession, customer: str) -> Any:
    return http.post(f"{customer}/transactions", json=SUBMISSION)


SUBMISSION = {"accountNumber": "12345678", "transactions": plain_rows(ROWS, 1, UNTIL)}
