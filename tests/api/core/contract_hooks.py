"""Hooks that Schemathesis loads in its own process.

With ids made from the schema alone, every valid request would get a 404 or a 422. So requests from examples and
enumeration get ids that exist, and valid ones a new idempotency key. Ids in one path and query belong together. A
resource is created for each request that ends one, so that other requests find theirs, and for each that needs one
which other requests have not changed.
"""

import json
import os
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import cycle
from typing import Any
from uuid import uuid4

import requests
import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase

from api.core.schemas.examples import example
from api.core.schemas.files import SentFiles
from api.decisions.schemas.evaluations import SentSensitivity
from api.decisions.schemas.policies import SentPolicy
from api.monitoring.schemas import SentRuleset
from api.reports.schemas.resolutions import SentResolution
from api.work.schemas.work import SentAlertAction
from pipelines.vocabulary.taxonomy import TAXONOMY

OWN_IDS = "TIDEMARK_TEST_OWN_IDS"  # JSON: ids by the name of a parameter, or of a list in a body
API_KEY = "TIDEMARK_TEST_API_KEY"
API_KEY_ID = "TIDEMARK_TEST_API_KEY_ID"
KEY = "Idempotency-Key"
CHECKS_DOCUMENTS = ("POST /v1/decision-policies/{slug}/check", "POST /v1/monitoring/check")
NEEDED_TO_ACT = {name: example(SentAlertAction)[name] for name in ("until", "reason")}  # a future moment; why it closes
RESOLVED = {name: example(SentResolution)[name] for name in ("kind", "key")}  # of the finding in the example report
KEY_TO_END = ("keyId", "/v1/keys", {"scopes": ["customer:reports"]})
# What ends a resource, or needs a new one: the parameter that names it, and the path and body that create it.
NEEDS_NEW: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "POST /v1/keys/{keyId}/revoke": KEY_TO_END,
    "POST /v1/keys/{keyId}/rotate": KEY_TO_END,
    "DELETE /v1/users/{userId}": ("userId", "/v1/users", {"name": "Ada Lovelace", "role": "viewer"}),
    "DELETE /v1/customer/{customerId}/submissions/{jobId}": (
        "jobId",
        "/v1/customer/{customerId}/transactions",
        {"transactions": [{"date": "2026-06-01", "description": "COFFEE", "amount": -4.5}]},
    ),
    "DELETE /v1/customer/{customerId}/transactions/corrections/{correctionId}": (
        "correctionId",
        "/v1/customer/{customerId}/transactions/corrections",
        {"pattern": "coffee", "category": "meals"},
    ),
    "DELETE /v1/customer/{customerId}/notes/{noteId}": (
        "noteId",
        "/v1/customer/{customerId}/notes",
        {"text": "A note."},
    ),
    "DELETE /v1/customer/{customerId}/attachments/{attachmentId}": (
        "attachmentId",
        "/v1/customer/{customerId}/attachments",
        {"contentBase64": "YQ=="},
    ),
    "DELETE /v1/webhooks/subscriptions/{subscriptionId}": (
        "subscriptionId",
        "/v1/webhooks/subscriptions",
        {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"},
    ),
    "PUT /v1/evaluations/{evaluationId}/assignee": (  # once overridden or replaced, it waits for nobody
        "evaluationId",
        "/v1/customer/{customerId}/decision-policies/{slug}/evaluate",
        {"inputs": {"requestedAmount": 1}},
    ),
}
# What may be archived, and then refuses all requests that change it or use it to decide.
ARCHIVED = {"slug": "/v1/decision-policies/{slug}", "rulesetId": "/v1/monitoring/rulesets/{rulesetId}"}
LONG_AGO = date(2026, 6, 30)
OTHER_CATEGORIES = list(TAXONOMY.categories)[2:]
WORDS = ("published", "recorded", "challenger")  # instead of a version

sets = json.loads(os.environ[OWN_IDS])  # the n-th ids of all lists belong to each other
own = {name: cycle(ids) for name, ids in sets.items()}
numbers = cycle(range(len(sets["customerId"])))


