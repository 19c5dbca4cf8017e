"""Decision policies over HTTP: save, publish, list, compare and archive them."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import requests

from api.core.schemas.examples import example
from api.decisions.schemas.policies import SentPolicy
from pipelines.decisions import examples
from storage.access import keys
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Client, new_client
from tests.api.worker import end_submissions

parametrize = pytest.mark.parametrize
BASE = "/v1/decision-policies"
CONTRACT_FIELDS = {"policyId", "name", "slug", "notes", "declaredInputs", "defaultOutcome", "isArchived"}
MORE_FIELDS = {
    "version",
    "state",
    "challenger",
    "attributes",
    "metrics",
    "products",
    "steps",
    "limits",
    "indicators",
}
VERSION_FIELDS = {
    *("state", "fingerprint", "acknowledged"),
    *("dateCreated", "createdBy", "datePublished", "publishedBy", "dateRetired", "document"),
}


def document(**changes: object) -> dict[str, Any]:
    written: dict[str, Any] = deepcopy(example(SentPolicy))
    return written | changes


def lenient() -> dict[str, Any]:
    """Return a document with a cap that is ignored while its value is unknown."""
    cap = {
        "code": "REQUESTED",
        "message": "No more than the bureau's score allows.",
        "value": {"attribute": "bureau_score"},
        "onUnavailable": "ignore",
    }
    attribute = {"name": "bureau_score", "kind": "decimal"}
    [limit] = document()["limits"]
    return document(limits=[limit | {"caps": [cap]}], attributes=[attribute])


def put(client: Client, slug: str, sent: object) -> requests.Response:
    return client.call("PUT", f"{BASE}/{slug}", json=sent)


def save_policy(client: Client, slug: str, sent: object = None) -> dict[str, Any]:
    answer = put(client, slug, document() if sent is None else sent)
    assert answer.status_code in (200, 201), answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def publish_policy(client: Client, slug: str, sent: object = None) -> dict[str, Any]:
    save_policy(client, slug, sent)
    answer = client.post(f"{BASE}/{slug}/publish", {})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def list_policies(client: Client, query: str = "") -> dict[str, Any]:
    answer = client.get(BASE + query)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def refusal(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def faults(answer: requests.Response) -> list[tuple[str, str]]:
    return [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]


def states(client: Client, slug: str) -> dict[int, str]:
    versions = client.get(f"{BASE}/{slug}/versions").json()["data"]["versions"]
    return {each["version"]: each["state"] for each in versions}


# The list


def test_the_list_has_the_contracts_fields(client: Client) -> None:
    publish_policy(client, "overdraft")
    data = list_policies(client)
    assert data.keys() == {"items", "page", "pageSize", "totalCount"}
    assert (data["page"], data["pageSize"], data["totalCount"]) == (1, 1, 1)
    [item] = data["items"]
    assert item.keys() == CONTRACT_FIELDS | MORE_FIELDS
    assert UUID(item["policyId"])
    assert (item["slug"], item["version"], item["isArchived"], item["challenger"]) == ("overdraft", 1, False, None)
    assert [(each["name"], each["kind"]) for each in item["declaredInputs"]] == [("requestedAmount", "decimal")]
    assert [each["slug"] for each in item["metrics"]] == ["debt_service_to_revenue_180d"]
    assert [each["slug"] for each in item["products"]] == ["overdraft"]
    for name in ("name", "notes", "defaultOutcome", "steps", "limits", "indicators"):
        assert item[name] == document()[name]


def test_an_empty_list_is_one_empty_page(client: Client) -> None:
    assert list_policies(client) == {"items": [], "page": 1, "pageSize": 0, "totalCount": 0}


@parametrize(
    ("query", "slugs", "reported"),
    [
        ("", ["a", "b", "c"], (1, 3, 3)),
        ("?pageSize=2", ["a", "b", "c"], (1, 3, 3)),
        ("?page=1", ["a", "b", "c"], (1, 20, 3)),
        ("?page=2&pageSize=2", ["c"], (2, 2, 3)),
        ("?page=9&pageSize=2", [], (9, 2, 3)),
        ("?includeArchived=false", ["a", "b", "c"], (1, 3, 3)),
        ("?includeArchived=true", ["a", "archived", "b", "c"], (1, 4, 4)),
        ("?includeArchived=true&page=1&pageSize=2", ["a", "archived"], (1, 2, 4)),
    ],
)
def test_pages_of_the_list(client: Client, query: str, slugs: list[str], reported: tuple[int, int, int]) -> None:
    for slug in ("c", "a", "archived", "b"):
        publish_policy(client, slug)
    client.post(f"{BASE}/archived/archive")
    save_policy(client, "draft")
    data = list_policies(client, query)
    assert [item["slug"] for item in data["items"]] == slugs
    assert (data["page"], data["pageSize"], data["totalCount"]) == reported


@parametrize(
    ("query", "code"),
    [
        ("page=0", "Pagination.InvalidPage"),
        ("page=1&page=1", "Pagination.InvalidPage"),
        ("pageSize=0", "Pagination.InvalidPageSize"),
        ("pageSize=1001", "Pagination.InvalidPageSize"),
        ("page=1&pageSize=x", "Pagination.InvalidPageSize"),
        ("includeArchived=yes", "DecisionPolicy.InvalidIncludeArchived"),
        ("includeArchived=", "DecisionPolicy.InvalidIncludeArchived"),
        ("includeArchived=true&includeArchived=true", "DecisionPolicy.InvalidIncludeArchived"),
        ("includeDrafts=yes", "DecisionPolicy.InvalidIncludeDrafts"),
    ],
)
def test_a_malformed_query_is_refused(client: Client, query: str, code: str) -> None:
    assert refusal(client.get(f"{BASE}?{query}")) == (400, code)


def test_drafts_are_listed_on_request_with_their_newest_version(client: Client) -> None:
    publish_policy(client, "b")
    save_policy(client, "b", document(notes="A draft of a published policy."))
    for notes in ("first", "second"):
        save_policy(client, "a", document(notes=notes))
        save_policy(client, "gone", document(notes=notes))
    client.post(f"{BASE}/gone/archive")
    for query, expected in (
        ("", [("b", 1, "published")]),
        ("?includeDrafts=true", [("a", 2, "draft"), ("b", 1, "published")]),
        (
            "?includeDrafts=true&includeArchived=true",
            [("a", 2, "draft"), ("b", 1, "published"), ("gone", 2, "draft")],
        ),
    ):
        found = list_policies(client, query)
        assert [(each["slug"], each["version"], each["state"]) for each in found["items"]] == expected
        assert found["totalCount"] == len(expected)


def test_declared_values_have_the_texts_they_are_compared_with(client: Client) -> None:
    purposes = [{"oneOf": {"of": {"attribute": "purpose"}, "texts": texts}} for texts in (["a", "b"], ["b", "c"])]
    rule = document()["steps"][0]["rules"][0]
    steps = [{"name": "Purpose", "outcome": "blocked", "rules": [rule | {"condition": {"any": purposes}}]}]
    attributes = [{"name": "purpose", "kind": "string"}, {"name": "requestedAmount", "kind": "decimal"}]
    found = publish_policy(client, "texts", document(steps=steps, attributes=attributes, indicators=[]))
    assert [each["texts"] for each in found["attributes"]] == [["a", "b", "c"], []]
    assert [each["texts"] for each in found["declaredInputs"]] == [[]]


def test_a_check_finds_what_saving_would_and_stores_nothing(client: Client) -> None:
    cases: list[tuple[object, list[str], list[str]]] = [
        (document(), [], []),
        (lenient(), [], ["DecisionPolicy.LenientCap"]),
        (document(defaultOutcome="perhaps"), ["/defaultOutcome"], []),
        (document(slug="another"), ["/slug"], []),
    ]
    for sent, at_fault, warnings in cases:
        answer = client.post(f"{BASE}/new/check", sent)
        assert answer.status_code == 200
        data = answer.json()["data"]
        assert [each["pointer"] for each in data["faults"]] == at_fault
        assert [each["code"] for each in data["warnings"]] == warnings
        attempt = put(client, "new", sent)
        if at_fault or warnings:
            assert [each["pointer"] for each in attempt.json()["errors"]] == [
                each["pointer"] for each in (*data["faults"], *data["warnings"])
            ]
    assert states(client, "new") == {1: "draft"}


# Saving


def test_a_new_draft_is_returned_whole(client: Client) -> None:
    answer = put(client, "overdraft", document())
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{BASE}/overdraft?version=1"
    data = answer.json()["data"]
    assert data.keys() == CONTRACT_FIELDS | MORE_FIELDS | VERSION_FIELDS | {"warnings"}
    assert (data["version"], data["state"], data["datePublished"], data["warnings"]) == (1, "draft", None, [])
    assert data["document"]["slug"] == "overdraft"
    assert client.get(answer.headers["Location"]).json()["data"] == {k: v for k, v in data.items() if k != "warnings"}


def test_an_equal_document_makes_no_new_version(client: Client) -> None:
    first = save_policy(client, "overdraft")
    again = put(client, "overdraft", first["document"])
    assert (again.status_code, again.json()["data"]["version"]) == (200, 1)
    assert put(client, "overdraft", document(notes="Other.")).status_code == 201
    assert states(client, "overdraft") == {2: "draft", 1: "draft"}


def test_a_draft_is_not_saved_over_a_version_that_the_caller_does_not_know(client: Client) -> None:
    def save(known: object, **changes: object) -> tuple[int, object]:
        answer = client.call("PUT", f"{BASE}/overdraft?knownVersion={known}", json=document(**changes))
        return answer.status_code, answer.json()["data"]["version"] if answer.ok else answer.json()["code"]

    assert save(1) == (409, "DecisionPolicy.ChangedMeanwhile")  # there is none
    assert client.get(f"{BASE}?includeDrafts=true").json()["data"]["totalCount"] == 0
    assert save(0) == (201, 1)
    assert save(1, notes="Second.") == (201, 2)
    for known in (0, 1, 3):
        assert save(known, notes="Third.") == (409, "DecisionPolicy.ChangedMeanwhile")
    assert save(1, notes="Second.") == (200, 2)  # repeated: nothing would be lost
    assert states(client, "overdraft") == {2: "draft", 1: "draft"}
    for wrong in ("-1", "x", "1&knownVersion=2"):
        assert save(wrong) == (400, "DecisionPolicy.InvalidKnownVersion")


@parametrize("slug", sorted(examples.load()))
def test_the_examples_can_be_saved_and_published(client: Client, slug: str) -> None:
    sent = examples.load()[slug]
    refused = put(client, slug, sent)
    if refused.status_code == 400:
        warnings = refused.json()["errors"]
        assert refused.json()["code"] == "DecisionPolicy.WarningsNotAcknowledged", refused.text
        sent |= {"acknowledge": [{"code": each["code"], "pointer": each["pointer"]} for each in warnings]}
    assert publish_policy(client, slug, sent)["state"] == "published"
    assert [item["slug"] for item in list_policies(client)["items"]] == [slug]


def test_all_faults_are_listed_at_once_with_pointers(client: Client) -> None:
    [step] = document()["steps"]
    [rule] = step["rules"]
    wrong = rule | {"condition": {"moreThan": [{"metric": "no_such_metric"}, 0.35]}, "colour": "red"}
    refused = put(client, "overdraft", document(defaultOutcome="perhaps", steps=[step | {"rules": [wrong]}]))
    assert refusal(refused) == (400, "DecisionPolicy.Invalid")
    pointers = {pointer for pointer, _ in faults(refused)}
    assert {"/defaultOutcome", "/steps/0/rules/0/colour"} <= pointers
    assert any(pointer.startswith("/steps/0/rules/0/condition/moreThan/1") for pointer in pointers)
    assert "red" not in refused.text
    assert client.get(f"{BASE}/overdraft?version=1").status_code == 404


def test_an_unknown_reference_is_a_fault(client: Client) -> None:
    refused = put(client, "overdraft", document(indicators=[{"metric": "no_such_metric"}]))
    assert refusal(refused) == (400, "DecisionPolicy.Invalid")
    assert {pointer for pointer, _ in faults(refused)} == {"/indicators/0/metric"}


def test_warnings_are_saved_once_they_are_acknowledged(client: Client) -> None:
    refused = put(client, "overdraft", lenient())
    assert refusal(refused) == (400, "DecisionPolicy.WarningsNotAcknowledged")
    [warning] = refused.json()["errors"]
    assert warning["pointer"].startswith("/limits/0/caps/0")
    elsewhere = [{"code": warning["code"], "pointer": "/limits/9"}]
    assert refusal(put(client, "overdraft", lenient() | {"acknowledge": elsewhere}))[0] == 400
    accepted = [{"code": warning["code"], "pointer": warning["pointer"]}]
    data = save_policy(client, "overdraft", lenient() | {"acknowledge": accepted})
    assert data["warnings"] == data["acknowledged"] == [warning]
    assert "acknowledge" not in data["document"]


@parametrize(
    "acknowledge",
    [None, {}, "X", ["X"], [{}], [{"code": 1, "pointer": "/a"}], [{"code": "X"}], [{"code": "", "pointer": "/a"}]],
)
def test_invalid_acknowledgements_are_refused(client: Client, acknowledge: object) -> None:
    refused = put(client, "overdraft", document(acknowledge=acknowledge))
    assert refused.status_code == 400
    assert all(pointer.startswith("/acknowledge") for pointer, _ in faults(refused))


def test_slug_of_path_and_document_must_be_equal(client: Client) -> None:
    refused = put(client, "overdraft", document(slug="loan"))
    assert refusal(refused) == (400, "DecisionPolicy.Invalid")
    assert faults(refused) == [("/slug", "DecisionPolicy.SlugMismatch")]
    reserved = put(client, "schema", document())
    assert (reserved.status_code, reserved.headers["Allow"]) == (405, "GET")
    for slug in ("Overdraft", "-x", "x" * 64, "%00", "a b"):
        assert {pointer for pointer, _ in faults(put(client, slug, document()))} == {"/slug"}


@parametrize("number", ["1e400", "-0", "1" * 4_000, "0.1", "1E+2"])
def test_numbers_instead_of_texts_are_faults(client: Client, number: str) -> None:
    body = f'{{"name": "X", "defaultOutcome": {number}, "declaredInputs": [{{"name": {number}}}]}}'
    headers = {"Content-Type": "application/json"}
    refused = client.call("PUT", f"{BASE}/x", data=body, headers=headers)
    assert refusal(refused) == (400, "DecisionPolicy.Invalid")
    assert {"/defaultOutcome", "/declaredInputs/0/name"} <= {pointer for pointer, _ in faults(refused)}


@parametrize("depth", [100, 900, 50_000])
def test_deeply_nested_documents_are_refused_quickly(client: Client, depth: int) -> None:
    condition = '{"not":' * depth + '{"isKnown":{"input":"requestedAmount"}}' + "}" * depth
    rule = f'{{"code":"X","message":"X","customerMessage":"X","condition":{condition}}}'
    step = f'{{"name":"X","outcome":"blocked","rules":[{rule}]}}'
    body = f'{{"name":"X","defaultOutcome":"proceed","steps":[{step}]}}'
    headers = {"Content-Type": "application/json"}
    refused = client.call("PUT", f"{BASE}/deep", data=body[:199_000], headers=headers)
    assert refused.status_code in (400, 413)
    assert refused.elapsed.total_seconds() < 10


def test_a_policy_is_saved_for_its_own_client_only(client: Client, other_client: Client) -> None:
    publish_policy(client, "overdraft", document(notes="Ours."))
    assert put(other_client, "overdraft", document(notes="Theirs.")).status_code == 201
    assert client.get(f"{BASE}/overdraft").json()["data"]["notes"] == "Ours."
    assert refusal(other_client.get(f"{BASE}/overdraft")) == (404, "DecisionPolicy.NotFound")


# Versions


def test_versions_are_published_one_after_another(client: Client) -> None:
    first = publish_policy(client, "overdraft")
    assert (first["state"], first["version"]) == ("published", 1)
    assert first["datePublished"]
    second = publish_policy(client, "overdraft", document(notes="Second."))
    assert states(client, "overdraft") == {2: "published", 1: "retired"}
    assert client.get(f"{BASE}/overdraft").json()["data"] == second
    old = client.get(f"{BASE}/overdraft?version=1").json()["data"]
    assert (old["state"], old["notes"]) == ("retired", first["notes"])
    assert old["dateRetired"] == second["datePublished"]
    again = client.post(f"{BASE}/overdraft/publish", {"version": 2})
    assert again.json()["data"] == second
    retired = client.post(f"{BASE}/overdraft/publish", {"version": 1})
    assert refusal(retired) == (409, "DecisionPolicy.VersionRetired")
    missing = client.post(f"{BASE}/overdraft/publish", {"version": 3})
    assert refusal(missing) == (404, "DecisionPolicy.VersionNotFound")


@parametrize("version", [0, -1, 1.5, "1", True, 10_001, []])
def test_a_version_must_be_a_number(client: Client, version: object) -> None:
    save_policy(client, "overdraft")
    refused = client.post(f"{BASE}/overdraft/publish", {"version": version})
    assert refusal(refused) == (400, "DecisionPolicy.InvalidVersion")
    refused = client.get(f"{BASE}/overdraft", params={"version": str(version)})
    assert version == "1" or refusal(refused) == (400, "DecisionPolicy.InvalidVersion")


def test_a_policy_with_only_a_draft_is_not_found(client: Client) -> None:
    save_policy(client, "overdraft")
    assert refusal(client.get(f"{BASE}/overdraft")) == (404, "DecisionPolicy.NotFound")
    assert client.get(f"{BASE}/overdraft?version=1").status_code == 200
    assert refusal(client.get(f"{BASE}/overdraft?version=2")) == (404, "DecisionPolicy.VersionNotFound")


def test_versions_show_who_made_them(client: Client) -> None:
    publish_policy(client, "overdraft")
    data = client.get(f"{BASE}/overdraft/versions?page=1&count=5").json()["data"]
    [version] = data["versions"]
    assert version.keys() == VERSION_FIELDS - {"document"} | {"version"}
    assert version["createdBy"] == version["publishedBy"]
    assert (data["totalCount"], data["currentPage"], data["pageSize"]) == (1, 1, 5)


def test_two_versions_are_compared_in_words(client: Client) -> None:
    publish_policy(client, "overdraft")
    [limit] = document()["limits"]
    save_policy(client, "overdraft", document(limits=[limit | {"minimum": "2500"}]))
    data = client.get(f"{BASE}/overdraft/diff").json()["data"]
    assert (data["from"], data["to"]) == (1, 2)
    [change] = data["changes"]
    assert "2500" in change.replace(",", "")
    same = client.get(f"{BASE}/overdraft/diff?from=2&to=2").json()["data"]
    assert same == {"from": 2, "to": 2, "changes": []}
    missing = client.get(f"{BASE}/overdraft/diff?from=7")
    assert refusal(missing) == (404, "DecisionPolicy.VersionNotFound")
    assert refusal(client.get(f"{BASE}/overdraft/diff?to=x")) == (400, "DecisionPolicy.InvalidVersion")


# Archive and challenger


def test_an_archived_policy_can_be_unarchived(client: Client) -> None:
    publish_policy(client, "overdraft")
    for _ in range(2):
        archived = client.post(f"{BASE}/overdraft/archive").json()["data"]
        assert (archived["slug"], archived["isArchived"]) == ("overdraft", True)
    assert list_policies(client)["items"] == []
    assert client.get(f"{BASE}/overdraft").json()["data"]["isArchived"]
    assert refusal(put(client, "overdraft", document(notes="New."))) == (409, "DecisionPolicy.Archived")
    assert refusal(client.post(f"{BASE}/overdraft/publish", {})) == (409, "DecisionPolicy.Archived")
    assert client.post(f"{BASE}/overdraft/unarchive").json()["data"]["isArchived"] is False
    assert [item["slug"] for item in list_policies(client)["items"]] == ["overdraft"]


def test_a_challenger_is_set_and_removed(client: Client) -> None:
    publish_policy(client, "overdraft")
    save_policy(client, "overdraft", document(notes="Second."))
    path = f"{BASE}/overdraft/challenger"
    answer = client.call("PUT", path, json={"version": 2, "percent": 10})
    assert (answer.status_code, answer.json()["data"]["challenger"]) == (200, {"version": 2, "percent": 10})
    assert list_policies(client)["items"][0]["challenger"] == {"version": 2, "percent": 10}
    drafts_only = client.call("PUT", path, json={"version": 1, "percent": 10})
    assert refusal(drafts_only) == (409, "DecisionPolicy.NotADraft")
    for percent in (0, 101, 1.5, "10", None):
        wrong = client.call("PUT", path, json={"version": 2, "percent": percent})
        assert refusal(wrong) == (400, "DecisionPolicy.InvalidPercent")
    assert client.delete(path).json()["data"]["challenger"] is None
    assert client.delete(path).status_code == 200


# Who may use them


@parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/schema"),
        ("PUT", "/overdraft"),
        ("GET", "/overdraft"),
        ("GET", "/overdraft/versions"),
        ("GET", "/overdraft/diff"),
        ("POST", "/overdraft/publish"),
        ("POST", "/overdraft/archive"),
        ("POST", "/overdraft/unarchive"),
        ("PUT", "/overdraft/challenger"),
        ("DELETE", "/overdraft/challenger"),
    ],
)
def test_a_client_without_decision_policies_finds_none(store: Store, base_url: str, method: str, path: str) -> None:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        made = keys.create_client(w, "Lender", decision_policies=False, now=now)
        _, text = keys.create_key(w, made.client_id, keys.SCOPES, None, store.settings.key_prefix, now)
    answer = Client(base_url, made.client_id, text).call(method, BASE + path, json=[])
    assert refusal(answer) == (404, "DecisionPolicy.NotEnabled")


def test_reading_needs_no_write_scope(store: Store, base_url: str, client: Client) -> None:
    publish_policy(client, "overdraft")
    with store.db.writing() as w:
        _, text = keys.create_key(
            w, client.client_id, ["decision-policies:read"], None, store.settings.key_prefix, datetime.now(UTC)
        )
    reader = Client(base_url, client.client_id, text)
    for path in ("", "/schema", "/overdraft", "/overdraft/versions", "/overdraft/diff"):
        assert reader.get(BASE + path).status_code == 200
    assert put(reader, "overdraft", document()).status_code == 403


def test_the_schema_is_served(client: Client) -> None:
    schema = client.get(f"{BASE}/schema").json()["data"]["schema"]
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"slug", "steps", "defaultOutcome"} <= schema["properties"].keys()


def test_the_audit_trail_lists_all_actions_that_change_something(store: Store, base_url: str) -> None:
    client = new_client(store, base_url)
    policy_id = publish_policy(client, "overdraft")["policyId"]
    put(client, "overdraft", document())
    save_policy(client, "overdraft", document(notes="Second."))
    for _ in range(2):
        client.call("PUT", f"{BASE}/overdraft/challenger", json={"version": 2, "percent": 10})
    for _ in range(2):
        client.delete(f"{BASE}/overdraft/challenger")
    for action in ("archive", "archive", "unarchive", "unarchive"):
        client.post(f"{BASE}/overdraft/{action}")
    with store.db.reading() as r:
        found = [each for each in audit.find(r, client.client_id) if each.action.startswith("Policy.")]
    assert [each.action.partition(".")[2] for each in reversed(found)] == [
        "Saved",
        "Published",
        "Saved",
        "ChallengerSet",
        "ChallengerRemoved",
        "Archived",
        "Unarchived",
    ]
    assert {each.resource["policyId"] for each in found} == {policy_id}


# The portfolio


def two_step_document(first: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose second step is reached unless the first one's condition is certainly true."""
    [step] = document()["steps"]
    [rule] = step["rules"]
    earlier = {"name": "First", "outcome": "conditional", "rules": [rule | {"code": "FIRST", "condition": first}]}
    return document(steps=[earlier, step])


