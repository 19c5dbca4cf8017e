"""Caches in memory: bounded, and correct with several threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from api.core.recent import Recent


def list_made_keys(cached: Recent[int, str], *keys: int) -> list[int]:
    """Return the keys whose value had to be made."""
    made: list[int] = []

    def make(key: int) -> str:
        made.append(key)
        return f"value of {key}"

    for key in keys:
        assert cached.get(key, partial(make, key)) == f"value of {key}"
    return made


def test_recently_used_values_are_cached_and_the_oldest_is_dropped() -> None:
    cached = Recent[int, str](2)
    assert list_made_keys(cached, 1, 2, 1, 1) == [1, 2]
    assert list_made_keys(cached, 3, 1) == [3]
    assert list_made_keys(cached, 2) == [2]


def test_concurrent_callers_each_get_the_right_value() -> None:
    cached = Recent[int, str](5)
    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(list_made_keys, cached, *(number % 9 for number in range(500))) for _ in range(8)]:
            each.result()
    assert len(list_made_keys(cached, *range(9))) >= 4  # no more than five are kept


def test_a_value_that_failed_is_made_again() -> None:
    cached = Recent[int, str](2)

    def fails() -> str:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        cached.get(1, fails)
    assert list_made_keys(cached, 1) == [1]
