"""What a route asks for in its signature: a caller with a scope, ids, a body, a query.

The order of the checks is the order of the parameters: who is calling (401), with which scope (403), then what the
headers say about the body. Nothing about a caller is remembered between requests, so a revoked key ends at once.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Request, Security
from fastapi.security import APIKeyHeader
from pydantic.alias_generators import to_camel
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.core import problems, unknown
from api.core.deferred import QueryOf
from api.core.limits import Asker, Held, Limits, address
from api.core.refusals import Refusal
from api.core.schemas import rules
from pipelines.decisions.policy import POLICY_SLUG
from pipelines.vocabulary.errors import Forbidden, NotFound, TidemarkError, Unauthenticated
from storage.access import keys
from storage.access.keys import EndedKey, Principal
from storage.core import audit
from storage.core.audit import Actor
from storage.core.database import Reading, Writing
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.decisions import policies
from storage.decisions.policies import StoredPolicy
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import rule_matches, rulesets
from storage.monitoring.rule_matches import Match
from storage.monitoring.rulesets import StoredRuleset
from storage.webhooks import subscriptions
from storage.webhooks.subscriptions import Subscription

MAX_KEY_CHARACTERS = 256
READING_ROWS = ("customer:reports", "transactions:enrich", "transactions:extract", "transactions:aggregate")
READING = tuple(scope for scope in keys.SCOPES if scope.startswith(("customer:", "transactions:", "decision-")))
KEY_HEADER = APIKeyHeader(
    name="x-api-key",
    scheme_name="ApiKey",
    description="A client's API key, `tm_sandbox_…` or `tm_live_…`, issued by the operator.",
    auto_error=False,
)


@dataclass(frozen=True)
class Caller:
    """One client, asking now, and what is theirs: other clients' things are simply not found."""

    store: Store
    request: Request
    client_id: UUID
    scopes: frozenset[str]  # of the key
    now: datetime
    actor: Actor
    keeping: Callable[[Writing, Response], None] | None = None  # how this request's Idempotency-Key is honoured

    @property
    def today(self) -> date:
        """The service's day."""
        return self.now.astimezone(self.store.settings.zone).date()

    @property
    def asker(self) -> Asker:
        held: Held = self.request.state.held
        return held.asker

    @property
    def may_read_rows(self) -> bool:
        """Whether transactions with their texts may stand in any answer to this caller."""
        return not self.scopes.isdisjoint(READING_ROWS)

    def reading(self) -> AbstractContextManager[Reading]:
        return self.store.db.reading()

    def writing(self) -> AbstractContextManager[Writing]:
        return self.store.db.writing()

    def keep(self, w: Writing, answer: Response, again: TidemarkError | None = None) -> Response:
        """The answer to a POST that creates, kept in the transaction that creates, for when the POST is sent again.

        Args:
            again: what a repetition is told instead, for an answer that mustn't be stored.
        """
        if self.keeping is not None:
            self.keeping(w, answer if again is None else problems.of(self.request, again))
        return answer

    def audit(self, w: Writing, action: str, **resource: audit.Ids) -> None:
        """Write down what this caller did (`Area.Action`) to which thing (ids by their public names)."""
        audit.append(w, self.actor, action, resource, self.now)

    def customer(self, r: Reading, customer_id: str) -> Customer:
        return customers.get(r, self.client_id, as_uuid(customer_id))

    def job(self, r: Reading, job_id: str) -> Job:
        return jobs.get(r, self.client_id, as_uuid(job_id))

    def job_of(self, r: Reading, customer: Customer, job_id: UUID) -> Job:
        """A job of this very customer."""
        job = jobs.get(r, self.client_id, job_id)
        if job.customer_number != customer.number:
            raise NotFound("Job.NotFound", "There is no job with this id.")
        return job

    def policy(self, r: Reading, slug: str) -> StoredPolicy:
        """Archived or not, and whatever its versions."""
        policies.require_enabled(r, self.client_id)
        return policies.get(r, self.client_id, slug if re.fullmatch(POLICY_SLUG, slug) else "")

    def ruleset(self, r: Reading, ruleset_id: str) -> StoredRuleset:
        return rulesets.get(r, self.client_id, as_uuid(ruleset_id))

    def match(self, r: Reading, match_id: str) -> Match:
        return rule_matches.get(r, self.client_id, as_uuid(match_id))

    def subscription(self, r: Reading, subscription_id: str) -> Subscription:
        return subscriptions.get(r, self.client_id, as_uuid(subscription_id))


