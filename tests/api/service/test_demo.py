"""The row that the demo sends for its insolvent business has the effect that the demo shows."""

import json
from decimal import Decimal

from api.service.commands.demo import WOUND_UP
from pipelines.enrichment.enrichment import derive
from pipelines.enrichment.matching.duplicates import KNOWN
from pipelines.enrichment.reading import read_rows
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.enrichment.examples import DEFAULTS, held_rows


def test_the_insolvent_business_is_rated_as_insolvent() -> None:
    sent = {"description": WOUND_UP["description"], "amount": Decimal(WOUND_UP["amount"])}
    derived = derive(read_rows(held_rows(sent).select(KNOWN.names())))
    rows = derived.match_to_schema(TRANSACTIONS, missing_columns="insert")
    [(_, report)] = REPORTS["risk"].compute(Facts(rows, DEFAULTS["date"])).iter_rows()
    [event] = json.loads(report)["events"]
    assert (event["code"], event["ceiling"]) == ("winding_up", "E")
