"""What is counted of a portfolio: TALLIES by name. Those of some customers and of others add up to those of all,
exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pipelines.decisions.backtest.causes import MISSING
from pipelines.decisions.evaluate import MONEY, OUTCOME

BEFORE, AFTER = "before", "after"
SIDE = pl.Enum([BEFORE, AFTER])
UP_TO = (0, *(size * 10**power for power in range(3, 7) for size in (1, 2, 5)), 10**15)  # AUD: bands of limits


@dataclass(frozen=True)
class Tally:
    """Counts that add up: what they are counted by, and what is summed."""

    by: pl.Schema
    sums: pl.Schema

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema({**self.by, **self.sums})


def _counts(*names: str) -> pl.Schema:
    return pl.Schema(dict.fromkeys(names, pl.Int64()))


_SIDE = {"as_of": pl.Date(), "side": SIDE}
_PAIR = {"as_of": pl.Date(), "before": OUTCOME, "after": OUTCOME}
_AMOUNTS = {
    **dict.fromkeys(("customers", "before_known", "after_known"), pl.Int64()),
    **dict.fromkeys(("before_amount", "after_amount"), MONEY),
}
TALLIES: Mapping[str, Tally] = {
    "transitions": Tally(pl.Schema(_PAIR), _counts("customers", "limits_changed", "judged", "defaulted")),
    "limits": Tally(pl.Schema({**_PAIR, "product": pl.String()}), pl.Schema(_AMOUNTS)),
    "bands": Tally(
        pl.Schema({**_SIDE, "product": pl.String(), "up_to": pl.Int64()}),  # null: indeterminate
        pl.Schema({"customers": pl.Int64(), "amount": MONEY}),
    ),
    "steps": Tally(
        pl.Schema({**_SIDE, "place": pl.Int64(), "step": pl.String()}), _counts("reached", "decided", "undecidable")
    ),
    "rules": Tally(
        pl.Schema({**_SIDE, "place": pl.Int64(), "step": pl.String(), "code": pl.String()}),
        _counts("matched", "decisive", "undecidable"),
    ),
    "causes": Tally(  # `about`: the product whose limit could not be told; null: the verdict
        pl.Schema({**_SIDE, "about": pl.String(), **{n: MISSING[n] for n in MISSING if n != "customers"}}),
        _counts("customers"),
    ),
    "changes": Tally(pl.Schema({"as_of": pl.Date(), "code": pl.String()}), _counts("customers")),
}
OF_A_SIDE = ("steps", "rules", "causes")

Tallies = Mapping[str, pl.DataFrame]
NO_TALLIES: Tallies = {name: pl.DataFrame(schema=tally.schema) for name, tally in TALLIES.items()}


def merged(parts: Iterable[Tallies]) -> Tallies:
    """The tallies of all parts together."""
    frames: Sequence[Tallies] = [NO_TALLIES, *parts]
    return {name: _added([part[name] for part in frames], tally) for name, tally in TALLIES.items()}


def _added(frames: Sequence[pl.DataFrame], tally: Tally) -> pl.DataFrame:
    together = pl.concat(frames).group_by(*tally.by).agg(pl.col(name).sum() for name in tally.sums)
    return together.select(pl.col(name).cast(kind) for name, kind in tally.schema.items()).sort(*tally.by)


def shaped(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as the tally of that name."""
    schema = TALLIES[name].schema
    return frame.select(pl.col(each).cast(kind) for each, kind in schema.items()).sort(*TALLIES[name].by)


def bare(name: str) -> pl.DataFrame:
    """An empty tally of one side."""
    return pl.DataFrame(schema={each: kind for each, kind in TALLIES[name].schema.items() if each not in _SIDE})
