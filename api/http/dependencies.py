"""What a route declares in its signature besides query and body: a caller with a scope, and ids in the path.

Nothing about a caller is cached between requests, so a revoked key stops working at once.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from fastapi import Path, Request, Security
from fastapi.security import APIKeyHeader
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from api.core.grouped_calls import GroupedCalls
from api.core.limits import Held, Limits, Requester, address
from api.core.refusals import Refusal, Refusals
from api.core.schemas import rules
from api.http import problems, unknown
from pipelines.decisions.policy import POLICY_SLUG
from pipelines.vocabulary.errors import Forbidden, NotFound, TidemarkError, Unauthenticated
from storage.access import approvals, keys, users
from storage.access.approvals import Approval
from storage.access.keys import EndedKey, Key, Principal
from storage.access.users import User
from storage.core import audit
from storage.core.audit import Actor
from storage.core.database import Reading, Writing
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.decisions import evaluations, policies
from storage.decisions.evaluations import Evaluation
from storage.decisions.policies import StoredPolicy
from storage.intake import statements
from storage.intake.statements import StoredStatement
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import rule_matches, rulesets
from storage.monitoring.rule_matches import Match
from storage.monitoring.rulesets import StoredRuleset
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, SIMULATION, PortfolioJob
from storage.webhooks import subscriptions
from storage.webhooks.subscriptions import Subscription
from storage.work import attachments, notes
from storage.work.attachments import Attachment
from storage.work.notes import Note

MAX_KEY_CHARACTERS = 256
ROW_READER_SCOPES = ("customer:reports", "transactions:enrich", "transactions:extract", "transactions:aggregate")
READER_SCOPES = tuple(scope for scope in keys.SCOPES if scope.startswith(("customer:", "transactions:", "decision-")))
KEY_HEADER = APIKeyHeader(
    name="x-api-key",
    scheme_name="ApiKey",
    description="A client's API key, `tm_sandbox_…` or `tm_live_…`, issued by the operator.",
    auto_error=False,
)


@dataclass(frozen=True)
class Caller:
    """The client that makes this request, by a key or a signed-in user.

    Its methods find only the client's own data; all else is a 404.
    """

    store: Store
    request: Request
    client_id: UUID
    scopes: frozenset[str]  # of the key or the user's role
    now: datetime
    actor: Actor
    is_user: bool = False
    save_response: Callable[[Writing, Response], None] | None = None  # None without an Idempotency-Key
    performed: Approval | None = None  # the approved request whose action is being performed

    @property
    def today(self) -> date:
        """Today's date in the service's time zone."""
        return self.now.astimezone(self.store.settings.zone).date()

    @property
    def who(self) -> str:
        """The id that stored changes are attributed to: the requester's while an approved request is performed."""
        return self.actor.who if self.performed is None else self.performed.requested_by

    @property
    def requester(self) -> Requester:
        held: Held = self.request.state.held
        return held.requester

    @property
    def may_read_rows(self) -> bool:
        """Whether responses to this caller may contain transactions with their narratives."""
        return not self.scopes.isdisjoint(ROW_READER_SCOPES)

    def reading(self) -> AbstractContextManager[Reading]:
        return self.store.db.reading()

    def writing(self) -> AbstractContextManager[Writing]:
        return self.store.db.writing()

    def store_response(self, w: Writing, response: Response, again: TidemarkError | None = None) -> Response:
        """Store the response under the request's Idempotency-Key, in the transaction of its changes, and return it.

        Args:
            again: the refusal that a repetition gets instead, for a response that mustn't be stored.
        """
        if self.save_response is not None:
            self.save_response(w, response if again is None else problems.from_error(self.request, again))
        return response

    def audit(self, w: Writing, action: str, **resource: audit.Ids) -> None:
        """Append to the audit trail what this caller did (`Area.Action`), with ids under their public names."""
        if (approved := self.performed) is not None:
            resource |= {"approvalId": approved.approval_id, "requestedBy": approved.requested_by}
        audit.append(w, self.actor, action, resource, self.now)

    def require_any(self, *scopes: str) -> None:
        """Raise Forbidden unless this caller has one of `scopes`, and note the refusal for the audit trail."""
        if self.scopes.isdisjoint(scopes):
            operation = to_camel(self.request.scope["route"].name)
            self.request.app.state.refusals.note(Refusal(self.actor, "Authorization.Denied", "operation", operation))
            raise Forbidden("Authorization.MissingScope", f"The scope is missing: {' or '.join(scopes)}.")

    def customer(self, r: Reading, customer_id: str) -> Customer:
        return customers.get(r, self.client_id, as_uuid(customer_id))

    def job(self, r: Reading, job_id: str) -> Job:
        return jobs.get(r, self.client_id, as_uuid(job_id))

    def job_of(self, r: Reading, customer: Customer, job_id: UUID) -> Job:
        """Return a job of this customer.

        Raises:
            NotFound: there is none, or it is another customer's.
        """
        job = jobs.get(r, self.client_id, job_id)
        if job.customer_number != customer.number:
            raise NotFound("Job.NotFound", "There is no job with this id.")
        return job

    def policy(self, r: Reading, slug: str) -> StoredPolicy:
        """Return a policy, even an archived one or one without a published version."""
        return policies.get(r, self.client_id, slug if re.fullmatch(POLICY_SLUG, slug) else "")

    def backtest(self, r: Reading, slug: str, backtest_id: str) -> PortfolioJob:
        policy = self.policy(r, slug)
        return portfolio_jobs.get(r, BACKTEST, self.client_id, as_uuid(backtest_id), policy.policy_id)

    def evaluation(self, r: Reading, evaluation_id: str) -> Evaluation:
        return evaluations.get(r, self.client_id, as_uuid(evaluation_id))

    def approval(self, r: Reading, approval_id: str) -> Approval:
        return approvals.get(r, self.client_id, as_uuid(approval_id))

    def statement(self, r: Reading, customer_id: str, statement_id: str) -> StoredStatement:
        return statements.get(r, self.customer(r, customer_id), as_uuid(statement_id))

    def simulation(self, r: Reading, simulation_id: str) -> PortfolioJob:
        return portfolio_jobs.get(r, SIMULATION, self.client_id, as_uuid(simulation_id))

    def ruleset(self, r: Reading, ruleset_id: str) -> StoredRuleset:
        return rulesets.get(r, self.client_id, as_uuid(ruleset_id))

    def match(self, r: Reading, match_id: str) -> Match:
        return rule_matches.get(r, self.client_id, as_uuid(match_id))

    def note(self, r: Reading, customer_id: str, note_id: str) -> Note:
        return notes.get(r, self.customer(r, customer_id), as_uuid(note_id))

    def attachment(self, r: Reading, customer_id: str, attachment_id: str) -> Attachment:
        return attachments.get(r, self.customer(r, customer_id), as_uuid(attachment_id))

    def subscription(self, r: Reading, subscription_id: str) -> Subscription:
        return subscriptions.get(r, self.client_id, as_uuid(subscription_id))

    def user(self, r: Reading, user_id: str) -> User:
        return users.get(r, as_uuid(user_id), self.client_id)

    def key(self, r: Reading, key_id: str) -> Key:
        return keys.get(r, self.client_id, as_uuid(key_id))


