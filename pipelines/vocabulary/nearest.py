"""Suggest the known name that is most similar to an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches

LIKE = 0.7  # least similarity (difflib's ratio): our judgement


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the name, followed by a similar known one if there is any."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(unknown.lower(), by_lower, n=1, cutoff=LIKE)
    return f"{unknown} (did you mean {by_lower[found[0]]}?)" if found else unknown
