"""What is known about customers beside their transactions: what their lender corrected, and who stands beside them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.transfers.group_pairs import GROUP_ROWS
from pipelines.vocabulary.schemas import UUID, Direction

# What a client corrected and what follows from it, one row a customer whom it holds for. Exactly one of
# `transaction_id`, `counterparty_group` and `words` is filled: it says which rows are meant.
CORRECTIONS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "correction_id": UUID,
        "position": pl.Int64(),  # order of making: the later of two wins
        "transaction_id": UUID,  # this transaction
        "counterparty_group": pl.String(),  # all with this counterparty
        "words": pl.String(),  # all whose text holds these words, side by side, in any case
        "direction": Direction,  # only money in, or only money out; null: both
        "category": pl.String(),  # what they are; null: unchanged
        "counterparty_name": pl.String(),  # with whom; null: unchanged
    }
)

# Whom clients declared to be related to their customers: directors, guarantors, companies of the same group.
RELATED_PARTIES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "name": pl.String(),
        "abn": pl.String(),
        "role": pl.String(),
    }
)

# The customers' own names, as the client gave them.
CUSTOMERS = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})


@dataclass(frozen=True)
class ModelOfCustomers:
    """The learned model that their client activated for some customers."""

    customers: frozenset[int]
    model: Model


@dataclass(frozen=True)
class Knowledge:
    """`corrections` (CORRECTIONS), `related_parties` (RELATED_PARTIES) and `customers` (CUSTOMERS) of a batch, the
    models of those for whom not the one decides that Tidemark brings, and what may have moved within their groups
    (GROUP_ROWS).
    """

    corrections: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CORRECTIONS))
    related_parties: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RELATED_PARTIES))
    customers: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CUSTOMERS))
    models: Sequence[ModelOfCustomers] = ()
    group_rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GROUP_ROWS))

    def of(self, customer_numbers: Collection[int]) -> "Knowledge":
        """What concerns some of the customers."""
        only = pl.col("customer_number").is_in(list(customer_numbers))
        return Knowledge(
            corrections=self.corrections.filter(only),
            related_parties=self.related_parties.filter(only),
            customers=self.customers.filter(only),
            models=self.models,
            group_rows=self.group_rows.filter(only),
        )


NOTHING_KNOWN = Knowledge()
