"""How Polars optimises a query. For small frames, a full optimisation takes longer than it saves."""

import polars as pl

AS_WRITTEN = pl.QueryOptFlags.none()
"""For a chain of steps that reads every column and row it is given: there is nothing to optimise."""

PUSHDOWNS = pl.QueryOptFlags.none().update(predicate_pushdown=True, projection_pushdown=True)
"""For small plans over wide frames: only rows and columns that are not needed are left out early."""

SHARING = pl.QueryOptFlags.none().update(predicate_pushdown=True, projection_pushdown=True, comm_subexpr_elim=True)
"""For plans whose expressions have large parts in common: each part is computed once."""


def collect(plan: pl.LazyFrame) -> pl.DataFrame:
    """Compute a plan in memory with PUSHDOWNS.

    A full optimisation of all plans of a customer's reports takes longer than the steps that it finds to be shared. It
    is worth its time only where a plan repeats expensive steps over many rows.
    """
    return plan.collect(engine="in-memory", optimizations=PUSHDOWNS)


LARGE = 50_000  # rows; with fewer, the streaming engine takes longer to start than it saves (our judgement)


def collect_groups(plan: pl.LazyFrame, rows: int) -> pl.DataFrame:
    """Compute a plan that groups `rows` rows by several keys and then sorts the result.

    The streaming engine groups many rows in half the time, but keeps no order.
    """
    return plan.collect(engine="streaming" if rows >= LARGE else "in-memory", optimizations=PUSHDOWNS)
