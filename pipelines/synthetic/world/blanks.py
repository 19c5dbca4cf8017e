"""Fill texts in: `{n7}` becomes seven random digits, `{a6}` six capitals and digits, `{t4}` a time."""

from collections.abc import Mapping
from random import Random

_ALPHANUMERIC = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"


class Blanks(dict[str, object]):
    """The named fields of a text for `str.format_map`. Random ones are made up when they are asked for."""

    def __init__(self, rng: Random, fields: Mapping[str, object] | None = None) -> None:
        super().__init__(fields or {})
        self._rng = rng

    def __missing__(self, key: str) -> str:
        kind, length = key[0], int(key[1:])
        if kind == "n":
            return digits(self._rng, length)
        if kind == "t":
            return f"{self._rng.randrange(7, 22):02}:{self._rng.randrange(60):02}"
        return "".join(self._rng.choices(_ALPHANUMERIC, k=length))


def digits(rng: Random, length: int) -> str:
    """Return `length` random digits, the first of them not zero."""
    least = 10 ** (length - 1)
    if length > 15:  # more than the 53 bits of one draw
        return str(rng.randrange(least, 10 * least))
    return str(least + int(rng.random() * 9 * least))


def fill_in(rng: Random, text: str) -> str:
    return text.format_map(Blanks(rng)) if "{" in text else text
