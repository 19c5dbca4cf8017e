"""A lender's data in which every text that a person or a bank can choose tries to be markup, an address or a script."""

import json
import re
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin, urlsplit
from uuid import UUID, uuid4

from api.core.schemas.examples import example
from api.decisions.schemas.evaluations import SentOverride
from pipelines.pages.document import UNPRINTABLE
from storage.access import keys, users
from storage.access.approvals import REQUIRABLE
from storage.access.roles import Role
from storage.core.models import REPORT_KINDS, DeliveryStatus
from storage.core.store import Store
from storage.webhooks import outbox
from storage.webhooks.outbox import Attempt, Ended
from tests.api.conftest import ITEM, Belongings, Client, require_approvals, spending_ruleset
from tests.api.console.visitor import Visitor, sign_in
from tests.api.worker import EXAMPLES, end_refreshes, end_submissions
from tests.fake_statements import entry, statement
from tests.pipelines.pages.documents import Element, parse_html

REARRANGES: Final = "\u202e"  # of Unicode's Bidi_Control
REFUSE_IT: Final = ("rulesets", "subscriptions")
NAME: Final = re.compile(r"javascript:([a-z-]+)\(\)")
TEXTS: Final = (  # members of bodies that have no form of their own
    *("name", "notes", "message", "customerMessage", "meaning", "recommendedActions", "text", "reason", "decidedBy"),
    *("fileName", "description", "accountName", "bankName", "counterpartyName", "pattern", "reference"),
)
BEGINS: Final = dict.fromkeys(TEXTS, "") | {"webhookUrl": "https://lender.example/"}
ADDRESSES: Final = (  # attributes that a browser or htmx opens
    *("href", "src", "srcset", "action", "formaction", "data", "poster", "cite", "ping", "background", "manifest"),
    *("hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "hx-push-url", "hx-replace-url"),
)
SHOWN_AS_TEXT: Final = ("value", "title", "alt", "placeholder", "label", "content", "aria-label")
COLUMNS: Final = (  # of transactions
    *("description", "clean_description", "counterparty_name", "counterparty_group", "reference", "location"),
    *("category_basis", "related_party", "other_account", "account_name", "bank_name"),
)
IDS: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ALSO_SENT: Final = {
    "policies": {"attributes": [{"name": "bureau", "kind": "string", "meaning": "x"}]},
    "customer": {"name": "x", "reference": "x"},
    "transactions": {"accountName": "x", "bankName": "x", "accountNumber": "12345678", "bsb": "062-000"},
}


def hostile(name: str) -> str:
    """Return a text that would end an attribute, start an element and a script, and be a script as an address."""
    return f"javascript:{name}()//'\"><evil/onevil={{{{7*7}}}}><script>evil()</script>{REARRANGES}"


def names_in(text: str) -> set[str]:
    """Return the names of the hostile texts that a text contains."""
    return set(NAME.findall(text))


def make_hostile(body: Any, subject: str, member: str = "") -> Any:
    """Replace the texts of a body that its sender chooses."""
    if isinstance(body, dict):
        is_declared = "kind" in body  # an input or attribute: its name is an identifier
        return {
            name: each if is_declared and name == "name" else make_hostile(each, subject, name)
            for name, each in body.items()
        }
    if isinstance(body, list):
        return [make_hostile(each, subject, member) for each in body]
    if not isinstance(body, str) or not body or member not in BEGINS:
        return body
    return BEGINS[member] + hostile(f"{subject}-{member}".lower())


class HostileConsole(Belongings):
    """Something of a lender on every page of the console. `admin` is a signed-in user of this lender."""

    statement = replace(
        statement(entry(hostile("statement-row"), "-900.00", "4100.00", 2)),
        account_name=hostile("statement-account"),
        bank_name=hostile("statement-bank"),
    )
    rows = ({name: hostile(f"row-{name}".replace("_", "-")) for name in COLUMNS},)

    def __init__(self, store: Store, base_url: str) -> None:
        now = datetime.now(UTC)
        with store.db.writing() as w:
            lender = keys.create_client(w, hostile("client-name"), decision_policies=True, now=now)
            _, key = keys.create_key(w, lender.client_id, keys.SCOPES, None, store.settings.key_prefix, now)
            email = f"{uuid4()}@{hostile('email')}"
            self.user = users.create(w, lender.client_id, email, hostile("user-name"), Role.ADMIN, now)
        self.names = {"client-name", "user-name", "email", "response", "rejected-message", "decline-reason"}
        self.names |= names_in(str((self.rows, self.statement, hostile_reports())))
        super().__init__(store, Client(base_url, lender.client_id, key))
        self.admin: Visitor = sign_in(store, base_url, self.user)
        self._furnish()

    def _send(self, method: str, path: str, body: Any) -> Any:
        subject = re.sub("(policy|ruleset)-$", "", IDS.sub("", path).rstrip("/")).rpartition("/")[2] or "policies"
        whole = ALSO_SENT[subject] | body if subject in ALSO_SENT else body
        sent = json.dumps(make_hostile(whole, subject), ensure_ascii=False)
        self.names |= names_in(sent)
        allowed = sent.replace(REARRANGES, "") if subject in REFUSE_IT else sent
        return super()._send(method, path, json.loads(allowed))

    def _furnish(self) -> None:
        """Make what `Belongings` makes, and what else a page can show of it."""
        customer = f"/v1/customer/{self['customerId']}"
        bureau = {"value": hostile("attribute"), "source": hostile("source")}
        self._send("PUT", f"{customer}/attributes", {"attributes": {"bureau": bureau}})
        self._send("PUT", f"{customer}/related-parties", [{"name": "x", "role": "director"}])
        self._post(f"{customer}/reports/refresh", None)
        end_refreshes(self._store, hostile_reports())
        dict(self)
        self._made["userId"] = str(self.user.user_id)
        scope = {"customerIds": [self["customerId"]]}
        self._post(f"/v1/webhooks/subscriptions/{self['subscriptionId']}/customers", scope)
        about = {"evaluationId": self["evaluationId"]}
        self._post(f"{customer}/notes", {"text": "x", **about})
        self._post(f"{customer}/notes", {"text": "x", "matchId": self["matchId"]})
        for action in ({"action": "close", "reason": "x"}, {"action": "reopen"}):
            self._post(f"/v1/alerts/{self['matchId']}/actions", action)
        self._post(f"/v1/evaluations/{self['evaluationId']}/override", example(SentOverride))
        self._evaluation()  # waits for a person
        self._post_for_approval()
        self._submit_again(customer)
        self._fail_deliveries()

    def more_pages(self) -> list[str]:
        """Return addresses that show more than the page of the same path with the ids of this console."""
        customer = f"/customers/{self['customerId']}"
        [statement] = self._get(f"/v1{customer.replace('customers', 'customer')}/statements")["statements"]
        return [f"{customer}/uploads/{statement['jobId']}", f"{customer}/reports/sections/integrity"]

    def _post_for_approval(self) -> None:
        """Request the publication of the draft and a ruleset: the second is declined."""
        require_approvals(self._store, self._client, *REQUIRABLE)
        self._post(f"/v1/decision-policies/{self['slug']}/publish", {"version": 2})
        document = spending_ruleset(f"ruleset-{uuid4()}", [self["customerId"]])
        asked = self._post("/v1/monitoring/rulesets", document | {"active": True})["approvalId"]
        answer = self.admin.post(f"/approvals/{asked}/decline", reason=hostile("decline-reason"))
        assert "The request is declined." in answer.text
        require_approvals(self._store, self._client)

    def _submit_again(self, customer: str) -> None:
        """Submit rows of which one is rejected and one repeats another."""
        job_id = self._post(f"{customer}/transactions", {"transactions": [ITEM, ITEM, ITEM]})["jobId"]
        repeats = {"position": 1, "transaction_id": UUID(self["transactionId"]).bytes}
        rejected = {"position": 2, "field": "description", "code": "Transaction.InvalidDescription"}
        end_submissions(self._store, self.rows, [rejected | {"message": hostile("rejected-message")}], [repeats])
        listed = self._get(f"{customer}/transactions?jobId={job_id}")["transactions"]
        self._made |= {"jobId": job_id, "transactionId": listed[0]["transactionId"]}

    def _fail_deliveries(self) -> None:
        """Send all due deliveries to a receiver that answers with markup."""
        now, holder = datetime.now(UTC), uuid4()
        with self._store.db.writing() as w:
            for claimed in outbox.claim_due(w, holder, 1_000, 60, now):
                attempt = Attempt(uuid4(), now, 84, 500, None, hostile("response").encode())
                outbox.record(w, holder, [Ended(claimed.delivery_id, DeliveryStatus.FAILED, attempt)])


def hostile_reports() -> dict[str, str]:
    """Return the documented reports with texts from transactions and statements that are hostile."""
    counterparty = {"name": hostile("counterparty"), "direction": "credit", "kind": "business", "amount": 12.50}
    columns = [{"name": name, "unit": "AUD" if name == "amount" else "text"} for name in counterparty]
    table = {"id": "top_counterparties", "name": "Top counterparties", "hierarchy": "customer", "type": "summary"}
    aggregate = {"tables": [table | {"columns": columns, "values": [counterparty]}]}
    documented = {kind: deepcopy(EXAMPLES[kind]["data"]) for kind in REPORT_KINDS}
    for finding in documented["risk"]["integrity"]["findings"]:
        finding["about"] = hostile("finding-about")
    return {kind: json.dumps(aggregate if kind == "aggregate" else data) for kind, data in documented.items()}


def find_injected(html: str, base_url: str) -> list[str]:
    """Return the elements of a page that come from a hostile text, or that lead to another site."""
    assert not UNPRINTABLE.search(html)
    assert "onevil=49" not in html
    return [f"<{each.tag} {each.attributes}>" for each in parse_html(html).all() if is_injected(each, base_url)]


def is_injected(element: Element, base_url: str) -> bool:
    attributes = element.attributes.items()
    return (
        element.tag in ("evil", "base", "iframe", "object", "embed")
        or (element.tag == "script" and element.text != "")
        or (element.tag == "style" and "evil" in element.text)
        or any(name.startswith(("on", "hx-on", "hx-vals")) or "evil" in name for name, _ in attributes)
        or any("evil" in value for name, value in attributes if name not in (*SHOWN_AS_TEXT, *ADDRESSES))
        or any(not is_local(value, base_url) for name, value in attributes if name in ADDRESSES)
    )


def is_local(address: str, base_url: str) -> bool:
    """Return whether a browser stays on this site. It drops control characters and reads backslashes as slashes."""
    cleaned = re.sub("[\x00-\x20]", "", address).replace("\\", "/")
    return urlsplit(urljoin(f"{base_url}/a/page", cleaned))[:2] == urlsplit(base_url)[:2]
