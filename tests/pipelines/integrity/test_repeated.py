"""A rating reads two accounts that seem to be one as one account."""

from decimal import Decimal

import polars as pl
from polars.testing import assert_frame_equal

from pipelines.figures.facts import Facts
from pipelines.integrity import finding_rows, findings, without_findings
from pipelines.metrics import METRICS, values
from tests.pipelines.integrity.test_findings import TODAY, TRADE, context_with_resolution, rows
from tests.pipelines.integrity.test_without_findings import with_balances

# Receipts of different sums on many days, a payment to another account, and rows on days of their own.
SALES = [(ago, f"{1000 + ago}.00", "customer_transfer", "a") for ago in range(20, 200, 10)]
PAID = [(25, "-700.00", "suppliers", "b"), (45, "-300.00", "own_transfer", None)]


def copied(ledger: pl.DataFrame, account: bytes, digit: bytes) -> pl.DataFrame:
    """Return the rows as another source may supply them: under another account, each with an id of its own."""
    other_id = pl.col("transaction_id").map_elements(lambda id_: digit + id_[1:], return_dtype=pl.Binary)
    return ledger.with_columns(account_id=pl.lit(account), transaction_id=other_id)


ONE = with_balances(rows(*TRADE, *SALES, *PAID))
TWICE = pl.concat([ONE, copied(ONE, b"zz", b"\xff")])


def metrics_of(facts: Facts) -> pl.DataFrame:
    return values(facts, METRICS)


def test_every_metric_is_that_of_one_account() -> None:
    dressed = Facts(TWICE, TODAY)
    assert findings(dressed)["finding"].to_list() == ["account_supplied_twice"]
    once = without_findings(dressed)
    assert once is not None
    assert_frame_equal(metrics_of(once), metrics_of(Facts(ONE, TODAY)))


def test_true_revenue_counts_receipts_once() -> None:
    left_out = finding_rows(Facts(TWICE, TODAY))["left_out"].sum()
    revenue = Facts(ONE, TODAY).rows.filter("is_revenue")["amount"].sum()
    assert left_out == revenue


def test_rows_that_only_one_of_the_accounts_has_stay() -> None:
    part = copied(ONE, b"zz", b"\xff").filter(pl.col("date") > ONE["date"].min(), pl.col("amount") != 1100)
    extra = copied(with_balances(rows((33, "55.00", "customer_transfer", "d"))), b"zz", b"\xee")
    both = Facts(pl.concat([ONE, part, extra]), TODAY)
    once = without_findings(both)
    assert once is not None
    assert once.accounts["account_id"].to_list() == [ONE["account_id"][0]]
    assert sum(once.rows["amount"]) == sum(ONE["amount"]) + Decimal(55)


def test_row_that_is_paired_as_a_transfer_stays_whichever_account_has_it() -> None:
    for paired in (0, 1):
        parts = [ONE, copied(ONE, b"zz", b"\xff")]
        is_transfer = pl.when(pl.col("category") == "own_transfer").then(pl.lit(value=True)).otherwise("is_transfer")
        parts[paired] = parts[paired].with_columns(is_transfer=is_transfer)
        once = without_findings(Facts(pl.concat(parts), TODAY))
        assert once is not None
        own = once.rows.filter(pl.col("category") == "own_transfer")
        assert own["is_transfer"].to_list() == [True], paired


def test_a_third_copy_counts_once_too() -> None:
    once = without_findings(Facts(pl.concat([TWICE, copied(ONE, b"zzz", b"\xfe")]), TODAY))
    assert once is not None
    assert_frame_equal(metrics_of(once), metrics_of(Facts(ONE, TODAY)))


def test_resolved_accounts_are_two() -> None:
    key = findings(Facts(TWICE, TODAY))["key"].item()
    assert without_findings(Facts(TWICE, TODAY, context_with_resolution(key))) is None


def sent_again(ledger: pl.DataFrame, seq: int = 2) -> pl.DataFrame:
    """Return the rows as another submission of the same account has them if matching doesn't recognise them."""
    return copied(ledger, ledger["account_id"][0], b"\xff").with_columns(received_seq=pl.lit(seq, pl.Int64))


AGAIN = pl.concat([ONE, sent_again(ONE)])


def test_every_metric_is_that_of_one_submission() -> None:
    twice = Facts(AGAIN, TODAY)
    assert findings(twice)["finding"].to_list() == ["account_supplied_twice"]
    assert finding_rows(twice)["left_out"].sum() == Facts(ONE, TODAY).rows.filter("is_revenue")["amount"].sum()
    once = without_findings(twice)
    assert once is not None
    assert_frame_equal(metrics_of(once), metrics_of(Facts(ONE, TODAY)))


def test_rows_that_only_one_of_the_submissions_has_stay() -> None:
    part = ONE.filter(pl.col("date") > ONE["date"].min(), pl.col("amount") != 1100)
    extra = sent_again(
        with_balances(rows((33, "55.00", "customer_transfer", "d"))).with_columns(transaction_id=pl.lit(b"x"))
    )
    once = without_findings(Facts(pl.concat([ONE, sent_again(part), extra]), TODAY))
    assert once is not None
    assert sum(once.rows["amount"]) == sum(ONE["amount"]) + Decimal(55)


def test_submission_that_repeats_a_daily_feed_counts_once() -> None:
    days = pl.col("date").rank("dense").cast(pl.Int64)
    for feed, seq in ((ONE.with_columns(received_seq=days), 10_000), (ONE.with_columns(received_seq=days + 1), 1)):
        once = without_findings(Facts(pl.concat([feed, sent_again(ONE, seq)]), TODAY))
        assert once is not None
        assert_frame_equal(once.rows.select("date", "amount"), Facts(ONE, TODAY).rows.select("date", "amount"))
        assert_frame_equal(metrics_of(once), metrics_of(Facts(ONE, TODAY)))


def test_daily_feed_that_repeats_a_daily_feed_counts_once() -> None:
    days = pl.col("date").rank("dense").cast(pl.Int64)
    again = sent_again(ONE).with_columns(received_seq=1000 + days)
    twice = Facts(pl.concat([ONE.with_columns(received_seq=days), again]), TODAY)
    assert finding_rows(twice)["left_out"].sum() == Facts(ONE, TODAY).rows.filter("is_revenue")["amount"].sum()
    once = without_findings(twice)
    assert once is not None
    assert_frame_equal(metrics_of(once), metrics_of(Facts(ONE, TODAY)))


def test_submissions_that_agree_on_few_days_are_two() -> None:
    is_other = pl.col("date").rank("dense") % 3 > 0
    other = sent_again(ONE).with_columns(amount=pl.when(is_other).then(pl.col("amount") + 1).otherwise("amount"))
    assert "account_supplied_twice" not in findings(Facts(pl.concat([ONE, other]), TODAY))["finding"]
