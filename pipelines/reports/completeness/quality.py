"""Quality of the data: how reliable the rows are.

- a **round sum** is a multiple of 100, not zero;
- a **backdated** row came in a later submission than a row of the same account that is dated more than LATE days after
  it: a correction or a forgery may have added it to the past;
- `duplicateRows` and `rejectedRows` count rows that were sent and aren't among the transactions; null where unknown.

Signs that a statement's PDF was changed are listed with the statements (`documents`).
"""

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.cached import cached
from pipelines.vocabulary.report_values import RATIO, ratio

LATE = 31  # days: a statement may well arrive after the next one; our judgement
ROUND = 100  # AUD


def measured_rows(facts: Facts) -> pl.LazyFrame:
    """Return all rows with `moved`, their amount without its sign."""
    return facts.rows.lazy().select(
        BY_CUSTOMER,
        "transaction_id",
        "revision",
        "balance",
        "confidence",
        "amount",
        moved=pl.col("money_in") + pl.col("money_out"),
        is_known=words.is_categorised(),
    )


@cached
def backdated_rows(facts: Facts) -> pl.LazyFrame:
    """Return rows that were received after rows of their account dated more than LATE days later."""
    sent = facts.rows.select(*BY_ACCOUNT, "date", "received_seq", "transaction_id")
    seq = pl.col("received_seq")
    several = sent.group_by(BY_ACCOUNT).agg(several=seq.min() != seq.max()).filter("several")
    if several.is_empty():
        return sent.clear().lazy()
    candidates = sent.lazy().join(several.lazy(), on=BY_ACCOUNT, how="semi")
    dates = candidates.group_by(*BY_ACCOUNT, "date").agg(first_sent=seq.min()).sort(*BY_ACCOUNT, "date")
    later = dates.with_columns(first_sent=first_seq_since())
    bounded = candidates.with_columns(beyond=pl.col("date") + pl.duration(days=LATE + 1)).sort("beyond")
    compared = bounded.join_asof(
        later.rename({"date": "later"}).sort("later"),
        left_on="beyond",
        right_on="later",
        by=list(BY_ACCOUNT),
        strategy="forward",
        check_sortedness=False,
    )
    return compared.filter(pl.col("first_sent") < seq)


def first_seq_since() -> pl.Expr:
    """Return the first submission that brought a row of that date or a later one."""
    return pl.col("first_sent").reverse().cum_min().reverse().over(BY_ACCOUNT)


def sent_rows(facts: Facts) -> pl.LazyFrame:
    intake = facts.context.intake.lazy().select(BY_CUSTOMER, duplicateRows="duplicates", rejectedRows="rejected")
    return facts.customers.lazy().join(intake, on=BY_CUSTOMER, how="left", validate="1:1")


QUALITY = Table(
    id="quality",
    name="Quality of the data",
    hierarchy="customer",
    type="summary",
    keys=(),
    details=(Column("duplicateRows", "count"), Column("rejectedRows", "count")),
    listed=sent_rows,
    sources=(
        Source(
            measured_rows,
            (
                Total("transactionCount", "count", pl.lit(1)),
                Total("revisedRows", "count", pl.when(pl.col("revision") > 1).then(pl.lit(1))),
                Total("rowsWithBalance", "count", pl.when(pl.col("balance").is_not_null()).then(pl.lit(1))),
                Total(
                    "roundSums",
                    "count",
                    pl.when((pl.col("moved") % ROUND == 0) & (pl.col("moved") != 0)).then(pl.lit(1)),
                ),
                Total("movedTotal", "AUD", pl.col("moved")),
                Total("uncategorisedTotal", "AUD", pl.when(~pl.col("is_known")).then("moved")),
                Total("confidentTotal", "ratio", pl.col("moved").cast(RATIO) * pl.col("confidence").cast(RATIO)),
            ),
        ),
        Source(backdated_rows, (Total("backdatedRows", "count", pl.lit(1)),)),
    ),
    derived=(
        Derived(
            "balanceShare",
            "ratio",
            ("rowsWithBalance", "transactionCount"),
            ratio(pl.col("rowsWithBalance"), pl.col("transactionCount")),
            "rowsWithBalance / transactionCount",
        ),
        Derived(
            "uncategorisedShare",
            "ratio",
            ("uncategorisedTotal", "movedTotal"),
            ratio(pl.col("uncategorisedTotal"), pl.col("movedTotal")),
            "uncategorisedTotal / movedTotal",
        ),
        Derived(
            "meanConfidence",
            "ratio",
            ("confidentTotal", "movedTotal"),
            ratio(pl.col("confidentTotal"), pl.col("movedTotal")),
            "the sum of each row's amount times its confidence / movedTotal",
        ),
        Derived(
            "roundShare",
            "ratio",
            ("roundSums", "transactionCount"),
            ratio(pl.col("roundSums"), pl.col("transactionCount")),
            "roundSums / transactionCount",
        ),
    ),
    hidden=("confidentTotal",),
    order=(),
)
