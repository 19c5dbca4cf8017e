"""Pages for decisions: the application, the decision with its reasons, overrides and the letter."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from api.reports import browser
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.store import Store
from tests.api.conftest import Client, require_approvals
from tests.api.console.visitor import Visitor, visit_as
from tests.api.core.test_evaluate import SLUG, save_policy
from tests.api.worker import end_submissions
from tests.pipelines.pages.documents import parse_html

HOSTILE = "<script>alert(1)</script>\u202e" + "x" * 100
NO_NUMBERS = ("much", "1.000,50", "1,5", "1,00,000", "5e3", "1_000", "62%", "5k", "(5,000)", "٥")
FORM = {"input.amount": "50,000", "input.secured": "yes", "input.purpose": "stock", "attribute.score": "684"}


@dataclass(frozen=True)
class Place:
    """A lender with a customer and a published policy, and a signed-in person of each role."""

    store: Store
    client: Client
    customer_id: str
    people: Mapping[Role, Visitor]

    @property
    def form(self) -> str:
        return f"/customers/{self.customer_id}/decide/{SLUG}"

    def decide(self, **fields: object) -> str:
        """Decide by the form as an analyst; return the address of the decision."""
        analyst = self.people[Role.ANALYST]
        answer = analyst.send(self.form, {"csrf": analyst.csrf, "action": "decide"} | FORM | fields)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])


@pytest.fixture
def place(store: Store, base_url: str, client: Client) -> Place:
    save_policy(store, client)
    customer_id = client.new_customer(name=f"Bakery & {HOSTILE}")
    client.submit_transactions(customer_id)
    end_submissions(store)
    return Place(store, client, customer_id, {role: visit_as(store, base_url, client.client_id, role) for role in Role})


def read_words(answer: requests.Response, status: int = 200) -> str:
    """Return the words of a page, after checking that no text has become markup."""
    assert answer.status_code == status, answer.text
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text
    return " ".join(parse_html(answer.text).text.split())


def attributes(client: Client, customer_id: str) -> dict[str, Any]:
    found = client.get(f"/v1/customer/{customer_id}/attributes").json()["data"]["attributes"]
    return {name: each["value"] for name, each in found.items()}


def test_the_form_has_what_the_policy_declares(place: Place) -> None:
    page = parse_html(place.people[Role.ANALYST].get(place.form).text)
    fields = [each.attributes for each in page.all("input", "select") if each.attributes.get("type") != "hidden"]
    names = [each["name"] for each in fields if "." in each.get("name", "")]
    assert names == ["input.amount", "input.secured", "input.purpose", "attribute.score", "attribute.loan.purpose"]
    assert "Bakery & <script>" in next(page.all("h1")).text


def test_a_decision_stores_changed_attributes_and_a_try_does_not(place: Place) -> None:
    tried = place.decide(action="what-if")
    assert attributes(place.client, place.customer_id) == {}
    real = place.decide()
    assert attributes(place.client, place.customer_id) == {"score": 684}
    analyst = place.people[Role.ANALYST]
    assert "What-if: Proceed" in read_words(analyst.get(tried))
    text = read_words(analyst.get(real))
    for words in ("Decision: Proceed", "Overdraft: $50,000.00 of $68,400.00, limited by: No more than asked", "Letter"):
        assert words in text
    page = analyst.get(place.form).text
    assert re.search('name="attribute.score"[^>]*value="684"', page)
    cleared = place.decide(**{"attribute.score": "", "shown.attribute.score": "684"})
    assert attributes(place.client, place.customer_id) == {}
    undecided = read_words(analyst.get(cleared))
    assert "Decision: Indeterminate" in undecided
    assert "What would resolve it Set the customer's attribute “Score” (a number)" in undecided
    assert "Letter" not in undecided


def test_a_try_without_changes_decides_nothing_either_and_its_inputs_can_be_decided(place: Place) -> None:
    place.decide()
    before = place.client.get(f"/v1/customer/{place.customer_id}/summary").json()["data"]["lastDecision"]
    tried = place.decide(action="what-if", **{"shown.attribute.score": "684"})
    analyst = place.people[Role.ANALYST]
    shown = analyst.get(tried).text
    assert "What-if:" in shown
    assert "ignoreTitle:true" in shown  # a part of another page, whose title htmx would take over
    assert place.client.get(f"/v1/customer/{place.customer_id}/summary").json()["data"]["lastDecision"] == before
    again = re.findall(f'"({place.form}[?]again=[^"]+)"', shown)
    form = parse_html(analyst.get(again[0]).text)
    fields = {each.attributes.get("name"): each.attributes.get("value") for each in form.all("input")}
    assert (fields["input.amount"], fields["input.purpose"], fields["attribute.score"]) == ("50000", "stock", "684")


def test_only_what_somebody_changed_on_the_page_is_stored(place: Place) -> None:
    """What is stored while the page is open, or what it did not show, must not be replaced by deciding."""
    place.decide()
    stored = {"attributes": {"score": 700, "loan.purpose": "stock"}}
    assert place.client.call("PUT", f"/v1/customer/{place.customer_id}/attributes", json=stored).ok
    place.decide(**{"shown.attribute.score": "684"})
    assert attributes(place.client, place.customer_id) == {"score": 700, "loan.purpose": "stock"}


def test_a_faulty_form_shows_again_what_was_shown(place: Place) -> None:
    place.decide()
    sent = {"action": "decide", **FORM, "input.amount": "much", "shown.attribute.score": "600"}
    page = place.people[Role.ANALYST].post(place.form, **sent).text
    assert re.search('name="shown.attribute.score" value="600"', page)


def test_decision_of_an_archived_policy_says_why_nothing_would_change_it(place: Place) -> None:
    decision, analyst = place.decide(), place.people[Role.ANALYST]
    assert place.client.post(f"/v1/decision-policies/{SLUG}/archive").ok
    assert analyst.get(decision).status_code == 200
    answer = analyst.get(f"{decision}/changes")
    assert answer.status_code == 409
    assert "is archived" in answer.text.partition('<section id="changes">')[2]


def test_values_have_their_units_and_a_share_is_typed_as_percent(place: Place) -> None:
    formats = {"holdback": "percent", "termMonths": "months", "debt": "currency", "bas_lodged_to": "yearMonth"}
    share, term, debt, lodged = ({"name": name, "kind": "decimal", "format": formats[name]} for name in formats)
    policy = {
        "name": "Advance",
        "declaredInputs": [share, term],
        "attributes": [debt, lodged],
        "defaultOutcome": "proceed",
        "steps": [
            knock_outs({"input": "holdback"}, "0.125"),
            knock_outs({"attribute": "debt"}, "1000000"),
            knock_outs({"attribute": "bas_lodged_to"}, "300001"),
        ],
    }
    path = "/v1/decision-policies/advance"
    stored = place.client.call("PUT", path, json=policy)
    assert stored.status_code == 201, stored.text
    assert place.client.post(f"{path}/publish", {"version": 1}).status_code == 200
    analyst, form = place.people[Role.ANALYST], f"/customers/{place.customer_id}/decide/advance"
    for label in ("Holdback (%)", "Term (months)", "Debt ($)", "BAS lodged to"):
        assert label in read_words(analyst.get(form))
        assert label in read_words(analyst.get("/policies/advance"))
    sent = {"input.holdback": "12", "input.termMonths": "24", "attribute.bas_lodged_to": "202606"}
    undecided = read_words(analyst.post(form, **{"action": "decide"} | sent))
    assert "Set the customer's attribute “Debt ($)” (a number)" in undecided
    page = read_words(
        analyst.post(form, **{"action": "decide", **sent, "input.holdback": "12.5", "attribute.debt": "1,200.5"})
    )
    assert "Decision: Blocked" in page
    read = ("Holdback12.50 %Input", "Term24 monthsInput", "Debt$1,200.50Attribute", "BAS lodged toJun 2026Attribute")
    for words in (*read, "Holdback: 12.50 %"):
        assert words in page
    assert attributes(place.client, place.customer_id) == {"debt": 1200.5, "bas_lodged_to": 202606}
    again = analyst.post(form, **{"action": "decide", "input.holdback": "much", "attribute.debt": "1200.5"})
    assert 'value="much"' in again.text
    for month in ("June 2026", "202613", "2026.06", "26,061"):
        wrong = analyst.post(form, **{"action": "decide", **sent, "attribute.bas_lodged_to": month})
        assert "Type the year and the month, such as 202606." in read_words(wrong, 400)


def knock_outs(read: dict[str, str], most: str) -> dict[str, Any]:
    """Return a step that blocks if a value is the most or above."""
    (name,) = read.values()
    texts = {"message": "Too much.", "customerMessage": "Too much."}
    rule = {"code": name.upper(), **texts, "condition": {"atLeast": [read, most]}}
    return {"name": f"Much {name}", "outcome": "blocked", "match": "any", "rules": [rule]}


def test_faults_are_shown_beside_their_fields(place: Place) -> None:
    analyst = place.people[Role.ANALYST]
    for fields, words in (
        ({"input.amount": ""}, "Nothing was decided. Correct the fields that are marked."),
        ({"input.amount": ""}, "Amount is missing."),
        *(({"input.amount": text}, "Type a number, such as 1,000.50.") for text in NO_NUMBERS),
        ({"attribute.score": "NaN"}, "Type a number, such as 1,000.50."),
        ({"input.amount": "1" + 20 * "0"}, "Amount must be a number of at most 15 digits"),
        ({"input.secured": "perhaps"}, "Choose yes or no."),
        ({"input.purpose": "x" * 2_000}, "Purpose must have at most"),
    ):
        answer = analyst.post(place.form, **{"action": "decide"} | FORM | fields)
        assert words in read_words(answer, 400), fields
    assert attributes(place.client, place.customer_id) in ({}, {"score": 684})


def test_a_decision_shows_why_and_what_would_change_it(place: Place) -> None:
    address = place.decide(**{"attribute.score": "400"})
    analyst = place.people[Role.ANALYST]
    text = read_words(analyst.get(address))
    for words in ("Decision: Blocked", "SCORE internally", "To the applicant: SCORE for the customer", "Score: 400"):
        assert words in text, words
    assert "SCORE internally SCOREMatchedScore: 400" in text
    changes = read_words(analyst.get(f"{address}/changes"))
    assert "Score 400 500 Proceed" in changes
    figure = read_words(analyst.get(f"{address}/figure?figure=/history_days"))
    assert "As of" in figure
    assert analyst.get(f"{address}/figure?figure=/nothing").status_code == 404
    listed = read_words(analyst.get(f"/customers/{place.customer_id}/decisions"))
    assert "Overdraft, version 1 Blocked Decision" in listed
    overview = read_words(analyst.get(f"/customers/{place.customer_id}"))
    assert re.search("Last decision *Blocked *Overdraft", overview)


def test_an_override_is_done_or_requested_by_those_who_may(place: Place) -> None:
    address = place.decide(**{"attribute.score": "400"})
    override = {"outcome": "proceed", "reason": HOSTILE, "decidedBy": "J. Citizen"}
    analyst, approver = place.people[Role.ANALYST], place.people[Role.APPROVER]
    assert "Override this decision" not in read_words(analyst.get(address))
    assert analyst.post(f"{address}/override", **override).status_code == 403
    assert "Reason must have 1 to" in read_words(approver.post(f"{address}/override", **override | {"reason": ""}), 400)
    nothing = read_words(approver.post(f"{address}/override", **override | {"reason": "", "decidedBy": ""}), 400)
    assert re.search(r"Reason must have 1 to [\d,]+ characters\. Decided by must have 1 to", nothing)
    beside = approver.post(f"{address}/override", **override | {"reason": ""}).text
    assert re.search('<textarea name="reason"[^>]* aria-describedby="reason-fault" aria-invalid="true"', beside)
    require_approvals(place.store, place.client, ApprovalKind.OVERRIDE)
    assert "somebody else must approve it" in read_words(approver.post(f"{address}/override", **override))
    asked = {"reason": f"Seen: {HOSTILE}", "outcome": "conditional"}
    assert "somebody else must approve it" in read_words(approver.post(f"{address}/override", **override | asked))
    for visitor in (approver, analyst):
        text = read_words(visitor.get(address))
        assert "Decision: Blocked" in text
        assert "An override waits for a second person To Conditional Seen:" in text
        assert "Requested by Ada, approver" in text
    assert "An override waits" not in read_words(approver.get(place.decide()))
    found = re.search('href="(/approvals[^"]+)"', approver.get(address).text)
    assert found is not None
    listed = approver.get(found[1].replace("&amp;", "&"))
    assert re.search(r"Override a decision on Bakery & <script>.*: Conditional", read_words(listed))
    withdrawal = re.search('action="(/approvals/[^"]+/withdraw)"', listed.text)
    assert withdrawal is not None
    approver.post(withdrawal[1])
    assert "An override waits" not in read_words(approver.get(address))
    require_approvals(place.store, place.client)
    text = read_words(approver.post(f"{address}/override", **override))
    for words in ("The decision is overridden.", "Decision: Proceed", "own outcome was Blocked", "J. Citizen"):
        assert words in text


def test_the_letter_is_the_apis(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    address = place.decide()
    analyst = place.people[Role.ANALYST]
    monkeypatch.setattr(browser, "print_pdf", lambda _: b"%PDF")
    for kind, path in (("letter.html", "letter"), ("letter.pdf", "letter.pdf")):
        page, sent = analyst.get(f"{address}/{path}"), place.client.get(f"/v1{address}/{kind}")
        assert page.content == sent.content
        for header in ("content-type", "content-security-policy"):
            assert page.headers.get(header) == sent.headers.get(header)


def test_roles_see_what_the_api_lets_them(place: Place) -> None:
    address = place.decide()
    pages = (
        place.form,
        f"/customers/{place.customer_id}/decisions",
        address,
        f"{address}/changes",
        f"{address}/figure",
        f"{address}/letter",
    )
    for path in pages:
        statuses = {role: visitor.get(path).status_code for role, visitor in place.people.items()}
        assert statuses == {role: 403 if role is Role.VIEWER else 200 for role in Role}, path
