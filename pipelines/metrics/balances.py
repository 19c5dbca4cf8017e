"""Balances of all cash accounts together, day by day, as steps from one day with rows to the next."""

from collections.abc import Sequence

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.definition import Balances, Days, Where
from pipelines.metrics.outcome import INSUFFICIENT_HISTORY, NO_BALANCES, SCALE, caused, fractions
from pipelines.metrics.running import WIDE, Between, Running, measured
from pipelines.metrics.windows import edges

_CHANGING = ("cents", "known", "unknown", "beyond")


def usual_money(definition: Balances) -> Between:
    """Return the money that a definition with `usual` compares balances with."""
    assert definition.usual is not None
    return measured(Where(external=True), definition.usual), *edges(definition.window)


def outcomes(definitions: Sequence[Balances], facts: Facts, customers: pl.DataFrame, running: Running) -> pl.LazyFrame:
    """Return FRACTION of all customers for the first metric, then for the second …

    Args:
        customers: their `windows.periods`.
        running: with the totals of `usual_money`.
    """
    windows = {window: f"days_{nth}" for nth, window in enumerate({each.window: None for each in definitions})}
    usual = _usual([each for each in definitions if each.usual], customers, running)
    parts = {}
    for nth, each in enumerate(definitions):
        inside = pl.col(windows[each.window])
        parts[f"top_{nth}"], parts[f"bottom_{nth}"] = _aggregate(each, inside.cast(WIDE))
    days = (
        steps(facts)
        .with_columns(days_within(window).alias(name) for window, name in windows.items())
        .join(usual, on="customer", how="left", validate="m:1", maintain_order="left")
    )
    figures = days.group_by("customer").agg(part.alias(name) for name, part in parts.items())
    everybody = pl.LazyFrame().select(customer=pl.int_range(customers.height))
    joined = everybody.join(figures, on="customer", how="left", validate="1:1", maintain_order="left")
    wide = joined.collect(engine="in-memory")
    top, bottom = (pl.concat(wide[f"{part}_{nth}"] for nth in range(len(definitions))) for part in ("top", "bottom"))
    unknown, one_day = pl.col("top").is_null(), pl.col("bottom") == 0
    cause = pl.coalesce(caused(NO_BALANCES, unknown), caused(INSUFFICIENT_HISTORY, one_day))
    return fractions(pl.LazyFrame({"top": top, "bottom": bottom}), pl.col("top"), pl.col("bottom"), cause)


def _usual(definitions: Sequence[Balances], customers: pl.DataFrame, running: Running) -> pl.LazyFrame:
    """Return `customer`, and for each window and side the cents moved and the days seen of it."""
    columns = {}
    for each in {_usual_names(each): each for each in definitions}.values():
        moved, seen = _usual_names(each)
        columns[moved] = running.between([usual_money(each)]).abs()
        columns[seen] = customers.select(days_seen(each.window).cast(WIDE)).to_series()
    return pl.LazyFrame({"customer": pl.int_range(customers.height, eager=True), **columns})


def _usual_names(definition: Balances) -> tuple[str, str]:
    name = f"{definition.usual}_{definition.window.days}_{definition.window.offset}"
    return f"moved_{name}", f"seen_{name}"


def days_seen(window: Days) -> pl.Expr:
    """Return how many days of the window the history covers (`days`)."""
    return (pl.col("days") - window.offset).clip(0, window.days)


