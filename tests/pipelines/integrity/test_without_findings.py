"""A rating reads a customer with findings as if the money that came and went back had never come."""

from decimal import Decimal

import polars as pl
from polars.testing import assert_frame_equal

from pipelines.figures.facts import Facts
from pipelines.integrity import findings, load_descriptions, without_findings
from pipelines.metrics import METRICS, select_with_inputs, values
from pipelines.scorecards.default import DEFAULT
from tests.pipelines.integrity.test_findings import DRESSED, TODAY, TRADE, TRIPS, context_with_resolution, rows

READ = select_with_inputs(
    ("revenue_180d", "closing_balance", "min_balance_days_180d", "mean_balance_180d", "outflow_180d"), METRICS
)


def with_balances(given: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the balances that a bank prints, from an opening balance of AUD 900."""
    posted = given.sort("date", "position")
    return posted.with_columns(balance=(pl.lit(Decimal(900)) + pl.col("amount").cum_sum()).cast(pl.Decimal(18, 2)))


def test_readings_are_those_of_the_customer_without_the_round_trips() -> None:
    seen = without_findings(Facts(with_balances(DRESSED), TODAY))
    assert seen is not None
    honest = Facts(with_balances(rows(*TRADE)), TODAY)
    assert_frame_equal(values(seen, READ), values(honest, READ))


def test_money_that_came_last_leaves_no_balance_behind() -> None:
    lent = [(3, "9000.00", "owner_contribution", "owner")]
    dressed = Facts(with_balances(rows(*TRADE, *lent)), TODAY)
    assert findings(dressed)["finding"].to_list() == ["last_minute_injection"]
    seen = without_findings(dressed)
    assert seen is not None
    assert_frame_equal(values(seen, READ), values(Facts(with_balances(rows(*TRADE)), TODAY), READ))


def test_rating_reads_no_receipt_that_true_revenue_leaves_out() -> None:
    assert [code for code, each in load_descriptions().items() if each.excludes != (each.undone != "none")] == []


def test_own_money_that_arrived_as_a_receipt_is_read_as_a_transfer() -> None:
    days = (20, 30)
    received = [(ago, "5000.00", "customer_transfer", "a") for ago in days]
    sent = [(ago, "-5000.00", "own_transfer", None) for ago in days]
    account = pl.when(pl.col("amount") == -5000).then(pl.lit(b"savings")).otherwise("account_id")
    opened = rows(*TRADE, *received, *sent, (380, "50000", "own_transfer", None)).with_columns(
        account_id=pl.when(pl.col("amount") == 50_000).then(pl.lit(b"savings")).otherwise(account)
    )
    dressed = Facts(with_balances(opened), TODAY)
    assert findings(dressed)["finding"].to_list() == ["own_transfer_as_revenue"]
    moved = pl.when(pl.col("amount").abs() == 5000)
    honest = dressed.transactions.with_columns(
        moved.then(pl.lit("own_transfer")).otherwise("category").alias("category"),
        moved.then(pl.lit("transfer")).otherwise("category_group").alias("category_group"),
        moved.then(pl.lit(value=True)).otherwise("is_transfer").alias("is_transfer"),
    )
    seen = without_findings(dressed)
    assert seen is not None
    slugs = [feature.metric for feature in DEFAULT.features]
    read = select_with_inputs(slugs, METRICS)
    assert_frame_equal(values(seen, read), values(Facts(honest, TODAY), read))
    assert values(seen, READ)["revenue_180d"].item() == values(Facts(rows(*TRADE), TODAY), READ)["revenue_180d"].item()


def test_customers_without_open_findings_are_read_as_they_are() -> None:
    assert without_findings(Facts(rows(*TRADE), TODAY)) is None
    [key] = findings(Facts(DRESSED, TODAY))["key"]
    assert without_findings(Facts(DRESSED, TODAY, context_with_resolution(key))) is None


def test_only_customers_with_open_findings_are_read_anew() -> None:
    seen = without_findings(
        Facts(pl.concat([DRESSED, rows(*TRADE, customer=2), rows(*TRADE, *TRIPS, customer=3)]), TODAY)
    )
    assert seen is not None
    assert seen.customers["customer_number"].to_list() == [1, 3]
