"""On each day of a simulation, true revenue leaves out what was known on that day, as an evaluation on it would."""

from datetime import timedelta

import polars as pl
import pytest

from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS, values, with_inputs
from pipelines.monitoring.snapshots import FactsOfDays
from tests.pipelines.integrity.test_findings import DRESSED, TODAY

READ = with_inputs(("true_revenue_180d", "revenue_180d"), METRICS)


@pytest.mark.parametrize("ago", [35, 3, 2, 0])
def test_a_day_of_a_simulation_reads_what_that_day_knew(ago: int) -> None:
    day = TODAY - timedelta(days=ago)
    snapshots = pl.DataFrame({"snapshot": [7], "customer_number": [1], "date": [day]})
    simulated = values(FactsOfDays(Facts(DRESSED, TODAY), snapshots), READ)
    evaluated = values(Facts(DRESSED.filter(pl.col("date") <= day), day), READ)
    assert simulated.drop("customer_number").rows() == evaluated.drop("customer_number").rows()
