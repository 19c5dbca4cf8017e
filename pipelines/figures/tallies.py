"""Tallies: counts and sums of some customers, which add up with those of other customers, exactly.

A portfolio is computed in slices, and only the tallies of each slice are kept. The order of adding doesn't matter, so
slices may be computed in any order and on any machine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Tally:
    """A frame of counts: the columns that they are counted by (none: one row in all), and those that are summed."""

    keys: pl.Schema
    sums: pl.Schema

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema({**self.keys, **self.sums})

    def cast(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with the tally's columns and types."""
        return frame.select(pl.col(name).cast(kind) for name, kind in self.schema.items())

    def add_up(self, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Add frames up, sorted by what they are counted by."""
        rows = pl.concat([pl.DataFrame(schema=self.schema), *map(self.cast, frames)])
        sums = [pl.col(name).sum() for name in self.sums]
        added = rows.group_by(*self.keys).agg(sums).sort(*self.keys) if self.keys else rows.select(sums)
        return self.cast(added)


Tallies = Mapping[str, pl.DataFrame]  # by the names under which a kind of work declares them


def counts(*names: str) -> pl.Schema:
    """Return the schema of counts with these names."""
    return pl.Schema(dict.fromkeys(names, pl.Int64()))


def merge(declared: Mapping[str, Tally], parts: Iterable[Tallies]) -> Tallies:
    """Add up the tallies of all parts. Without parts, they are empty, or one row of zeros if there are no `keys`."""
    listed = list(parts)
    return {name: tally.add_up(part[name] for part in listed) for name, tally in declared.items()}
