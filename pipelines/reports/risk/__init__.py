"""Risk: the estimated probability of default within 12 months, what it rests on, and what would change it.

Readings of metrics earn points on a scorecard, and the points give the probability (`scorecards.scorecard`). The
scorecard is the one that comes with Tidemark, or one that a client had fitted to outcomes and activated; `calibration`
tells which. Points not fitted to outcomes are not a probability, and `errorCodes` says so.

`confidence`: how much data the figure rests on, and the interval that follows. `sensitivity`: the smallest changes that
change the rating. `lineage`: explains each figure.
"""

from collections.abc import Iterator

import polars as pl

from pipelines.figures import unreconciled
from pipelines.figures.context import ClientPortfolio
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import as_data, join_pieces
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.risk.confidence import INPUTS, confidence_rating, error_codes, with_confidence
from pipelines.reports.risk.drivers import drivers, with_percentiles
from pipelines.reports.risk.integrity import section as integrity_section
from pipelines.reports.risk.lineage import explain_risk
from pipelines.reports.risk.rating import rating, with_interval
from pipelines.reports.risk.resting import share_lines
from pipelines.reports.risk.sensitivity import sensitivity
from pipelines.risk_models.evidence import evidence
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Scorecard

__all__ = ["VERSION", "explain_risk", "risk_report"]

VERSION = 4


def risk_report(facts: Facts) -> pl.DataFrame:
    """Compute the report of every customer: `customer_number, data`.

    `data` has `value`, `interval`, `rating`, `calibration`, `pdConfidenceScore`, `pdConfidenceRating`, `errorCodes`,
    `drivers`, `sensitivity`, `model`, `integrity`, `unreconciled`. A customer without posted rows has earned nothing:
    rating E, confidence 0, `Risk.NoTransactions`.
    """
    known = evidence(facts)
    parts = [
        _of_portfolio(facts, known.filter(pl.col(BY_CUSTOMER).is_in(list(portfolio.customers))), portfolio)
        for portfolio in _portfolios(facts)
    ]
    opened = pl.concat(data for data, _ in parts).select(BY_CUSTOMER, line=pl.col("data").str.strip_suffix("}"))
    shares = unreconciled.section(facts, [each for _, shares in parts for each in shares])
    return join_pieces(facts.customers, [opened, ",", *integrity_section(facts), *shares, "}"])


def _portfolios(facts: Facts) -> Iterator[ClientPortfolio]:
    """Yield the portfolios that the customers belong to; all others are in one without peers and scorecard."""
    numbers = frozenset(facts.customers[BY_CUSTOMER])
    for portfolio in facts.context.portfolios:
        if of_portfolio := numbers & portfolio.customers:
            yield ClientPortfolio(of_portfolio, portfolio.peers, portfolio.scorecard)
            numbers -= of_portfolio
    if numbers or facts.customers.is_empty():
        yield ClientPortfolio(numbers)


def _of_portfolio(
    facts: Facts, known: pl.DataFrame, portfolio: ClientPortfolio
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the reports of customers with the same scorecard and peers, and their `share_lines`."""
    scorecard = portfolio.scorecard or DEFAULT
    read = readings(facts, list(dict.fromkeys([*(feature.metric for feature in scorecard.features), *INPUTS])))
    scored = (
        known.join(read, on=BY_CUSTOMER, how="left", validate="1:1")
        .pipe(scorecard.scored)
        .pipe(with_confidence, scorecard, facts.as_of)
        .pipe(with_interval, scorecard)
    )
    reports = (
        scored.pipe(with_percentiles, scorecard, portfolio.peers)
        .join(sensitivity(scored, scorecard), on=BY_CUSTOMER, how="left", validate="1:1")
        .pipe(_as_report, scorecard, facts)
    )
    return reports, share_lines(facts, scored, scorecard)


def _as_report(scored: pl.DataFrame, scorecard: Scorecard, facts: Facts) -> pl.DataFrame:
    shown = scored.select(
        BY_CUSTOMER,
        "value",
        pl.struct("low", "high").alias("interval"),
        rating(pl.col("value")).alias("rating"),
        pl.lit(scorecard.calibration).alias("calibration"),
        "pdConfidenceScore",
        confidence_rating().alias("pdConfidenceRating"),
        error_codes(scorecard, facts.as_of).alias("errorCodes"),
        drivers(scorecard).alias("drivers"),
        "sensitivity",
        _model(scorecard),
    )
    return as_data(shown)


def _model(scorecard: Scorecard) -> pl.Expr:
    named = {"name": scorecard.name, "version": scorecard.version, "calibration": scorecard.calibration}
    return pl.struct([pl.lit(value).alias(name) for name, value in named.items()]).alias("model")
