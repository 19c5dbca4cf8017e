"""Names that nobody knows, each with the known one that is most like it."""

from collections.abc import Iterable
from difflib import get_close_matches

LIKE = 0.7  # of the letters: our judgement


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return the name, and whether a known one may be meant."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(unknown.lower(), by_lower, n=1, cutoff=LIKE)
    return f"{unknown} (did you mean {by_lower[found[0]]}?)" if found else unknown
