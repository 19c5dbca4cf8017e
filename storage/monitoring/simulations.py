"""Simulations: what a portfolio job that tries a ruleset on past days is asked for."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

import msgspec

from pipelines.monitoring import Listed, Ruleset
from storage.core.database import Reading
from storage.monitoring import rulesets
from storage.portfolio.portfolio_jobs import PortfolioJob, Whom


@dataclass(frozen=True)
class Request:
    """`first` to `last` day, both included. `customers`: only these (None: all). `document`: what the ruleset shall
    say, as canonical JSON (None: what its version says).
    """

    first: date
    last: date
    customers: tuple[UUID, ...] | None = None
    document: str | None = None

    def as_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def of_json(cls, text: str) -> "Request":
        return msgspec.json.decode(text, type=cls)


def simulated_ruleset(r: Reading, job: PortfolioJob) -> Ruleset:
    """Return what a simulation tries: the document that was sent along, or the version.

    Raises:
        Corrupt: the version is not what was written.
    """
    document = Request.of_json(job.request).document
    if document is not None:
        return Ruleset.model_validate_json(document)
    return rulesets.version(r, job.subject_id, job.version).ruleset


def whom(job: PortfolioJob, ruleset: Ruleset) -> Whom:
    """Return whom a simulation is about: customers with transactions, asked for, and listed by the ruleset."""
    narrowed = [
        Request.of_json(job.request).customers,
        ruleset.applies_to.customers if isinstance(ruleset.applies_to, Listed) else None,
    ]
    named = [frozenset(ids) for ids in narrowed if ids is not None]
    return Whom(job.client_id, frozenset.intersection(*named) if named else None, with_transactions=True)
