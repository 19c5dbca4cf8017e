"""All operations of the OpenAPI document, so that a test can try each of them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, product
from types import MappingProxyType
from typing import Any, cast
from uuid import uuid4

import pytest

from api.service.app import create_app
from storage.core.store import Store

NOT_FOUND = {
    "customerId": "Customer.NotFound",
    "jobId": "Job.NotFound",
    "correctionId": "Correction.NotFound",
    "subscriptionId": "Webhook.SubscriptionNotFound",
    "deliveryId": "Webhook.DeliveryNotFound",
    "slug": "DecisionPolicy.NotFound",
    "evaluationId": "Evaluation.NotFound",
    "backtestId": "Backtest.NotFound",
    "statementId": "Statement.NotFound",
    "transactionId": "Transaction.NotFound",
    "rulesetId": "Ruleset.NotFound",
    "matchId": "RuleMatch.NotFound",
    "simulationId": "Simulation.NotFound",
    "approvalId": "Approval.NotFound",
    "noteId": "Note.NotFound",
    "attachmentId": "Attachment.NotFound",
    "userId": "User.NotFound",
    "keyId": "Key.NotFound",
}
NO_IDS = {"pageNumber": "1", "librarySlug": "data-stale"}  # the other path parameters, with values that always exist


# One creates what the path names, the other stores nothing: no name is unknown to them.
OF_ANY_NAME = {"saveDecisionPolicy", "checkDecisionPolicy"}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    documented: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def needs_key(self) -> bool:
        return "security" in self.documented

    @property
    def scopes(self) -> list[str]:
        """The scopes in the description."""
        return re.findall("`([a-z-]+:[a-z]+)`", self.documented["description"].rpartition("Scope: ")[2])

    @property
    def is_for_users(self) -> bool:
        """Whether only signed-in users may call it."""
        refusals = self.documented["responses"].get("403", {}).get("content", {}).values()
        return any("Authorization.UserNeeded" in each["examples"] for each in refusals)

    @property
    def ids(self) -> list[str]:
        """Names of the ids in the path whose resources must exist."""
        if self.documented["operationId"] in OF_ANY_NAME:
            return []
        return [name for name in re.findall("{(.+?)}", self.path) if name not in NO_IDS]

    @property
    def not_found(self) -> str:
        return NOT_FOUND[self.ids[0]]

    @property
    def has_body(self) -> bool:
        return "requestBody" in self.documented

    @property
    def example(self) -> Any:
        """The documented body, or None."""
        return self.documented["requestBody"]["content"]["application/json"]["example"] if self.has_body else None

    def path_for(self, ids: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return the path with these ids; missing ones become unknown ids."""

        def in_its_place(match: re.Match[str]) -> str:
            name = match[1]
            return NO_IDS.get(name) or (ids[name] if name in ids else str(uuid4()))

        return re.sub("{(.+?)}", in_its_place, self.path)


def in_turn(operations: Iterable[Operation], values: Iterable[Any]) -> Iterable[tuple[Operation, Any]]:
    """Pair each operation with one of the values, in turn."""
    return zip(operations, cycle(values), strict=False)


# For rules over all operations and some values: every one of both occurs, and in `make test-slow` every pair.
paired = pytest.mark.parametrize(
    "paired", [pytest.param(in_turn, id="in turn"), pytest.param(product, id="all", marks=pytest.mark.slow)]
)
Paired = Callable[[Iterable[Operation], Iterable[Any]], Iterable[tuple[Operation, Any]]]


@cache
def document() -> dict[str, Any]:
    return create_app(cast("Store", None)).openapi()  # the document is the same over any store


@cache
def list_operations() -> Sequence[Operation]:
    paths = document()["paths"].items()
    return [
        Operation(method.upper(), path, reported) for path, methods in paths for method, reported in methods.items()
    ]
