"""What several tables of the report read is worked out once for the same facts."""

from collections.abc import Callable
from functools import wraps
from weakref import WeakKeyDictionary

import polars as pl

from pipelines.figures.facts import Facts


def once(compute: Callable[[Facts], pl.LazyFrame]) -> Callable[[Facts], pl.LazyFrame]:
    """The same frame, collected when it is first asked for and kept for as long as the facts are."""
    kept: WeakKeyDictionary[Facts, pl.DataFrame] = WeakKeyDictionary()

    @wraps(compute)
    def of(facts: Facts) -> pl.LazyFrame:
        if facts not in kept:
            kept[facts] = compute(facts).collect(engine="in-memory")
        return kept[facts].lazy()

    return of