def steps(facts: Facts) -> pl.LazyFrame:
    """Return one row per customer and day on which one of its cash accounts has rows, sorted.

    `customer` (its index among those with rows), `date`, `age` (days before the customer's last row), `days` (until the
    next such day, or through the last row), `total` (cents in all accounts at the day's end; null: not all are
    known), `known` (accounts whose balance is known) and `beyond` (those of them below zero or their limit).
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
            "known",
            "beyond",
            age=(pl.col("data_through") - pl.col("date")).dt.total_days(),
            days=(until - pl.col("date")).dt.total_days(),
            total=pl.when(pl.col("unknown") == 0).then("cents"),
        )
    )


def changes(facts: Facts) -> pl.LazyFrame:
    """Return `Facts.closings` as changes against the account's row before: `cents`, and 1, 0 or −1 for `known`,
    `unknown` and `beyond`.

    Accounts that never state a balance are left out. An account's first row is a change from nothing.
    """
    balance, limit = pl.col("closing_balance"), pl.col("credit_limit").fill_null(0)
    first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in BY_ACCOUNT)
    state = (
        facts.closings.lazy()
        .with_columns(first=first)
        .select(
            BY_CUSTOMER,
            "date",
            "first",
            account=pl.col("first").cum_sum(),
            cents=balance.to_physical().cast(WIDE).fill_null(0),
            known=balance.is_not_null().cast(pl.Int64),
            unknown=balance.is_null().cast(pl.Int64),
            beyond=(balance < -limit).fill_null(value=False).cast(pl.Int64),
        )
    )
    change = (pl.col(name) - pl.when("first").then(0).otherwise(pl.col(name).shift()) for name in _CHANGING)
    states_any = pl.col("known").max().over("account") > 0
    return state.with_columns(*change, states_any=states_any).filter("states_any")


def days_within(window: Days) -> pl.Expr:
    """Return how many days of a step lie within the window."""
    first = pl.min_horizontal("age", pl.lit(window.offset + window.days - 1))
    last = pl.max_horizontal(pl.col("age") - pl.col("days") + 1, pl.lit(window.offset))
    return (first - last + 1).clip(lower_bound=0)


def _aggregate(definition: Balances, days: pl.Expr) -> tuple[pl.Expr, pl.Expr]:  # noqa: PLR0911  one each
    """Return a fraction of whole numbers; its top is null where no balance is known.

    `days`: how many days of each step lie within the window.
    """
    total, hundred = pl.col("total"), pl.lit(100, WIDE)
    known, some, beyond = total.is_not_null() & (days > 0), (pl.col("known") > 0) & (days > 0), pl.col("beyond") > 0
    match definition.aggregate:
        case "mean":
            return pl.when(known.any()).then((total * days).sum()), 100 * days.filter(known).sum()
        case "min":
            return total.filter(known).min(), hundred
        case "max":
            return total.filter(known).max(), hundred
        case "last":
            return total.filter(known).min_by(pl.col("age").filter(known)), hundred
        case "days_below":
            assert definition.threshold is not None
            below = total * 10 ** (SCALE - 2) < pl.lit(int(definition.threshold * 10**SCALE), WIDE)
            return pl.when(known.any()).then(days.filter(below).sum()), pl.lit(1, WIDE)
        case "days_beyond_limit":
            return pl.when(some.any()).then(days.filter(beyond).sum()), pl.lit(1, WIDE)
        case "share_beyond_limit":
            return pl.when(some.any()).then(days.filter(beyond).sum()), days.filter(some).sum()
        case "share_short" | "longest_short" | "days_since_short":
            return _short(definition, known, days)
        case _:
            oldest = pl.min_horizontal("age", pl.lit(definition.window.offset + definition.window.days - 1))
            return _slope(total, known, days, oldest.cast(WIDE))


def _short(definition: Balances, known: pl.Expr, days: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    assert definition.threshold is not None
    moved, seen = (pl.col(name) for name in _usual_names(definition))
    enough = pl.lit(int(definition.threshold * 10**SCALE), WIDE) * moved
    short = known & (pl.col("total") * 10**SCALE * seen < enough)
    match definition.aggregate:
        case "share_short":
            return pl.when(known.any()).then(days.filter(short).sum()), days.filter(known).sum()
        case "longest_short":
            so_far = pl.when(short).then(days).otherwise(0).cum_sum()
            before = pl.when(~short).then(so_far).forward_fill().fill_null(0)
            return pl.when(known.any()).then((so_far - before).max()), pl.lit(1, WIDE)
        case _:
            last = pl.max_horizontal(pl.col("age") - pl.col("days") + 1, pl.lit(definition.window.offset))
            since = (last - definition.window.offset).filter(short).min()
            return pl.when(known.any()).then(pl.coalesce(since, days.filter(known).sum())), pl.lit(1, WIDE)


def _slope(total: pl.Expr, known: pl.Expr, days: pl.Expr, age: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the slope of a least-squares line through the known days, in AUD per 30 days.

    A step of n days from age a covers the ages a, a − 1 … a − n + 1. Their sum is n a − n (n − 1) / 2, the sum of
    their squares n a² − a n (n − 1) + n (n − 1) (2 n − 1) / 6.
    """
    ages = days * age - days * (days - 1) // 2
    squares = days * age * age - age * days * (days - 1) + days * (days - 1) * (2 * days - 1) // 6
    n, x = days.filter(known).sum(), ages.filter(known).sum()
    numerator = x * (total * days).sum() - n * (total * ages).sum()
    return pl.when(known.any()).then(30 * numerator), 100 * (n * squares.filter(known).sum() - x * x)