class Allow:
    """A dependency that admits callers whose key has at least one of `scopes`."""

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    @property
    def needs_policies(self) -> bool:
        """Whether the route is only for clients that have decision policies enabled."""
        return all(scope.startswith("decision-policies:") for scope in self.scopes)

    def __call__(self, _: Annotated[None, Security(KEY_HEADER)]) -> Caller:
        """Declare the key. `Route` calls `admit` before the body is received, and passes the caller on."""
        raise NotImplementedError

    async def admit(self, request: Request, parameters: Iterable[str]) -> Caller:
        """Authenticate and authorise the caller, and note names in the query that are not among `parameters`.

        Raises:
            Unauthenticated: no valid key.
            RateLimited: one request too many.
            Forbidden: the key lacks the scope.
            NotFound: decision policies are not enabled for the client.
            Unavailable: too many requests of the client are under way.
        """
        principal = await _principal(request)
        actor = _actor(request, str(principal.caller_id), principal.client_id)
        store: Store = request.app.state.store
        now = datetime.now(UTC)
        caller = Caller(store, request, principal.client_id, principal.scopes, now, actor, principal.is_user)
        caller.require_any(*self.scopes)
        if self.needs_policies and not principal.decision_policies:
            raise policies.not_enabled()
        unknown.note(request.query_params, parameters)
        held: Held = request.state.held
        held.requester = Requester(str(principal.client_id), str(principal.caller_id))
        held.take(1)
        return caller


KeyChecks: TypeAlias = GroupedCalls[Request, Principal]


