"""Caching for frames that several tables of the report read."""

from collections.abc import Callable
from functools import wraps

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.vocabulary.plans import collect


def cached(compute: Callable[[Facts], pl.LazyFrame]) -> Callable[[Facts], pl.LazyFrame]:
    """Return a function that collects the frame on the first call and reuses it (`Facts.cached`)."""

    def collected(facts: Facts) -> pl.DataFrame:
        return compute(facts).pipe(collect)

    @wraps(compute)
    def read(facts: Facts) -> pl.LazyFrame:
        return facts.cached(collected).lazy()

    return read
