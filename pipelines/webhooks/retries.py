"""Decide when a failed delivery is retried, and when a subscription whose deliveries keep failing is paused.

Both are options of a subscription. They are off by default, and a failure is then only recorded.
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
JITTER: Final = 0.1  # largest share added to a wait, so that deliveries that failed together are not retried together
LONGEST_STREAK: Final = 1_000  # largest limit that a subscription may set: failures in a row before it is paused

GONE: Final = 410  # the receiver says that its endpoint is gone for good
FINAL_ERRORS: Final = frozenset({"refused"})  # webhooks may not be sent to the URL's address: a retry changes nothing


def wait_after(tries: int, chance: float) -> timedelta:
    """Return how long to wait for the next try after `tries` ≥ 1 failed ones. `chance` in [0, 1) sets the jitter."""
    return SCHEDULE[tries - 1] * (1 + JITTER * chance)


def longest_wait(tries: int) -> timedelta:
    """Return the longest wait that `wait_after` returns. If a stored wait is longer, the clock was set back."""
    return SCHEDULE[tries - 1] * (1 + JITTER)


def should_retry(tries: int, max_retries: int, status_code: int | None, error: str | None) -> bool:
    """Return whether to retry a delivery that has failed `tries` times."""
    return tries <= max_retries and status_code != GONE and error not in FINAL_ERRORS


def update_streak(streak: int, successes: Iterable[bool], pause_after: int | None) -> tuple[int, int]:
    """Return the streak of failures after these attempts, and the longest streak if it pauses the subscription, else 0.

    Args:
        streak: failures in a row before.
        successes: whether each attempt succeeded, in order.
        pause_after: failures in a row that pause the subscription; None for never.
    """
    most = 0
    for succeeded in successes:
        streak = 0 if succeeded else streak + 1
        most = max(most, streak)
    return streak, 0 if pause_after is None or most < pause_after else most
