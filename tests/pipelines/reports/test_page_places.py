"""What the page of reports offers to explain can be explained, and its figures are offered."""

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl
import pytest

from benchmarks.accepted import accept_all
from pipelines import metrics
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Trace, pointer
from pipelines.pages import Cards, Figures, Folded, Grid, Page, Points
from pipelines.pages.parts import Part
from pipelines.reports import REPORTS
from pipelines.reports.page import About, page_content
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from tests.pipelines.reports.bundles import ReportMember

UNTIL = date(2026, 10, 31)
CUSTOMERS = 3


class Reported:
    """A synthetic customer with its reports and their page."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        texts = {kind: str(report.compute_text(facts)) for kind, report in REPORTS.items()}
        self.data: dict[str, Any] = {kind: json.loads(text, parse_float=Decimal) for kind, text in texts.items()}
        self.page: Page = page_content({kind: ReportMember(data_json=text) for kind, text in texts.items()}, About())

    def explain(self, place: str) -> Trace:
        report, _, path = place.partition("/")
        segments = pointer("/" + path)
        if report == "metrics":
            return metrics.explain(self.facts, segments[0])
        return REPORTS[report].explain(self.facts, self.data[report], segments)


@cache
def customers() -> tuple[Reported, ...]:
    """Return customers, of whom the last one's rows have a gap."""
    sent = accept_all(portfolio(customers=CUSTOMERS, months=14, seed=11, until=UNTIL)).select(ACCEPTED.names())
    missing = pl.col("date").is_between(date(2026, 3, 3), date(2026, 5, 9)) & (pl.col("customer_number") == CUSTOMERS)
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), sent.filter(~missing)).transactions.collect()
    facts = Facts(enriched, UNTIL)
    return tuple(Reported(facts.of_customer(number)) for number in range(1, CUSTOMERS + 1))


def parts_of(page: Page) -> Iterator[Part]:
    for section in page.sections:
        for part in section.parts:
            yield from part.grids if isinstance(part, Folded) else (part,)


def places_of(part: Part) -> Iterator[str | None]:
    match part:
        case Cards(cards):
            yield from (card.place for card in cards)
        case Points(_, points):
            yield from (point.place for point in points)
        case Grid():
            yield from (place for row in part.places for place in row)
        case Figures(figures):
            yield from (place for each in figures if isinstance(each, Points) for place in places_of(each))


def kind_of(place: str) -> str:
    """Return a place without the numbers of rows."""
    return "/".join("N" if each.isdecimal() else each for each in place.split("/"))


@pytest.mark.parametrize("nth", range(CUSTOMERS))
def test_each_place_can_be_explained(nth: int) -> None:
    customer = customers()[nth]
    places = {kind_of(place): place for part in parts_of(customer.page) for place in places_of(part) if place}
    assert {place.partition("/")[0] for place in places} == {"completeness", "risk", "aggregate", "metrics"}
    assert "completeness/gaps/N/silentDays" in places or customer is not customers()[-1]
    of_aggregate = {kind: place for kind, place in places.items() if kind.startswith("aggregate")}
    for place in (places.items() - of_aggregate.items()) | set(list(of_aggregate.items())[:20]):
        assert customer.explain(place[1]) is not None, place


def test_the_first_figures_and_the_drivers_are_explained() -> None:
    for customer in customers():
        parts = list(parts_of(customer.page))
        cards = next(part for part in parts if isinstance(part, Cards))
        grids = (part for part in parts if isinstance(part, Grid))
        drivers = next(grid for grid in grids if grid.caption.startswith("Drivers"))
        assert all(card.place for card in cards.cards)
        for row, places in zip(drivers.rows, drivers.places, strict=True):
            assert (row[1] == "Unknown") == (places[1] is None)