async def _principal(request: Request) -> Principal:
    """Return who sends the request: for a call by the console, the signed-in user, otherwise the key's client."""
    signed_in: Principal | None = request.scope["state"].get("principal")  # no header can set it
    if signed_in is not None:
        return signed_in
    key_checks: KeyChecks = request.app.state.key_checks
    return await key_checks.ask(request)


def check_keys(
    store: Store, limits: Limits, refusals: Refusals, requests: Sequence[Request]
) -> list[Principal | Exception]:
    """Return the principal of each request's key, or why it is refused. All are looked up in one transaction.

    The requests are counted, whether their keys are valid or not.
    """
    texts = [_key(request) for request in requests]
    with store.db.reading() as r:
        found = {text: _authenticate(r, store, text) for text in set(texts)}
    count = partial(_count_request, store, limits, refusals)
    return [count(request, found[text]) for request, text in zip(requests, texts, strict=True)]


def _authenticate(r: Reading, store: Store, text: str) -> Principal | Unauthenticated:
    try:
        return keys.authenticate(r, text, store.settings.key_prefix, datetime.now(UTC))
    except Unauthenticated as error:
        return error


def _count_request(
    store: Store, limits: Limits, refusals: Refusals, request: Request, found: Principal | Unauthenticated
) -> Principal | Exception:
    """Count the request; return what was found, or the refusal if there were too many. Errors are returned, too."""
    try:
        if isinstance(found, Principal):
            limits.count_request(request.scope, found.caller_id)
        else:
            refusals.note(_refused_key(request, store, found))
            limits.count_wrong_key(request.scope)
    except Exception as error:  # raised, it would fail the other requests, too
        return error
    return found


def _actor(request: Request, name: str, client_id: UUID | None) -> Actor:
    return Actor(name, client_id, request.state.request_id, request.state.own_request_id)


def _refused_key(request: Request, store: Store, error: Unauthenticated) -> Refusal:
    """Describe a refused key: a revoked or expired one by its id, an unknown one only by the address it came from."""
    name, client_id = (str(error.key_id), error.client_id) if isinstance(error, EndedKey) else (audit.ANONYMOUS, None)
    actor = _actor(request, name, client_id)
    return Refusal(actor, "Authentication.Failed", "addressHash", store.vault.pseudonym(address(request.scope)))


def _key(request: Request) -> str:
    """Return the key of the request, or "" if there is none, more than one, or one that is too long."""
    sent = request.headers.getlist("x-api-key")
    return sent[0] if len(sent) == 1 and len(sent[0]) <= MAX_KEY_CHARACTERS else ""


def as_uuid(text: str) -> UUID:
    """Parse an id. Text that isn't a UUID becomes the nil UUID, which nothing has, so that it gets the same 404."""
    try:
        return rules.identifier(text)
    except ValueError:
        return UUID(int=0)


@dataclass(frozen=True)
class Named:
    """The resource that an id in a path names.

    Args:
        not_found: the code of the 404 when it doesn't exist.
        given_by: the operation and status whose response contains such an id, and a pointer to it.
        find: looks it up by all ids in the path, and raises NotFound. Needed if the route has a query or a body,
            because 404 takes precedence over 400.
    """

    not_found: str
    given_by: tuple[str, str, str]
    find: Callable[[Caller, Reading, Mapping[str, str]], object] | None = None


def require_found(caller: Caller, ids: Mapping[str, str], named: Iterable[Named]) -> None:
    """Raise NotFound for the first of the named resources that doesn't exist."""
    with caller.reading() as r:
        for each in named:
            if each.find is not None:
                each.find(caller, r, ids)


def _id(name: str, subject: str) -> Any:
    return Path(alias=name, description=f"Id of the {subject}.", json_schema_extra={"format": "uuid"})


