"""Measure evaluations of a policy over HTTP: response times and throughput."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import aiohttp

from benchmarks import ten_rules
from benchmarks.filling import fill
from benchmarks.service import Home, Service, new_home, running
from benchmarks.table import Row, milliseconds, percentile

TITLE = "Evaluating a policy"
CLIENTS = 8
SLUG = ten_rules.policy().slug


@dataclass(frozen=True)
class Scale:
    """The size of the measurements."""

    one_client: int  # customers, each requested once by one client
    many_clients: int  # other customers, requested by CLIENTS
    again: int  # the last of these, which are requested again
    rounds: int  # how often they are requested again
    rows_each: int


FULL = Scale(200, 800, 200, 4, 2_000)
ABOUT = (
    f"A policy of 10 rules over 15 metrics (benchmarks/ten_rules.yaml), customers of {FULL.rows_each:,} rows, clients "
    "on the same machine. Every evaluation is stored with its trace. A customer's figures are cached: first each "
    f"customer is evaluated once (figures not known yet), then {FULL.again} of them again (figures known)."
)


def measure(folder: Path, database: str, scale: Scale = FULL) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            customers = fill(store, home.client_id, 1 + scale.one_client + scale.many_clients, scale.rows_each)
        by_one, by_two = (_measure_with_processes(home, processes, customers, scale) for processes in (1, 2))
    return [
        Row(
            f"one client, figures not known yet, p50 of {len(by_one.cold_alone.each)}",
            by_one.cold_alone.at(0.5),
            "≤ 40 ms",
        ),
        Row("the same, p95", by_one.cold_alone.at(0.95)),
        Row(f"one client, figures known, p50 of {len(by_one.warm_alone.each)}", by_one.warm_alone.at(0.5)),
        Row("the same, p95", by_one.warm_alone.at(0.95)),
        *_rows_of_clients("one API process", by_one),
        *_rows_of_clients("two API processes", by_two),
    ]


def _measure_with_processes(home: Home, processes: int, customers: Sequence[UUID], scale: Scale) -> "Measured":
    with running(home, processes) as service:
        _publish(service)
        return asyncio.run(_measure(service, customers, scale))


def _rows_of_clients(servers: str, measured: "Measured") -> list[Row]:
    return [
        Row(f"{CLIENTS} clients of {servers}, figures not known yet", measured.cold.rate, "≥ 60/s"),
        Row(f"the same, p99 of {len(measured.cold.each)}", measured.cold.at(0.99), "≤ 300 ms"),
        Row(f"{CLIENTS} clients of {servers}, figures known", measured.warm.rate),
        Row(f"the same, p99 of {len(measured.warm.each)}", measured.warm.at(0.99)),
    ]


def _publish(service: Service) -> None:
    http, url = service.session(), f"{service.base_url}/v1/decision-policies/{SLUG}"
    saved = http.put(url, json=ten_rules.document(), timeout=60)
    saved.raise_for_status()
    http.post(f"{url}/publish", json={"version": saved.json()["data"]["version"]}, timeout=60).raise_for_status()


@dataclass(frozen=True)
class Answered:
    """The time that each evaluation took, and all of them together (s)."""

    each: Sequence[float]
    together: float

    @property
    def rate(self) -> str:
        return f"{len(self.each) / self.together:,.0f}/s"

    def at(self, share: float) -> str:
        return milliseconds(percentile(self.each, share))


@dataclass(frozen=True)
class Measured:
    """Times with one client and with CLIENTS; cold: figures not known yet; warm: figures known."""

    cold_alone: Answered
    cold: Answered
    warm_alone: Answered
    warm: Answered


async def _measure(service: Service, customers: Sequence[UUID], scale: Scale) -> Measured:
    first, *others = customers
    alone, many = others[: scale.one_client], others[scale.one_client :]
    known = list(many[-scale.again :]) * scale.rounds
    async with aiohttp.ClientSession(headers={"x-api-key": service.home.key}) as http:
        await _evaluate(http, service, [first] * 3, 1)  # warm up the process
        cold_alone = await _evaluate(http, service, alone, 1)
        cold = await _evaluate(http, service, many, CLIENTS)
        warm_alone = await _evaluate(http, service, known[: scale.one_client], 1)
        warm = await _evaluate(http, service, known, CLIENTS)
    return Measured(cold_alone, cold, warm_alone, warm)


async def _evaluate(http: aiohttp.ClientSession, service: Service, customers: Sequence[UUID], clients: int) -> Answered:
    waiting, took = iter(customers), list[float]()

    async def evaluate_waiting() -> None:
        for customer in waiting:
            took.append(await _time_evaluation(http, service, customer))

    began = time.perf_counter()
    await asyncio.gather(*(evaluate_waiting() for _ in range(clients)))
    return Answered(took, time.perf_counter() - began)


async def _time_evaluation(http: aiohttp.ClientSession, service: Service, customer: UUID) -> float:
    """Return the seconds of one evaluation. A response without a verdict ends the benchmark."""
    url = f"{service.base_url}/v1/customer/{customer}/decision-policies/{SLUG}/evaluate"
    began = time.perf_counter()
    async with http.post(url, json={"inputs": {"requestedAmount": int(ten_rules.REQUESTED)}}) as response:
        text = await response.text()
        if response.status != 200 or '"outcome"' not in text:
            raise RuntimeError(f"{response.status}: {text}")
    return time.perf_counter() - began
