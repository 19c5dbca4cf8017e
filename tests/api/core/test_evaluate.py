"""Evaluations over HTTP: the contract's answer, every refusal, and the record."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests
from sqlalchemy import insert

from pipelines.decisions import Policy
from pipelines.figures.facts import Facts
from pipelines.integrity import findings
from pipelines.metrics import METRICS
from storage.access import keys
from storage.core.models import resolutions
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import policies
from storage.decisions.policies import PolicyVersion
from tests.api.conftest import Client, new_client, with_scopes
from tests.api.worker import end_submissions
from tests.pipelines.integrity.test_findings import DRESSED, TODAY

SLUG = "overdraft"
METRIC = "history_days"
METRIC_ID = str(METRICS[METRIC].id)
parametrize = pytest.mark.parametrize


def rule(code: str, condition: Any, *actions: str) -> dict[str, Any]:
    texts = {"code": code, "message": f"{code} internally", "customerMessage": f"{code} for the customer"}
    return {**texts, "condition": condition, "recommendedActions": list(actions)}


DOCUMENT: dict[str, Any] = {
    "slug": SLUG,
    "name": "Overdraft",
    "defaultOutcome": "proceed",
    "declaredInputs": [
        {"name": "amount", "kind": "decimal"},
        {"name": "secured", "kind": "boolean"},
        {"name": "purpose", "kind": "string"},
    ],
    "attributes": [{"name": "score", "kind": "decimal"}, {"name": "loan.purpose", "kind": "string"}],
    "products": [{"slug": "overdraft", "name": "Overdraft"}],
    "steps": [
        {
            "name": "Knock-outs",
            "outcome": "blocked",
            "rules": [rule("SCORE", {"lessThan": [{"attribute": "score"}, "500"]})],
        },
        {
            "name": "Look again",
            "outcome": "conditional",
            "rules": [
                rule("LARGE", {"moreThan": [{"input": "amount"}, "100000"]}, "Ask for security", "Call"),
                rule("UNSECURED", {"not": {"isTrue": {"input": "secured"}}}, "Call"),
            ],
        },
    ],
    "limits": [
        {
            "product": "overdraft",
            "outcomes": ["proceed"],
            "amount": {"multiply": [{"attribute": "score"}, "100"]},
            "caps": [{"code": "ASKED", "message": "No more than asked", "value": {"input": "amount"}}],
        }
    ],
    "indicators": [{"metric": METRIC}],
}
WITHOUT_INPUTS = {
    **DOCUMENT,
    "slug": "plain",
    "declaredInputs": [],
    "steps": [
        {"name": "History", "outcome": "blocked", "rules": [rule("SHORT", {"lessThan": [{"metric": METRIC}, "3"]})]}
    ],
    "limits": [],
}
INPUTS: dict[str, Any] = {"amount": "50000", "secured": True, "purpose": "stock"}


def save_policy(
    store: Store, client: Client, document: Mapping[str, Any] = DOCUMENT, *, publish: bool = True
) -> PolicyVersion:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        draft = policies.save_draft(w, client.client_id, Policy.model_validate(document), [], "author", now)
        stored = policies.get(w, client.client_id, str(document["slug"]))
        return policies.publish(w, stored, draft.version, "author", now) if publish else draft


def with_score(client: Client, score: Any = 684) -> str:
    """Create a customer with this score."""
    customer_id = client.new_customer()
    sent = client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": {"score": score}})
    assert sent.status_code == 200, sent.text
    return customer_id


def evaluate(client: Client, customer_id: str, slug: str = SLUG, **body: Any) -> requests.Response:
    return client.post(
        f"/v1/customer/{customer_id}/decision-policies/{slug}/evaluate", body, headers=body.pop("headers", {})
    )


def evaluate_successfully(client: Client, customer_id: str, slug: str = SLUG, **body: Any) -> dict[str, Any]:
    answer = evaluate(client, customer_id, slug, **body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text, parse_float=Decimal)["data"]
    return found


def read_evaluation(client: Client, evaluation_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/v1/evaluations/{evaluation_id}").json()["data"]
    return found


def describe_refusal(answer: requests.Response) -> tuple[int, str, list[tuple[str, str]]]:
    reported = answer.json()
    return (
        answer.status_code,
        reported["code"],
        [(each["pointer"], each["code"]) for each in reported.get("errors", ())],
    )


# The contract


def test_default_outcome_has_a_limit_capped_by_the_requested_amount(store: Store, client: Client) -> None:
    save_policy(store, client)
    found = evaluate_successfully(client, with_score(client), inputs=INPUTS)
    assert found["verdict"] == {
        "outcome": "proceed",
        "recommendedActions": [],
        "reasons": [],
        "matchedRules": [],
        "principalReasons": [],
    }
    [product] = found["products"]
    assert (product["slug"], product["name"]) == ("overdraft", "Overdraft")
    assert found["computedLimits"] == [
        {
            "kind": "computed",
            "productId": product["productId"],
            "amount": Decimal("50000.00"),
            "capped": True,
            "uncappedAmount": Decimal("68400.00"),
            "cappedBy": {"code": "ASKED", "message": "No more than asked"},
        }
    ]
    assert found["attributes"] == [{"name": "score", "value": 684, "source": "stored"}]
    assert found["metrics"] == [{"metricId": METRIC_ID, "name": METRICS[METRIC].name}]
    assert found["indicators"] == []  # there are no transactions
    assert (found["policyVersion"], found["dataVersion"], found["pendingJobs"], found["whatIf"]) == (1, 0, [], False)


def test_every_matched_rule_of_the_deciding_step_adds_its_recommendations(store: Store, client: Client) -> None:
    save_policy(store, client)
    found = evaluate_successfully(client, with_score(client), inputs=INPUTS | {"amount": 100000.01, "secured": False})
    assert found["verdict"]["outcome"] == "conditional"
    assert found["verdict"]["recommendedActions"] == ["Ask for security", "Call"]
    assert [each["code"] for each in found["verdict"]["matchedRules"]] == ["LARGE", "UNSECURED"]
    assert found["computedLimits"][0]["amount"] == 0


def test_missing_attribute_makes_the_outcome_indeterminate_and_says_what_would_resolve_it(
    store: Store, client: Client
) -> None:
    save_policy(store, client)
    found = evaluate_successfully(client, client.new_customer(), inputs=INPUTS)
    [reason] = found["verdict"]["reasons"]
    assert (found["verdict"]["outcome"], reason["code"], reason["name"]) == (
        "indeterminate",
        "DecisionPolicy.AttributeUnavailable",
        "score",
    )
    assert "Score" in reason["settle"]
    [limit] = found["computedLimits"]
    assert (limit["kind"], limit["reasons"]) == ("indeterminate", [reason])
    assert found["attributes"] == [{"name": "score", "value": None, "source": "stored"}]


def test_customer_without_transactions_is_evaluated_with_unavailable_metrics(store: Store, client: Client) -> None:
    save_policy(store, client, WITHOUT_INPUTS)
    found = evaluate_successfully(client, client.new_customer(), "plain")
    [reason] = found["verdict"]["reasons"]
    assert (reason["code"], reason["metricIds"]) == ("DecisionPolicy.MetricUnavailable", [METRIC_ID])


def test_figures_follow_the_transactions(store: Store, client: Client) -> None:
    save_policy(store, client, WITHOUT_INPUTS)
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    pending = evaluate_successfully(client, customer_id, "plain")
    assert (pending["verdict"]["outcome"], len(pending["pendingJobs"])) == ("indeterminate", 1)
    end_submissions(store)
    found = evaluate_successfully(client, customer_id, "plain")
    assert (found["verdict"]["outcome"], found["dataVersion"], found["pendingJobs"]) == ("blocked", 1, [])
    [indicator] = found["indicators"]
    assert indicator == {"kind": "reading", "metricId": METRIC_ID, "value": 1, "format": METRICS[METRIC].format}


def test_overrides_are_a_what_if_and_change_nothing_stored(store: Store, client: Client) -> None:
    save_policy(store, client)
    customer_id = with_score(client, 684)
    found = evaluate_successfully(client, customer_id, inputs=INPUTS, attributeOverrides={"score": "499.99"})
    assert (found["verdict"]["outcome"], found["whatIf"]) == ("blocked", True)
    assert found["attributes"] == [{"name": "score", "value": Decimal("499.99"), "source": "overridden"}]
    stored = client.get(f"/v1/customer/{customer_id}/attributes").json()["data"]["attributes"]
    assert stored["score"]["value"] == 684
    assert evaluate_successfully(client, customer_id, inputs=INPUTS)["verdict"]["outcome"] == "proceed"


def test_a_what_if_can_be_requested_without_overrides(store: Store, client: Client) -> None:
    save_policy(store, client)
    customer_id = with_score(client, 684)
    found = evaluate_successfully(client, customer_id, inputs=INPUTS, whatIf=True)
    assert (found["verdict"]["outcome"], found["whatIf"]) == ("proceed", True)
    assert client.get(f"/v1/customer/{customer_id}/summary").json()["data"]["lastDecision"] is None
    assert evaluate_successfully(client, customer_id, inputs=INPUTS, whatIf=False)["whatIf"] is False
    refused = evaluate(client, customer_id, inputs=INPUTS, whatIf="yes").json()
    assert [each["code"] for each in refused["errors"]] == ["DecisionPolicy.InvalidWhatIf"]


def test_override_applies_to_an_unset_attribute_and_null_removes_one(store: Store, client: Client) -> None:
    save_policy(store, client)
    assert (
        evaluate_successfully(client, client.new_customer(), inputs=INPUTS, attributeOverrides={"score": 700})[
            "verdict"
        ]["outcome"]
        == "proceed"
    )
    unset = evaluate_successfully(client, with_score(client), inputs=INPUTS, attributeOverrides={"score": None})
    assert unset["verdict"]["outcome"] == "indeterminate"
    assert unset["attributes"] == [{"name": "score", "value": None, "source": "overridden"}]


def test_override_of_an_attribute_that_the_policy_does_not_read_is_ignored_and_named(
    store: Store, client: Client
) -> None:
    save_policy(store, client)
    overrides = {"shoe_size": {"not": "a value"}, "loan.purpose": "x", "<b>": 1}
    answer = evaluate(client, with_score(client), inputs=INPUTS, attributeOverrides=overrides)
    assert (answer.status_code, answer.json()["data"]["whatIf"]) == (200, False)
    message = "Overrides that the policy doesn't read were ignored: loan.purpose, shoe_size, 1 more."
    assert answer.json()["message"] == message


def test_an_expired_attribute_is_unavailable(store: Store, client: Client) -> None:
    save_policy(store, client)
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    found = evaluate_successfully(client, with_score(client, {"value": 684, "expiresAt": past}), inputs=INPUTS)
    assert found["verdict"]["reasons"][0]["cause"] == "expired"


def test_a_policy_without_inputs_needs_none(store: Store, client: Client) -> None:
    save_policy(store, client, WITHOUT_INPUTS)
    bodies: list[dict[str, Any]] = [{}, {"inputs": {}}, {"inputs": None}]
    for body in bodies:
        assert evaluate(client, client.new_customer(), "plain", **body).status_code == 200


# Refusals


def test_missing_inputs_are_listed_before_unknown_ones(store: Store, client: Client) -> None:
    save_policy(store, client)
    inputs = {"amount": "1,000", "colour": "red", "secured": True}
    assert describe_refusal(evaluate(client, with_score(client), inputs=inputs)) == (
        400,
        "DecisionPolicy.MissingInputs",
        [
            ("/inputs/purpose", "DecisionPolicy.MissingInputs"),
            ("/inputs/colour", "DecisionPolicy.UnknownInputs"),
            ("/inputs/amount", "DecisionPolicy.InvalidInputs"),
        ],
    )
    assert describe_refusal(evaluate(client, with_score(client)))[:2] == (400, "DecisionPolicy.MissingInputs")
    unknown = evaluate(client, with_score(client), inputs=INPUTS | {"colour": "red"})
    assert describe_refusal(unknown)[:2] == (400, "DecisionPolicy.UnknownInputs")


NO_VALUES: dict[str, list[Any]] = {
    "amount": [
        *(True, None, [], {}, "", "1,000", "NaN", "Infinity", " 5", "5 ", "0x10", "+5", "1_000", "٣"),
        *("1e400", "1e15", "-1000000000000000", "9" * 100_000),
    ],
    "secured": ["true", 1, 0, None],
    "purpose": [5, False, None, ["x"], "x" * 1_001],
}


@parametrize(("name", "value"), [(name, value) for name, values in NO_VALUES.items() for value in values])
def test_a_value_of_the_wrong_kind_is_refused_and_not_repeated(
    store: Store, client: Client, name: str, value: Any
) -> None:
    save_policy(store, client)
    answer = evaluate(client, with_score(client), inputs=INPUTS | {name: value})
    assert describe_refusal(answer) == (
        400,
        "DecisionPolicy.InvalidInputs",
        [(f"/inputs/{name}", "DecisionPolicy.InvalidInputs")],
    )
    assert len(answer.content) < 1_000


@parametrize("raw", [b'{"inputs": {"amount": 1e400}}', b'{"inputs": {"amount": NaN}}', b"[" * 100_000])
def test_invalid_json_and_numbers_out_of_range_are_refused(store: Store, client: Client, raw: bytes) -> None:
    save_policy(store, client, {**WITHOUT_INPUTS, "declaredInputs": [{"name": "amount", "kind": "decimal"}]})
    path = f"/v1/customer/{client.new_customer()}/decision-policies/plain/evaluate"
    assert client.call("POST", path, data=raw, headers={"content-type": "application/json"}).status_code == 400


@parametrize(
    ("value", "read"), [(5, "5"), ("5.10", "5.1"), (0.1, "0.1"), ("1e3", "1000"), ("0.000000005", "0"), (-0.0, "0")]
)
def test_decimals_may_be_numbers_or_texts(store: Store, client: Client, value: Any, read: str) -> None:
    save_policy(store, client)
    found = evaluate_successfully(client, with_score(client), inputs=INPUTS | {"amount": value})
    text = client.get(f"/v1/evaluations/{found['evaluationId']}").text
    assert json.loads(text, parse_float=str, parse_int=str)["data"]["record"]["case"]["inputs"]["amount"] == read


def test_an_invalid_input_name_is_not_repeated(store: Store, client: Client) -> None:
    save_policy(store, client)
    answer = evaluate(client, with_score(client), inputs=INPUTS | {"x" * 50_000: 1})
    assert describe_refusal(answer)[2] == [("/inputs", "DecisionPolicy.UnknownInputs")]
    assert len(answer.content) < 1_000


def test_an_override_of_the_wrong_kind_is_refused(store: Store, client: Client) -> None:
    save_policy(store, client)
    answer = evaluate(client, with_score(client), inputs=INPUTS, attributeOverrides={"score": "high"})
    assert describe_refusal(answer)[2] == [("/attributeOverrides/score", "DecisionPolicy.InvalidInputs")]


@parametrize(
    "body",
    [{"inputs": []}, {"inputs": "x"}, {"attributeOverrides": 5}, {"version": "1"}, {"version": 0}, {"version": 1.5}],
)
def test_a_malformed_body_is_refused(store: Store, client: Client, body: dict[str, Any]) -> None:
    save_policy(store, client)
    sent: dict[str, Any] = {"inputs": INPUTS} | body
    assert evaluate(client, with_score(client), **sent).status_code == 400


def test_a_draft_decides_only_if_its_version_is_given(store: Store, client: Client) -> None:
    draft = save_policy(store, client, publish=False)
    customer_id = with_score(client)
    assert describe_refusal(evaluate(client, customer_id, inputs=INPUTS))[:2] == (404, "DecisionPolicy.NotFound")
    found = evaluate_successfully(client, customer_id, inputs=INPUTS, version=draft.version)
    assert (found["policyVersion"], found["whatIf"]) == (draft.version, True)
    assert describe_refusal(evaluate(client, customer_id, inputs=INPUTS, version=9))[:2] == (
        404,
        "DecisionPolicy.VersionNotFound",
    )


def test_a_retired_version_still_evaluates_if_its_version_is_given(store: Store, client: Client) -> None:
    save_policy(store, client)
    save_policy(store, client, DOCUMENT | {"defaultOutcome": "blocked", "limits": []})
    customer_id = with_score(client)
    assert evaluate_successfully(client, customer_id, inputs=INPUTS)["verdict"]["outcome"] == "blocked"
    assert evaluate_successfully(client, customer_id, inputs=INPUTS, version=1)["verdict"]["outcome"] == "proceed"


def test_evaluating_an_archived_policy_is_a_conflict(store: Store, client: Client) -> None:
    save_policy(store, client)
    with store.db.writing() as w:
        policies.archive(w, policies.get(w, client.client_id, SLUG))
    assert describe_refusal(evaluate(client, with_score(client)))[:2] == (409, "DecisionPolicy.Archived")


def test_unknown_and_foreign_ids_are_not_found(store: Store, client: Client, other_client: Client) -> None:
    save_policy(store, client)
    customer_id = with_score(client)
    assert describe_refusal(evaluate(client, customer_id, "nothing"))[:2] == (404, "DecisionPolicy.NotFound")
    assert describe_refusal(evaluate(client, str(uuid4())))[:2] == (404, "Customer.NotFound")
    assert describe_refusal(evaluate(other_client, customer_id))[:2] == (404, "Customer.NotFound")
    assert describe_refusal(evaluate(other_client, other_client.new_customer()))[:2] == (404, "DecisionPolicy.NotFound")
    evaluation_id = evaluate_successfully(client, customer_id, inputs=INPUTS)["evaluationId"]
    assert other_client.get(f"/v1/evaluations/{evaluation_id}").json()["code"] == "Evaluation.NotFound"


def test_a_client_without_decision_policies_gets_404_everywhere(store: Store, base_url: str) -> None:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        mine = keys.create_client(w, "No policies", decision_policies=False, now=now)
        _, text = keys.create_key(w, mine.client_id, keys.SCOPES, None, store.settings.key_prefix, now)
    client = Client(base_url, mine.client_id, text)
    customer_id = client.new_customer()
    answers = [
        evaluate(client, customer_id),
        client.post(f"/v1/customer/{customer_id}/decision-policies/{SLUG}/sensitivity", {}),
        client.get(f"/v1/customer/{customer_id}/evaluations"),
        client.get(f"/v1/customer/{customer_id}/evaluations?page=0"),
        client.get(f"/v1/evaluations/{uuid4()}"),
        client.post(f"/v1/evaluations/{uuid4()}/override", {}),
    ]
    assert [describe_refusal(each)[:2] for each in answers] == [(404, "DecisionPolicy.NotEnabled")] * len(answers)


def test_evaluating_needs_its_own_scope(store: Store, base_url: str) -> None:
    client = new_client(store, base_url, ["decision-policies:read", "transactions:enrich"])
    assert evaluate(client, client.new_customer()).status_code == 403


# What is stored


def test_an_evaluation_is_recorded_with_everything_that_it_read_and_a_hash(store: Store, client: Client) -> None:
    version = save_policy(store, client)
    customer_id = with_score(client, {"value": 684, "source": "bureau", "evidenceDate": "2026-06-28"})
    answer = evaluate_successfully(client, customer_id, inputs=INPUTS)
    shown = client.get(f"/v1/evaluations/{answer['evaluationId']}")
    reported = json.loads(shown.text, parse_float=Decimal)["data"]
    record = reported["record"]
    assert record["answer"] == answer
    assert record["policyFingerprint"] == version.fingerprint
    assert record["case"]["inputs"] == {"amount": 50000, "purpose": "stock", "secured": True}
    score = record["case"]["attributes"]["score"]
    assert (score["value"], score["source"], score["evidenceDate"], score["from"]) == (
        684,
        "bureau",
        "2026-06-28",
        "stored",
    )
    assert record["metrics"] == {METRIC: {"value": None, "cause": "no_transactions"}}
    condition = record["trace"]["steps"][0]["rules"][0]["condition"]
    assert [each["value"] for each in condition["of"]] == [684, 500]
    assert reported["sha256"] == sha256(_between(shown.content, b'"record":', b'},"message"')).hexdigest()
    assert (reported["outcome"], reported["slug"], reported["customerId"]) == ("proceed", SLUG, customer_id)


WITH_OWN_METRIC = {
    **WITHOUT_INPUTS,
    "slug": "own",
    "metrics": [
        {
            "slug": "own_takings",
            "name": "Takings",
            "meaning": "All money in",
            "unit": "AUD",
            "format": "currency",
            "direction": "higher_is_better",
            "definition": {"source": "transactions", "measure": "money_in", "aggregate": "sum", "window": {"days": 90}},
        }
    ],
    "indicators": [{"metric": "own_takings"}],
}


def test_lineage_of_a_policys_own_metric_lists_the_transactions_that_were_read(store: Store, client: Client) -> None:
    save_policy(store, client, WITH_OWN_METRIC)
    customer_id = client.new_customer()
    today = datetime.now(store.settings.zone).date()
    client.submit_transactions(customer_id)
    end_submissions(store, [{"date": today, "amount": Decimal(amount)} for amount in ("40", "60.5", "-7")])
    evaluated = evaluate_successfully(client, customer_id, "own")
    client.submit_transactions(customer_id)
    end_submissions(store, [{"date": today, "amount": Decimal(1000)}])
    path = f"/v1/evaluations/{evaluated['evaluationId']}/lineage"
    reported = client.get(path, params={"figure": "/own_takings"}).json()["data"]
    assert (reported["kind"], reported["value"], reported["dataVersion"]) == (
        "evaluation",
        100.5,
        evaluated["dataVersion"],
    )
    assert sorted(each["contribution"] for each in reported["transactions"]) == [40, 60.5]
    assert client.get(path).json()["data"]["figure"] == f"/{METRIC}"
    assert client.get(path, params={"figure": "/elsewhere"}).status_code == 404
    without_rows = with_scopes(store, client, ["decision-policies:evaluate"]).get(path).json()
    assert (without_rows["data"]["transactions"], "customer:reports" in without_rows["message"]) == ([], True)


def _between(content: bytes, start: bytes, end: bytes) -> bytes:
    return content.partition(start)[2].rpartition(end)[0]


def test_evaluations_are_listed_newest_first(store: Store, client: Client) -> None:
    save_policy(store, client)
    save_policy(store, client, WITHOUT_INPUTS)
    customer_id = with_score(client)
    made = [evaluate_successfully(client, customer_id, inputs=INPUTS)["evaluationId"] for _ in range(3)]
    plain = evaluate_successfully(client, customer_id, "plain")["evaluationId"]
    path = f"/v1/customer/{customer_id}/evaluations"
    whole = client.get(path).json()["data"]
    assert [each["evaluationId"] for each in whole["evaluations"]] == [plain, *reversed(made)]
    page = client.get(path, params={"page": 2, "count": 2, "policy": SLUG}).json()["data"]
    assert ([each["evaluationId"] for each in page["evaluations"]], page["totalCount"]) == (made[:1], 3)
    assert client.get(path, params={"policy": "nothing"}).json()["code"] == "DecisionPolicy.NotFound"


def test_evaluations_of_all_customers_are_listed_and_filtered(
    store: Store, client: Client, other_client: Client
) -> None:
    save_policy(store, client)
    save_policy(store, client, WITHOUT_INPUTS)
    first, second = with_score(client), with_score(client, 400)
    one, two = evaluate_successfully(client, first, inputs=INPUTS), evaluate_successfully(client, second, inputs=INPUTS)
    plain = evaluate_successfully(client, first, "plain")
    what_if = evaluate_successfully(client, first, inputs=INPUTS, attributeOverrides={"score": 400})
    made = [each["evaluationId"] for each in (what_if, plain, two, one)]
    between = read_evaluation(client, two["evaluationId"])["at"]
    found = {
        "": made,
        "policy=plain": [made[1]],
        "outcome=blocked": [made[0], made[2]],
        "outcome=blocked&decisionsOnly=true": [made[2]],
        f"createdAfter={between}": made[:2],
        f"createdBefore={between}": [made[3]],
        "page=2&count=3": [made[3]],
    }
    for query, right in found.items():
        data = client.get(f"/v1/evaluations?{query}").json()["data"]
        assert [each["evaluationId"] for each in data["evaluations"]] == right, query
        assert data["hasMore"] is False
        assert data["totalCount"] == (4 if "page" in query else len(right))
    listed = client.get("/v1/evaluations").json()["data"]["evaluations"]
    assert {each["customerId"] for each in listed} == {first, second}
    assert other_client.get("/v1/evaluations").json()["data"]["evaluations"] == []
    assert client.get("/v1/evaluations?policy=nothing").json()["code"] == "DecisionPolicy.NotFound"
    for query in ("outcome=maybe", "createdAfter=2026-07-01", "decisionsOnly=yes"):
        assert client.get(f"/v1/evaluations?{query}").status_code == 400, query


def test_a_repeated_request_makes_one_evaluation(store: Store, client: Client) -> None:
    save_policy(store, client)
    customer_id = with_score(client)
    twice = [
        evaluate(client, customer_id, inputs=INPUTS, headers={"Idempotency-Key": "only-once"}).json() for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert client.get(f"/v1/customer/{customer_id}/evaluations").json()["data"]["totalCount"] == 1


def test_an_override_is_stored_with_the_evaluation(store: Store, client: Client) -> None:
    save_policy(store, client)
    evaluation_id = evaluate_successfully(client, with_score(client), inputs=INPUTS)["evaluationId"]
    before = read_evaluation(client, evaluation_id)
    override = {"outcome": "blocked", "reason": "A call with the accountant.", "decidedBy": "A. Person"}
    made = client.post(f"/v1/evaluations/{evaluation_id}/override", override)
    assert (made.status_code, made.headers["Location"]) == (201, f"/v1/evaluations/{evaluation_id}")
    after = read_evaluation(client, evaluation_id)
    assert after["overrides"] == [made.json()["data"]]
    assert after["overrides"][0].items() >= override.items()
    assert {**after, "overrides": [], "overriddenOutcome": None} == before
    [listed] = client.get(f"/v1/customer/{after['customerId']}/evaluations").json()["data"]["evaluations"]
    assert (listed["outcome"], listed["overriddenOutcome"]) == ("proceed", "blocked")
    assert describe_refusal(client.post(f"/v1/evaluations/{evaluation_id}/override", {**override, "outcome": "maybe"}))[
        :2
    ] == (
        400,
        "Evaluation.InvalidOutcome",
    )
    assert client.post(f"/v1/evaluations/{evaluation_id}/override", {"outcome": "proceed"}).status_code == 400


def test_what_ifs_and_shadow_runs_can_not_be_overridden(store: Store, client: Client) -> None:
    challenge(store, client, DOCUMENT | {"defaultOutcome": "blocked", "limits": []}, 100)
    customer_id = with_score(client)
    [shadow] = read_evaluation(client, evaluate_successfully(client, customer_id, inputs=INPUTS)["evaluationId"])[
        "shadows"
    ]
    what_if = evaluate_successfully(client, customer_id, inputs=INPUTS, attributeOverrides={"score": 600})[
        "evaluationId"
    ]
    override = {"outcome": "blocked", "reason": "A call.", "decidedBy": "A. Person"}
    for each in (shadow, what_if):
        answer = client.post(f"/v1/evaluations/{each}/override", override)
        assert describe_refusal(answer)[:2] == (409, "Evaluation.NotADecision")


def test_evaluation_by_a_retired_version_is_a_what_if(store: Store, client: Client) -> None:
    save_policy(store, client)
    save_policy(store, client, DOCUMENT | {"notes": "Second."})
    customer_id = with_score(client)
    by_version = {
        version: evaluate_successfully(client, customer_id, inputs=INPUTS, version=version)["whatIf"]
        for version in (1, 2)
    }
    assert by_version == {1: True, 2: False}


def test_a_card_number_in_an_input_is_masked_before_it_is_stored(store: Store, client: Client) -> None:
    save_policy(store, client)
    found = evaluate_successfully(client, with_score(client), inputs=INPUTS | {"purpose": "card 4111 1111 1111 1111"})
    assert "4111 1111 1111 1111" not in client.get(f"/v1/evaluations/{found['evaluationId']}").text


# Champion and challenger


def challenge(store: Store, client: Client, document: Mapping[str, Any], percent: int) -> None:
    save_policy(store, client)
    draft = save_policy(store, client, document, publish=False)
    with store.db.writing() as w:
        policies.set_challenger(w, policies.get(w, client.client_id, SLUG), draft.version, percent)


def test_a_challengers_decision_is_recorded_but_not_returned(store: Store, client: Client) -> None:
    challenge(store, client, DOCUMENT | {"defaultOutcome": "blocked", "limits": []}, 100)
    customer_id = with_score(client)
    found = evaluate_successfully(client, customer_id, inputs=INPUTS)
    assert (found["verdict"]["outcome"], found["policyVersion"]) == ("proceed", 1)
    [shadow] = read_evaluation(client, found["evaluationId"])["shadows"]
    reported = read_evaluation(client, shadow)
    assert (reported["outcome"], reported["policyVersion"], reported["shadowOf"]) == (
        "blocked",
        2,
        found["evaluationId"],
    )
    assert client.get(f"/v1/customer/{customer_id}/evaluations").json()["data"]["totalCount"] == 1
    what_if = evaluate_successfully(client, customer_id, inputs=INPUTS, attributeOverrides={"score": 600})
    assert read_evaluation(client, what_if["evaluationId"])["shadows"] == []
    asked = evaluate_successfully(client, customer_id, inputs=INPUTS, version=1)
    assert read_evaluation(client, asked["evaluationId"])["shadows"] == []


def test_a_challenger_always_runs_for_the_same_share_of_customers(store: Store, client: Client) -> None:
    challenge(store, client, DOCUMENT | {"defaultOutcome": "blocked", "limits": []}, 50)
    ran = []
    for _ in range(30):
        customer_id = with_score(client)
        twice = [evaluate_successfully(client, customer_id, inputs=INPUTS)["evaluationId"] for _ in range(2)]
        [counts] = {len(read_evaluation(client, each)["shadows"]) for each in twice}
        ran.append(counts)
    assert 3 < sum(ran) < 27


def test_a_challenger_may_need_fewer_inputs_but_no_others(store: Store, client: Client) -> None:
    fewer = DOCUMENT["declaredInputs"][:2]
    challenge(store, client, DOCUMENT | {"declaredInputs": fewer}, 100)
    found = evaluate_successfully(client, with_score(client), inputs=INPUTS)
    [shadow] = read_evaluation(client, found["evaluationId"])["shadows"]
    assert read_evaluation(client, shadow)["record"]["case"]["inputs"] == {"amount": 50000, "secured": True}
    more = [*DOCUMENT["declaredInputs"], {"name": "term", "kind": "decimal"}]
    draft = save_policy(store, client, DOCUMENT | {"declaredInputs": more}, publish=False)
    path = f"/v1/decision-policies/{SLUG}/challenger"
    answer = client.call("PUT", path, json={"version": draft.version, "percent": 100})
    assert describe_refusal(answer)[:2] == (422, "DecisionPolicy.ChallengerInputs")
    assert "term" in answer.json()["detail"]


# Sensitivity and grids


def vary(client: Client, customer_id: str, **body: Any) -> requests.Response:
    return client.post(f"/v1/customer/{customer_id}/decision-policies/{SLUG}/sensitivity", body)


def test_sensitivity_gives_the_nearest_value_that_changes_the_outcome(store: Store, client: Client) -> None:
    save_policy(store, client)
    customer_id = with_score(client)
    answer = vary(client, customer_id, inputs=INPUTS)
    assert answer.status_code == 200, answer.text
    reported = json.loads(answer.text, parse_float=Decimal)["data"]
    assert (reported["outcome"], reported["grid"]) == ("proceed", None)
    score, amount = reported["sensitivities"]
    below = {"value": Decimal("499.99999999"), "outcome": "blocked"}
    assert (score["name"], score["value"], score["below"], score["above"]) == ("score", 684, below, None)
    assert score["nearest"] == below
    assert (amount["name"], amount["above"]["value"], amount["above"]["outcome"]) == (
        "amount",
        Decimal("100000.00000001"),
        "conditional",
    )
    for leaf, value, outcome in (("score", "499.99999999", "blocked"), ("score", "500", "proceed")):
        assert (
            evaluate_successfully(client, customer_id, inputs=INPUTS, attributeOverrides={leaf: value})["verdict"][
                "outcome"
            ]
            == outcome
        )
    assert client.get(f"/v1/customer/{customer_id}/evaluations").json()["data"]["totalCount"] == 2


def test_sensitivity_gives_the_value_that_an_unavailable_number_would_need(store: Store, client: Client) -> None:
    save_policy(store, client)
    customer_id = client.new_customer()
    reported = vary(client, customer_id, inputs=INPUTS).json()["data"]
    score, amount = reported["sensitivities"]
    changes = [{"value": 0, "outcome": "blocked"}, {"value": 500, "outcome": "proceed"}]
    assert (reported["outcome"], score["value"], score["changes"]) == ("indeterminate", None, changes)
    assert (score["nearest"], score["complete"]) == (changes[0], True)
    assert (amount["nearest"], amount["changes"]) == (None, [])
    for each in changes:
        found = evaluate_successfully(client, customer_id, inputs=INPUTS, attributeOverrides={"score": each["value"]})
        assert found["verdict"]["outcome"] == each["outcome"]


def test_a_grid_decides_for_all_values_of_two_numbers(store: Store, client: Client) -> None:
    save_policy(store, client)
    grid = {
        "across": {"attribute": "score", "values": [400, "600.5"]},
        "down": {"input": "amount", "values": ["1000", 100001, "70000"]},
    }
    found = vary(client, with_score(client), inputs=INPUTS, grid=grid).json()["data"]["grid"]
    assert found["outcomes"] == [["blocked", "proceed"], ["blocked", "conditional"], ["blocked", "proceed"]]
    assert found["limits"][0]["amounts"] == [[0, 1000], [0, 0], [0, 60050]]
    assert found["down"] == {"kind": "input", "name": "amount", "values": [1000, 100001, 70000]}


@parametrize(
    ("across", "code"),
    [
        ({"attribute": "shoe_size", "values": [1]}, "DecisionPolicy.UnknownNumber"),
        ({"attribute": "loan.purpose", "values": [1]}, "DecisionPolicy.UnknownNumber"),
        ({"attribute": "score", "input": "amount", "values": [1]}, "DecisionPolicy.UnknownNumber"),
        ({"attribute": "score", "values": ["high"]}, "DecisionPolicy.InvalidInputs"),
        ({"attribute": "score", "values": []}, "DecisionPolicy.InvalidGrid"),
        ({"attribute": "score", "values": [1] * 51}, "DecisionPolicy.InvalidGrid"),
        ({"input": "amount", "values": [1]}, "DecisionPolicy.SameNumber"),
    ],
)
def test_an_invalid_axis_is_refused(store: Store, client: Client, across: Any, code: str) -> None:
    save_policy(store, client)
    grid = {"across": across, "down": {"input": "amount", "values": [1]}}
    assert describe_refusal(vary(client, with_score(client), inputs=INPUTS, grid=grid))[:2] == (400, code)


def test_evaluations_during_a_commit_each_read_one_version(store: Store, client: Client) -> None:
    """The version in an answer and its figures must belong together."""
    save_policy(store, client, WITHOUT_INPUTS)
    customer_id = client.new_customer()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(evaluate_successfully, client, customer_id, "plain") for _ in range(12)]
        client.submit_transactions(customer_id)
        end_submissions(store)
        asked += [pool.submit(evaluate_successfully, client, customer_id, "plain") for _ in range(12)]
    seen = {(each.result()["dataVersion"], each.result()["verdict"]["outcome"]) for each in asked}
    assert seen <= {(0, "indeterminate"), (1, "blocked")}
    assert (1, "blocked") in seen


def test_a_resolved_finding_no_longer_changes_what_a_decision_reads(store: Store, client: Client) -> None:
    slugs = ("revenue_180d", "true_revenue_180d")
    save_policy(store, client, WITHOUT_INPUTS | {"indicators": [{"metric": slug} for slug in slugs]})
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    columns = ("transaction_id", "date", "amount", "category", "category_group", "counterparty_group")
    end_submissions(store, DRESSED.select(columns).to_dicts())

    def figures() -> tuple[str, list[Decimal]]:
        found = evaluate_successfully(client, customer_id, "plain")
        return found["evaluationId"], [each["value"] for each in found["indicators"]]

    earlier, (stated, true) = figures()
    assert stated - true == Decimal("11200.11")
    with store.db.writing() as w:
        key = findings(Facts(DRESSED, TODAY))["key"].item()
        number = customers.get_of_any_client(w, UUID(customer_id)).number
        named = {"customer_number": number, "kind": "finding", "key": key, "reason": "Deposits."}
        w.execute(insert(resolutions).values(**named, made_at=datetime.now(UTC), made_by="somebody"))
    assert figures()[1] == [stated, stated]
    lineage = client.get(f"/v1/evaluations/{earlier}/lineage?figure=/true_revenue_180d")
    assert json.loads(lineage.text, parse_float=Decimal)["data"]["value"] == true
