"""The risk report's member `integrity`: figures that add up, each with its transactions, and the page that shows it."""

import json
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import value_of
from pipelines.reports.page import About, page
from pipelines.reports.risk import explain_risk, risk_report
from pipelines.vocabulary.errors import NotFound
from tests.pipelines.integrity.test_findings import DRESSED, TODAY, TRADE, context_with_resolution, rows
from tests.pipelines.reports.bundles import bundle, everything


def report_only_customer(facts: Facts) -> dict[str, Any]:
    """Return the data of the only customer's report."""
    data: dict[str, Any] = json.loads(risk_report(facts)["data"][0], parse_float=Decimal)
    return data


def test_stated_and_true_revenue_differ_by_what_is_excluded() -> None:
    integrity = report_only_customer(Facts(DRESSED, TODAY))["integrity"]
    assert integrity["statedRevenue"] - integrity["trueRevenue"] == Decimal("11200.11")
    assert [(each["finding"], each["amount"]) for each in integrity["excluded"]] == [
        ("round_trip", Decimal("11200.11"))
    ]
    [finding] = integrity["findings"]
    assert (finding["about"], finding["rows"], finding["isResolved"], finding["excludes"]) == (None, 4, False, True)


def test_every_figure_leads_to_its_transactions() -> None:
    facts = Facts(DRESSED, TODAY)
    data = report_only_customer(facts)
    places = [("statedRevenue",), ("excludedRevenue",), ("trueRevenue",), ("trueShare",)]
    places += [(member, "0", figure) for member in ("excluded", "findings") for figure in ("amount", "rows")]
    for place in places:
        printed = data["integrity"]
        for segment in place:
            printed = printed[int(segment)] if segment.isdecimal() else printed[segment]
        assert value_of(explain_risk(facts, data, ("integrity", *place))) == printed, place


def test_other_places_hold_no_figure(subtests: pytest.Subtests) -> None:
    facts = Facts(DRESSED, TODAY)
    data = report_only_customer(facts)
    for place in ("", "/findings", "/findings/1/amount", "/findings/0", "/nothing"):
        with subtests.test(place), pytest.raises(NotFound):
            explain_risk(facts, data, tuple(f"integrity{place}".split("/")))


def test_a_resolved_finding_stays_in_the_report() -> None:
    [key] = [each["key"] for each in report_only_customer(Facts(DRESSED, TODAY))["integrity"]["findings"]]
    integrity = report_only_customer(Facts(DRESSED, TODAY, context_with_resolution(key)))["integrity"]
    [finding] = integrity["findings"]
    assert (finding["isResolved"], finding["resolvedOn"], finding["resolution"]) == (True, "2026-11-01", "seen")
    assert (integrity["excluded"], integrity["trueRevenue"]) == ([], integrity["statedRevenue"])


def test_the_page_shows_findings_in_words_with_the_honest_explanation() -> None:
    data = everything()
    data["risk"]["integrity"] = report_only_customer(Facts(DRESSED, TODAY))["integrity"]
    text = page(bundle(json.loads(json.dumps(data, default=float))), About())
    assert "Receipts that went back to their payer" in text
    assert "Deposits may have been returned in full" in text
    assert "True revenue" in text


def test_the_page_says_that_nothing_was_found() -> None:
    data = everything()
    data["risk"]["integrity"] = report_only_customer(Facts(rows(*TRADE), TODAY))["integrity"]
    assert "That is no proof that there is nothing." in page(
        bundle(json.loads(json.dumps(data, default=float))), About()
    )


def test_the_rating_is_that_of_the_customer_without_the_round_trips() -> None:
    dressed, honest = report_only_customer(Facts(DRESSED, TODAY)), report_only_customer(Facts(rows(*TRADE), TODAY))
    members = ("value", "rating", "drivers", "sensitivity", "pdConfidenceScore")
    assert {name: dressed[name] for name in members} == {name: honest[name] for name in members}


def test_a_driver_of_a_customer_with_findings_leads_to_the_rows_that_it_reads() -> None:
    facts = Facts(DRESSED, TODAY)
    data = report_only_customer(facts)
    read = [(nth, each["reading"]) for nth, each in enumerate(data["drivers"]) if each["reading"] is not None]
    assert read
    for nth, reading in read:
        assert value_of(explain_risk(facts, data, ("drivers", str(nth), "reading"))) == reading, data["drivers"][nth]


def test_customers_with_and_without_findings_are_reported_together() -> None:
    both = Facts(pl.concat([DRESSED, rows(*TRADE, customer=2)]), TODAY)
    alone = [risk_report(both.of_customer(number)) for number in (1, 2)]
    assert_frame_equal(risk_report(both), pl.concat(alone))
