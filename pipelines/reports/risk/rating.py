"""Ratings: the worst of the value's own rating and the ceilings by evidence and by events; and the interval.

A ceiling is the best rating that is still possible. Where one binds, the value rises to the lowest value of that
rating, because a value of 1 % beside a rating of D would be read as a probability. A value that was calibrated on the
client's outcomes is not raised.

The interval is about missing evidence alone: its high end is the value if all of that evidence were bad, its low end
the value if all of it were good. It says nothing about chance.
"""

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.scorecards.scorecard import COVERAGE, POINTS, VALUE, Link, Scorecard
from pipelines.vocabulary.plans import AS_WRITTEN

# A rating and the highest value that still has it. Our judgement: the lines lie where lenders to small businesses
# commonly stop offering their best terms, stop lending unsecured, require security, and stop lending.
RATINGS = (("A", Decimal("0.02")), ("B", Decimal("0.05")), ("C", Decimal("0.12")), ("D", Decimal("0.30")))
WORST = "E"
LETTERS = (*(name for name, _ in RATINGS), WORST)
_STEP = Decimal("0.0001")  # of values

# The best rating that is possible if at least this share of the expected points is covered. Our judgement: if more than
# about a seventh of a business is unseen, nobody can say that it is among the best; if a third is unseen (one account
# of three), the missing part may be the worse one; and a rating from less than half of the evidence is a guess.
EVIDENCE_CEILINGS = (
    ("A", Decimal("0.85")),
    ("B", Decimal("0.75")),
    ("C", Decimal("0.67")),
    ("D", Decimal("0.50")),
)
EVIDENCE = "evidence"  # in `limitedBy`


def rating(value: pl.Expr) -> pl.Expr:
    """Return the rating of a value, before any ceiling."""
    reached = (pl.when(value <= pl.lit(limit, VALUE)).then(pl.lit(name)) for name, limit in RATINGS)
    return pl.coalesce(*reached, pl.lit(WORST))


@lru_cache(maxsize=100)
def least_points(link: Link) -> tuple[tuple[str, Decimal], ...]:
    """Return the fewest points that give each rating but the worst, in steps of a hundredth."""
    ends = (int(100 * (link.even + sign * 100 * link.doubling)) for sign in (-1, 1))
    every = range(*ends)
    return tuple((name, _points(every[_find_fewest_points(every, limit, link)])) for name, limit in RATINGS)


def _find_fewest_points(every: range, limit: Decimal, link: Link) -> int:
    """Return the place of the fewest points, in hundredths, whose value is not above the limit."""
    return bisect_left(every, -limit, key=lambda hundredths: -link.value(_points(hundredths)))


def _points(hundredths: int) -> Decimal:
    return Decimal(hundredths).scaleb(-2)


def rating_of_points(points: pl.Expr, link: Link) -> pl.Expr:
    """Return the rating of points without computing their values, which takes long for many different points."""
    reached = (pl.when(points >= pl.lit(least, POINTS)).then(pl.lit(name)) for name, least in least_points(link))
    return pl.coalesce(*reached, pl.lit(WORST))


def worst(*ratings: pl.Expr) -> pl.Expr:
    """Return the worst of these ratings; null ones don't count. Letters sort from best to worst."""
    return pl.max_horizontal(*ratings)


def evidence_ceiling() -> pl.Expr:
    """Return the best rating that `covered` allows."""
    reached = (
        pl.when(pl.col("covered") >= pl.lit(least, COVERAGE)).then(pl.lit(name)) for name, least in EVIDENCE_CEILINGS
    )
    return pl.coalesce(*reached, pl.lit(WORST))


_LOWEST_VALUES = {name: limit + _STEP for name, (_, limit) in zip(LETTERS[1:], RATINGS, strict=True)}


def lowest_value(letter: str) -> Decimal:
    """Return the lowest value that has this rating; 0 for the best."""
    return _LOWEST_VALUES.get(letter, Decimal(0))


def lowest_value_expr(letter: pl.Expr) -> pl.Expr:
    """Return `lowest_value` of a column of letters."""
    return letter.replace_strict(_LOWEST_VALUES, default=Decimal(0), return_dtype=VALUE)


def add_rating(scored: pl.DataFrame, scorecard: Scorecard, ceilings: pl.DataFrame) -> pl.DataFrame:
    """Add `rating`, `ceiling` (the worse one), `limitedBy` and `valueBeforeCeilings`. A ceiling that binds raises
    `value`, unless the client's outcomes calibrated it.

    Args:
        scored: `customer_number`, `value`, `covered`.
        ceilings: from `risk_models.events.ceilings`.
    """
    of_events = ceilings.lazy().rename({"ceiling": "event_ceiling"})
    known = scored.lazy().join(of_events, on=BY_CUSTOMER, how="left", validate="1:1", maintain_order="left")
    rated = known.with_columns(ceiling=_ceiling()).with_columns(
        _rating_columns(lifts=scorecard.calibration != "client")
    )
    return rated.collect(engine="in-memory", optimizations=AS_WRITTEN)


@cache
def _ceiling() -> pl.Expr:
    return worst(evidence_ceiling(), pl.col("event_ceiling"))


@cache
def _rating_columns(*, lifts: bool) -> Sequence[pl.Expr]:
    """Return the columns that `add_rating` adds; `lifts`: a ceiling raises the value."""
    by_evidence, by_event = evidence_ceiling(), pl.col("event_ceiling")
    band, best = rating(pl.col("value")), pl.col("ceiling")
    binds = (best > band).fill_null(value=False)
    evidence_binds, event_binds = binds & (by_evidence == best), binds & by_event.eq_missing(best)
    codes = pl.concat_list(
        pl.when(evidence_binds).then([EVIDENCE]).otherwise([]), pl.when(event_binds).then("limited_by").otherwise([])
    )
    lifted = pl.when(binds).then(pl.max_horizontal("value", lowest_value_expr(best))).otherwise("value").alias("value")
    return (
        worst(band, best).alias("rating"),
        codes.cast(pl.List(pl.String())).alias("limitedBy"),
        pl.col("value").alias("valueBeforeCeilings"),
        lifted if lifts else pl.col("value"),
    )


def unknown_points(covered: Decimal, scorecard: Scorecard) -> Decimal:
    """Return the points that unknown evidence adds if all of it is good."""
    return (scorecard.max_points * (1 - covered)).quantize(Decimal("0.01"))


def add_interval(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Add `low` and `high` to frames with `points`, `covered`, `value` and `event_ceiling`.

    Unknown evidence earns nothing in the value, so the value is `high`; in `low` all of it earns the maximum. With all
    evidence, a ceiling by evidence would no longer bind, but one by an event would.
    """
    shares = scored["covered"].unique()
    gains = pl.Series([unknown_points(share, scorecard) for share in shares], dtype=POINTS)
    gain = scored["covered"].replace_strict(shares, gains, return_dtype=POINTS)
    lasting = (
        lowest_value_expr(pl.col("event_ceiling").fill_null("A"))
        if scorecard.calibration != "client"
        else pl.lit(0, VALUE)
    )
    at_best = pl.lit(scorecard.link.values(scored["points"] + gain))
    return scored.with_columns(low=pl.min_horizontal("value", pl.max_horizontal(at_best, lasting)), high="value")
