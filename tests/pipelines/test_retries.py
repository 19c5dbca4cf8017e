"""When a failed delivery is tried again, and when a run of failures begins and ends."""

from datetime import timedelta

import pytest

from pipelines.webhooks.retries import MAX_RETRIES, longest_wait, should_retry, update_streak, wait_after


def test_the_schedule_is_the_documented_one() -> None:
    waits = [wait_after(tries, chance=0).total_seconds() for tries in range(1, MAX_RETRIES + 1)]
    hour = 3_600
    assert waits == [5, 300, 1_800, *(hours * hour for hours in (2, 5, 10, 14, 20, 24, 24))]


@pytest.mark.parametrize("tries", range(1, MAX_RETRIES + 1))
def test_jitter_lengthens_a_wait_by_a_tenth_at_most(tries: int) -> None:
    assert wait_after(tries, 0) < wait_after(tries, 0.5) < wait_after(tries, 0.999) < longest_wait(tries)
    assert longest_wait(tries) == wait_after(tries, 0) * 1.1


@pytest.mark.parametrize(
    ("tries", "max_retries", "status_code", "error", "again"),
    [
        (1, 0, 500, None, False),
        (1, 1, 500, None, True),
        (2, 1, 500, None, False),
        (1, 3, 404, None, True),
        (1, 3, 429, None, True),
        (1, 3, 410, None, False),
        (1, 3, None, "timeout", True),
        (1, 3, None, "secret", True),
        (1, 3, None, "refused", False),
    ],
)
def test_which_deliveries_are_retried(
    tries: int, max_retries: int, status_code: int | None, error: str | None, again: bool
) -> None:
    assert should_retry(tries, max_retries, status_code, error) is again


@pytest.mark.parametrize(
    ("streak", "successes", "pause_after", "after"),
    [
        (0, [], None, (0, 0)),
        (3, [False, False], None, (5, 0)),
        (3, [False, False], 5, (5, 5)),
        (3, [False], 5, (4, 0)),
        (3, [True, False], 5, (1, 0)),
        (3, [False, False, True], 5, (0, 5)),
        (3, [False, False, False, True, False], 5, (1, 6)),
        (9, [False], 5, (10, 10)),
    ],
)
def test_a_streak_grows_with_failures_and_ends_with_a_success(
    streak: int, successes: list[bool], pause_after: int | None, after: tuple[int, int]
) -> None:
    assert update_streak(streak, successes, pause_after) == after


def test_no_retry_waits_longer_than_a_day_and_a_tenth() -> None:
    assert max(longest_wait(tries) for tries in range(1, MAX_RETRIES + 1)) == timedelta(hours=26.4)
