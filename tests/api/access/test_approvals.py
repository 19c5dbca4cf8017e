"""Four eyes over HTTP: an action is requested by one key and performed when another one approves it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import requests

from api.core.schemas.examples import example
from api.decisions.schemas.evaluations import SentOverride
from api.decisions.schemas.policies import SentPolicy
from storage.access.approvals import REQUIRABLE
from storage.core import audit
from storage.core.models import ApprovalKind
from storage.core.store import Store
from tests.api.conftest import Client, require_approvals, spending_ruleset, with_scopes

PUBLISH, OVERRIDE, ACTIVATE = REQUIRABLE
SCOPES = {PUBLISH: "decision-policies:publish", OVERRIDE: "decision-policies:override", ACTIVATE: "monitoring:rules"}
OVERRIDDEN = example(SentOverride)


@dataclass(frozen=True)
class Lender:
    """A client with two keys that hold every scope, so that one can approve what the other requested."""

    store: Store
    first: Client
    second: Client

    def need(self, *kinds: ApprovalKind) -> None:
        require_approvals(self.store, self.first, *kinds)

    def draft(self, slug: str = "overdraft", **changes: object) -> None:
        saved = self.first.call("PUT", f"/v1/decision-policies/{slug}", json=example(SentPolicy) | changes)
        assert saved.status_code == 201, saved.text

    def publish(self, slug: str = "overdraft", version: int | None = None) -> requests.Response:
        return self.first.post(f"/v1/decision-policies/{slug}/publish", {"version": version})

    def decision(self) -> str:
        """Return the evaluation of a customer by a published policy."""
        slug = f"p-{uuid4()}"
        self.draft(slug)
        assert self.publish(slug).status_code == 200
        path = f"/v1/customer/{self.first.new_customer()}/decision-policies/{slug}/evaluate"
        return str(data(self.first.post(path, {"inputs": {"requestedAmount": 1}}))["evaluationId"])

    def override(self, evaluation_id: str, **options: Any) -> requests.Response:
        return self.first.post(f"/v1/evaluations/{evaluation_id}/override", OVERRIDDEN, **options)

    def create_ruleset(self, slug: str = "spending", **changes: object) -> requests.Response:
        document = spending_ruleset(slug, [self.first.new_customer()]) | changes
        return self.first.post("/v1/monitoring/rulesets", document)

    def replace(self, ruleset_id: str, **changes: object) -> requests.Response:
        stored = data(self.first.get(f"/v1/monitoring/rulesets/{ruleset_id}"))["document"]
        return self.first.call("PUT", f"/v1/monitoring/rulesets/{ruleset_id}", json=stored | changes)

    def approve(self, approval_id: str, by: Client | None = None) -> requests.Response:
        return (by or self.second).post(f"/v1/approvals/{approval_id}/approve")

    def decline(self, approval_id: str, by: Client | None = None) -> requests.Response:
        return (by or self.second).post(f"/v1/approvals/{approval_id}/decline", {"reason": "Not yet."})

    def withdraw(self, approval_id: str, by: Client | None = None) -> requests.Response:
        return (by or self.first).post(f"/v1/approvals/{approval_id}/withdraw")

    def status(self, approval_id: str) -> str:
        return str(data(self.second.get(f"/v1/approvals/{approval_id}"))["status"])

    def requests_of_each_kind(self) -> dict[ApprovalKind, str]:
        """Return the id of a pending request for each kind of action."""
        evaluation_id = self.decision()
        self.draft()
        self.need(*REQUIRABLE)
        asked = {PUBLISH: self.publish(), OVERRIDE: self.override(evaluation_id), ACTIVATE: self.create_ruleset()}
        return {kind: read_pending_approval(answer)["approvalId"] for kind, answer in asked.items()}


@pytest.fixture
def lender(store: Store, client: Client) -> Lender:
    return Lender(store, client, with_scopes(store, client, [*SCOPES.values(), "customer:work"]))


def data(answer: requests.Response) -> dict[str, Any]:
    assert answer.ok, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def read_pending_approval(answer: requests.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    approval = data(answer)
    assert approval["status"] == "pending"
    assert answer.headers["Location"] == f"/v1/approvals/{approval['approvalId']}"
    return approval


def refusal(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def trail(store: Store, client: Client) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the client's audit entries, oldest first: action, who, resource."""
    with store.db.reading() as r:
        return [(each.action, each.who, dict(each.resource)) for each in reversed(audit.find(r, client.client_id))]


