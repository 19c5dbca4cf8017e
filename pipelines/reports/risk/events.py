"""The report's `events`: each event that caps the rating, with its ceiling, duration and rows."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Trace
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.risk_models.events import EVENTS, events

_SHOWN = [column.name for column in EVENTS.columns if column.name != "lastDate"]


def events_member(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, events` of customers with events: a list of structs, the worst ceiling first."""
    return events(facts).group_by(BY_CUSTOMER, maintain_order=True).agg(events=pl.struct(_SHOWN))


def explain_event(facts: Facts, event: Mapping[str, Any], path: tuple[str, ...]) -> Trace:
    """Explain `count` or `amount` of a reported event by its rows.

    Raises:
        NotFound: there is no such figure.
    """
    return EVENTS.explain(facts, event, path)
