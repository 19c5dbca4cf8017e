"""Events that cap the rating: insolvency, garnishees, repeated dishonours and others (`events.yaml`).

An event has a ceiling, the best rating that is possible while it lasts. A person can resolve an event; then it is shown
as resolved and caps nothing. A further row changes the event's key, so it caps the rating again.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import UNITS, Column, Source, Table, Total
from pipelines.integrity import make_key
from pipelines.risk_models.event_definitions import definitions
from pipelines.risk_models.event_rows import event_rows, searched_categories
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import MONEY

KIND = "event"  # the kind of resolutions of events
CEILINGS = pl.Schema({BY_CUSTOMER: pl.Int64(), "ceiling": pl.String(), "limited_by": pl.List(pl.String())})
_EVENT = (BY_CUSTOMER, "code")


def events(facts: Facts) -> pl.DataFrame:
    """Return the events that still last (the columns of EVENTS), by customer, the worst ceiling first."""
    return facts.cached(_events)


def ceilings(facts: Facts) -> pl.DataFrame:
    """Return each customer's worst ceiling by unresolved events (null: none) and their codes (schema CEILINGS)."""
    capping = events(facts).lazy().filter(~pl.col("resolved"))
    worst = pl.col("ceiling") == pl.col("ceiling").max().over(BY_CUSTOMER)
    capped = (
        capping.filter(worst)
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(pl.col("ceiling").first(), limited_by=pl.col("code"))
    )
    every = facts.customers.lazy().join(capped, on=BY_CUSTOMER, how="left", validate="1:1", maintain_order="left")
    known = every.with_columns(pl.col("limited_by").fill_null([]))
    return known.select(pl.col(name).cast(kind) for name, kind in CEILINGS.items()).pipe(collect)


def _events(facts: Facts) -> pl.DataFrame:
    if event_rows(facts).is_empty():
        shown = {column.name: UNITS[column.unit] for column in EVENTS.columns}
        return pl.DataFrame(schema={BY_CUSTOMER: pl.Int64(), **shown})
    return EVENTS.sort_rows(EVENTS.rows(facts)).pipe(collect)


def _recent_rows(facts: Facts) -> pl.LazyFrame:
    """Return the rows that still count: at most `days` older than the last row of the customer that no event reads."""
    others = facts.rows.lazy().filter(~pl.col("category").is_in(searched_categories()))
    reference = others.group_by(BY_CUSTOMER).agg(reference=pl.col("date").max())
    return (
        event_rows(facts)
        .lazy()
        .join(reference, on=BY_CUSTOMER, how="left", validate="m:1", maintain_order="left")
        .join(_DESCRIBED.lazy(), on="code", how="left", validate="m:1", maintain_order="left")
        .with_columns(lasts_until=pl.col("date") + pl.duration(days=pl.col("days")))
        .filter((pl.col("lasts_until") >= pl.col("reference")).fill_null(value=True))
    )


def _lasting_events(facts: Facts) -> pl.LazyFrame:
    """Return a row for each event that reaches a level, with that level's ceiling."""
    reaches_level = pl.col("reached") >= pl.col("least_count")
    return (
        _recent_rows(facts)
        .group_by(_EVENT)
        .agg(
            pl.col("name", "sentence", "least").first(),
            pl.col("date").min().alias("firstDate"),
            pl.col("date").max().alias("lastDate"),
            pl.col("lasts_until").filter("counts").sort(descending=True).alias("lasting"),
            reached=pl.col("counts").sum().cast(pl.Int64),
            sum=pl.col("amount").sum(),
        )
        .join(_LEVELS.lazy(), on="code", how="inner")
        .filter(reaches_level, pl.col("sum") >= pl.col("least"))
        .sort(*_EVENT, "least_count")
        .unique(_EVENT, keep="last", maintain_order=True)
        .join(facts.cached(_keys).lazy(), on=_EVENT, how="left", validate="1:1")
        .with_columns(until=pl.col("lasting").list.get(pl.col("least_count") - 1))
        .select(*_EVENT, *(column.name for column in EVENTS.details))
    )


def _keys(facts: Facts) -> pl.DataFrame:
    """Return each event's `key`, computed from all its rows however old, and whether it is `resolved`."""
    grouped = event_rows(facts).group_by(_EVENT, maintain_order=True).agg("transaction_id")
    keys = [make_key(code, ids) for code, ids in grouped.select("code", "transaction_id").iter_rows()]
    resolutions = facts.context.resolutions.filter(pl.col("kind") == KIND).select(BY_CUSTOMER, "key", resolved=True)
    return (
        grouped.select(*_EVENT, key=pl.Series(keys, dtype=pl.String))
        .join(resolutions.unique(), on=[BY_CUSTOMER, "key"], how="left", validate="m:1", maintain_order="left")
        .with_columns(pl.col("resolved").fill_null(value=False))
    )


_DESCRIBED = pl.DataFrame(
    [(code, each.name, each.sentence, each.days, each.least) for code, each in definitions().items()],
    schema={"code": pl.String, "name": pl.String, "sentence": pl.String, "days": pl.Int64, "least": MONEY},
    orient="row",
)
_LEVELS = pl.DataFrame(
    [(code, level.count, level.ceiling) for code, each in definitions().items() for level in each.levels],
    schema={"code": pl.String, "least_count": pl.Int64, "ceiling": pl.String},
    orient="row",
)
EVENTS = Table(
    id="events",
    name="Events that cap the rating",
    hierarchy="event",
    type="summary",
    is_usually_empty=True,
    keys=(Column("code", "text", meaning="the event"),),
    listed=_lasting_events,
    details=(
        Column("name", "text"),
        Column("sentence", "text", meaning="what the rows show"),
        Column("ceiling", "text", meaning="the best rating that is possible while it lasts"),
        Column("firstDate", "date", meaning="of its first row that still counts"),
        Column("lastDate", "date", meaning="of its last row"),
        Column("until", "date", meaning="last day on which the ceiling holds if no further row comes"),
        Column("key", "text", meaning="names the event in a resolution"),
        Column("resolved", "boolean", meaning="a person resolved it, so it caps nothing"),
    ),
    sources=(
        Source(
            _recent_rows,
            (
                Total(
                    "count",
                    "count",
                    pl.col("counts").cast(pl.Int64),
                    meaning="how many days, lenders or gaps the event counts",
                ),
                Total("amount", "AUD", pl.col("amount"), meaning="of all its rows"),
            ),
        ),
    ),
    order=("ceiling", "code"),
    descending=(True, False),
)
