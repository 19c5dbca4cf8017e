"""Context: what is known of customers beside their transactions, and what they are seen against.

Whoever computes reports brings as much of it as there is; a figure that needs what isn't there is unavailable, and says
so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.scorecards.scorecard import READING, Scorecard
from pipelines.vocabulary.schemas import MONEY, UUID, StatementVerdict

LEAST_PEERS = 20  # fewer are no portfolio to be compared with
CUSTOMERS = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})
RELATED_PARTIES = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})
ATTRIBUTES = pl.Schema(
    {"customer_number": pl.Int64(), "name": pl.String(), "value": pl.String()}
)  # as text, not expired
INTAKE = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "duplicates": pl.Int64(),  # rows sent that repeated one already held
        "rejected": pl.Int64(),  # rows sent that were refused
    }
)
SIGNAL = pl.Struct({"code": pl.String(), "severity": pl.String(), "message": pl.String(), "page": pl.Int64()})
STATEMENTS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "statement_id": UUID,
        "account_id": UUID,
        "file_name": pl.String(),  # as sent; may be empty
        "kind": pl.String(),  # `statement`, `listing` or `interim`
        "verdict": StatementVerdict,
        "period_start": pl.Date(),
        "period_end": pl.Date(),
        "opening_balance": MONEY,
        "closing_balance": MONEY,
        "signals": pl.List(SIGNAL),  # of its file
    }
)
PEERS = pl.Schema({"metric": pl.String(), "quantiles": pl.List(READING)})  # by percentile, from 0 to 100


@dataclass(frozen=True, eq=False)
class ClientPortfolio:
    """A client's `customers` by number; `peers` (schema PEERS; null: not known), and the fitted scorecard that scores
    them instead of the one that comes with Tidemark.
    """

    customers: frozenset[int]
    peers: pl.DataFrame | None = None
    scorecard: Scorecard | None = None


@dataclass(frozen=True, eq=False)
class Context:
    """Frames by `customer_number`, each in the schema of its name, and the portfolios of the clients whose customers
    are looked at; a customer stands in one of them at most.
    """

    portfolios: Sequence[ClientPortfolio] = ()
    customers: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CUSTOMERS))
    related_parties: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RELATED_PARTIES))
    attributes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ATTRIBUTES))
    intake: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=INTAKE))
    statements: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATEMENTS))

    def of_customer(self, customer_number: int) -> "Context":
        """What is known of one customer."""
        mine = pl.col("customer_number") == customer_number
        frames = (self.customers, self.related_parties, self.attributes, self.intake, self.statements)
        return Context(
            [portfolio for portfolio in self.portfolios if customer_number in portfolio.customers],
            *(frame.filter(mine) for frame in frames),
        )


NO_CONTEXT = Context()
