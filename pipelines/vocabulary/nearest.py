"""Suggest the known name that is most similar to an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches

MIN_SIMILARITY = 0.7  # difflib's ratio; our judgement


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the unknown name, followed by the most similar known one if any is similar enough."""
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(unknown.lower(), by_lower, n=1, cutoff=MIN_SIMILARITY)
    return f"{unknown} (did you mean {by_lower[near[0]]}?)" if near else unknown
