"""Pair movements of money between companies of one declared group, whose sides are in two customers' accounts.

This is done only if both companies are customers of the client and the client declared one as related to the other by
its ABN. Money that moves within a group is not trade of either company, even if its text says so. Because another
customer's rows then affect this customer's, a pair must be the only possible one: the same amount left one company and
entered the other within the days that a transfer takes, once on each side, and neither side is known to be a payment
with somebody else.
"""

import polars as pl

from pipelines.enrichment.calendars import SETTLEMENT, business_day_number
from pipelines.enrichment.matching.identities import derive_ids
from pipelines.enrichment.transfers.transfers import BASIS, MAX_BUSINESS_DAYS, MAX_CALENDAR_DAYS
from pipelines.vocabulary.schemas import MONEY, UUID, CategorySource, posted
from pipelines.vocabulary.taxonomy import RELATED_ENTITY, TAXONOMY

MIN_SIZE = 100  # AUD: a smaller amount may match by chance (our judgement)
CONFIDENCE = 0.95  # not calibrated
COLUMNS = (
    *("customer_number", "transaction_id", "date", "amount", "status", "superseded_seq", "channel"),
    *("category", "category_source", "counterparty_kind", "is_transfer"),
)
GROUP_ROWS = pl.Schema(
    {
        "customer_number": pl.Int64(),  # the customer that the other company is declared for
        "party": pl.String(),  # the other company, as the client named it
        "transaction_id": UUID,  # of the other company's row
        "date": pl.Date(),
        "amount": MONEY,
    }
)
_NOT_MOVED_BY = ("card", "eftpos", "atm", "cash", "fee", "interest")
_KINDS_OF_OTHERS = ("government", "lender", "processor", "bank")
_CATEGORIES_OF_OTHERS = tuple(
    slug
    for slug, each in TAXONOMY.categories.items()
    if each.group in ("payroll", "tax", "distress", "high_risk", "debt_inflow", "debt_service")
)
_SET_BY_CLIENT = ("client_rule", "correction")


def select_group_candidates(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Select rows (COLUMNS) that may be one side of a movement within a group.

    Returns:
        `customer_number`, `transaction_id`, `date` and `amount`.
    """
    return rows.filter(_may_move_within_group()).select("customer_number", "transaction_id", "date", "amount")


def mark_group_transfers(rows: pl.DataFrame, group_rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `is_transfer`, `transfer_pair_id` and `related_party` of rows whose other side was found.

    Their category becomes `related_entity`. Rows that the client corrected are left out.

    Args:
        rows: whole customers, with own transfers marked.
        group_rows: schema GROUP_ROWS, from `select_group_candidates` of the related customers.
    """
    return rows if group_rows.is_empty() else _add_pairs(rows, group_rows)


def _may_move_within_group() -> pl.Expr:
    own = pl.col("is_transfer") & (pl.col("category") != RELATED_ENTITY.slug)
    ruled_out_by = (
        own,
        pl.col("amount").abs() < pl.lit(MIN_SIZE, MONEY),
        pl.col("channel").is_in(_NOT_MOVED_BY),
        pl.col("counterparty_kind").is_in(_KINDS_OF_OTHERS),
        pl.col("category").is_in(_CATEGORIES_OF_OTHERS),
        pl.col("category_source").is_in(_SET_BY_CLIENT),
    )
    return posted() & ~pl.any_horizontal(condition.fill_null(value=False) for condition in ruled_out_by)


def _add_pairs(rows: pl.DataFrame, group_rows: pl.DataFrame) -> pl.DataFrame:
    here = rows.lazy().pipe(select_group_candidates)
    days = pl.col("date") - pl.col("date_there")
    business_days = business_day_number(pl.col("date"), pl.lit(SETTLEMENT)) - business_day_number(
        pl.col("date_there"), pl.lit(SETTLEMENT)
    )
    there = group_rows.lazy().rename({"transaction_id": "id_there", "date": "date_there"})
    candidates = (
        here.with_columns(opposite=-pl.col("amount"))
        .join(there, left_on=("customer_number", "opposite"), right_on=("customer_number", "amount"))
        .filter(days.dt.total_days().abs() <= MAX_CALENDAR_DAYS, business_days.abs() <= MAX_BUSINESS_DAYS)
        .filter(pl.len().over("transaction_id") == 1, pl.len().over("customer_number", "id_there") == 1)
        .collect()
    )
    first, second = (candidates.select(bound("transaction_id", "id_there")).to_series() for bound in _BOUNDS)
    pairs = candidates.select("transaction_id", "party").with_columns(pair_there=derive_ids(first, second))
    found = pl.col("pair_there").is_not_null() & posted()
    return (
        rows.join(pairs, on="transaction_id", how="left", validate="m:1", maintain_order="left")
        .with_columns(
            is_transfer=pl.col("is_transfer") | found,
            transfer_pair_id=pl.when(found).then("pair_there").otherwise("transfer_pair_id"),
            related_party=pl.coalesce("related_party", pl.when(found).then("party")),
            category=pl.when(found).then(pl.lit(RELATED_ENTITY.slug)).otherwise("category"),
            category_group=pl.when(found).then(pl.lit(RELATED_ENTITY.group)).otherwise("category_group"),
            category_source=pl.when(found).then(pl.lit("counterparty", CategorySource)).otherwise("category_source"),
            category_basis=pl.when(found).then(pl.lit(BASIS)).otherwise("category_basis"),
            confidence=pl.when(found).then(CONFIDENCE).otherwise("confidence"),
        )
        .drop("party", "pair_there")
    )


_BOUNDS = (pl.min_horizontal, pl.max_horizontal)
