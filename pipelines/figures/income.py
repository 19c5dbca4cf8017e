"""Regular income (`enrichment.income`), computed once for all figures that use it."""

import polars as pl

from pipelines.enrichment.income import PAYER, PROBABILITIES, find_payers, list_credits, weigh_kinds
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.plans import AS_WRITTEN, collect


def regular_payers(facts: Facts) -> pl.DataFrame:
    """Return the payers that pay regularly, with the probabilities of each kind of income (`weigh_kinds`)."""
    return facts.cached(_payers)


def income_rows(facts: Facts) -> pl.DataFrame:
    """Return the credits of regular payers (`list_credits`), sorted by payer and date."""
    return facts.cached(_credits).join(regular_payers(facts), on=PAYER, how="semi", maintain_order="left")


def add_income(facts: Facts, rows: pl.DataFrame) -> pl.DataFrame:
    """Add PROBABILITIES to rows of the facts: those of the row's payer; null where the row is no regular income."""
    row, kinds = (BY_CUSTOMER, "transaction_id"), list(PROBABILITIES.values())
    payers = regular_payers(facts).lazy().select(*PAYER, *kinds)
    paying = facts.cached(_credits).lazy().select(*row, *PAYER[1:])
    paid = paying.join(payers, on=PAYER, validate="m:1").select(*row, *kinds)
    marked = rows.lazy().join(paid, on=row, how="left", validate="1:1", maintain_order="left")
    in_order = marked.with_columns(pl.col(BY_CUSTOMER).set_sorted())
    return in_order.collect(engine="in-memory", optimizations=AS_WRITTEN)


def _credits(facts: Facts) -> pl.DataFrame:
    """Return `list_credits`. If several customers are one customer on different days, texts are read once for all."""
    if facts.whole is facts:
        return facts.rows.lazy().filter(pl.col("is_external")).pipe(list_credits)
    shared = facts.whole.cached(_credits).drop(BY_CUSTOMER)
    known = facts.rows.select(BY_CUSTOMER, "transaction_id")
    return known.join(shared, on="transaction_id", validate="m:1").sort(*PAYER, "date", "transaction_id")


def _payers(facts: Facts) -> pl.DataFrame:
    of_payers = facts.cached(_credits)
    through = facts.rows.lazy().group_by(BY_ACCOUNT).agg(through=pl.col("date").max()).pipe(collect)
    return weigh_kinds(find_payers(of_payers, through), of_payers)