CustomerId = Annotated[
    str,
    _id("customerId", "customer"),
    Named(
        "Customer.NotFound",
        ("createCustomer", "201", "/data/customerId"),
        lambda caller, r, ids: caller.customer(r, ids["customerId"]),
    ),
]
JobId = Annotated[
    str,
    _id("jobId", "job"),
    Named(
        "Job.NotFound", ("submitTransactions", "202", "/data/jobId"), lambda caller, r, ids: caller.job(r, ids["jobId"])
    ),
]
StatementId = Annotated[
    str,
    _id("statementId", "statement"),
    Named(
        "Statement.NotFound",
        ("listStatements", "200", "/data/statements/0/statementId"),
        lambda caller, r, ids: caller.statement(r, ids["customerId"], ids["statementId"]),
    ),
]
TransactionId = Annotated[
    str,
    _id("transactionId", "transaction"),
    Named("Transaction.NotFound", ("listCustomerTransactions", "200", "/data/transactions/0/transactionId")),
]
CorrectionId = Annotated[
    str,
    _id("correctionId", "correction"),
    Named("Correction.NotFound", ("correctTransactions", "202", "/data/correctionId")),
]
SubscriptionId = Annotated[
    str,
    _id("subscriptionId", "webhook subscription"),
    Named(
        "Webhook.SubscriptionNotFound",
        ("createSubscription", "201", "/data/webhookSubscriptionId"),
        lambda caller, r, ids: caller.subscription(r, ids["subscriptionId"]),
    ),
]
UserId = Annotated[
    str,
    _id("userId", "user"),
    Named(
        "User.NotFound",
        ("listUsers", "200", "/data/users/0/userId"),
        lambda caller, r, ids: caller.user(r, ids["userId"]),
    ),
]
KeyId = Annotated[
    str,
    _id("keyId", "API key"),
    Named(
        "Key.NotFound", ("listKeys", "200", "/data/keys/0/keyId"), lambda caller, r, ids: caller.key(r, ids["keyId"])
    ),
]
DeliveryId = Annotated[
    str,
    _id("deliveryId", "webhook delivery"),
    Named("Webhook.DeliveryNotFound", ("listDeliveries", "200", "/data/deliveries/0/deliveryId")),
]
BacktestId = Annotated[
    str,
    _id("backtestId", "backtest's job"),
    Named(
        "Backtest.NotFound",
        ("backtestDecisionPolicy", "202", "/data/jobId"),
        lambda caller, r, ids: caller.backtest(r, ids["slug"], ids["backtestId"]),
    ),
]
EvaluationId = Annotated[
    str,
    _id("evaluationId", "evaluation"),
    Named(
        "Evaluation.NotFound",
        ("evaluateDecisionPolicy", "200", "/data/evaluationId"),
        lambda caller, r, ids: caller.evaluation(r, ids["evaluationId"]),
    ),
]
ApprovalId = Annotated[
    str,
    _id("approvalId", "approval"),
    Named(
        "Approval.NotFound",
        ("overrideDecision", "202", "/data/approvalId"),
        lambda caller, r, ids: caller.approval(r, ids["approvalId"]),
    ),
]
SLUG = Path(alias="slug", description="The decision policy's slug.")
SLUG_GIVEN_BY = ("saveDecisionPolicy", "201", "/data/slug")
NewPolicySlug = Annotated[str, SLUG, Named("DecisionPolicy.NotFound", SLUG_GIVEN_BY)]
PolicySlug = Annotated[
    str,
    SLUG,
    Named("DecisionPolicy.NotFound", SLUG_GIVEN_BY, lambda caller, r, ids: caller.policy(r, ids["slug"])),
]
RulesetId = Annotated[
    str,
    _id("rulesetId", "ruleset"),
    Named(
        "Ruleset.NotFound",
        ("createRuleset", "201", "/data/rulesetId"),
        lambda caller, r, ids: caller.ruleset(r, ids["rulesetId"]),
    ),
]
SimulationId = Annotated[
    str,
    _id("simulationId", "simulation's job"),
    Named(
        "Simulation.NotFound",
        ("simulateRuleset", "202", "/data/jobId"),
        lambda caller, r, ids: caller.simulation(r, ids["simulationId"]),
    ),
]
MatchId = Annotated[
    str,
    _id("matchId", "match, and of its event"),
    Named(
        "RuleMatch.NotFound",
        ("listMatches", "200", "/data/matches/0/matchId"),
        lambda caller, r, ids: caller.match(r, ids["matchId"]),
    ),
]
LibrarySlug = Annotated[
    str,
    Path(alias="librarySlug", description="Slug of a ruleset in the library."),
    Named("Ruleset.NotFound", ("listLibrary", "200", "/data/rulesets/0/slug")),
]
NoteId = Annotated[
    str,
    _id("noteId", "note"),
    Named(
        "Note.NotFound",
        ("addNote", "201", "/data/noteId"),
        lambda caller, r, ids: caller.note(r, ids["customerId"], ids["noteId"]),
    ),
]
AttachmentId = Annotated[
    str,
    _id("attachmentId", "attachment"),
    Named(
        "Attachment.NotFound",
        ("attachFile", "201", "/data/attachmentId"),
        lambda caller, r, ids: caller.attachment(r, ids["customerId"], ids["attachmentId"]),
    ),
]