def test_without_the_setting_every_action_is_performed_at_once(lender: Lender) -> None:
    evaluation_id = lender.decision()
    for kinds in ([], [PUBLISH, ACTIVATE]):
        lender.need(*kinds)
        assert lender.override(evaluation_id).status_code == 201
    lender.need(OVERRIDE)
    lender.draft()
    assert lender.publish().status_code == 200
    assert lender.create_ruleset().status_code == 201
    assert data(lender.first.get("/v1/approvals"))["totalCount"] == 0


def test_a_publication_happens_when_another_key_approves_it(lender: Lender) -> None:
    lender.draft()
    lender.need(PUBLISH)
    asked = read_pending_approval(lender.publish())
    assert (asked["kind"], asked["request"], asked["subject"]["slug"]) == ("publish", {"version": 1}, "overdraft")
    assert lender.first.get("/v1/decision-policies/overdraft").status_code == 404
    assert refusal(lender.approve(asked["approvalId"], by=lender.first)) == (409, "Approval.SamePerson")
    approved = data(lender.approve(asked["approvalId"]))
    assert (approved["status"], approved["requestedBy"]) == ("approved", asked["requestedBy"])
    assert approved["decidedBy"] != approved["requestedBy"]
    published = data(lender.first.get("/v1/decision-policies/overdraft"))
    assert (published["version"], published["publishedBy"]) == (1, asked["requestedBy"])
    assert lender.publish().status_code == 200  # it is published already: nothing to request


