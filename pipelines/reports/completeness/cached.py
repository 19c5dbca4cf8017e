"""What several tables of the report read is worked out once for the same facts."""

from collections.abc import Callable
from functools import wraps

import polars as pl

from pipelines.figures.facts import Facts


def cached(compute: Callable[[Facts], pl.LazyFrame]) -> Callable[[Facts], pl.LazyFrame]:
    """The same frame, collected when it is first asked for (`Facts.once`)."""

    def collected(facts: Facts) -> pl.DataFrame:
        return compute(facts).collect(engine="in-memory")

    @wraps(compute)
    def of(facts: Facts) -> pl.LazyFrame:
        return facts.cached(collected).lazy()

    return of
