"""The benchmark of evidence rates a customer anew after leaving out an account."""

import polars as pl
import pytest

from benchmarks.evidence import rate_as_sent, without_an_account
from pipelines.trials.subjects import as_accepted
from tests.pipelines.attacks.business import APPLIED, LEDGER_BEFORE


@pytest.mark.service  # enriches and rates, twice
def test_leaving_out_the_account_with_a_garnishee_shows_as_an_improvement() -> None:
    is_sound = pl.col("category").is_in(["customer_transfer", "wages", "card_settlement", "suppliers"])
    is_garnishee = pl.col("category") == "garnishee"
    recent = LEDGER_BEFORE.filter(is_sound | (is_garnishee & (pl.col("date").dt.year() == APPLIED.year)))
    moved = recent.with_columns(account=pl.when(is_garnishee).then(pl.lit("20002")).otherwise("account"))
    ledger = moved.with_columns(balance=pl.col("amount").cum_sum().over("account") + 300_000)
    accepted = as_accepted(1, ledger, {})
    left = [without_an_account(accepted, seed) for seed in range(8)]
    assert {each["account_id"].n_unique() for each in left} == {1}
    [fewer, *_] = [each for each in left if (each["description"].str.contains("Garnishee")).sum() == 0]
    assert without_an_account(fewer, 1).is_empty()  # only customers with several accounts are compared
    whole = rate_as_sent(accepted, APPLIED)["grade"].item()
    assert whole >= "D"
    assert rate_as_sent(fewer, APPLIED)["grade"].item() < whole
