"""Run one measurement in a fresh process, so that the memory and caches of others don't count."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar, TypeVarTuple

import psutil

from benchmarks.refresh import peak_rss

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class _ThisProcess:
    @property
    def processes(self) -> Sequence[psutil.Process]:
        return [psutil.Process()]


def measure_alone(measurement: Callable[[*Arguments], Result], *arguments: *Arguments) -> tuple[Result, int]:
    """Return the result of a measurement in a fresh process, and the peak memory of that process (RSS, bytes)."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_watch_memory, partial(measurement, *arguments)).result()


def _watch_memory(measurement: Callable[[], Result]) -> tuple[Result, int]:
    with peak_rss(_ThisProcess()) as samples:
        result = measurement()
        samples.append(int(psutil.Process().memory_info().rss))
    return result, max(samples)
