"""Reference numbers: `{n7}` in a text becomes seven random digits, `{a6}` six capitals and digits."""

from collections.abc import Mapping
from random import Random

_ALPHANUMERIC = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"


class Blanks(dict[str, object]):
    """The named fields of a text, with random ones made up on demand; for `str.format_map`."""

    def __init__(self, rng: Random, fields: Mapping[str, object] | None = None) -> None:
        super().__init__(fields or {})
        self._rng = rng

    def __missing__(self, key: str) -> str:
        kind, length = key[0], int(key[1:])
        if kind == "n":
            return digits(self._rng, length)
        return "".join(self._rng.choices(_ALPHANUMERIC, k=length))


def digits(rng: Random, length: int) -> str:
    """`length` random digits, the first of them not zero."""
    return str(rng.randrange(10 ** (length - 1), 10**length))


def filled(rng: Random, text: str) -> str:
    return text.format_map(Blanks(rng)) if "{" in text else text