def find_warnings(client: Client, first: dict[str, Any]) -> list[tuple[str, str]]:
    answer = put(client, "stepped", two_step_document(first))
    if answer.status_code == 201:
        return []
    assert refusal(answer) == (400, "DecisionPolicy.WarningsNotAcknowledged")
    return faults(answer)


def test_a_step_that_no_customer_reaches_gets_a_warning(store: Store, client: Client) -> None:
    everybody = {"atMost": [{"metric": "months_of_history"}, "1000"]}
    whoever_asks = {"atLeast": [{"input": "requestedAmount"}, "5"]}
    assert find_warnings(client, everybody) == []  # there is no portfolio yet
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    never = [("/steps/1", "DecisionPolicy.StepNeverReached")]
    assert find_warnings(client, everybody) == never
    assert find_warnings(client, {"moreThan": everybody["atMost"]}) == []
    assert find_warnings(client, whoever_asks) == []  # nobody's inputs are known here
    accepted = [{"pointer": pointer, "code": code} for pointer, code in never]
    assert save_policy(client, "stepped", two_step_document(everybody) | {"acknowledge": accepted})["state"] == "draft"


def test_stored_attributes_decide_whether_a_step_is_reached(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    reported = {"attributes": {"guaranteed": True}}
    assert client.call("PUT", f"/v1/customer/{customer_id}/attributes", json=reported).status_code == 200
    sent = two_step_document({"isTrue": {"attribute": "guaranteed"}}) | {
        "attributes": [{"name": "guaranteed", "kind": "boolean"}]
    }
    assert faults(put(client, "stepped", sent)) == [("/steps/1", "DecisionPolicy.StepNeverReached")]
    second = client.new_customer()
    client.submit_transactions(second)
    end_submissions(store)
    assert put(client, "stepped", sent).status_code == 201
