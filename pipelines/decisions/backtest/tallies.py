"""The tallies of a backtest, by name. Tallies of different customers add up exactly to those of all."""

from collections.abc import Iterable, Mapping

import polars as pl

from pipelines.decisions.backtest.causes import MISSING
from pipelines.decisions.evaluate import MONEY, OUTCOME
from pipelines.figures import tallies
from pipelines.figures.tallies import Tallies, Tally, counts

BEFORE, AFTER = "before", "after"
SIDE = pl.Enum([BEFORE, AFTER])
UP_TO = (0, *(size * 10**power for power in range(3, 7) for size in (1, 2, 5)), 10**15)  # AUD: bands of limits


_SIDE = {"as_of": pl.Date(), "side": SIDE}
_PAIR = {"as_of": pl.Date(), "before": OUTCOME, "after": OUTCOME}
_AMOUNTS = {
    **dict.fromkeys(("customers", "before_known", "after_known"), pl.Int64()),
    **dict.fromkeys(("before_amount", "after_amount"), MONEY),
}
TALLIES: Mapping[str, Tally] = {
    "transitions": Tally(pl.Schema(_PAIR), counts("customers", "limits_changed", "judged", "defaulted")),
    "limits": Tally(pl.Schema({**_PAIR, "product": pl.String()}), pl.Schema(_AMOUNTS)),
    "bands": Tally(
        pl.Schema({**_SIDE, "product": pl.String(), "up_to": pl.Int64()}),  # null: indeterminate
        pl.Schema({"customers": pl.Int64(), "amount": MONEY}),
    ),
    "steps": Tally(
        pl.Schema({**_SIDE, "place": pl.Int64(), "step": pl.String()}), counts("reached", "decided", "undecidable")
    ),
    "rules": Tally(
        pl.Schema({**_SIDE, "place": pl.Int64(), "step": pl.String(), "code": pl.String()}),
        counts("matched", "decisive", "undecidable"),
    ),
    "causes": Tally(  # `about`: the product whose limit is indeterminate; null: the verdict
        pl.Schema({**_SIDE, "about": pl.String(), **{n: MISSING[n] for n in MISSING if n != "customers"}}),
        counts("customers"),
    ),
    "changes": Tally(pl.Schema({"as_of": pl.Date(), "code": pl.String()}), counts("customers")),
}
OF_A_SIDE = ("steps", "rules", "causes")


def merge(parts: Iterable[Tallies]) -> Tallies:
    """Add up the tallies of all parts."""
    return tallies.merge(TALLIES, parts)


def as_tally(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame as the tally of that name."""
    return TALLIES[name].cast(frame).sort(*TALLIES[name].keys)


def empty_tally(name: str) -> pl.DataFrame:
    """Return an empty tally of one side."""
    return pl.DataFrame(schema={each: kind for each, kind in TALLIES[name].schema.items() if each not in _SIDE})
