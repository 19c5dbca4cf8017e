"""Of the data: how far each row can be relied on.

- a **round sum** is a multiple of 100, not zero;
- a **backdated** row came in a later submission than a row of the same account that is dated after it by more than
  LATE days: history that was added to, which a correction and a forgery have in common;
- `duplicateRows` and `rejectedRows` count what was sent and isn't among the transactions; null where nobody said.

Signs that a statement's PDF was changed stand beside the statements (`documents`).
"""

import polars as pl

from pipelines.figures import words
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tables import Column, Derived, Source, Table, Total
from pipelines.reports.completeness.cached import cached
from pipelines.vocabulary.printing import RATIO, ratio

LATE = 31  # days: a statement that comes after the next one is nothing odd
ROUND = 100  # AUD


def judged_rows(facts: Facts) -> pl.LazyFrame:
    """All rows with `moved`, their amount without its sign."""
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
    """Rows of accounts with several submissions that came after rows dated more than LATE days later."""
    sent = facts.rows.lazy().select(*BY_ACCOUNT, "date", "received_seq", "transaction_id")
    seq = pl.col("received_seq")
    several = sent.group_by(BY_ACCOUNT).agg(several=seq.min() != seq.max()).filter("several").drop("several")
    in_question = sent.join(several, on=BY_ACCOUNT, how="semi")
    dates = in_question.group_by(*BY_ACCOUNT, "date").agg(first_sent=seq.min()).sort(*BY_ACCOUNT, "date")
    later = dates.with_columns(first_sent=seq_so_far())
    asked = in_question.with_columns(beyond=pl.col("date") + pl.duration(days=LATE + 1)).sort("beyond")
    found = asked.join_asof(
        later.rename({"date": "later"}).sort("later"),
        left_on="beyond",
        right_on="later",
        by=list(BY_ACCOUNT),
        strategy="forward",
        check_sortedness=False,
    )
    return found.filter(pl.col("first_sent") < seq)


def seq_so_far() -> pl.Expr:
    """The first submission that brought a row of that date or a later one."""
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
            judged_rows,
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
