"""What is known about customers besides their transactions: corrections, related parties, own names and models."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import polars as pl

from pipelines.enrichment.counterparties.lists import Lists
from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.transfers.group_pairs import GROUP_ROWS
from pipelines.vocabulary.schemas import UUID, Direction

# A client's corrections, one row for each customer that a correction applies to. Exactly one of `transaction_id`,
# `counterparty_group` and `words` is filled and selects the rows.
CORRECTIONS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "correction_id": UUID,
        "position": pl.Int64(),  # in the order of creation: the later of two wins
        "transaction_id": UUID,  # this transaction
        "counterparty_group": pl.String(),  # all transactions with this counterparty
        "words": pl.String(),  # all transactions whose text contains these words, adjacent, in any case
        "direction": Direction,  # only money in, or only money out; null: both
        "category": pl.String(),  # the corrected category; null: unchanged
        "counterparty_name": pl.String(),  # the corrected counterparty; null: unchanged
    }
)

# Parties that clients declared as related to their customers: directors, guarantors, companies of the same group.
RELATED_PARTIES = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "name": pl.String(),
        "abn": pl.String(),
        "role": pl.String(),
    }
)

# The customers' own names, as the client sent them.
CUSTOMERS = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})


T = TypeVar("T")


@dataclass(frozen=True)
class Activated(Generic[T]):
    """What a client activated, such as a learned model, and the numbers of the customers for whom it did."""

    customers: frozenset[int]
    value: T


@dataclass(frozen=True)
class Knowledge:
    """What is known about the customers of a batch.

    `corrections`, `related_parties`, `customers` and `group_rows` have the schemas of the same names. `models` lists
    clients' own models, each with the customers for whom it decides instead of the shipped one. `own_lists` does the
    same for clients' own rules over the shipped ones, and `lists` replaces the shipped ones for all others.
    """

    corrections: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CORRECTIONS))
    related_parties: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RELATED_PARTIES))
    customers: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CUSTOMERS))
    models: Sequence[Activated[Model]] = ()
    group_rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GROUP_ROWS))
    lists: Lists | None = None
    own_lists: Sequence[Activated[Lists]] = ()

    def for_customers(self, customer_numbers: Collection[int]) -> "Knowledge":
        """Select what concerns these customers. Models, rules and lists stay whole."""
        only = pl.col("customer_number").is_in(list(customer_numbers))
        return replace(
            self,
            corrections=self.corrections.filter(only),
            related_parties=self.related_parties.filter(only),
            customers=self.customers.filter(only),
            group_rows=self.group_rows.filter(only),
        )


NOTHING_KNOWN = Knowledge()
