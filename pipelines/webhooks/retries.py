"""When a failed delivery is tried again, and when a receiver that keeps failing is left alone.

Both are a subscription's choice and off by default: then a failure is recorded, and that is all.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

# Source: the Standard Webhooks specification, "Deliverability and reliability"; its last step is repeated.
SCHEDULE: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
    timedelta(hours=24),
)
MAX_RETRIES: Final = len(SCHEDULE)
JITTER: Final = 0.1  # share of a wait that is added at most, so that what failed together doesn't come back together
LONGEST_STREAK: Final = 1_000  # failures in a row that a subscription may allow itself before it is paused

GONE: Final = 410  # the receiver says that it won't come back
FINAL_ERRORS: Final = frozenset({"refused"})  # where the URL leads, webhooks may not go: asking again changes nothing


def wait_after(tries: int, chance: float) -> timedelta:
    """How long to wait before the next try, after `tries` ≥ 1 failed ones. `chance` in [0, 1) sets the jitter."""
    return SCHEDULE[tries - 1] * (1 + JITTER * chance)


def longest_wait(tries: int) -> timedelta:
    """The longest that `wait_after` may say: who waits longer has had its clock set back."""
    return SCHEDULE[tries - 1] * (1 + JITTER)


def should_retry(tries: int, max_retries: int, status_code: int | None, error: str | None) -> bool:
    """Whether a delivery that has failed `tries` times is tried again."""
    return tries <= max_retries and status_code != GONE and error not in FINAL_ERRORS


def streak_after(streak: int, successes: Iterable[bool], pause_after: int | None) -> tuple[int, int]:
    """The failures in a row after these attempts, in their order; and the most of them, if they pause it, else 0."""
    most = 0
    for succeeded in successes:
        streak = 0 if succeeded else streak + 1
        most = max(most, streak)
    return streak, 0 if pause_after is None or most < pause_after else most
