"""A lender whose console has something on every page: customers, reports, decisions, a statement, alerts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from api.core.commands.console import now
from api.service.commands.lender import Lender
from benchmarks.filled_console import fill_console, insert_ids, list_pages
from storage.access import approvals, keys, users
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.settings import Settings
from tests.flows.service import Service

PROVIDER = {  # of OpenID Connect, which nobody reaches
    "TIDEMARK_OIDC_ISSUER": "https://login.lender.example",
    "TIDEMARK_OIDC_CLIENT_ID": "tidemark",
    "TIDEMARK_OIDC_CLIENT_SECRET": "correct horse",
    "TIDEMARK_PUBLIC_URL": "https://tidemark.lender.example",
}
CHOSEN = {  # on pages that show something only by choice
    "/customers/{customer_id}/reports/annex": "table=Monthly%20cash%20flow",
    "/customers/{customer_id}/reports/figure": "kind=aggregate&figure=/tables/monthly_cash_flow/values/6/revenue",
}


@dataclass(frozen=True)
class FilledConsole:
    """A running service with one lender's data.

    `ids` has an id for each parameter of the console's addresses, and ids of what is in a rare state: a decision with a
    pending override, an indeterminate one, and a paused subscription.
    """

    service: Service
    client_id: UUID
    lender: Lender
    key: str  # of the lender's software
    ids: Mapping[str, str]

    def require_second_person(self, *kinds: ApprovalKind) -> None:
        """Let the lender require an approval of these actions, and of no others."""
        _require_second_person(self.service, self.client_id, kinds)


def seeded(service: Service) -> FilledConsole:
    client_id, key = _client(service)
    lender = Lender(service.base_url, key)
    ids = fill_console(lender)
    about = {"text": "The owner sends the June statement tomorrow.", "evaluationId": ids["evaluation_id"]}
    lender.post(f"/customer/{ids['customer_id']}/notes", about)
    _correct(lender, ids["customer_id"])
    rare = {
        "pending_evaluation_id": _request_override(service, client_id, lender, ids),
        "indeterminate_evaluation_id": lender.get("/evaluations", outcome="indeterminate")["evaluations"][0][
            "evaluationId"
        ],
        "paused_subscription_id": _pause_subscription(lender, ids["customer_id"]),
    }
    return FilledConsole(service, client_id, lender, key, {**ids, **rare})


def _correct(lender: Lender, customer_id: str) -> None:
    """Correct the category of one payment, and compute the customer's reports anew."""
    [payment] = lender.get(f"/customer/{customer_id}/transactions", direction="debit", page=1, count=1)["transactions"]
    sent = {"transactionId": payment["transactionId"], "category": "repairs"}
    lender.wait_for_jobs([lender.post(f"/customer/{customer_id}/transactions/corrections", sent)["jobId"]])
    lender.refresh([customer_id])


def _pause_subscription(lender: Lender, customer_id: str) -> str:
    """Subscribe to a customer's events of a type, pause the subscription, and return its id."""
    where = {"eventType": "monitoring.rule.triggered", "webhookUrl": "https://lender.example/alerts"}
    sent = {**where, "customerIds": [customer_id]}
    subscription_id: str = lender.post("/webhooks/subscriptions", sent)["webhookSubscriptionId"]
    lender.post(f"/webhooks/subscriptions/{subscription_id}/pause", {})
    return subscription_id


def _request_override(service: Service, client_id: UUID, lender: Lender, ids: Mapping[str, str]) -> str:
    """Request an override, which waits for a second person, of another decision than that of `ids`; return its id."""
    decided = lender.get(f"/customer/{ids['customer_id']}/evaluations")["evaluations"]
    other = next(each for each in decided if each["evaluationId"] != ids["evaluation_id"] and not each["whatIf"])
    sent = {"outcome": "blocked", "reason": "The tax debt was not declared.", "decidedBy": "Grace Hopper"}
    _require_second_person(service, client_id, [ApprovalKind.OVERRIDE])
    lender.post(f"/evaluations/{other['evaluationId']}/override", sent)
    _require_second_person(service, client_id, [])
    evaluation_id: str = other["evaluationId"]
    return evaluation_id


def _require_second_person(service: Service, client_id: UUID, kinds: Sequence[ApprovalKind]) -> None:
    store = service.store()
    with store.db.writing() as w:
        approvals.set_four_eyes(w, client_id, kinds)
    store.close()


def addresses(console: FilledConsole) -> dict[str, str]:
    """Return the address of each page of the console, with the console's ids, by a name for files."""
    store = console.service.store()
    paths = list_pages(store)
    store.close()
    queries = {path: f"?{query}" for path, query in CHOSEN.items()}
    return {_name(path): insert_ids(path, console.ids) + queries.get(path, "") for path in paths}


def _name(path: str) -> str:
    """Return `customers-customer-notes` for `/customers/{customer_id}/notes`."""
    words = (re.sub(r"[{}]|_id\b", "", part).replace("_", "-") for part in path.split("/"))
    return "-".join(filter(None, words)) or "start"


def _client(service: Service) -> tuple[UUID, str]:
    store = service.store()
    with store.db.writing() as w:
        client = keys.create_client(w, "Harbour Lending", decision_policies=True, now=now())
        _, text = keys.create_key(w, client.client_id, keys.SCOPES, None, Settings().key_prefix, now())
        users.create(w, client.client_id, "grace@example.com", "Grace Hopper", Role.APPROVER, now())
    store.close()
    return client.client_id, text
