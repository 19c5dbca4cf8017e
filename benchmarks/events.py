"""Measure how many synthetic businesses events cap: sound ones, which they should not cap, and those that default."""

from collections.abc import Sequence
from datetime import date
from time import perf_counter

import polars as pl

from benchmarks.accepted import accept_all
from benchmarks.table import Row, seconds
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.risk_models.events import ceilings, events
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import TRANSACTIONS

TITLE = "Events that cap the rating"
CUSTOMERS, MONTHS, SEEDS, UNTIL = 400, 14, (1, 2, 3), date(2026, 10, 31)
SOUND = ("sound", "start_up")
ABOUT = (
    f"{CUSTOMERS} synthetic businesses over {MONTHS} months for each of {len(SEEDS)} seeds, with honest rows that look "
    "like trouble. Sound: the generator has put no trouble into the business, and it does not default."
)


def measure() -> Sequence[Row]:
    known = pl.concat([_events_of_portfolio(seed) for seed in SEEDS])
    sound = known.filter(pl.col("condition").is_in(SOUND), ~pl.col("defaults"))
    shares = [_share(sound.filter(seed=seed)) for seed in SEEDS]
    return [
        Row("sound customers capped", f"{_share(sound)}; by seed {', '.join(shares)}", "≤ 0.5 %"),
        Row("by these events", _by_event(sound)),
        Row("customers that default capped", _share(known.filter("defaults"))),
        Row("by these events", _by_event(known.filter("defaults"))),
        Row("share that defaulted by ceiling", _default_share(known)),
        Row("events of all customers of a seed", seconds(known["seconds"].max())),  # pyrefly: ignore[bad-argument-type]
    ]


def _events_of_portfolio(seed: int) -> pl.DataFrame:
    """Return each customer's `condition`, whether it `defaults`, its `ceiling` and the `codes` of its events."""
    businesses = list(portfolio(CUSTOMERS, MONTHS, seed, UNTIL))
    rows = accept_all(businesses).select(pl.exclude("^true_.*$"))
    facts = Facts(enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect(), UNTIL)
    _ = facts.rows  # computed and cached before the time is taken
    started = perf_counter()
    capped = ceilings(facts)
    took = perf_counter() - started
    codes = events(facts).group_by("customer_number").agg(codes="code")
    truth = pl.DataFrame(
        {
            "customer_number": range(1, len(businesses) + 1),
            "condition": [each.condition for each in businesses],
            "defaults": [each.outcome.defaults for each in businesses],
        }
    )
    joined = truth.join(capped, on="customer_number", how="left").join(codes, on="customer_number", how="left")
    return joined.with_columns(seed=pl.lit(seed), seconds=pl.lit(took))


def _share(known: pl.DataFrame) -> str:
    capped = known["ceiling"].is_not_null().sum()
    return f"{capped / known.height:.1%} ({capped} of {known.height})"


def _by_event(known: pl.DataFrame) -> str:
    counts = known.select(pl.col("codes").explode().drop_nulls().value_counts(sort=True)).unnest("codes")
    return ", ".join(f"{code}: {count}" for code, count in counts.sort("count", "codes", descending=True).iter_rows())


def _default_share(known: pl.DataFrame) -> str:
    by_ceiling = known.group_by(pl.col("ceiling").fill_null("none")).agg(pl.col("defaults").mean(), pl.len())
    return ", ".join(f"{name}: {share:.1%} of {count}" for name, share, count in by_ceiling.sort("ceiling").iter_rows())
