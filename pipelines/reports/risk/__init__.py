"""Risk: the estimated probability of default within 12 months, the evidence for it, and what would change it.

Readings of metrics earn points on a scorecard, and the points give the probability (`scorecards.scorecard`). The
scorecard is the one that comes with Tidemark, or one that a client fitted to outcomes and activated; `calibration` says
which. Points that were not fitted to outcomes are not a probability, and `errorCodes` says so.

`rating`: the value's rating under the ceilings by evidence and events, and the interval. `confidence`: how well data
support the figure. `principal`: the reasons that cost most. `sensitivity`: the smallest changes that change the rating.
`lineage`: how each figure follows from transactions.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import polars as pl

from pipelines.figures.context import ClientPortfolio
from pipelines.figures.facts import Facts
from pipelines.figures.json_text import as_data, join_pieces
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.unreconciled import section as unreconciled_section
from pipelines.integrity import without_findings
from pipelines.reports.risk.confidence import INPUTS, add_confidence, confidence_rating, error_codes
from pipelines.reports.risk.drivers import by_driver, drivers
from pipelines.reports.risk.events import events_member
from pipelines.reports.risk.integrity import section as integrity_section
from pipelines.reports.risk.lineage import explain_risk
from pipelines.reports.risk.principal import principal_reasons
from pipelines.reports.risk.rating import add_interval, add_rating
from pipelines.reports.risk.sensitivity import sensitivity
from pipelines.reports.risk.unreconciled import share_lines
from pipelines.risk_models.events import ceilings
from pipelines.risk_models.evidence import evidence
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Scorecard
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO

__all__ = ["VERSION", "explain_risk", "risk_report"]

VERSION = 17


def risk_report(facts: Facts) -> pl.DataFrame:
    """Compute the report of every customer: `customer_number, data`.

    `data` has `value`, `interval`, `rating`, `valueBeforeCeilings`, `limitedBy`, `covered`, `calibration`,
    `pdConfidenceScore`, `pdConfidenceRating`, `errorCodes`, `principalReasons`, `drivers`, `sensitivity`, `model`,
    `events`, `integrity`, `unreconciled`. Customers with open findings are read without the rows of these findings
    (`integrity.without_findings`), but events are read from all rows. A customer without posted rows gets no points:
    rating E, confidence 0, `Risk.NoTransactions`.
    """
    seen = without_findings(facts)
    if seen is None:
        parts = _report_portfolios(facts, facts)
    else:
        changed = frozenset(seen.customers[BY_CUSTOMER])
        parts = [*_report_portfolios(facts, facts, changed), *_report_portfolios(seen, facts)]
    unclosed = pl.concat(data for data, _ in parts).select(BY_CUSTOMER, line=pl.col("data").str.strip_suffix("}"))
    shares = unreconciled_section(facts, [each for _, shares in parts for each in shares])
    return join_pieces(facts.customers, [unclosed, ",", *integrity_section(facts), *shares, "}"])


def _report_portfolios(
    facts: Facts, all_facts: Facts, without: frozenset[int] = frozenset()
) -> list[tuple[pl.DataFrame, list[pl.DataFrame]]]:
    """Return `_report_portfolio` of each portfolio; `without`: customers that are left out."""
    known = evidence(facts)
    return [
        _report_portfolio(
            facts, known.filter(pl.col(BY_CUSTOMER).is_in(list(portfolio.customers))), portfolio, all_facts
        )
        for portfolio in _portfolios(facts, without)
    ]


def _portfolios(facts: Facts, without: frozenset[int]) -> Iterator[ClientPortfolio]:
    """Yield the portfolios that the customers belong to; all other customers are in one without peers or scorecard."""
    numbers = frozenset(facts.customers[BY_CUSTOMER]) - without
    for portfolio in facts.context.portfolios:
        if of_portfolio := numbers & portfolio.customers:
            yield replace(portfolio, customers=of_portfolio)
            numbers -= of_portfolio
    if numbers or facts.customers.is_empty():
        yield ClientPortfolio(numbers)


def _report_portfolio(
    facts: Facts, known: pl.DataFrame, portfolio: ClientPortfolio, all_facts: Facts
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the reports of customers with the same scorecard and peers, and their `share_lines`.

    Args:
        all_facts: the facts with all rows, from which events are read.
    """
    scorecard, expected = portfolio.scorecard or DEFAULT, portfolio.expected
    slugs = list(dict.fromkeys([*(feature.metric for feature in scorecard.features), *INPUTS]))
    scored = (
        known.join(readings(facts, slugs, expected=expected), on=BY_CUSTOMER, how="left", validate="1:1")
        .pipe(scorecard.score)
        .pipe(add_rating, scorecard, ceilings(all_facts))
        .pipe(add_confidence, facts.as_of)
        .pipe(add_interval, scorecard)
    )
    listed = by_driver(scored, scorecard.features)
    lists = (
        principal_reasons(scored, listed),
        drivers(listed, portfolio),
        sensitivity(scored, scorecard),
        events_member(all_facts),
        error_codes(scored, scorecard.calibration, expected),
    )
    reports = reduce(_add_list, lists, scored.lazy()).pipe(_as_report, scorecard)
    return reports, share_lines(facts, scored, scorecard)


def _add_list(scored: pl.LazyFrame, listed: pl.DataFrame) -> pl.LazyFrame:
    """Add the last column of `listed`, a list of structs by customer; it is empty where a customer has none."""
    name = listed.columns[-1]
    joined = scored.join(listed.lazy(), on=BY_CUSTOMER, how="left", validate="1:1", maintain_order="left")
    return joined.with_columns(pl.col(name).fill_null([]))


def _as_report(scored: pl.LazyFrame, scorecard: Scorecard) -> pl.DataFrame:
    shown = scored.select(
        BY_CUSTOMER,
        "value",
        pl.struct("low", "high").alias("interval"),
        "rating",
        "valueBeforeCeilings",
        "limitedBy",
        pl.col("covered").cast(RATIO),
        pl.lit(scorecard.calibration).alias("calibration"),
        "pdConfidenceScore",
        confidence_rating().alias("pdConfidenceRating"),
        "errorCodes",
        "principalReasons",
        "drivers",
        "sensitivity",
        _model(scorecard),
        "events",
    )
    return as_data(shown.pipe(collect))


def _model(scorecard: Scorecard) -> pl.Expr:
    named = {"name": scorecard.name, "version": scorecard.version, "calibration": scorecard.calibration}
    return pl.struct([pl.lit(value).alias(name) for name, value in named.items()]).alias("model")