def test_an_override_happens_when_another_key_approves_it(lender: Lender) -> None:
    evaluation_id = lender.decision()
    lender.need(OVERRIDE)
    key = {"Idempotency-Key": str(uuid4())}
    asked = read_pending_approval(lender.override(evaluation_id, headers=key))
    assert (asked["kind"], asked["request"], asked["subject"]["evaluationId"]) == (
        "override",
        OVERRIDDEN,
        evaluation_id,
    )
    path = f"/v1/evaluations/{evaluation_id}"
    assert data(lender.first.get(path))["overrides"] == []
    data(lender.approve(asked["approvalId"]))
    [override] = data(lender.first.get(path))["overrides"]
    assert (override["outcome"], override["reason"], override["who"]) == (
        OVERRIDDEN["outcome"],
        OVERRIDDEN["reason"],
        asked["requestedBy"],
    )
    again = lender.override(evaluation_id, headers=key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")


def test_a_ruleset_is_activated_when_another_key_approves_it(lender: Lender) -> None:
    lender.need(ACTIVATE)
    inactive = lender.create_ruleset("inactive", active=False)
    assert inactive.status_code == 201
    ruleset_id = data(inactive)["rulesetId"]
    new, replaced = (
        read_pending_approval(lender.create_ruleset()),
        read_pending_approval(lender.replace(ruleset_id, active=True)),
    )
    assert new["subject"] == {"slug": "spending"}
    assert replaced["subject"] == {"rulesetId": ruleset_id, "slug": "inactive"}
    assert replaced["request"]["replaces"] == 1
    assert lender.replace(ruleset_id, notes="Still inactive: needs no approval.").status_code == 200
    assert refusal(lender.approve(replaced["approvalId"])) == (409, "Approval.SubjectChanged")
    assert lender.status(replaced["approvalId"]) == "pending"
    again = read_pending_approval(lender.replace(ruleset_id, active=True))
    assert lender.status(replaced["approvalId"]) == "superseded"
    for each in (new, again):
        data(lender.approve(each["approvalId"]))
    stored = data(lender.first.get("/v1/monitoring/rulesets"))["rulesets"]
    assert {each["slug"]: (each["active"], each["version"]) for each in stored} == {
        "inactive": (True, 3),
        "spending": (True, 1),
    }
    assert lender.replace(ruleset_id).status_code == 200  # an equal document changes nothing


def test_a_request_is_refused_for_the_reasons_of_the_action_and_changes_nothing(lender: Lender) -> None:
    lender.draft()
    first = data(lender.create_ruleset())
    lender.need(*REQUIRABLE)
    what_if = lender.first.post(
        f"/v1/customer/{lender.first.new_customer()}/decision-policies/overdraft/evaluate",
        {"inputs": {"requestedAmount": 1}, "version": 1},
    )
    refused = [
        (lender.publish(version=2), (404, "DecisionPolicy.VersionNotFound")),
        (lender.override(data(what_if)["evaluationId"]), (409, "Evaluation.NotADecision")),
        (lender.create_ruleset(), (409, "Ruleset.SlugTaken")),
        (lender.replace(first["rulesetId"], appliesTo={"customers": [str(uuid4())]}), (400, "Ruleset.UnknownCustomer")),
    ]
    for answer, expected in refused:
        assert refusal(answer) == expected
    assert data(lender.first.get("/v1/approvals"))["totalCount"] == 0


def test_a_refused_action_leaves_the_request_pending(lender: Lender) -> None:
    ids = lender.requests_of_each_kind()
    lender.need()
    lender.first.post("/v1/decision-policies/overdraft/archive")
    lender.create_ruleset()
    for kind, expected in (
        (PUBLISH, (409, "DecisionPolicy.Archived")),
        (ACTIVATE, (409, "Ruleset.SlugTaken")),
    ):
        assert refusal(lender.approve(ids[kind])) == expected
        assert lender.status(ids[kind]) == "pending"
        assert data(lender.decline(ids[kind]))["status"] == "declined"


def test_a_declined_request_is_not_performed(lender: Lender) -> None:
    for approval_id in lender.requests_of_each_kind().values():
        assert refusal(lender.second.post(f"/v1/approvals/{approval_id}/decline", {})) == (
            400,
            "Approval.InvalidReason",
        )
        assert refusal(lender.decline(approval_id, by=lender.first)) == (409, "Approval.SamePerson")
        assert data(lender.decline(approval_id))["reason"] == "Not yet."
        for decide in (lender.approve, lender.decline):
            assert refusal(decide(approval_id)) == (409, "Approval.Decided")
    assert lender.first.get("/v1/decision-policies/overdraft").status_code == 404
    assert data(lender.first.get("/v1/monitoring/rulesets"))["totalCount"] == 0


def test_a_withdrawn_request_is_not_performed(lender: Lender) -> None:
    for approval_id in lender.requests_of_each_kind().values():
        assert refusal(lender.withdraw(approval_id, by=lender.second)) == (409, "Approval.OtherPerson")
        withdrawn = data(lender.withdraw(approval_id))
        assert (withdrawn["status"], withdrawn["decidedBy"]) == ("withdrawn", withdrawn["requestedBy"])
        for decide in (lender.approve, lender.decline, lender.withdraw):
            assert refusal(decide(approval_id)) == (409, "Approval.Decided")
        entry = ("Approval.Withdrawn", withdrawn["requestedBy"], {"approvalId": approval_id})
        assert trail(lender.store, lender.first)[-1] == entry
    assert lender.first.get("/v1/decision-policies/overdraft").status_code == 404
    assert data(lender.first.get("/v1/monitoring/rulesets"))["totalCount"] == 0
    assert data(lender.first.get("/v1/approvals?status=withdrawn"))["totalCount"] == 3
    read_pending_approval(lender.publish())  # it can be requested again


def test_only_the_scope_of_the_action_can_decide(store: Store, lender: Lender) -> None:
    ids = lender.requests_of_each_kind()
    for kind, approval_id in ids.items():
        decides: list[Callable[..., requests.Response]] = [lender.approve, lender.decline]
        wrong = with_scopes(store, lender.first, [scope for other, scope in SCOPES.items() if other != kind])
        for decide in decides:
            assert refusal(decide(approval_id, by=wrong)) == (403, "Authorization.MissingScope")
        assert data(wrong.get(f"/v1/approvals/{approval_id}"))["kind"] == kind
        right = with_scopes(store, lender.first, [SCOPES[kind]])
        assert data(lender.approve(approval_id, by=right))["status"] == "approved"


def test_another_client_finds_no_approval(lender: Lender, other_client: Client) -> None:
    for approval_id in lender.requests_of_each_kind().values():
        for answer in (
            other_client.get(f"/v1/approvals/{approval_id}"),
            lender.approve(approval_id, by=other_client),
            lender.decline(approval_id, by=other_client),
            lender.withdraw(approval_id, by=other_client),
        ):
            assert refusal(answer) == (404, "Approval.NotFound")
    assert data(other_client.get("/v1/approvals"))["totalCount"] == 0


def test_only_one_of_several_concurrent_approvers_performs_the_action(lender: Lender) -> None:
    evaluation_id = lender.decision()
    lender.need(OVERRIDE)
    approval_id = read_pending_approval(lender.override(evaluation_id))["approvalId"]
    approvers = [with_scopes(lender.store, lender.first, [SCOPES[OVERRIDE]]) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda by: lender.approve(approval_id, by=by), approvers))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert len(data(lender.first.get(f"/v1/evaluations/{evaluation_id}"))["overrides"]) == 1


