"""Monitoring over HTTP: create, replace and archive rulesets; matches with their values and lineage."""

import json
import re
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
import requests
import yaml
from sqlalchemy import delete

from api.core.schemas.examples import example
from api.http.dependencies import ROW_READER_SCOPES
from api.monitoring.schemas import MatchView, RulesetView, SentRuleset
from pipelines.monitoring import check_document, compute_transitions, library
from pipelines.monitoring.transitions import FIRING, OUTCOMES, REPEATS
from storage.core import audit
from storage.core.models import customers, locations
from storage.core.store import Store
from tests.api.conftest import Client, spending_ruleset, with_scopes
from tests.api.worker import end_submissions, evaluate
from tests.root import ROOT

parametrize = pytest.mark.parametrize
BASE = "/v1/monitoring"
RULESETS = f"{BASE}/rulesets"
PAGE = ROOT / "docs" / "how-to" / "monitoring.md"
LOAN_START = "2026-04-15"
ROWS = [
    {"date": date(2026, 4, 1), "amount": Decimal("-100.00"), "description": "RENT"},
    {"date": date(2026, 5, 1), "amount": Decimal("-200.00")},
    {"date": date(2026, 6, 1), "amount": Decimal("-50.00")},
]


def create_ruleset(client: Client, document: object) -> dict[str, Any]:
    """Create a ruleset and return it."""
    answer = client.post(RULESETS, document)
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def put(client: Client, ruleset_id: str, document: object) -> requests.Response:
    return client.call("PUT", f"{RULESETS}/{ruleset_id}", json=document)


def get_json(client: Client, path: str, **query: Any) -> dict[str, Any]:
    answer = client.get(BASE + path, params=query)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = json.loads(answer.text, parse_float=Decimal)["data"]
    return data


