"""Which steps of a policy the portfolio's customers come to, for the warning that is given when it is saved.

Without anybody's inputs: a step counts as reached unless an earlier one certainly matches. So it is never said of a
step that inputs would lead to it. The portfolio is read part by part until every step is reached, mostly the first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, groupby
from typing import Any
from uuid import UUID

import polars as pl

from pipelines import metrics
from pipelines.decisions import Attribute, Plan, Policy, check, evaluated, planned, readings
from pipelines.decisions.check import Finding
from pipelines.decisions.evaluate import step_column
from pipelines.figures.facts import COLUMNS, Facts
from storage.core.store import Store
from storage.decisions import context
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.monitoring import attributes

PART_ROWS = 200_000  # looked at together
MOST_ROWS = 2_000_000  # of a larger portfolio nothing is said here: a backtest tells


def unreached(store: Store, client_id: UUID, policy: Policy, now: datetime) -> Sequence[Finding]:
    """Warnings of the steps that no customer with transactions comes to."""
    plan = planned(policy)
    with store.db.reading() as r:
        places, _ = transactions.readable(store.lake, transactions.current_locations_of_client(r, client_id))
    if len(plan.steps) < 2 or not places or sum(place.row_count for place in places) > MOST_ROWS:
        return []
    reached = Counter[int]()
    for part in _parts(places):
        reached.update(_reached(plan, _evaluated(store, plan, part, now)))
        if all(reached[step] for step in range(len(plan.steps))):
            return []
    return check.find_unreached(plan, reached, len(places))


def _reached(plan: Plan, decided: pl.DataFrame) -> Mapping[int, int]:
    """How many customers come to each step."""
    certain = [pl.col(step_column(nth)).fill_null(value=False) for nth in range(len(plan.steps))]
    open_ = {nth: ~pl.any_horizontal([pl.lit(value=False), *certain[:nth]]) for nth in range(len(plan.steps))}
    counts = decided.select(came.sum().alias(str(nth)) for nth, came in open_.items()).row(0)
    return dict(enumerate(counts))


def _evaluated(store: Store, plan: Plan, places: Sequence[Location], now: datetime) -> pl.DataFrame:
    """Of each customer what `evaluate.evaluated` gives, with every input unknown."""
    versions = {place.customer_number: place.data_version for place in places}
    as_of = now.astimezone(store.settings.zone).date()
    rows = transactions.scan(store.lake, places).select(COLUMNS).collect()
    with store.db.reading() as r:
        known = context.read(r, versions, now, as_of)
        reported = attributes.of_all(r, versions)
    stated: dict[int, dict[str, Attribute]] = {}
    for number, each in reported:
        stated.setdefault(number, {})[each.name] = Attribute(each.value, each.expires_at)
    values = metrics.values(Facts(rows, as_of, known), plan.metrics)
    nobodys: dict[str, Any] = dict.fromkeys(plan.labels("input"))
    return evaluated(plan, readings.read(plan, values, stated, nobodys, now))


def _parts(places: Sequence[Location]) -> Iterator[list[Location]]:
    """The places, file by file, so many at once that they fit into memory."""
    by_file = sorted(places, key=lambda place: (place.path, place.first_row))
    ends = accumulate(place.row_count for place in by_file)
    for _, some in groupby(zip(ends, by_file, strict=True), key=lambda pair: pair[0] // PART_ROWS):
        yield [place for _, place in some]
