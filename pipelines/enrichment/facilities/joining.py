"""Decide which rows belong to one facility.

Rows of one customer, lender and product are read in order of time. If two regular streams of repayments run in
parallel, each is a **chain**. An amount that starts after another has ended continues its chain, as with a repriced
loan. A funding belongs to the chain whose repayments start after it. Along a chain, each funding begins a new facility,
and so does a long silence. Revolving credit is one facility, however often it is drawn. Other repayments (an odd last
instalment, a double one) go to the chain of the nearest amount. Accounts don't matter, because one facility may be
repaid from two of them.
"""

from functools import cache

import polars as pl

from pipelines.enrichment.facilities.products import REVOLVING, credit_product
from pipelines.enrichment.matching.identities import derive_ids
from pipelines.enrichment.matching.pairing import pair_latest_first, pair_oldest_first
from pipelines.enrichment.matching.reversals import pair_returns, party
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.plans import AS_WRITTEN, collect
from pipelines.vocabulary.schemas import UUID, posted

# The numbers are our judgement.
STREAM_ROWS = 3  # repayments of one amount that make a stream
STREAM_SHARE = 0.8  # share of the gaps between them that must be similar
FUNDING_TO_REPAYMENT_DAYS = 62  # a monthly loan's first instalment, with a month's grace
SAME_DRAWDOWN_DAYS = 7  # between credits of one drawdown that is paid out in parts
SILENCE_DAYS, SILENCE_GAPS = 100, 6  # after a gap longer than 100 days and six usual gaps, another facility begins

_BORROWING = ("customer_number", "lender", "product")
_AMOUNT = (*_BORROWING, "size")
_CHAIN = (*_BORROWING, "chain")
_ORDER = ("date", "funds", "transaction_id")  # on one day, the old loan is paid off before the new one begins


