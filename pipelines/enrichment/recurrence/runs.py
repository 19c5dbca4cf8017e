"""Runs in sorted arrays: the payments of a candidate, the days of a trial, the doubles of a slot."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.recurrence.dates import Flags, Integers


def starts_run(*keys: NDArray[Any]) -> Flags:
    """Return where a run starts: where any of the keys differs from the place before."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


@dataclass(frozen=True)
class Runs:
    """Runs of places, each from its start to the start of the next."""

    starts: Integers
    lengths: Integers

    @classmethod
    def starting(cls, starts: Flags) -> Self:
        """Build runs from flags that say at which places a run starts."""
        first = np.flatnonzero(starts)
        return cls(first, np.diff(first, append=len(starts)))

    @classmethod
    def of_lengths(cls, lengths: Integers) -> Self:
        return cls(np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def last(self) -> Integers:
        """The last place of each run."""
        return self.starts + self.lengths - 1

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._reduce(np.add, values)

    def min(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._reduce(np.minimum, values)

    def max(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._reduce(np.maximum, values)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat each run's value at each of its places."""
        return np.repeat(values, self.lengths)

    def numbers(self) -> Integers:
        """Return the number of the run at each place."""
        return self.spread(np.arange(len(self)))

    def places(self, chosen: Integers) -> Integers:
        """Return the places of the chosen runs, one run after the other."""
        return ranges(self.starts[chosen], self.lengths[chosen])

    def _reduce(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        return function.reduceat(values, self.starts) if len(self) else values[:0]


def ranges(starts: Integers, lengths: Integers) -> Integers:
    """Return the integer ranges with these starts and lengths, one after the other."""
    before = np.cumsum(lengths) - lengths
    places: Integers = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return places
