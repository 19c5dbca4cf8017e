"""Balances of all cash accounts together, day by day, as steps from one day with rows to the next.

A balance that is not stated is derived (`figures.accounts.derive_unknown`), so that no figure can be made better by
leaving out the balances of bad days. Accounts that never state one are left out.
"""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.definition import Balances, Days, Where
from pipelines.metrics.outcome import INSUFFICIENT_HISTORY, NO_BALANCES, SCALE, cause_where, fractions
from pipelines.metrics.running import WIDE, Between, Layout, Running, sum_of_measure
from pipelines.metrics.windows import edges
from pipelines.vocabulary.plans import AS_WRITTEN

_CHANGING = ("cents", "beyond")


def usual_money(definition: Balances) -> Between:
    """Return the money that a definition with `usual` compares balances with."""
    assert definition.usual is not None
    return sum_of_measure(Where(external=True), definition.usual), *edges(definition.window)


Outcome = Callable[[Facts, pl.DataFrame, Running], pl.LazyFrame]


def outcomes(definitions: Sequence[Balances], layout: Layout) -> Outcome:
    """Return a function that computes FRACTION of all customers for the first metric, then for the second …

    Its arguments: the facts, the customers' `windows.periods`, and `Running` with the totals of `usual_money`.
    """
    windows = {window: f"days_{nth}" for nth, window in enumerate({each.window: None for each in definitions})}
    inside = [days_within(window).cast(WIDE).alias(name) for window, name in windows.items()]
    usual = _usual_sums([each for each in definitions if each.usual], layout)
    marked = {each: f"mark_{nth}" for nth, each in enumerate(definitions) if each.aggregate in _MARKS}
    marks = [_MARKS[each.aggregate](each, windows[each.window]).alias(name) for each, name in marked.items()]
    figures = [_figure(each, windows[each.window], pl.col(marked.get(each, ""))) for each in definitions]
    # Many metrics share what they are divided by and whether anything is known: each is computed once.
    shared = {part.meta.serialize(): part for _, *others in figures for part in others}
    names = {key: f"shared_{nth}" for nth, key in enumerate(shared)}
    parts = [*(part.alias(names[key]) for key, part in shared.items())]
    parts += [top.alias(f"top_{nth}") for nth, (top, *_) in enumerate(figures)]
    stacks = {
        "top": [f"top_{nth}" for nth in range(len(figures))],
        "bottom": [names[bottom.meta.serialize()] for _, bottom, _ in figures],
        "seen": [names[seen.meta.serialize()] for *_, seen in figures],
    }
    top, bottom = pl.when("seen").then("top"), pl.col("bottom")
    cause = pl.coalesce(cause_where(NO_BALANCES, top.is_null()), cause_where(INSUFFICIENT_HISTORY, bottom == 0))

    def compute(facts: Facts, customers: pl.DataFrame, running: Running) -> pl.LazyFrame:
        days = steps(facts).with_columns(inside)
        read = usual(customers, running)
        days = days.join(read, on="customer", how="left", validate="m:1", maintain_order="left")
        by_customer = days.with_columns(marks).group_by("customer").agg(parts)
        everybody = pl.LazyFrame().select(customer=pl.int_range(customers.height))
        joined = everybody.join(by_customer, on="customer", how="left", validate="1:1", maintain_order="left")
        wide = joined.collect(engine="in-memory", optimizations=AS_WRITTEN)
        stacked = {name: pl.concat(wide[column] for column in columns) for name, columns in stacks.items()}
        return fractions(pl.LazyFrame(stacked), top, bottom, cause)

    return compute


def _usual_sums(definitions: Sequence[Balances], layout: Layout) -> Callable[[pl.DataFrame, Running], pl.LazyFrame]:
    """Return a function that gives `customer`, and for each window and side the cents moved and the days seen."""
    named = {_usual_names(each): each for each in definitions}
    spans = layout.spans([usual_money(each) for each in named.values()])
    days = [days_seen(each.window).cast(WIDE).alias(seen) for (_, seen), each in named.items()]

    def compute(customers: pl.DataFrame, running: Running) -> pl.LazyFrame:
        height, sums = customers.height, running.sums_between(spans).abs()
        moved = {name: sums.slice(nth * height, height) for nth, (name, _) in enumerate(named)}
        return customers.lazy().select(*days, **moved, customer=pl.int_range(pl.len()))

    return compute


def _usual_names(definition: Balances) -> tuple[str, str]:
    name = f"{definition.usual}_{definition.window.days}_{definition.window.offset}"
    return f"moved_{name}", f"seen_{name}"


def days_seen(window: Days) -> pl.Expr:
    """Return how many days of the window the history covers (`days`)."""
    return (pl.col("days") - window.offset).clip(0, window.days)