@schemathesis.hook
def filter_case(_context: HookContext, case: Case[Any]) -> bool:
    """Drop most categories: all combinations of categories with other fields would be a fifth of all requests."""
    enumerated = case.meta is not None and case.meta.phase.name is TestPhase.COVERAGE
    category = case.body.get("category") if enumerated and isinstance(case.body, dict) else None
    return category not in OTHER_CATEGORIES


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    if is_good(case, ParameterLocation.HEADER) and KEY in case.headers:
        case.headers[KEY] = str(uuid4())
    make_valid = VALID_BODIES.get(case.operation.label)
    if make_valid is not None and is_good(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        case.body = make_valid(case.body)
    if is_good(case, ParameterLocation.PATH):
        case.path_parameters |= align_ids(case.path_parameters)
    if case.query and is_good(case, ParameterLocation.QUERY):
        aligned = align_ids(case.path_parameters | case.query)
        case.query |= {name: aligned[name] for name in aligned.keys() & case.query.keys()}
    enumerated = case.meta is None or case.meta.phase.name in (TestPhase.EXAMPLES, TestPhase.COVERAGE)
    if enumerated and is_good(case, ParameterLocation.PATH):
        nth = next(numbers)
        case.path_parameters |= {name: sets[name][nth] for name in case.path_parameters}
    if enumerated and is_good(case, ParameterLocation.BODY) and isinstance(case.body, dict) and own.keys() & case.body:
        # Only then: a body that is set is judged again, and files in forms, which are bytes, are then called invalid.
        case.body |= with_own_ids(case.body, case.path_parameters.get("customerId"))
    if case.path_parameters.get("keyId") == os.environ[API_KEY_ID]:
        case.path_parameters["keyId"] = sets["keyId"][0]
    nth = find_set(case.path_parameters)
    if is_good(case, ParameterLocation.PATH) and nth is not None:
        if case.method != "GET" and not case.operation.path.endswith("archive"):
            unarchive(case, nth, case.operation.path)
        if case.operation.label in NEEDS_NEW:
            case.path_parameters |= create(case, nth, *NEEDS_NEW[case.operation.label])


@schemathesis.check
def an_invalid_document_has_faults(_context: CheckContext, response: Response, case: Case[Any]) -> None:
    """Require faults in place of a refusal."""
    invalid = case.meta is not None and case.meta.generation.mode is GenerationMode.NEGATIVE
    if invalid and case.operation.label in CHECKS_DOCUMENTS and response.status_code == requests.codes.ok:
        assert response.json()["data"]["faults"], "an invalid document is called valid"


def is_good(case: Case[Any], place: ParameterLocation) -> bool:
    """Return whether this part of the request is valid by the schema."""
    made = case.meta.components.get(place) if case.meta else None
    return made is None or made.mode is GenerationMode.POSITIVE


def with_own_ids(body: dict[str, Any], customer_id: object) -> dict[str, Any]:
    """Return a body's ids replaced by existing ones: lists of the same length, single ids of the path's customer."""
    nth = sets["customerId"].index(customer_id) if customer_id in sets["customerId"] else 0
    known = {name: sent for name, sent in body.items() if name in own and sent}
    return {
        name: [next(own[name]) for _ in sent] if isinstance(sent, list) else sets[name][nth]
        for name, sent in known.items()
    }


def align_ids(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the existing ids among parameters, replaced by those of the same set as the first."""
    known = [name for name, value in parameters.items() if value in sets.get(name, ())]
    nth = sets[known[0]].index(parameters[known[0]]) if known else 0
    return {name: sets[name][nth] for name in known}


def find_set(path: Mapping[str, Any]) -> int | None:
    """Return the number of the set to which all ids of a path belong; None if there are no ids, or unknown ones."""
    found = {sets[name].index(value) if value in sets[name] else None for name, value in path.items()}
    return found.pop() if len(found) == 1 else None


def unarchive(case: Case[Any], nth: int, path: str) -> None:
    """Undo earlier requests that archived what a path names."""
    for name, archived in ARCHIVED.items():
        if f"{{{name}}}" in path:
            post(case, nth, f"{archived}/unarchive")


def create(case: Case[Any], nth: int, name: str, path: str, body: dict[str, Any]) -> dict[str, str]:
    """Create a resource of this set for one request, and return its id."""
    unarchive(case, nth, path)
    made = post(case, nth, path, body | ({"email": f"{uuid4()}@lender.example"} if name == "userId" else {}))
    return {name: next(made[key] for key in (name, "webhookSubscriptionId") if key in made)}


def post(case: Case[Any], nth: int, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request of the hooks' own about the resources of this set, and return the data of the answer."""
    url, headers = case.operation.schema.get_base_url().rstrip("/"), {"x-api-key": os.environ[API_KEY]}
    ids = {name: values[nth] for name, values in sets.items()}
    answer = requests.post(url + path.format(**ids), json=body, headers=headers, timeout=60)
    answer.raise_for_status()
    if answer.status_code == requests.codes.accepted:  # only what has ended can be retracted
        requests.get(url + answer.headers["Location"], params={"wait": 10}, headers=headers, timeout=60)
    return answer.json()["data"]


def as_pdfs(body: dict[str, Any]) -> dict[str, Any]:
    """Replace generated files, in a form or JSON, by as many PDFs; a form has one password for all."""
    content = example(SentFiles)["files"][0]["contentBase64"]
    if "file" in body:
        pdf = b64decode(content).decode()
        return body | {"file": [pdf for _ in body["file"]], "password": body.get("password", [])[:1]}
    return body | {"files": [{**sent, "contentBase64": content} for sent in body["files"]]}


def fit_to_policy(body: dict[str, Any]) -> dict[str, Any]:
    """Replace generated values by valid ones: declared inputs, existing versions and customers, numbers that the policy
    reads, and past days.
    """
    known = {"inputs": {"requestedAmount": 1}, "version": 2, "against": 1, "grid": example(SentSensitivity)["grid"]}
    if body.get("asOf"):
        known["asOf"] = [str(LONG_AGO - timedelta(days=nth)) for nth in range(len(body["asOf"]))]
    if body.get("customerIds"):
        known["customerIds"] = sets["customerId"][: len(body["customerIds"])]
    if body.get("outcomes"):
        known["outcomes"] = [
            reported | {"customerId": id_} for reported, id_ in zip(body["outcomes"], sets["customerId"], strict=False)
        ]
    asked = {name: value for name, value in known.items() if body.get(name) not in (None, *WORDS)}
    return body | asked | {"inputs": known["inputs"]}


def of_customers(body: dict[str, Any]) -> dict[str, Any]:
    """Let a ruleset that says to whom it applies apply to existing customers."""
    return body | ({"appliesTo": {"customers": sets["customerId"][:2]}} if "appliesTo" in body else {})


def new_ruleset(_: dict[str, Any]) -> dict[str, Any]:
    return of_customers(example(SentRuleset)) | {"slug": f"r-{uuid4()}"}


def move_to_past(body: dict[str, Any]) -> dict[str, Any]:
    span = {"from": str(LONG_AGO - timedelta(days=90)), "to": str(LONG_AGO)}
    return body | span | {"document": None, "customerIds": sets["customerId"][:2]}


# Operations whose valid bodies depend on stored data, or whose files on their type, which no schema can express.
VALID_BODIES: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "PUT /v1/decision-policies/{slug}": lambda _: example(SentPolicy) | {"notes": str(uuid4())},
    "POST /v1/decision-policies/{slug}/publish": lambda body: body | ({"version": 2} if body.get("version") else {}),
    "PUT /v1/decision-policies/{slug}/challenger": lambda body: body | {"version": 2},
    "POST /v1/customer/{customerId}/decision-policies/{slug}/evaluate": fit_to_policy,
    "POST /v1/customer/{customerId}/decision-policies/{slug}/sensitivity": fit_to_policy,
    "POST /v1/decision-policies/{slug}/backtest": fit_to_policy,
    "POST /v1/monitoring/rulesets": new_ruleset,
    "PUT /v1/monitoring/rulesets/{rulesetId}": new_ruleset,
    "POST /v1/monitoring/check": of_customers,
    "POST /v1/monitoring/rulesets/{rulesetId}/simulate": move_to_past,
    "POST /v1/alerts/{matchId}/actions": lambda body: body | NEEDED_TO_ACT,
    "PUT /v1/customer/{customerId}/resolutions": lambda body: body | RESOLVED,
    "POST /v1/customer/{customerId}/statements": as_pdfs,
    "POST /v1/customer/{customerId}/uploads": as_pdfs,
}
