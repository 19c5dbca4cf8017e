"""Measure what is recognised of debts when lists don't know the lender: unlisted, under another name, or nameless.

The synthetic businesses are the same in all three cases. A debt counts where behaviour can show it: the funding and at
least MIN_DEBITS repayments are within the statements. Others are measured apart: funding that is not seen, because a
dealer got it or it is older, and advances repaid by split settlement, which no row shows. For these, the drop of the
payouts is measured at the true fundings and on dates without one, to show why it can't be found from payouts alone.
"""

from collections.abc import Sequence
from datetime import date

import polars as pl

from benchmarks.accepted import accept_all
from benchmarks.table import Row
from pipelines.enrichment.counterparties import brands, counterparties
from pipelines.enrichment.counterparties.counterparties import Directory
from pipelines.enrichment.counterparties.lists import combine
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.facilities import add_inferred, summarise_facilities
from pipelines.enrichment.facilities.inferring import MIN_DEBITS
from pipelines.enrichment.facilities.split_settlement import MIN_T, measure_drops
from pipelines.enrichment.knowledge import Knowledge
from pipelines.synthetic import portfolio
from pipelines.synthetic.frames import facilities
from pipelines.vocabulary.schemas import TRANSACTIONS

TRUE_DEBT = ("customer_number", "true_facility")  # key of a debt of the synthetic portfolio
_PAYOUTS = ("card_settlement", "platform_payout")
_IS_DEBT_ROW = ~pl.col("true_category").is_in(
    _PAYOUTS
)  # a payout that a lender withholds a share of is no row of the debt
_PAYOUT = pl.col("category").is_in(_PAYOUTS) & (pl.col("amount") > 0)
CHANCE_MONTHS = (4, 5, 6, 7, 8)  # dates without an advance: the first day of the month, this many months before the end
CASES = (("unlisted", None, 0.95), ("renamed", "renamed", 0.95), ("nameless", "nameless", 0.8))


def measure_debt(customers: int, months: int, seed: int, until: date) -> Sequence[Row]:
    """Measure the three cases on a portfolio with this seed."""
    lists = Knowledge(lists=combine(without_lenders(), brands.load()))
    rows: list[Row] = []
    for case, lenders, least in CASES:
        businesses = list(portfolio(customers, months, seed, until, lenders=lenders))
        true = pl.concat(facilities(number, each) for number, each in enumerate(businesses, start=1))
        enriched, debts = _enrich(accept_all(businesses), lists), _rename_columns(true)
        rows += _measure_case(case, least, enriched, debts, until)
        rows += _measure_split_settlement(case, enriched, debts, until)
    return rows


def without_lenders() -> Directory:
    """Return the lists of counterparties without anyone whose purpose is to lend."""
    return Directory([party for party in counterparties.load_parties() if party.purpose.kind != "lender"])


def _enrich(rows: pl.DataFrame, lists: Knowledge) -> pl.DataFrame:
    """Return enriched rows (TRANSACTIONS) with the columns `true_…` of the given ones."""
    facts = rows.select(pl.exclude("^true_.*$"))
    truth = rows.select("received_seq", "position", pl.col("^true_.*$"))
    found = enrich(pl.DataFrame(schema=TRANSACTIONS), facts, knowledge=lists).transactions.collect()
    return found.join(truth, on=["received_seq", "position"], validate="1:1")


def _rename_columns(true: pl.DataFrame) -> pl.DataFrame:
    return true.select(
        pl.col("customer").cast(pl.Int64).alias(TRUE_DEBT[0]),
        pl.col("number").alias(TRUE_DEBT[1]),
        "schedule",
        "remaining",
        true_product="product",
    )


def _measure_case(case: str, least: float, enriched: pl.DataFrame, true: pl.DataFrame, until: date) -> list[Row]:
    seen = _match(enriched, true, until)
    split = pl.col("schedule") == "split_settlement"
    to_tax_office = pl.col("true_product") == "tax_payment_plan"
    lasting = seen.filter(~split, ~to_tax_office, pl.col("repayments") >= MIN_DEBITS)
    plans = seen.filter(to_tax_office, pl.col("repayments") >= MIN_DEBITS)
    funded = lasting.filter("is_funded")
    found = funded.filter("is_found")
    contains_truth = (
        pl.col("remaining").is_between(pl.col("remaining_low"), pl.col("remaining_high")).fill_null(value=False)
    )
    width = (pl.col("remaining_high") - pl.col("remaining_low")).cast(pl.Float64) / pl.col("funding_amount").cast(
        pl.Float64
    )
    is_right_kind = pl.col("product").cast(pl.String) == pl.col("true_product")
    name = f"debts with lenders {case}"
    return [
        Row(f"{name}: recall, of {funded.height}", _share(funded, "is_found"), f"≥ {least}"),
        Row(f"{name}: precision", _precision(enriched, funded=True), "≥ 0.95"),
        Row(f"{name}: kind is right", _share(found, is_right_kind), "≥ 0.85"),
        Row(f"{name}: interval of what remains contains the truth", _share(found, contains_truth), "≥ 0.85"),
        Row(f"{name}: median width of the interval ÷ funded", f"{found.select(width.median()).item():.3f}", "≤ 0.25"),
        Row(f"{name}: recall where the funding is not seen", _share(lasting.filter(~pl.col("is_funded")), "is_found")),
        Row(f"{name}: precision where the funding is not seen", _precision(enriched, funded=False)),
        Row(f"{name}: recall of plans with the tax office", _share(plans, "is_found")),
        Row(
            f"{name}: recall of split settlement",
            _share(seen.filter(split, "is_funded"), pl.col("withheld_share").is_not_null()),
        ),
    ]