def steps(facts: Facts) -> pl.LazyFrame:
    """Return one row per customer and day on which one of its cash accounts has rows, sorted.

    `customer` (its index among those with rows), `date`, `age` (days before the customer's last row), `days` (until the
    next such day, or through the last row), `total` (cents in all accounts at the day's end) and `beyond` (accounts
    below zero or their limit).
    """
    until = pl.coalesce(pl.col("date").shift(-1).over("customer"), pl.col("data_through") + pl.duration(days=1))
    customers = facts.history.lazy().with_row_index("customer").with_columns(pl.col("customer").cast(pl.Int64))
    return (
        changes(facts)
        .group_by(BY_CUSTOMER, "date")
        .agg(pl.col(_CHANGING).sum())
        .join(customers, on=BY_CUSTOMER, validate="m:1")
        .sort("customer", "date")
        .with_columns(pl.col(_CHANGING).cum_sum().over("customer"))
        .select(
            "customer",
            "date",
            "beyond",
            age=(pl.col("data_through") - pl.col("date")).dt.total_days(),
            days=(until - pl.col("date")).dt.total_days(),
            total="cents",
        )
    )


def changes(facts: Facts) -> pl.LazyFrame:
    """Return `Facts.derived_closings` as changes against the account's row before.

    `cents`, and 1, 0 or −1 for `beyond`. An account's first row is a change from nothing.
    """
    balance, limit = pl.col("closing_balance"), pl.col("credit_limit").fill_null(0)
    first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in BY_ACCOUNT)
    state = (
        facts.derived_closings.lazy()
        .with_columns(first=first)
        .select(
            BY_CUSTOMER,
            "date",
            "first",
            cents=balance.to_physical().cast(WIDE),
            beyond=(balance < -limit).cast(pl.Int64),
        )
    )
    return state.with_columns(
        pl.col(name) - pl.when("first").then(0).otherwise(pl.col(name).shift()) for name in _CHANGING
    )


def days_within(window: Days) -> pl.Expr:
    """Return how many days of a step lie within the window."""
    first = pl.min_horizontal("age", pl.lit(window.offset + window.days - 1))
    last = pl.max_horizontal(pl.col("age") - pl.col("days") + 1, pl.lit(window.offset))
    return (first - last + 1).clip(lower_bound=0)


def _is_below_threshold(definition: Balances, _: str) -> pl.Expr:
    assert definition.threshold is not None
    return pl.col("total") * 10 ** (SCALE - 2) < pl.lit(int(definition.threshold * 10**SCALE), WIDE)


def _is_below_usual(definition: Balances, days: str) -> pl.Expr:
    assert definition.threshold is not None
    moved, seen = (pl.col(name) for name in _usual_names(definition))
    enough = pl.lit(int(definition.threshold * 10**SCALE), WIDE) * moved
    return (pl.col(days) > 0) & (pl.col("total") * 10**SCALE * seen < enough)


_MARKS: Mapping[str, Callable[[Balances, str], pl.Expr]] = {
    "days_below": _is_below_threshold,
    "share_short": _is_below_usual,
    "longest_short": _is_below_usual,
    "days_since_short": _is_below_usual,
}


def _figure(definition: Balances, window: str, mark: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:  # noqa: PLR0911  one return per case
    """Return a fraction of whole numbers, and whether a balance is known.

    Args:
        window: the column that says how many days of each step lie within the window.
        mark: the days that `_MARKS` marks.
    """
    total, days, beyond = pl.col("total"), pl.col(window), pl.col("beyond") > 0
    known = days > 0
    one, hundred, known_days = pl.lit(1, WIDE), pl.lit(100, WIDE), days.sum()
    match definition.aggregate:
        case "mean":
            return (total * days).sum(), 100 * known_days, known.any()
        case "min":
            return total.filter(known).min(), hundred, known.any()
        case "max":
            return total.filter(known).max(), hundred, known.any()
        case "last":
            return total.filter(known).min_by(pl.col("age").filter(known)), hundred, known.any()
        case "days_beyond_limit":
            return days.filter(beyond).sum(), one, known.any()
        case "share_beyond_limit":
            return days.filter(beyond).sum(), known_days, known.any()
        case "days_below":
            return days.filter(mark).sum(), one, known.any()
        case "share_short":
            return days.filter(mark).sum(), known_days, known.any()
        case "longest_short":
            so_far = pl.when(mark).then(days).otherwise(0).cum_sum()
            before = pl.when(~mark).then(so_far).forward_fill().fill_null(0)
            return (so_far - before).max(), one, known.any()
        case "days_since_short":
            last = pl.max_horizontal(pl.col("age") - pl.col("days") + 1, pl.lit(definition.window.offset))
            since = (last - definition.window.offset).filter(mark).min()
            return pl.coalesce(since, known_days), one, known.any()
        case _:
            oldest = pl.min_horizontal("age", pl.lit(definition.window.offset + definition.window.days - 1))
            return *_slope(total, days, oldest.cast(WIDE)), known.any()


def _slope(total: pl.Expr, days: pl.Expr, age: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the slope of a least-squares line through the known days, in AUD per 30 days.

    A step of n days from age a covers the ages a, a − 1 … a − n + 1. Their sum is n a − n (n − 1) / 2, the sum of
    their squares n a² − a n (n − 1) + n (n − 1) (2 n − 1) / 6.
    """
    ages = days * age - days * (days - 1) // 2
    squares = days * age * age - age * days * (days - 1) + days * (days - 1) * (2 * days - 1) // 6
    n, x = days.sum(), ages.sum()
    numerator = x * (total * days).sum() - n * (total * ages).sum()
    return 30 * numerator, 100 * (n * squares.sum() - x * x)