class Allow:
    """Lets in callers whose key holds any one of `scopes`."""

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    async def __call__(self, request: Request, _: Annotated[None, Security(KEY_HEADER)]) -> Caller:
        caller, asker = await run_in_threadpool(self._caller, request)
        held: Held = request.state.held
        held.asker = asker
        held.take(1)
        return caller

    def _caller(self, request: Request) -> tuple[Caller, Asker]:
        store: Store = request.app.state.store
        now = datetime.now(UTC)
        principal = self._principal(request, store, now)
        actor = _actor(request, str(principal.key_id), principal.client_id)
        self._require_scope(request, principal, actor)
        _note_parameters(request)
        caller = Caller(store, request, principal.client_id, principal.scopes, now, actor)
        return caller, Asker(principal.client_id, principal.key_id)

    def _principal(self, request: Request, store: Store, now: datetime) -> Principal:
        """Whose key it is: counted, whether good or wrong."""
        limits: Limits = request.app.state.limits
        try:
            with store.db.reading() as r:
                principal = keys.authenticate(r, _key(request), store.settings.key_prefix, now)
        except Unauthenticated as error:
            request.app.state.refusals.note(_refused_key(request, store, error))
            limits.count_wrong_key(request.scope)
            raise
        limits.count_request(request.scope, principal.key_id)
        return principal

    def _require_scope(self, request: Request, principal: Principal, actor: Actor) -> None:
        try:
            principal.require_any(*self.scopes)
        except Forbidden:
            operation = to_camel(request.scope["route"].name)
            request.app.state.refusals.note(Refusal(actor, "Authorization.Denied", "operation", operation))
            raise


def _actor(request: Request, who: str, client_id: UUID | None) -> Actor:
    return Actor(who, client_id, request.state.request_id, request.state.own_request_id)


def _note_parameters(request: Request) -> None:
    """A route that reads its query notes what it doesn't know; one that reads none knows no parameter."""
    route = request.scope["route"]
    if not any(isinstance(needed.call, QueryOf) for needed in route.dependant.dependencies):
        unknown.note(request.query_params, ())


def _refused_key(request: Request, store: Store, error: Unauthenticated) -> Refusal:
    """Who it was is known of a key that was good once; of others, where they came from."""
    who, client_id = (str(error.key_id), error.client_id) if isinstance(error, EndedKey) else (audit.ANONYMOUS, None)
    actor = _actor(request, who, client_id)
    return Refusal(actor, "Authentication.Failed", "addressHash", store.vault.pseudonym(address(request.scope)))


def _key(request: Request) -> str:
    """The text of the one key sent; two keys, or an endless one, are none."""
    sent = request.headers.getlist("x-api-key")
    return sent[0] if len(sent) == 1 and len(sent[0]) <= MAX_KEY_CHARACTERS else ""


def as_uuid(text: str) -> UUID:
    """The id, or for text that is none the nil UUID, which nothing bears: both answers must be the same 404."""
    try:
        return rules.identifier(text)
    except ValueError:
        return UUID(int=0)


def _id(name: str, of: str) -> Any:
    return Path(alias=name, description=f"Id of the {of}.", json_schema_extra={"format": "uuid"})


CustomerId = Annotated[str, _id("customerId", "customer")]
JobId = Annotated[str, _id("jobId", "job")]
StatementId = Annotated[str, _id("statementId", "statement")]
TransactionId = Annotated[str, _id("transactionId", "transaction")]
PageNumber = Annotated[
    str,
    Path(
        alias="pageNumber",
        description="Page of the file, from 1.",
        json_schema_extra={"pattern": "^[1-9][0-9]{0,4}$"},
    ),
]
CorrectionId = Annotated[str, _id("correctionId", "correction")]
SubscriptionId = Annotated[str, _id("subscriptionId", "webhook subscription")]
DeliveryId = Annotated[str, _id("deliveryId", "webhook delivery")]
BacktestId = Annotated[str, _id("backtestId", "backtest's job")]
EvaluationId = Annotated[str, _id("evaluationId", "evaluation")]
PolicySlug = Annotated[str, Path(alias="slug", description="The decision policy's slug.")]
RulesetId = Annotated[str, _id("rulesetId", "ruleset")]
SimulationId = Annotated[str, _id("simulationId", "simulation's job")]
MatchId = Annotated[str, _id("matchId", "match, which is its event's")]
LibrarySlug = Annotated[str, Path(alias="librarySlug", description="Slug of a ruleset in the library.")]