def _share(rows: pl.DataFrame, holds: str | pl.Expr) -> str:
    return (
        f"{rows.select((pl.col(holds) if isinstance(holds, str) else holds).fill_null(value=False).mean()).item():.3f}"
    )


def _match(enriched: pl.DataFrame, true: pl.DataFrame, until: date) -> pl.DataFrame:
    """Return the true debts, each with the facility that has most of its rows, and whether these are half or more."""
    rows = add_inferred(enriched).filter(pl.col("true_facility").is_not_null(), _IS_DEBT_ROW)
    out = (pl.col("amount") < 0) & (pl.col("true_category") != "returned_payment")
    debts = rows.group_by(TRUE_DEBT).agg(
        repayments=out.sum(),
        is_funded=((pl.col("amount") > 0) & (pl.col("true_category") != "returned_payment")).any(),
        rows=pl.len(),
    )
    shared = (
        rows.drop_nulls("facility_id").group_by(*TRUE_DEBT, "facility_id").len().sort("len", *TRUE_DEBT, "facility_id")
    )
    best = shared.unique(TRUE_DEBT, keep="last", maintain_order=True)
    summaries = summarise_facilities(enriched, until).drop("customer_number")
    return (
        debts.join(best, on=TRUE_DEBT, how="left", validate="1:1")
        .join(summaries, on="facility_id", how="left", validate="m:1")
        .join(true, on=TRUE_DEBT, validate="1:1")
        .with_columns(is_found=(pl.col("len") * 2 >= pl.col("rows")).fill_null(value=False))
    )


def _precision(enriched: pl.DataFrame, funded: bool) -> str:
    """Return the share of the reported facilities of which most rows belong to a true debt.

    Owners' loans and cards whose account was not supplied count as true: the portfolio has them, but not as facilities.
    """
    rows = add_inferred(enriched).drop_nulls("facility_id")
    is_known_debt = pl.col("true_category").str.contains("^(?:director_loan|card_repayment)")
    true = pl.col("true_facility").is_not_null() | is_known_debt
    reported = rows.group_by("facility_id").agg(
        right=true.mean() > 0.5, is_funded=(pl.col("amount") > 0).any(), repaid=(pl.col("amount") < 0).any()
    )
    return f"{reported.filter(pl.col('is_funded') == funded, 'repaid')['right'].mean():.3f}"


def _measure_split_settlement(case: str, enriched: pl.DataFrame, true: pl.DataFrame, until: date) -> list[Row]:
    """Measure the drop of payouts after advances repaid by split settlement, and on dates without one."""
    split = true.filter(pl.col("schedule") == "split_settlement")
    takings = enriched.lazy().filter(
        pl.col("category_group") == "revenue", pl.col("amount") > 0, ~pl.col("is_transfer")
    )
    drops = measure_drops(takings, _list_advances(enriched, split)).collect()["t"]
    payers = _list_payers(enriched.join(split, on="customer_number", how="anti"))
    chance = pl.concat(
        measure_drops(takings, payers.with_columns(funding_date=day)).collect()["t"]
        for day in (pl.lit(until).dt.offset_by(f"-{months}mo").dt.month_start() for months in CHANCE_MONTHS)
    )
    name = f"debts with lenders {case}: drop of payouts"
    figures = f"median in standard errors, share of {MIN_T:g} and of {MIN_T + 1:g} or more"
    return [
        Row(f"{name} after {len(drops)} advances repaid by split settlement: {figures}", _format_drops(drops)),
        Row(f"{name} on {len(chance):,} dates without an advance: {figures}", _format_drops(chance)),
    ]


def _format_drops(t: pl.Series) -> str:
    return f"{t.median():.2f}, {(t >= MIN_T).mean():.3f}, {(t >= MIN_T + 1).mean():.3f}"


def _list_advances(enriched: pl.DataFrame, split: pl.DataFrame) -> pl.DataFrame:
    """Return each customer's advance: `facility_id` (the customer), `funding_date`, `lender_name` (who pays out)."""
    rows = enriched.join(split.select(TRUE_DEBT), on=TRUE_DEBT, how="semi").filter(pl.col("amount") > 0)
    return (
        rows.group_by("customer_number")
        .agg(
            facility_id=pl.col("customer_number").first(),
            funding_date=pl.col("date").filter(~_PAYOUT | pl.col("true_category").str.ends_with("_funding")).min(),
            lender_name=_commonest_name(pl.col("counterparty_name").filter(_PAYOUT)),
        )
        .drop_nulls()
    )


def _list_payers(enriched: pl.DataFrame) -> pl.DataFrame:
    """Return each customer's commonest payer of card and platform payouts, as `lender_name`, and `facility_id`."""
    payouts = enriched.filter(_PAYOUT).group_by("customer_number")
    payers = payouts.agg(lender_name=_commonest_name(pl.col("counterparty_name")))
    return payers.drop_nulls().with_columns(facility_id="customer_number")


def _commonest_name(names: pl.Expr) -> pl.Expr:
    return names.drop_nulls().mode().sort().first()
