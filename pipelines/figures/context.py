"""Context: what is known of customers besides their transactions, and the portfolio they are compared with.

The caller supplies what it has. A figure whose input is missing is unavailable and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.scorecard import READING, Scorecard
from pipelines.vocabulary.schemas import MONEY, UUID, StatementVerdict

MIN_PEERS = 20  # our judgement: percentiles of fewer customers say little
CUSTOMERS = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})
RELATED_PARTIES = pl.Schema({"customer_number": pl.Int64(), "name": pl.String(), "abn": pl.String()})
ATTRIBUTES = pl.Schema(
    {"customer_number": pl.Int64(), "name": pl.String(), "value": pl.String()}
)  # as text, not expired
INTAKE = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "duplicates": pl.Int64(),  # submitted rows that repeat a stored transaction
        "rejected": pl.Int64(),  # submitted rows
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
# Findings of window dressing and events that a person resolved.
RESOLUTIONS = pl.Schema(
    {
        "customer_number": pl.Int64(),
        "kind": pl.String(),  # `finding` or `event`
        "key": pl.String(),  # a digest of the code and the transactions
        "reason": pl.String(),  # as written by the person who resolved it
        "resolved_on": pl.Date(),
    }
)
PEERS = pl.Schema({"metric": pl.String(), "quantiles": pl.List(READING)})  # by percentile, from 0 to 100


@dataclass(frozen=True, eq=False)
class ClientPortfolio:
    """A client's customers, and what they are compared with and scored by.

    `customers`: their numbers. `peers`: schema PEERS; None: not known. `scorecard`: the fitted scorecard that replaces
    the one that comes with Tidemark. `expected`: the evidence that every customer is expected to supply.
    """

    customers: frozenset[int]
    peers: pl.DataFrame | None = None
    scorecard: Scorecard | None = None
    expected: Expected = EVERYTHING


@dataclass(frozen=True, eq=False)
class Context:
    """Frames by `customer_number`, each in the schema of its name, and the portfolios of the customers' clients.

    A customer belongs to at most one portfolio.
    """

    portfolios: Sequence[ClientPortfolio] = ()
    customers: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CUSTOMERS))
    related_parties: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RELATED_PARTIES))
    attributes: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ATTRIBUTES))
    intake: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=INTAKE))
    statements: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STATEMENTS))
    resolutions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RESOLUTIONS))

    def of_customer(self, customer_number: int) -> "Context":
        """Return the context of one customer."""
        is_own = pl.col("customer_number") == customer_number
        frames = (self.customers, self.related_parties, self.attributes, self.intake, self.statements, self.resolutions)
        return Context(
            [portfolio for portfolio in self.portfolios if customer_number in portfolio.customers],
            *(frame.filter(is_own) for frame in frames),
        )


NO_CONTEXT = Context()