def test_the_list_has_filters_and_pages(lender: Lender) -> None:
    ids = lender.requests_of_each_kind()
    data(lender.decline(ids[PUBLISH]))
    for query, kinds in (
        ("", [ACTIVATE, OVERRIDE, PUBLISH]),
        ("?status=pending", [ACTIVATE, OVERRIDE]),
        ("?status=declined", [PUBLISH]),
        ("?kind=override", [OVERRIDE]),
        ("?kind=publish&status=pending", []),
        ("?page=2&count=2", [PUBLISH]),
    ):
        listed = data(lender.second.get(f"/v1/approvals{query}"))["approvals"]
        assert [each["approvalId"] for each in listed] == [ids[kind] for kind in kinds], query
    [override] = data(lender.second.get("/v1/approvals?kind=override"))["approvals"]
    evaluation_id = override["subject"]["evaluationId"]
    for query, count in ((f"?evaluationId={evaluation_id}", 1), (f"?evaluationId={evaluation_id}&status=declined", 0)):
        assert data(lender.second.get(f"/v1/approvals{query}"))["totalCount"] == count
    for query, code in (
        ("?status=open", "Approval.InvalidStatus"),
        ("?kind=x", "Approval.InvalidKind"),
        ("?evaluationId=x", "Approval.InvalidEvaluation"),
    ):
        assert refusal(lender.second.get(f"/v1/approvals{query}")) == (400, code)


def test_the_audit_trail_names_both(lender: Lender) -> None:
    evaluation_id = lender.decision()
    lender.draft()
    lender.need(*REQUIRABLE)
    before = len(trail(lender.store, lender.first))
    asked = [read_pending_approval(lender.override(evaluation_id)), read_pending_approval(lender.publish())]
    lender.draft(notes="Another version.")
    asked.append(read_pending_approval(lender.publish()))
    approved = data(lender.approve(asked[0]["approvalId"]))
    data(lender.decline(asked[2]["approvalId"]))
    first, second = approved["requestedBy"], approved["decidedBy"]
    ids = [each["approvalId"] for each in asked]
    policy = {name: asked[1]["subject"][name] for name in ("policyId", "slug")}
    both = {"approvalId": ids[0], "requestedBy": first}
    entries = [each for each in trail(lender.store, lender.first)[before:] if each[0] != "Policy.Saved"]
    assert entries == [
        ("Approval.Requested", first, {"approvalId": ids[0], **asked[0]["subject"]}),
        ("Approval.Requested", first, {"approvalId": ids[1], **policy}),
        ("Approval.Requested", first, {"approvalId": ids[2], **policy, "supersededId": ids[1]}),
        ("Approval.Approved", second, both),
        ("Decision.Overridden", second, {"evaluationId": evaluation_id, **both}),
        ("Approval.Declined", second, {"approvalId": ids[2], "requestedBy": first}),
    ]
