"""On each day of a simulation, true revenue leaves out the findings of that day, as if evaluated on it."""

from datetime import timedelta

import polars as pl
import pytest

from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS, select_with_inputs, values
from pipelines.monitoring.snapshots import FactsOfDays
from tests.pipelines.integrity.test_findings import DRESSED, TODAY

READ = select_with_inputs(("true_revenue_180d", "revenue_180d"), METRICS)


@pytest.mark.parametrize("ago", [35, 3, 2, 0])
def test_a_day_of_a_simulation_reads_only_what_was_known_on_it(ago: int) -> None:
    day = TODAY - timedelta(days=ago)
    snapshots = pl.DataFrame({"snapshot": [7], "customer_number": [1], "date": [day]})
    simulated = values(FactsOfDays(Facts(DRESSED, TODAY), snapshots), READ)
    evaluated = values(Facts(DRESSED.filter(pl.col("date") <= day), day), READ)
    assert simulated.drop("customer_number").rows() == evaluated.drop("customer_number").rows()