def refusal(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def pointers(answer: requests.Response) -> list[str]:
    return [fault["pointer"] for fault in answer.json()["errors"]]


def plain(**changes: object) -> dict[str, Any]:
    """Return a document for all customers."""
    return spending_ruleset("spending", []) | {"appliesTo": "all"} | changes


def since_the_loan() -> dict[str, Any]:
    """Return a document that compares with the day on which the customer's loan began."""
    document = deepcopy(plain(slug="since-the-loan"))
    document["attributes"] = [{"name": "loanStart", "kind": "string"}]
    document["baseline"] = {
        "since": {"attribute": "loanStart"},
        "metrics": [{"slug": "spent_30d_at_start", "of": "spent_30d"}],
    }
    document["rules"][0]["condition"] = {"lessThan": [{"metric": "spent_30d"}, {"metric": "spent_30d_at_start"}]}
    return document


@pytest.fixture
def customer_id(store: Store, client: Client) -> str:
    """A customer that has spent 350.00 in total, 50.00 of it in the last 30 days."""
    made = client.new_customer()
    client.submit_transactions(made)
    end_submissions(store, ROWS)
    return made


@pytest.fixture
def match(store: Store, client: Client, customer_id: str) -> dict[str, Any]:
    """A match of the rule of `plain`."""
    create_ruleset(client, plain())
    evaluate(store, customer_id)
    [found] = get_json(client, "/matches")["matches"]
    return dict(found)


def since_start(store: Store, client: Client, customer_id: str, start: str | None = LOAN_START) -> dict[str, Any]:
    """Return the match of `since_the_loan` for a customer whose loan began on that day."""
    if start is not None:
        client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": {"loanStart": start}})
    create_ruleset(client, since_the_loan())
    evaluate(store, customer_id)
    [found] = get_json(client, "/matches")["matches"]
    return dict(found)


def trail(store: Store, client: Client) -> list[tuple[str, dict[str, Any]]]:
    with store.db.reading() as r:
        entries = audit.find(r, client.client_id)
    return [(each.action, dict(each.resource)) for each in entries if each.action.startswith("Ruleset.")]


# Rulesets


def test_a_ruleset_is_stored_and_read_as_it_was_sent(store: Store, client: Client) -> None:
    customer = client.new_customer()
    document = example(SentRuleset) | {"appliesTo": {"customers": [customer]}}
    answer = client.post(RULESETS, document)
    made = answer.json()["data"]
    assert (answer.status_code, answer.headers["Location"]) == (201, f"{RULESETS}/{made['rulesetId']}")
    assert made.pop("warnings") == []
    assert made.keys() == example(RulesetView).keys()
    assert (made["version"], made["active"], made["isArchived"]) == (1, True, False)
    assert made["document"] == document
    assert made["dateCreated"] == made["dateUpdated"]
    zeros = dict.fromkeys(("observed", "held", "unknown", "fired", "firedNow"), 0)
    assert made["counts"] == [{"code": "DEBT_SERVICE", **zeros}, {"code": "REVENUE_DOWN", **zeros}]
    assert get_json(client, f"/rulesets/{made['rulesetId']}") == made
    assert trail(store, client) == [("Ruleset.Created", {"rulesetId": made["rulesetId"]})]


def test_what_is_left_out_is_shown_with_its_default(client: Client) -> None:
    document = plain()
    shown = create_ruleset(client, {name: document[name] for name in ("slug", "name", "metrics", "rules")})["document"]
    assert (shown["active"], shown["appliesTo"], shown["mutedWhile"], shown["baseline"]) == (True, "all", None, None)
    [rule] = shown["rules"]
    assert (rule["severity"], rule["repeatAfterDays"]) == ("warning", None)


@parametrize("method", ["POST", "PUT"])
def test_every_fault_is_listed_at_once_with_its_pointer(client: Client, method: str) -> None:
    path = RULESETS if method == "POST" else f"{RULESETS}/{create_ruleset(client, plain())['rulesetId']}"
    faulty = plain(color="red", slug="Not A Slug")
    faulty["rules"] = [
        faulty["rules"][0] | {"severity": "loud"},
        faulty["rules"][0] | {"condition": {"atLeast": [{"metric": "no_such"}, "3"]}},
        faulty["rules"][0] | {"code": "INPUT", "condition": {"atLeast": [{"input": "amount"}, "3"]}},
    ]
    answer = client.call(method, path, json=faulty)
    assert refusal(answer) == (400, "Ruleset.Invalid")
    reported = set(pointers(answer))
    assert {"/color", "/slug", "/rules/0/severity", "/rules/1/condition/atLeast/0/metric"} <= reported
    assert any(pointer.startswith("/rules/2/condition/atLeast/0") for pointer in reported)
    assert any(pointer == "/rules/1/code" for pointer in reported), "a code that occurs twice"
    assert all(fault["code"].startswith("Ruleset.") for fault in answer.json()["errors"])


def test_a_check_finds_what_creating_would_and_stores_nothing(client: Client) -> None:
    faulty = plain(color="red")
    refused = client.post(RULESETS, faulty).json()["errors"]
    assert client.post("/v1/monitoring/check", faulty).json()["data"] == {"faults": refused, "warnings": []}
    assert client.post("/v1/monitoring/check", plain()).json()["data"]["faults"] == []
    assert get_json(client, "/rulesets")["rulesets"] == []


@parametrize("document", [{}, {"slug": "empty", "name": "Empty", "rules": []}, {"rules": "all of them"}])
def test_a_document_that_is_not_a_ruleset_is_refused(client: Client, document: object) -> None:
    assert refusal(client.post(RULESETS, document)) == (400, "Ruleset.Invalid")


def test_a_ruleset_can_list_only_customers_of_its_client(client: Client, other_client: Client) -> None:
    own, foreign = client.new_customer(), other_client.new_customer()
    document = plain(appliesTo={"customers": [own, foreign, str(uuid4())]})
    answer = client.post(RULESETS, document)
    assert refusal(answer) == (400, "Ruleset.UnknownCustomer")
    assert pointers(answer) == ["/appliesTo/customers/1", "/appliesTo/customers/2"]
    assert foreign not in answer.text
    made = create_ruleset(client, plain(appliesTo={"customers": [own]}))
    assert refusal(put(client, made["rulesetId"], document)) == (400, "Ruleset.UnknownCustomer")


def test_a_slug_can_be_used_once(client: Client, other_client: Client) -> None:
    create_ruleset(client, plain())
    other = create_ruleset(client, plain(slug="other"))
    assert refusal(client.post(RULESETS, plain(name="Again"))) == (409, "Ruleset.SlugTaken")
    assert refusal(put(client, other["rulesetId"], plain())) == (409, "Ruleset.SlugTaken")
    assert create_ruleset(other_client, plain())["slug"] == "spending"


def test_a_version_that_the_caller_does_not_know_is_not_replaced(client: Client) -> None:
    ruleset_id = create_ruleset(client, plain())["rulesetId"]

    def replace(known: object, **changes: object) -> requests.Response:
        return client.call("PUT", f"{RULESETS}/{ruleset_id}?knownVersion={known}", json=plain(**changes))

    assert replace(1, name="Second").json()["data"]["version"] == 2
    assert refusal(replace(1, name="Third")) == (409, "Ruleset.ChangedMeanwhile")
    assert get_json(client, f"/rulesets/{ruleset_id}")["name"] == "Second"
    assert replace(1, name="Second").json()["data"]["version"] == 2  # repeated: nothing would be lost
    assert replace(2, name="Third").json()["data"]["version"] == 3
    for wrong in ("0", "-1", "x", "1&knownVersion=2"):
        assert refusal(replace(wrong)) == (400, "Ruleset.InvalidKnownVersion")


def test_replacing_makes_a_version_unless_the_document_is_equal(store: Store, client: Client) -> None:
    made = create_ruleset(client, plain())
    ruleset_id = made["rulesetId"]
    again = put(client, ruleset_id, dict(reversed(plain(active=True).items()))).json()["data"]
    assert (again["version"], again["dateUpdated"]) == (1, made["dateUpdated"])
    replaced = put(client, ruleset_id, plain(name="Renamed", slug="renamed", active=False)).json()["data"]
    assert (replaced["version"], replaced["name"], replaced["slug"], replaced["active"]) == (
        2,
        "Renamed",
        "renamed",
        False,
    )
    assert replaced["dateUpdated"] > made["dateUpdated"]
    versions = get_json(client, f"/rulesets/{ruleset_id}/versions")
    assert [(each["version"], each["document"]["name"]) for each in versions["versions"]] == [
        (2, "Renamed"),
        (1, "Spending"),
    ]
    assert versions["totalCount"] == 2
    assert len({each["sha256"] for each in versions["versions"]}) == 2
    assert trail(store, client) == [
        ("Ruleset.Replaced", {"rulesetId": ruleset_id, "version": "2"}),
        ("Ruleset.Created", {"rulesetId": ruleset_id}),
    ]


def test_an_archived_ruleset_is_not_listed_until_it_is_unarchived(store: Store, client: Client) -> None:
    retained, away = create_ruleset(client, plain(slug="retained")), create_ruleset(client, plain(slug="away"))
    path = f"{RULESETS}/{away['rulesetId']}"
    for _ in range(2):
        assert client.post(f"{path}/archive").json()["data"]["isArchived"] is True
    assert [each["slug"] for each in get_json(client, "/rulesets")["rulesets"]] == ["retained"]
    everything = get_json(client, "/rulesets", includeArchived="true")
    assert [each["slug"] for each in everything["rulesets"]] == ["away", "retained"]
    assert refusal(put(client, away["rulesetId"], plain(slug="away", name="New"))) == (409, "Ruleset.Archived")
    assert client.post(f"{path}/unarchive").json()["data"]["isArchived"] is False
    page = get_json(client, "/rulesets", page=2, count=1)
    assert ([each["rulesetId"] for each in page["rulesets"]], page["totalPages"]) == ([retained["rulesetId"]], 2)
    assert [action for action, _ in trail(store, client)] == [
        "Ruleset.Unarchived",
        "Ruleset.Archived",
        "Ruleset.Created",
        "Ruleset.Created",
    ]


@parametrize("query", ["includeArchived=maybe", "page=0", "count=0"])
def test_a_bad_query_is_refused(client: Client, query: str) -> None:
    assert client.get(f"{RULESETS}?{query}").status_code == 400


def test_with_an_idempotency_key_a_ruleset_is_created_once(client: Client) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    first, second = (client.post(RULESETS, plain(), headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert get_json(client, "/rulesets")["totalCount"] == 1


# Matches


def test_a_match_shows_what_fired_and_what_it_read(client: Client, customer_id: str, match: dict[str, Any]) -> None:
    [ruleset] = get_json(client, "/rulesets")["rulesets"]
    assert match.keys() == example(MatchView).keys()
    assert match["ruleset"] == {"id": ruleset["rulesetId"], "slug": "spending", "name": "Spending"}
    assert (match["customerId"], match["version"], match["dataVersion"], match["cause"]) == (customer_id, 1, 1, "time")
    [rule] = match["rules"]
    assert rule.keys() == example(MatchView)["rules"][0].keys()
    assert (rule["code"], rule["severity"], rule["recommendedActions"]) == ("SPENT", "warning", ["Ask what for."])
    [value] = rule["values"]
    assert value.keys() == example(MatchView)["rules"][0]["values"][0].keys()
    assert (value["kind"], value["name"], value["value"]) == ("metric", "spent_30d", Decimal(50))
    assert (value["cause"], value["baseline"]) == (None, None)
    [comparison] = rule["comparisons"]
    assert comparison.keys() == example(MatchView)["rules"][0]["comparisons"][0].keys()
    assert (comparison["operator"], comparison["holds"]) == ("moreThan", True)
    assert comparison["left"] == {"metric": "spent_30d", "value": Decimal(50)}
    assert comparison["right"] == {"constant": "0", "value": 0}
    assert get_json(client, f"/matches/{match['matchId']}") == match


def test_the_event_has_the_id_of_the_match(store: Store, client: Client, customer_id: str) -> None:
    hook = {"eventType": "monitoring.rule.triggered", "webhookUrl": "https://lender.example/hook"}
    made = client.post("/v1/webhooks/subscriptions", hook).json()["data"]["webhookSubscriptionId"]
    create_ruleset(client, plain())
    evaluate(store, customer_id)
    evaluate(store, customer_id)
    [delivery] = client.get(f"/v1/webhooks/subscriptions/{made}/deliveries").json()["data"]["deliveries"]
    assert get_json(client, f"/matches/{delivery['eventId']}")["customerId"] == customer_id
    assert get_json(client, "/matches")["totalCount"] == 1


def test_counts_show_evaluations_and_customers_for_whom_a_rule_has_fired(
    store: Store, client: Client, customer_id: str
) -> None:
    document = plain()
    blind = {"code": "BLIND", "message": "Never known.", "condition": {"atLeast": [{"attribute": "score"}, "1"]}}
    document["attributes"] = [{"name": "score", "kind": "decimal"}]
    document["rules"] = [*document["rules"], blind]
    made = create_ruleset(client, document)
    for _ in range(2):
        evaluate(store, customer_id)
    counts = get_json(client, f"/rulesets/{made['rulesetId']}")["counts"]
    assert counts == [
        {"code": "SPENT", "observed": 2, "held": 2, "unknown": 0, "fired": 1, "firedNow": 1},
        {"code": "BLIND", "observed": 2, "held": 0, "unknown": 2, "fired": 0, "firedNow": 0},
    ]
    archived = client.post(f"{RULESETS}/{made['rulesetId']}/archive").json()["data"]
    assert [each["firedNow"] for each in archived["counts"]] == [0, 0]


def test_an_inactive_ruleset_evaluates_nobody(store: Store, client: Client, customer_id: str) -> None:
    made = create_ruleset(client, plain(active=False))
    evaluate(store, customer_id)
    assert get_json(client, "/matches")["matches"] == []
    assert put(client, made["rulesetId"], plain()).status_code == 200
    evaluate(store, customer_id)
    assert get_json(client, "/matches")["totalCount"] == 1


def test_matches_are_found_by_customer_ruleset_and_time(store: Store, client: Client, customer_id: str) -> None:
    first, second = create_ruleset(client, plain()), create_ruleset(client, plain(slug="second"))
    evaluate(store, customer_id)
    newest, oldest = get_json(client, "/matches")["matches"]
    assert newest["dateMatched"] >= oldest["dateMatched"]
    assert {newest["ruleset"]["id"], oldest["ruleset"]["id"]} == {first["rulesetId"], second["rulesetId"]}
    [of_first] = get_json(client, "/matches", rulesetId=first["rulesetId"])["matches"]
    assert of_first["ruleset"]["slug"] == "spending"
    assert get_json(client, "/matches", customerId=customer_id)["totalCount"] == 2
    assert get_json(client, "/matches", customerId=client.new_customer())["matches"] == []
    now = datetime.now(UTC)
    past, future = ((now + timedelta(hours=hours)).isoformat() for hours in (-1, 1))
    assert get_json(client, "/matches", createdAfter=past, createdBefore=future)["totalCount"] == 2
    assert get_json(client, "/matches", createdAfter=future)["totalCount"] == 0
    assert get_json(client, "/matches", createdBefore=past)["totalCount"] == 0
    page = get_json(client, "/matches", page=2, count=1)
    assert ([each["matchId"] for each in page["matches"]], page["totalCount"]) == ([oldest["matchId"]], 2)


@parametrize(
    ("query", "code"),
    [
        ({"customerId": "somebody"}, "RuleMatch.InvalidId"),
        ({"rulesetId": "something"}, "RuleMatch.InvalidId"),
        ({"createdAfter": "2026-07-01"}, "RuleMatch.InvalidDate"),
        ({"createdBefore": "yesterday"}, "RuleMatch.InvalidDate"),
    ],
)
def test_a_bad_filter_is_refused(client: Client, query: dict[str, str], code: str) -> None:
    assert refusal(client.get(f"{BASE}/matches", params=query)) == (400, code)


def test_a_filter_by_an_unknown_or_foreign_id_is_not_found(other_client: Client, match: dict[str, Any]) -> None:
    for name, code in (("customerId", "Customer.NotFound"), ("rulesetId", "Ruleset.NotFound")):
        foreign = match["customerId"] if name == "customerId" else match["ruleset"]["id"]
        for unknown in (foreign, str(uuid4())):
            assert refusal(other_client.get(f"{BASE}/matches", params={name: unknown})) == (404, code)
    assert refusal(other_client.get(f"{BASE}/matches/{match['matchId']}")) == (404, "RuleMatch.NotFound")


# Lineage


def test_the_lineage_of_a_metric_adds_up_to_the_value_read(client: Client, match: dict[str, Any]) -> None:
    named_, default = (
        get_json(client, f"/matches/{match['matchId']}/lineage", **query) for query in ({"figure": "/spent_30d"}, {})
    )
    assert named_ == default
    assert (named_["kind"], named_["figure"], named_["dataVersion"]) == ("match", "/spent_30d", 1)
    assert (named_["value"], named_["asOf"]) == (Decimal(50), match["asOf"])
    assert [(row["date"], row["contribution"]) for row in named_["transactions"]] == [("2026-06-01", Decimal(50))]


def test_a_registry_metric_can_be_explained_too(client: Client, match: dict[str, Any]) -> None:
    found = get_json(client, f"/matches/{match['matchId']}/lineage", figure="/months_of_history")
    assert found["figure"] == "/months_of_history"


def test_the_lineage_of_a_baseline_ends_at_its_day(store: Store, client: Client, customer_id: str) -> None:
    match = since_start(store, client, customer_id)
    values = {each["name"]: each for each in match["rules"][0]["values"]}
    assert (values["spent_30d"]["value"], values["spent_30d"]["baseline"]) == (Decimal(50), None)
    at_start = values["spent_30d_at_start"]
    assert (at_start["value"], at_start["baseline"]) == (Decimal(100), {"of": "spent_30d", "date": LOAN_START})
    assert at_start["metricId"] == values["spent_30d"]["metricId"]
    found = get_json(client, f"/matches/{match['matchId']}/lineage", figure="/spent_30d_at_start")
    assert (found["value"], found["asOf"], found["figure"]) == (Decimal(100), LOAN_START, "/spent_30d_at_start")
    assert [(row["date"], row["contribution"]) for row in found["transactions"]] == [("2026-04-01", Decimal(100))]


def test_a_baseline_without_a_day_is_unavailable(store: Store, client: Client, customer_id: str) -> None:
    document = since_the_loan()
    document["rules"][0]["condition"] = {"not": {"isKnown": {"metric": "spent_30d_at_start"}}}
    create_ruleset(client, document)
    evaluate(store, customer_id)
    [match] = get_json(client, "/matches")["matches"]
    [value] = match["rules"][0]["values"]
    assert (value["value"], value["cause"]) == (None, "no_baseline")
    assert value["baseline"] == {"of": "spent_30d", "date": None}
    found = get_json(client, f"/matches/{match['matchId']}/lineage")
    assert (found["value"], found["by"], found["transactions"]) == (None, "formula", [])
    assert found["words"].startswith("unavailable: ")


@parametrize("figure", ["/no_such_metric", "spent_30d", "/spent_30d/deeper", "/"])
def test_an_unknown_figure_is_not_found(client: Client, match: dict[str, Any], figure: str) -> None:
    answer = client.get(f"{BASE}/matches/{match['matchId']}/lineage", params={"figure": figure})
    assert refusal(answer) == (404, "Report.FigureNotFound")


@parametrize("more", [(), *((scope,) for scope in ROW_READER_SCOPES)])
def test_the_rows_of_a_lineage_need_a_scope_that_reads_them(
    store: Store, client: Client, match: dict[str, Any], more: tuple[str, ...]
) -> None:
    watcher = with_scopes(store, client, ["monitoring:rules", *more])
    answer = watcher.get(f"{BASE}/matches/{match['matchId']}/lineage").json()
    assert (answer["data"]["value"], answer["data"]["totalCount"]) == (50, 1)
    assert len(answer["data"]["transactions"]) == (1 if more else 0)
    assert ("customer:reports" in (answer["message"] or "")) == (not more)


def test_lineage_is_gone_when_the_evaluated_version_is(
    store: Store, client: Client, customer_id: str, match: dict[str, Any]
) -> None:
    client.submit_transactions(customer_id)
    end_submissions(store, [*ROWS, {"date": date(2026, 6, 2)}])
    path = f"{BASE}/matches/{match['matchId']}"
    assert client.get(f"{path}/lineage").json()["data"]["totalCount"] == 1
    with store.db.writing() as w:
        mine = customers.c.customer_id == UUID(customer_id)
        number = w.execute(customers.select().where(mine)).one().number
        w.execute(delete(locations).where(locations.c.customer_number == number, locations.c.data_version == 1))
    assert refusal(client.get(f"{path}/lineage")) == (410, "Report.VersionExpired")
    assert client.get(path).status_code == 200


# The library


def test_every_ruleset_of_the_library_can_be_created_and_is_inactive_at_first(client: Client) -> None:
    listed = get_json(client, "/library")["rulesets"]
    assert {each["slug"] for each in listed} == library.load_library().keys()
    for each in listed:
        found = get_json(client, f"/library/{each['slug']}")
        assert (found["name"], found["about"]) == (each["name"], each["about"])
        assert yaml.safe_load(found["text"]) == found["document"]
        assert found["document"]["active"] is False
        assert create_ruleset(client, found["document"])["slug"] == each["slug"]


def test_an_unknown_ruleset_of_the_library_is_not_found(client: Client) -> None:
    assert refusal(client.get(f"{BASE}/library/none-such")) == (404, "Ruleset.NotFound")


# The documentation page


def page_blocks(language: str) -> list[str]:
    return re.findall(f"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_example_of_the_documentation_page_is_valid() -> None:
    [text] = page_blocks("yaml")
    found = check_document(yaml.safe_load(text))
    assert (found.faults, found.warnings) == ([], [])


def test_the_event_of_the_documentation_page_is_the_schemas_example() -> None:
    [text] = page_blocks("json")
    schema = json.loads(
        (ROOT / "docs" / "reference" / "events" / "monitoring.rule.triggered.schema.json").read_text("utf-8")
    )
    assert json.loads(text) == schema["examples"][0]


def test_the_days_of_the_documentation_page_are_correct() -> None:
    days = re.findall(
        r"^\| (\d{4}-\d\d-\d\d) \| (true|false|unknown) \| (ready|fired) \| (.*?)\|$",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(days) == 8
    one = (1, b"r" * 16, "REVENUE_DOWN")
    repeats = pl.DataFrame([(*one[1:], 30)], REPEATS, orient="row")
    firing = pl.DataFrame(schema=FIRING)
    for day, condition, state, reported in days:
        now = datetime.fromisoformat(f"{day}T00:00:00+00:00")
        holds = {"true": True, "false": False, "unknown": None}[condition]
        made = compute_transitions(
            pl.DataFrame([(*one, holds)], OUTCOMES, orient="row"), firing, repeats, now.date(), "UTC"
        )
        if not made.reset.is_empty():
            firing = firing.clear()
        if not made.fired.is_empty():
            firing = pl.DataFrame([(*one, now)], FIRING, orient="row")
        assert (made.fired.height, firing.height) == (reported.startswith("one event"), state == "fired"), day
