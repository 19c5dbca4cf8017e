"""Which banks and brands are held out of training, and that training never meets them."""

import subprocess
import sys
from datetime import date

import polars as pl
import pytest
from msgspec.structs import astuple

from pipelines.synthetic import Business, Part, held_out_banks, is_held_out, portfolio
from pipelines.synthetic.world.brands import available, brands, canonical, select_allowed
from pipelines.synthetic.world.merchants import bills_by_family, merchants
from pipelines.synthetic.world.styles import bank_styles

pytestmark = pytest.mark.slow  # the generator of synthetic data alone

UNTIL = date(2025, 6, 30)
BRANDS = sorted(
    {canonical(shop) for spend in merchants().everyday_spends for shop in spend.shops if not shop.startswith("~")}
    | {
        canonical(bill.name)
        for family in bills_by_family().values()
        for bill in family
        if not bill.name.startswith("~")
    }
    | set(map(canonical, merchants().wagering))
)


@pytest.mark.parametrize(
    ("printed", "spoken"),
    [
        ("BUNNINGS {n3}000", "Bunnings"),
        ("FACEBK *{a10}", "Facebook"),
        ("OPTUS BILLING", "Optus"),
        ("SHOPIFY* {n9}", "Shopify"),
        ("GETCAPITAL AUST", "GetCapital"),
        ("KENNARDS HIRE", "Kennards Hire"),
        ("CITY OF YARRA", "City of Yarra"),
        ("Banksia Timber", "Banksia Timber"),
        ("", ""),
    ],
)
def test_a_printed_name_has_one_spoken_name(printed: str, spoken: str) -> None:
    assert canonical(printed) == spoken


def test_about_a_fifth_of_the_brands_is_held_out() -> None:
    assert 0.12 < sum(map(is_held_out, BRANDS)) / len(BRANDS) < 0.28


def test_what_is_held_out_does_not_depend_on_the_process() -> None:
    program = f"from pipelines.synthetic import is_held_out; print([is_held_out(one) for one in {BRANDS!r}])"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60)
    assert printed.stdout.strip() == str([is_held_out(one) for one in BRANDS])


def test_what_a_business_cannot_choose_is_never_held_out() -> None:
    bodies = {canonical(name) for state in merchants().state_bodies.values() for name in astuple(state)}
    assert bodies | {canonical(bill.name) for bill in bills_by_family()["water"]} <= brands().irreplaceable
    assert not any(map(is_held_out, brands().irreplaceable))


def test_two_whole_banks_are_held_out() -> None:
    assert len(held_out_banks()) == 2
    assert {style.name for style in bank_styles()} > held_out_banks()


def test_training_leaves_out_what_a_test_prefers() -> None:
    held_out = next(one for one in BRANDS if is_held_out(one))
    known = next(one for one in BRANDS if not is_held_out(one))
    pool = [held_out, known]
    assert list(available(pool, str, None)) == pool
    assert list(available(pool, str, "train")) == [known]
    assert list(available(pool, str, "test")) == [held_out]
    assert list(available([known], str, "test")) == [known]
    assert list(select_allowed(pool, str, "test")) == pool


def rows(part: Part | None) -> tuple[list[Business], pl.DataFrame]:
    businesses = list(portfolio(25, 6, seed=2, until=UNTIL, part=part))
    frames = [
        account.transactions.with_columns(bank=pl.lit(account.bank_name))
        for one in businesses
        for account in one.accounts
    ]
    return businesses, pl.concat(frames)


def test_businesses_to_train_on_meet_nothing_held_out() -> None:
    _, met = rows("train")
    assert met["held_out"].sum() == 0
    assert not held_out_banks() & set(met["bank"])


def test_businesses_to_test_on_bank_where_training_never_does_and_meet_more_held_out_brands() -> None:
    _, met = rows("test")
    assert set(met["bank"]) == held_out_banks()
    _, usual = rows(None)
    share = [
        frame.select(pl.col("counterparty").drop_nulls().map_batches(_are_held_out).mean()).item()
        for frame in (met, usual)
    ]
    assert share[0] > share[1] > 0


def _are_held_out(names: pl.Series) -> pl.Series:
    return pl.Series([is_held_out(name) for name in names])


def test_the_parts_are_different_businesses() -> None:
    numbers = [{one.abn for one in rows(part)[0]} for part in ("train", "test", None)]
    assert len(set.union(*numbers)) == sum(map(len, numbers))


def test_in_the_whole_portfolio_rows_of_held_out_banks_and_brands_are_marked() -> None:
    _, met = rows(None)
    assert met.filter(pl.col("bank").is_in(held_out_banks()))["held_out"].all()
    elsewhere = met.filter(~pl.col("bank").is_in(held_out_banks()))
    known = elsewhere.filter(pl.col("counterparty").is_in(BRANDS)).select("counterparty", "held_out").unique()
    assert all(is_held_out(brand) == marked for brand, marked in known.rows())
    assert elsewhere.filter(pl.col("counterparty").is_null())["held_out"].sum() == 0
