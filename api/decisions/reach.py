"""Find the steps of a policy that no customer of the portfolio reaches, for a warning when the policy is saved.

The inputs of a request are unknown here. So a customer counts as reaching a step unless an earlier step matches
whatever the inputs are, and a step that some inputs would lead to is never reported. The portfolio is read in parts
until every step is reached; usually the first part is enough.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, groupby
from typing import Any
from uuid import UUID

import polars as pl

from pipelines import metrics
from pipelines.decisions import Attribute, Plan, Policy, check, evaluate_plan, plan_policy, readings
from pipelines.decisions.check import Finding
from pipelines.decisions.evaluate import step_column
from pipelines.figures.facts import COLUMNS, Facts
from storage.core.store import Store
from storage.decisions import context
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.monitoring import attributes

PART_ROWS = 200_000  # evaluated together
MAX_ROWS = 2_000_000  # a larger portfolio would take too long; there, a backtest shows which steps are reached


def find_unreached_steps(store: Store, client_id: UUID, policy: Policy, now: datetime) -> Sequence[Finding]:
    """Return warnings about the steps that no customer with transactions reaches."""
    plan = plan_policy(policy)
    with store.db.reading() as r:
        locations, _ = transactions.separate_damaged(store.lake, transactions.current_locations_of_client(r, client_id))
    if len(plan.steps) < 2 or not locations or sum(location.row_count for location in locations) > MAX_ROWS:
        return []
    reached = Counter[int]()
    for part in _parts(locations):
        reached.update(_count_reached(plan, _evaluate(store, plan, part, now)))
        if all(reached[step] for step in range(len(plan.steps))):
            return []
    return check.find_unreached(plan, reached, len(locations))


def _count_reached(plan: Plan, decided: pl.DataFrame) -> Mapping[int, int]:
    """Count the customers that reach each step."""
    certain = [pl.col(step_column(nth)).fill_null(value=False) for nth in range(len(plan.steps))]
    reached_by = {nth: ~pl.any_horizontal([pl.lit(value=False), *certain[:nth]]) for nth in range(len(plan.steps))}
    counts = decided.select(is_reached.sum().alias(str(nth)) for nth, is_reached in reached_by.items()).row(0)
    return dict(enumerate(counts))


def _evaluate(store: Store, plan: Plan, locations: Sequence[Location], now: datetime) -> pl.DataFrame:
    """Evaluate each customer with every input unknown; the frame is that of `evaluate.evaluate_plan`."""
    versions = {location.customer_number: location.data_version for location in locations}
    as_of = now.astimezone(store.settings.zone).date()
    rows = transactions.scan(store.lake, locations).select(COLUMNS).collect()
    with store.db.reading() as r:
        known = context.read(r, versions, now, as_of, store.settings.zone)
        reported = attributes.find_current(r, versions)
    stated: dict[int, dict[str, Attribute]] = {}
    for number, each in reported:
        stated.setdefault(number, {})[each.name] = Attribute(each.value, each.expires_at)
    values = metrics.values(Facts(rows, as_of, known), plan.metrics)
    unknown_inputs: dict[str, Any] = dict.fromkeys(plan.labels("input"))
    return evaluate_plan(plan, readings.read_leaves(plan, values, stated, unknown_inputs, now))


def _parts(locations: Sequence[Location]) -> Iterator[list[Location]]:
    """Split the locations, in the order of the files, into parts of about PART_ROWS rows."""
    by_file = sorted(locations, key=lambda location: (location.path, location.first_row))
    ends = accumulate(location.row_count for location in by_file)
    for _, part in groupby(zip(ends, by_file, strict=True), key=lambda pair: pair[0] // PART_ROWS):
        yield [location for _, location in part]
