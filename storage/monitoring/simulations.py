"""The request of a simulation, which is a portfolio job."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

import msgspec

from pipelines.monitoring import Listed, Ruleset
from pipelines.vocabulary.typed import decode
from storage.core.database import Reading
from storage.monitoring import rulesets
from storage.portfolio.portfolio_jobs import Population, PortfolioJob


@dataclass(frozen=True)
class Request:
    """The request of a simulation.

    Args:
        first, last: the days, both included.
        customers: only these customers; None: all.
        document: the ruleset to try, as canonical JSON; None: the ruleset's version.
    """

    first: date
    last: date
    customers: tuple[UUID, ...] | None = None
    document: str | None = None

    def as_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "Request":
        return decode(text, cls)


def simulated_ruleset(r: Reading, job: PortfolioJob) -> Ruleset:
    """Return the ruleset that a simulation tries: the document in the request, or the version.

    Raises:
        Corrupt: the stored version is damaged.
    """
    document = Request.from_json(job.request).document
    if document is not None:
        return Ruleset.model_validate_json(document)
    return rulesets.read_version(r, job.subject_id, job.version).ruleset


def population(job: PortfolioJob, ruleset: Ruleset) -> Population:
    """Return the customers of a simulation: with transactions, in the request, and listed by the ruleset."""
    restrictions = [
        Request.from_json(job.request).customers,
        ruleset.applies_to.customers if isinstance(ruleset.applies_to, Listed) else None,
    ]
    named = [frozenset(ids) for ids in restrictions if ids is not None]
    return Population(job.client_id, frozenset.intersection(*named) if named else None, with_transactions=True)
