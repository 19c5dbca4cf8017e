"""Titles of what the entries of the audit trail concern, as far as the caller may read it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from api.http.dependencies import READER_SCOPES, Caller
from pipelines.pages.wording import abn, spell_out
from storage.core.audit import Entry
from storage.core.database import AnyRow, Reading
from storage.work import subjects

NO_NAME: Final = "Customer without a name"


@dataclass(frozen=True)
class Subject:
    """What an id of an entry stands for. `slug` is a policy's."""

    name: str  # of the id
    id: UUID
    title: str
    slug: str | None


@dataclass(frozen=True)
class Kind:
    """The scopes of which one is needed to read things of a kind, and how a thing is called."""

    scopes: Collection[str]
    title: Callable[[AnyRow], str]


KINDS: Final[Mapping[str, Kind]] = {
    "customerId": Kind(READER_SCOPES, lambda row: row.name or abn(row.abn)),
    "rulesetId": Kind(("monitoring:rules",), lambda row: row.name),
    "subscriptionId": Kind(("webhooks:subscribe",), lambda row: f"{row.event_type} to {row.webhook_url}"),
    "evaluationId": Kind(("decision-policies:evaluate",), lambda row: f"{row.policy_name}: {spell_out(row.outcome)}"),
    "matchId": Kind(("customer:work",), lambda row: f"{row.ruleset_name}, {row.customer_name or NO_NAME}"),
    "policyId": Kind(("decision-policies:read", "decision-policies:write"), lambda row: row.name),
}


def find_subjects(r: Reading, caller: Caller, entries: Iterable[Entry]) -> Iterator[Subject]:
    """Yield what the entries concern, each thing once. What is gone, and what the caller may not read, is left out."""
    concerned = defaultdict[str, set[UUID]](set)
    for entry in entries:
        for name, id_ in entry.resource.items():
            if name in KINDS and isinstance(id_, str) and not caller.scopes.isdisjoint(KINDS[name].scopes):
                concerned[name].add(UUID(id_))
    for name, ids in concerned.items():
        for row in subjects.find(r, caller.client_id, name, ids):
            yield Subject(name, row.id, KINDS[name].title(row), row.slug if name == "policyId" else None)
