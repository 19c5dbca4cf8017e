"""On each day of a simulation, regular income is that of the rows up to that day, as if evaluated on it."""

from datetime import timedelta

import polars as pl
import pytest

from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS, select_with_inputs, values
from pipelines.monitoring.snapshots import FactsOfDays
from tests.pipelines.enrichment.income.test_income import CLIENT, FRIDAYS, LAST, facts, payments_on

READ = select_with_inputs(("regular_pay_per_month_180d", "regular_income_share_180d", "regular_payers_180d"), METRICS)
ROWS = facts([*payments_on(FRIDAYS[::2]), *payments_on(FRIDAYS[36::3], CLIENT, ("910.00", "1400.50"))]).transactions


@pytest.mark.parametrize("ago", [120, 61, 1, 0])
def test_a_day_of_a_simulation_has_the_income_of_that_day(ago: int) -> None:
    day = LAST - timedelta(days=ago)
    snapshots = pl.DataFrame({"snapshot": [7], "customer_number": [1], "date": [day]})
    simulated = values(FactsOfDays(Facts(ROWS, LAST), snapshots), READ)
    evaluated = values(Facts(ROWS.filter(pl.col("date") <= day), day), READ)
    assert simulated.drop("customer_number").rows() == evaluated.drop("customer_number").rows()
    assert simulated["regular_pay_per_month_180d"][0] > 1_500