def mark_facilities(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `facility_id` of rows that fund or repay a facility, and of the rows that return bounced repayments.

    The sum of a facility's rows is what was funded less what was repaid. An id is derived from the facility's first
    row, so it stays when later rows are added.

    Args:
        rows: whole customers, with category, counterparty and transfers filled.
    """
    unmarked = rows.drop("facility_id", strict=False)
    numbered = unmarked.with_row_index("row")
    borrowed = _select_borrowing(numbered)
    if borrowed.is_empty():
        return unmarked.with_columns(facility_id=pl.lit(None, UUID))
    facilities = join_facilities(borrowed.drop("place"))
    named = borrowed.select("row", "place").join(facilities, on="row", validate="1:1")
    named = named.select("facility_id", row="place")
    bounced = pair_returns(numbered).join(named, left_on="opened", right_on="row").select("facility_id", row="closed")
    members = pl.concat([named, bounced])
    return add_by_row(unmarked, members)


def join_facilities(borrowed: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `facility_id` of rows that fund or repay.

    Args:
        borrowed: `row` (its number, in order of time), `customer_number`, `lender`, `product`, `date`,
            `transaction_id`, `size` (AUD, positive), and whether the row `funds`.
    """
    return borrowed.pipe(_add_chains).pipe(_find_first_rows).pipe(_name_facilities)


def _select_borrowing(numbered: pl.DataFrame) -> pl.DataFrame:
    """Select rows that fund or repay, sorted by time; `row` is their number here, `place` the number among all rows.

    So the result does not depend on the order of the input. Transfers between own accounts are left out.
    """
    return (
        numbered.lazy()
        .filter(posted(), pl.col("is_transfer").ne_missing(True))
        .with_columns(product=credit_product())
        .filter(pl.col("product").is_not_null())
        .select(
            "customer_number",
            "product",
            "date",
            "transaction_id",
            lender=lender(),
            size=pl.col("amount").abs(),
            place="row",
            funds=pl.col("amount") > 0,
        )
        .sort("customer_number", "date", "transaction_id")
        .with_row_index("row")
        .pipe(collect)
    )


@cache
def lender() -> pl.Expr:
    """Return who lends, as far as known: a related party, a listed lender, a name, else the account that is paid."""
    owner = pl.when(pl.col("product") == "director_loan").then("related_party")
    return pl.coalesce(owner, "counterparty_lender_id", party(), "other_account", pl.lit(""))


def _add_chains(borrowed: pl.DataFrame) -> pl.DataFrame:
    """Add `chain` (UInt32), the first row of the stream that a row belongs to; 0 if there is at most one chain."""
    streams = borrowed.filter(~pl.col("funds"), ~pl.col("product").is_in(REVOLVING)).pipe(find_streams)
    chains = streams.filter(pl.len().over(_BORROWING) > 1)
    if not chains.is_empty():  # true of few customers
        chains = chains.pipe(_join_streams).filter(pl.col("chain").n_unique().over(_BORROWING) > 1)
    if chains.is_empty():
        return borrowed.with_columns(chain=pl.lit(0, pl.UInt32()))
    repayments = borrowed.filter(~pl.col("funds")).pipe(_assign_by_amount, chains)
    fundings = borrowed.filter("funds").pipe(_assign_by_start, chains)
    return pl.concat([repayments, fundings]).with_columns(pl.col("chain").fill_null(0))


def find_streams(repayments: pl.DataFrame) -> pl.DataFrame:
    """Find amounts that are repaid regularly: the first `row`, `first` and `last` date, and on how many `days`.

    Gaps are counted in business days, so that daily remittances have gaps of one. Most gaps must be similar to the
    median gap: equal for payments every day or two, else within 15 %, to allow for holidays and the lengths of months.
    """
    gap, usual = pl.col("gap"), pl.col("gap").median()
    tolerance = pl.when(usual >= 3).then((usual * 0.15).ceil()).otherwise(0)
    alike = ((gap - usual).abs() <= tolerance).mean()
    return (
        repayments.lazy()
        .group_by(*_AMOUNT, "date")
        .agg(pl.col("row").min())
        .sort(*_AMOUNT, "date")
        .with_columns(gap=pl.business_day_count(pl.col("date").shift(1).over(_AMOUNT), "date"))
        .group_by(_AMOUNT)
        .agg(pl.col("row").first(), days=pl.len(), alike=alike, first=pl.col("date").min(), last=pl.col("date").max())
        .filter(pl.col("days") >= STREAM_ROWS, pl.col("alike") >= STREAM_SHARE)
        .drop("alike")
        .sort(*_BORROWING, "first", "row")
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _join_streams(streams: pl.DataFrame) -> pl.DataFrame:
    """Add `chain` to streams. A stream that starts after others have ended continues the one that ended first."""
    sides = [
        streams.select(*_BORROWING, "row", date=date, opens=pl.lit(opens))
        for date, opens in (("last", True), ("first", False))
    ]
    continued = pair_oldest_first(pl.concat(sides), _BORROWING, ("date", "opens", "row"))
    return streams.join(_find_roots(streams["row"], continued), on="row", validate="1:1")


def _find_roots(rows: pl.Series, continued: pl.DataFrame) -> pl.DataFrame:
    """Return each stream's `chain`: the first of the streams that it continues. Each pass goes back twice as far."""
    back = continued.select(row="closed", chain="opened")
    found = pl.DataFrame({"row": rows}).join(back, on="row", how="left", validate="1:1")
    found = found.with_columns(pl.col("chain").fill_null(pl.col("row")))
    while True:
        further = found.join(found.rename({"row": "chain", "chain": "root"}), on="chain", validate="m:1")
        further = further.select("row", chain="root").sort("row")
        if further.equals(found.sort("row")):
            return further
        found = further


def _assign_by_amount(repayments: pl.DataFrame, chains: pl.DataFrame) -> pl.DataFrame:
    """Add to repayments the chain of the nearest amount among the lender's streams."""
    amounts = chains.select(*_AMOUNT, "chain").sort("size", "chain")
    ordered = repayments.sort("size", "row")
    return ordered.join_asof(amounts, on="size", by=_BORROWING, strategy="nearest", check_sortedness=False)


def _assign_by_start(fundings: pl.DataFrame, chains: pl.DataFrame) -> pl.DataFrame:
    """Add to fundings the chain of the stream that starts next or, if none starts soon, of the one that began last."""
    sides = [
        fundings.select(*_BORROWING, "row", "date", opens=pl.lit(value=True), closes=pl.lit(value=False)),
        chains.select(*_BORROWING, "row", date="first", opens=pl.lit(value=False), closes=pl.lit(value=True)),
    ]
    met = pair_latest_first(pl.concat(sides), _BORROWING, ("date", "closes", "row")).join(
        chains.select("first", "chain", closed="row"), on="closed", validate="1:1"
    )
    soon = (
        fundings.join(met, left_on="row", right_on="opened", how="left", validate="1:1")
        .with_columns(soon=(pl.col("first") - pl.col("date")).dt.total_days() <= FUNDING_TO_REPAYMENT_DAYS)
        .with_columns(chain=pl.when("soon").then("chain"))
        .select(*fundings.columns, "chain")
    )
    running = chains.select(*_BORROWING, date="first", running="chain").sort("date", "running")
    return (
        soon.sort("date", "row")
        .join_asof(running, on="date", by=_BORROWING, check_sortedness=False)
        .with_columns(chain=pl.coalesce("chain", "running"))
        .drop("running")
    )


def _find_first_rows(chained: pl.DataFrame) -> pl.DataFrame:
    """Add `first_row` of a row's facility. Along a chain, facilities are numbered; revolving credit has only one."""
    before = {name: pl.col(name).shift(1).over(_CHAIN) for name in ("date", "funds")}
    days = (pl.col("date") - pl.col("date_before")).dt.total_days()
    drawn = pl.col("funds") & ~(pl.col("funds_before") & (days <= SAME_DRAWDOWN_DAYS)).fill_null(value=False)
    silence = pl.max_horizontal(pl.lit(SILENCE_DAYS), SILENCE_GAPS * days.median().over(_CHAIN))
    silent = ~pl.col("funds") & ~pl.col("funds_before") & (days > silence)
    begins = (drawn | silent.fill_null(value=False)) & ~pl.col("product").is_in(REVOLVING)
    return (
        chained.lazy()
        .sort(*_CHAIN, *_ORDER)
        .with_columns(date_before=before["date"], funds_before=before["funds"])
        .with_columns(begins=begins)
        .with_columns(facility=pl.col("begins").cum_sum().over(_CHAIN))
        .with_columns(first_row=pl.col("row").first().over(*_CHAIN, "facility"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _name_facilities(chained: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `facility_id`, derived from the facility's first row, which later rows don't change."""
    anchors = chained.filter(pl.col("row") == pl.col("first_row")).select("first_row", "transaction_id")
    facility_id = derive_ids(anchors["transaction_id"], pl.repeat("facility", anchors.height, eager=True))
    named = anchors.select("first_row", facility_id=facility_id)
    return chained.join(named, on="first_row", validate="m:1").select("row", "facility_id")
