"""Principal reasons: the four that cost a customer most, each either bad or not verified, and never both.

What limits the rating comes first, then drivers by the points that they lost. A driver loses points by its reading and
by missing evidence. It has one reason: `adverse` if the reading cost more, else `unverified`. What could not be
verified is not bad: the applicant can supply the evidence. More than four reasons are not likely to help anybody
(commentary to US Regulation B, 1002.9(b)(2)).
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.pages.wording import percent, write_reading
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.event_definitions import definitions
from pipelines.scorecards.scorecard import COVERAGE
from pipelines.vocabulary.plans import AS_WRITTEN

MAX_REASONS = 4
ADVERSE, UNVERIFIED = "adverse", "unverified"
_REASON = pl.Struct(dict.fromkeys(("code", "kind", "words"), pl.String()))
_REASONS = pl.Schema({BY_CUSTOMER: pl.Int64(), "principalReasons": pl.List(_REASON)})


def principal_reasons(scored: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number, principalReasons` of those who lost points: a list of structs `code, kind, words`.

    Args:
        scored: from `rating.add_rating`.
        listed: from `drivers.by_driver`.
    """
    candidates = [_limits(scored.lazy()), _lost_points(listed.lazy())]
    largest = (
        pl.concat(candidates, how="diagonal")
        .filter(pl.col("lost") > 0)
        .sort(BY_CUSTOMER, pl.col("place") > 0, -pl.col("lost"), "place")
        .group_by(BY_CUSTOMER, maintain_order=True)
        .head(MAX_REASONS)
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )
    reasons: dict[int, list[dict[str, str]]] = {}
    for row in largest.iter_rows(named=True):
        reasons.setdefault(row[BY_CUSTOMER], []).append(_describe_driver(row) if row["place"] else _describe_limit(row))
    return pl.DataFrame({BY_CUSTOMER: list(reasons), "principalReasons": list(reasons.values())}, schema=_REASONS)


def _limits(scored: pl.LazyFrame) -> pl.LazyFrame:
    """Return what limits the rating: events, and too little evidence. `place` is 0; `lost` only has to be positive."""
    limits = scored.select(BY_CUSTOMER, coverage=pl.col("covered").cast(COVERAGE), code="limitedBy")
    return limits.explode("code").drop_nulls("code").with_columns(place=pl.lit(0), lost=pl.lit(1.0))


def _describe_limit(row: Mapping[str, Any]) -> dict[str, str]:
    if row["code"] == EVIDENCE:
        words = f"Only {percent(row['coverage'])} of the expected evidence could be verified."
        return {"code": EVIDENCE, "kind": UNVERIFIED, "words": words}
    return {"code": row["code"], "kind": ADVERSE, "words": f"{definitions()[row['code']].sentence}."}


def _lost_points(listed: pl.LazyFrame) -> pl.LazyFrame:
    """Return the points that a driver `lost`, and whether its reading (`is_adverse`) or missing evidence lost more.

    `place`: the driver's number, from 1. `seen`: its coverage, or 0 if it has no reading.
    """
    coverage, most, points = (pl.col(name).cast(pl.Float64) for name in ("coverage", "most", "points"))
    seen = pl.col("seen")
    return listed.with_columns(seen=pl.when(pl.col("reading").is_null()).then(0).otherwise(coverage)).select(
        *(BY_CUSTOMER, "name", "unit", "reading", "coverage", "seen"),
        code="metric",
        place=pl.col("feature") + 1,
        is_adverse=seen * most - points > (1 - seen) * most,
        # Rounded, because points are rounded down to hundredths.
        lost=pl.when(coverage.is_not_null()).then((most - points).round(2)),
    )


def _describe_driver(row: Mapping[str, Any]) -> dict[str, str]:
    parts = [write_reading(row["reading"], row["unit"])] if row["is_adverse"] else []
    if row["seen"] < 1:
        parts.append(f"only {percent(row['coverage'])} could be verified" if row["seen"] else "could not be verified")
    kind = ADVERSE if row["is_adverse"] else UNVERIFIED
    return {"code": row["code"], "kind": kind, "words": f"{row['name']}: {'; '.join(parts)}."}
