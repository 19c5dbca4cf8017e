"""A lender whose console has something on every page: customers, reports, decisions, a statement, alerts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from api.core.commands.console import now
from api.service.commands.lender import Lender
from benchmarks.house import fill_console, insert_ids, list_pages
from storage.access import approvals, keys, users
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.settings import Settings
from tests.flows.service import Service


@dataclass(frozen=True)
class House:
    """A running service with one lender's data. `ids` has an id for each parameter of the console's addresses."""

    service: Service
    client_id: UUID
    lender: Lender
    key: str  # of the lender's software
    ids: Mapping[str, str]

    def require_second_person(self, *kinds: ApprovalKind) -> None:
        """Let the lender require an approval of these actions, and of no others."""
        _require_second_person(self.service, self.client_id, kinds)


def seeded(service: Service) -> House:
    client_id, key = _client(service)
    lender = Lender(service.base_url, key)
    ids = fill_console(lender)
    about = {"text": "The owner sends the June statement tomorrow.", "evaluationId": ids["evaluation_id"]}
    lender.post(f"/customer/{ids['customer_id']}/notes", about)
    _request_override(service, client_id, lender, ids)
    return House(service, client_id, lender, key, ids)


def _request_override(service: Service, client_id: UUID, lender: Lender, ids: Mapping[str, str]) -> None:
    """Request an override, which waits for a second person, of another decision than that of `ids`."""
    decided = lender.get(f"/customer/{ids['customer_id']}/evaluations")["evaluations"]
    other = next(each for each in decided if each["evaluationId"] != ids["evaluation_id"] and not each["whatIf"])
    sent = {"outcome": "blocked", "reason": "The tax debt was not declared.", "decidedBy": "Grace Hopper"}
    _require_second_person(service, client_id, [ApprovalKind.OVERRIDE])
    lender.post(f"/evaluations/{other['evaluationId']}/override", sent)
    _require_second_person(service, client_id, [])


def _require_second_person(service: Service, client_id: UUID, kinds: Sequence[ApprovalKind]) -> None:
    store = service.store()
    with store.db.writing() as w:
        approvals.set_four_eyes(w, client_id, kinds)
    store.close()


def addresses(house: House) -> dict[str, str]:
    """Return the address of each page of the console, with the house's ids, by a name for files."""
    store = house.service.store()
    paths = list_pages(store)
    store.close()
    return {_name(path): insert_ids(path, house.ids) for path in paths}


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
