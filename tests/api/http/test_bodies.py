"""Every kind of malformed body is a 400 that lists each fault once, echoes nothing and stores nothing."""

import json
import socket
import tracemalloc
from datetime import date
from decimal import Decimal
from typing import Any, get_args, get_origin
from uuid import uuid4

import pytest
from pydantic import BaseModel

from api.core.schemas.common import Received
from api.core.schemas.rules import MAX_FAULTS, ListItem, Rule
from api.customers.schemas.related_parties import SentParties
from api.http.bodies import MAX_DECODED_AT_ONCE_BYTES, MAX_DECODED_HERE_BYTES, Body
from api.portfolio.schemas.backtests import SentBacktest
from pipelines.intake.lines import decode
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.webhooks.events import EVENT_TYPES
from storage.core.store import Store
from tests.api.conftest import ABN, ITEM, Client, answering, new_client
from tests.api.worker import end_submissions

parametrize = pytest.mark.parametrize
JSON = {"Content-Type": "application/json"}


@parametrize(
    ("body", "code"),
    [
        (b"", "Request.EmptyBody"),
        (b" \n", "Request.EmptyBody"),
        (b"{", "Request.MalformedJson"),
        (b"{} {}", "Request.MalformedJson"),
        (b'{"abn": NaN}', "Request.MalformedJson"),
        (b'{"abn": -Infinity}', "Request.MalformedJson"),
        (b'{"abn": "\xff"}', "Request.NotUtf8"),
        ('{"abn": "51824753556"}'.encode("utf-16"), "Request.NotUtf8"),
        ('{"abn": "51824753556"}'.encode("utf-16-le"), "Request.MalformedJson"),
        ('{"abn": "51824753556"}'.encode("utf-32"), "Request.NotUtf8"),
        ('{"abn": "51824753556"}'.encode("utf-8-sig"), "Request.MalformedJson"),
        (b'{"abn": "51824753556", "name": "\xed\xa0\x80"}', "Request.NotUtf8"),
        (b'{"abn": "51824753556", "name": "a\x00b"}', "Request.MalformedJson"),
        (b'{"abn": "51824753556"}garbage', "Request.MalformedJson"),
        (b'{"abn": "51824753556", "ignored": {"a": [{"b": 1, "b": 2}]}}', "Request.DuplicateKey"),
        (b'{"abn": "51824753556", "ignored": 01}', "Request.MalformedJson"),
        (b'{"abn": "51824753556", "ignored": Infinity}', "Request.MalformedJson"),
        (b'{"abn": "51824753556", "ignored": "\\ud83d"}', "Request.LoneSurrogate"),
        (b'{"abn": "1", "abn": "51824753556"}', "Request.DuplicateKey"),
        (b'{"abn": "51824753556", "name": "a\\u0000b"}', "Request.NullCharacter"),
        (b'{"abn": "51824753556", "name": "\\ud800"}', "Request.LoneSurrogate"),
        (b"[" * 100_000, "Request.TooDeep"),
        (b"null", "Request.NotAnObject"),
        (b"[]", "Request.NotAnObject"),
        (b'"x"', "Request.NotAnObject"),
        (b"7", "Request.NotAnObject"),
        (b"true", "Request.NotAnObject"),
        (b"{}", "Customer.InvalidAbn"),
        (b'{"abn": null}', "Customer.InvalidAbn"),
        (b'{"abn": 51824753556}', "Customer.InvalidAbn"),
        (b'{"abn": 1e400}', "Customer.InvalidAbn"),
        (b'{"abn": ["51824753556"]}', "Customer.InvalidAbn"),
        (b'{"abn": "5182475355"}', "Customer.InvalidAbn"),
        (b'{"abn": "518247535567"}', "Customer.InvalidAbn"),
        (b'{"abn": "5182475355x"}', "Customer.InvalidAbn"),
        ('{"abn": "٥١٨٢٤٧٥٣٥٥٦"}'.encode(), "Customer.InvalidAbn"),
        (b'{"abn": "51824753556", "name": 7}', "Customer.InvalidName"),
        (b'{"abn": "51824753556", "name": {}}', "Customer.InvalidName"),
        (b'{"abn": "51824753556", "reference": false}', "Customer.InvalidReference"),
        (b'{"abn": "51824753556", "state": []}', "Customer.InvalidState"),
        (b'{"abn": "51824753556", "name": "' + b"x" * 201 + b'"}', "Customer.InvalidName"),
    ],
)
def test_a_malformed_customer_is_refused_with_its_code(client: Client, body: bytes, code: str) -> None:
    answer = client.call("POST", "/v1/customer", data=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert client.get("/v1/customers").json()["data"]["totalCount"] == 0


def test_all_faults_are_listed_at_once_with_their_pointers(client: Client) -> None:
    problem = client.post("/v1/customer", {"abn": "secret", "name": 7, "reference": []}).json()
    assert problem["code"] == "Request.Invalid"
    assert {fault["pointer"]: fault["code"] for fault in problem["errors"]} == {
        "/abn": "Customer.InvalidAbn",
        "/name": "Customer.InvalidName",
        "/reference": "Customer.InvalidReference",
    }


def test_a_problem_never_echoes_what_was_sent(client: Client) -> None:
    assert "s3cret" not in client.post("/v1/customer", {"abn": "s3cret", "name": ["s3cret"], "s3cret": 1}).text


def test_unknown_fields_are_ignored_and_never_stored(client: Client) -> None:
    extra = {"customerId": "mine", "clientId": "theirs", "dateCreated": "1999-01-01T00:00:00Z", "created": False}
    made = client.post("/v1/customer", {"abn": ABN} | extra)
    assert made.status_code == 201
    assert not set(extra.values()) & set(map(str, made.json()["data"].values()))


@parametrize("written", ["2", "2.0", "2e0", "20E-1", "0.2e+1", "2." + "0" * 400])
def test_a_whole_number_may_be_written_in_every_way_that_json_has(client: Client, written: str) -> None:
    assert patch_retries(client, written) == (200, 2)


@parametrize(
    "written",
    ["2.5", "-1", "-1.0", "11", "11.0", "1e1000000", "1e99999999999999999999", "1e-99999999999999999999", '"2"', "[]"],
)
def test_any_other_number_is_refused_where_a_whole_one_is_needed(client: Client, written: str) -> None:
    assert patch_retries(client, written) == (400, "Webhook.InvalidMaxRetries")


def patch_retries(client: Client, written: str) -> tuple[int, Any]:
    """Set a subscription's number of retries in this JSON; return the status, and the number or the error code."""
    hook = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"}
    made = client.post("/v1/webhooks/subscriptions", hook).json()["data"]["webhookSubscriptionId"]
    body = f'{{"maxRetries": {written}}}'
    answer = client.call("PATCH", f"/v1/webhooks/subscriptions/{made}", data=body, headers=JSON)
    return answer.status_code, answer.json()["data"]["maxRetries"] if answer.ok else answer.json()["code"]


@parametrize(
    ("fields", "pointer", "code"),
    [
        ({"transactions": None}, "/transactions", "Request.WrongType"),
        ({"transactions": {}}, "/transactions", "Request.WrongType"),
        ({"transactions": "[]"}, "/transactions", "Request.WrongType"),
        ({"transactions": []}, "/transactions", "Submission.WrongCount"),
        ({"transactions": [ITEM] * 31}, "/transactions", "Submission.WrongCount"),
        ({"transactions": [ITEM, 7]}, "/transactions/1", "Request.WrongType"),
        ({"transactions": [ITEM, None]}, "/transactions/1", "Request.WrongType"),
        ({"transactions": [[]]}, "/transactions/0", "Request.WrongType"),
        ({"accountName": 7}, "/accountName", "Submission.InvalidAccountName"),
        ({"bsb": 62000}, "/bsb", "Submission.InvalidBsb"),
        ({"accountNumber": 12345678}, "/accountNumber", "Submission.InvalidAccountNumber"),
        ({"accountNumber": True}, "/accountNumber", "Submission.InvalidAccountNumber"),
        ({"bankName": {}}, "/bankName", "Submission.InvalidBankName"),
        ({"accountType": []}, "/accountType", "Submission.InvalidAccountType"),
        ({"accountType": "x" * 65}, "/accountType", "Submission.InvalidAccountType"),
        ({"creditLimit": "much"}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": True}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": -1}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": 1.005}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": 10**13}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": 2**63}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": -(2**63) - 1}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": "inf"}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": "1e3"}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": "0." + "1" * 400}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"creditLimit": int("9" * 400)}, "/creditLimit", "Submission.InvalidCreditLimit"),
        ({"currency": "USD"}, "/currency", "Submission.UnsupportedCurrency"),
        ({"currency": 36}, "/currency", "Submission.UnsupportedCurrency"),
        ({"mode": "replace"}, "/mode", "Submission.InvalidMode"),
        ({"mode": None}, "/mode", "Submission.InvalidMode"),
    ],
)
def test_a_malformed_submission_is_refused_whole(
    client: Client, fields: dict[str, Any], pointer: str, code: str
) -> None:
    customer_id = client.new_customer()
    answer = client.post(f"/v1/customer/{customer_id}/transactions", {"transactions": [ITEM]} | fields)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 0


@pytest.mark.service  # the largest body
def test_fifty_thousand_transactions_are_accepted_and_one_more_is_refused_whole(own_store: Store) -> None:
    with answering(own_store) as url:
        client = new_client(own_store, url)
        path = f"/v1/customer/{client.new_customer()}/transactions"
        refused = client.post(path, {"transactions": [ITEM] * 50_001})
        assert (refused.status_code, refused.json()["code"]) == (400, "Submission.WrongCount")
        assert client.get("/v1/jobs").json()["data"]["totalCount"] == 0
        assert [path for path in own_store.lake.root.rglob("*") if path.is_file()] == []

        accepted = client.post(path, {"transactions": [ITEM] * 50_000})
        assert accepted.status_code == 202
        [job] = client.get("/v1/jobs").json()["data"]["jobs"]
        assert (job["jobId"], job["totalReceivedTransactions"]) == (accepted.json()["data"]["jobId"], 50_000)


def test_a_large_body_is_refused_like_a_small_one(own_store: Store) -> None:
    many_members = json.dumps({"transactions": [ITEM | {f"extra{number}": 0 for number in range(100_000)}]})
    with answering(own_store) as url:
        client = new_client(own_store, url)
        path = f"/v1/customer/{client.new_customer()}/transactions"
        for body, code in (
            (many_members, "Request.TooManyValues"),
            (f'{{"transactions": 7, "padding": "{"x" * MAX_DECODED_HERE_BYTES}"}}', "Request.WrongType"),
            (f'{{"transactions": 7, "padding": "{"x" * MAX_DECODED_AT_ONCE_BYTES}"}}', "Request.WrongType"),
            (f'{{"transactions": 7, "transactions": "{"x" * MAX_DECODED_AT_ONCE_BYTES}"}}', "Request.DuplicateKey"),
        ):
            refused = client.call("POST", path, data=body, headers=JSON)
            assert (refused.status_code, refused.json()["code"]) == (400, code)
            nobody = client.call("POST", "/v1/customer/unknown/transactions", data=body, headers=JSON)
            assert nobody.status_code == 404


def test_validation_stops_at_the_most_faults_and_says_that_there_are_more() -> None:
    """For a million wrong outcomes pydantic would store two million faults of several hundred bytes each."""
    body = json.dumps({"outcomes": [{}] * 20_000}).encode()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest, match=f"Only the first {MAX_FAULTS} faults are listed") as refused:
            Body(SentBacktest, body, lambda: decode(body, None)).read()
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    pointers = [fault.pointer for fault in refused.value.faults]
    assert pointers == [f"/outcomes/{n}/{name}" for n in range(MAX_FAULTS // 2) for name in ("customerId", "defaulted")]


def test_exactly_the_most_faults_are_all_listed(client: Client) -> None:
    """Submissions of these tests may have 30 rows, so use related parties: 100 of them, with a fault each."""
    customer_id = client.new_customer()
    parties = [{"name": "A", "role": "owner"}] * MAX_FAULTS
    answer = client.call("PUT", f"/v1/customer/{customer_id}/related-parties", data=json.dumps(parties), headers=JSON)
    assert answer.status_code == 400
    assert len(answer.json()["errors"]) == MAX_FAULTS
    assert "Only the first" not in answer.text


def test_every_list_of_a_body_stops_at_the_most_faults(subtests: pytest.Subtests) -> None:
    """A list that one rule parses as a whole has one fault."""
    for model in received_models():
        for name, field in model.model_fields.items():
            if any(isinstance(each, Rule) for each in field.metadata):
                continue
            for items in items_of(field.annotation):
                with subtests.test(f"{model.__name__}.{name}"):
                    assert any(isinstance(each, ListItem) for each in getattr(items, "__metadata__", ()))


def received_models() -> list[type[BaseModel]]:
    """Return the models of all bodies, including nested ones."""
    found, waiting = list[type[BaseModel]](), [Received, SentParties]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].__subclasses__() if issubclass(found[-1], Received) else []
    assert len(found) > 30
    return found


def items_of(annotation: object) -> list[object]:
    """Return the types of the items of lists in an annotation."""
    inner = [each for argument in get_args(annotation) for each in items_of(argument)]
    return [get_args(annotation)[0], *inner] if get_origin(annotation) is list else inner


def test_a_submission_needs_transactions(client: Client) -> None:
    answer = client.post(f"/v1/customer/{client.new_customer()}/transactions", {"bsb": "062-000"})
    assert (answer.status_code, answer.json()["code"]) == (400, "Request.Missing")


@parametrize(
    "item",
    [
        {},
        {"date": "2024-02-30", "description": "", "amount": "lots"},
        {"date": 0, "description": None, "amount": True},
        {"date": ["x"], "amount": {"a": 1}, "unheard": "of"},
    ],
)
def test_faults_inside_a_row_do_not_refuse_the_submission(client: Client, item: dict[str, Any]) -> None:
    assert client.submit_transactions(client.new_customer(), [item])


HUGE = [2**53 + 1, 2**63, -(2**63) - 1, int("9" * 400), "inf", "1", True, None, "NaN", "-0", [], {}]


@parametrize(
    "field", ["date", "amount", "balance", "type", "transactionId", "currency", "status", "valueDate", "description"]
)
def test_odd_values_in_a_row_never_cause_a_failure(client: Client, field: str) -> None:
    dates: list[Any] = [
        0,
        "86400",
        "2024-02-30",
        "0000-01-01",
        "10000-01-01",
        "2026-06-01T23:59:00+11:00",
        "٢٠٢٦-٠٦-٠١",
    ]
    texts: list[Any] = ["\u202egnp.exe", "a\u0301" * 20, "\u200d" * 2_000, "=cmd|' /C calc'!A0", "'; --", "%_\\"]
    values = HUGE + dates + texts
    assert client.submit_transactions(client.new_customer(), [ITEM | {field: value} for value in values])
    for number in ("1e400", "-0.0", "0.1000000000000000055511151231257827", "1E-400", "0." + "0" * 400 + "1"):
        item = json.dumps(ITEM | {field: "HERE"}).replace('"HERE"', number)
        body = f'{{"transactions": [{item}]}}'
        path = f"/v1/customer/{client.new_customer()}/transactions"
        assert client.call("POST", path, data=body, headers=JSON).status_code == 202


@parametrize(
    "text",
    [
        "\u202e\u2066bidi",
        "👩\u200d👩\u200d👧",
        "e" + "\u0301" * 99,
        "\u00e9",
        "e\u0301",
        "\ufeffx",
        "a\u2028b",
        "\x7f\x01",
        " x ",
    ],
)
def test_text_is_stored_and_compared_exactly(client: Client, text: str) -> None:
    client.new_customer(reference="another")
    made = client.new_customer(reference=text, name=text)
    retained = client.get(f"/v1/customer/{made}").json()["data"]
    assert (retained["name"], retained["reference"]) == (text, text)
    found = client.get("/v1/customers", params={"reference": text}).json()["data"]["customers"]
    assert [customer["customerId"] for customer in found] == [made]


def test_different_unicode_forms_are_different_references(client: Client) -> None:
    composed, decomposed = (client.new_customer(reference=text) for text in ("\u00e9", "e\u0301"))
    assert composed != decomposed


@parametrize("absent", [None, ""])
def test_null_and_empty_account_fields_mean_absent(client: Client, absent: str | None) -> None:
    fields = ("accountName", "bsb", "accountNumber", "bankName", "accountType", "creditLimit")
    account: dict[str, Any] = dict.fromkeys(fields, absent)
    assert client.submit_transactions(client.new_customer(), **account)


@parametrize("limit", [5000, 5000.5, "5000.50", 0, 0.1 + 0.2])
def test_a_credit_limit_may_be_a_number_or_text(client: Client, limit: object) -> None:
    assert client.submit_transactions(client.new_customer(), creditLimit=limit)


@parametrize(
    ("fields", "pointer", "code"),
    [
        ({"eventType": "job.started"}, "/eventType", "Webhook.InvalidEventType"),
        ({"eventType": None}, "/eventType", "Webhook.InvalidEventType"),
        ({"webhookUrl": "http://lender.example/hook"}, "/webhookUrl", "Webhook.UrlNotHttps"),
        ({"webhookUrl": "ftp://lender.example/hook"}, "/webhookUrl", "Webhook.UrlNotHttps"),
        ({"webhookUrl": "lender.example/hook"}, "/webhookUrl", "Webhook.UrlNotHttps"),
        ({"webhookUrl": "https://"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https:///hook"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://user:pw@lender.example/"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://lender.example\\@evil.example/"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://lender.example:99999/"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://lender.example:0/"}, "/webhookUrl", "Webhook.UrlForbidden"),
        ({"webhookUrl": "https://len\tder.example/"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://lender.example/ hook"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://[::1/"}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://lender.example/" + "x" * 2048}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": 7}, "/webhookUrl", "Webhook.UrlInvalid"),
        ({"webhookUrl": "https://127.0.0.1/hook"}, "/webhookUrl", "Webhook.UrlForbidden"),
        ({"webhookUrl": "https://localhost/hook"}, "/webhookUrl", "Webhook.UrlForbidden"),
        ({"webhookUrl": f"https://{socket.gethostname()}/hook"}, "/webhookUrl", "Webhook.UrlForbidden"),
        ({"customerIds": "all"}, "/customerIds", "Request.WrongType"),
        ({"customerIds": ["mine"]}, "/customerIds/0", "Webhook.UnknownCustomer"),
        ({"customerIds": [7]}, "/customerIds/0", "Webhook.UnknownCustomer"),
    ],
)
def test_a_malformed_subscription_is_refused(client: Client, fields: dict[str, Any], pointer: str, code: str) -> None:
    good = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook", "customerIds": []}
    answer = client.post("/v1/webhooks/subscriptions", good | fields)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert client.get("/v1/webhooks/subscriptions").json()["data"]["totalCount"] == 0


def test_unknown_fields_and_parameters_are_accepted_and_named(client: Client) -> None:
    made = client.post("/v1/customer?dryRun=1", {"abn": ABN, "refrence": "a", "reference": "b"})
    assert made.status_code == 201
    message = made.json()["message"]
    assert "dryRun" in message
    assert "refrence (did you mean reference?)" in message
    customer_id = made.json()["data"]["customerId"]
    listed = client.get("/v1/jobs?pages=1&customerId=" + customer_id)
    assert listed.json()["message"] == "Unknown, and ignored: pages (did you mean page?)."
    assert client.get("/v1/jobs").json()["message"] is None


def test_unknown_fields_of_items_and_parameters_of_a_refresh_are_not_named(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    body = {"transactions": [ITEM | {"merchant": "x"}], "accountNummber": "1"}
    message = client.post(f"/v1/customer/{customer_id}/transactions", body).json()["message"]
    assert message == "Unknown, and ignored: accountNummber (did you mean accountNumber?)."
    end_submissions(store, [{"date": date(2026, 6, 1), "amount": Decimal(1)}])
    refresh = client.post(f"/v1/customer/{customer_id}/reports/refresh?force=1")
    assert (refresh.status_code, refresh.json()["message"]) == (202, None)


def test_an_unknown_name_is_masked(client: Client) -> None:
    message = client.post("/v1/customer", {"abn": ABN, "card 4111 1111 1111 1111": 1}).json()["message"]
    assert message == "Unknown, and ignored: card 411111xxxxxx1111."


def test_only_a_few_of_many_unknown_names_are_listed(client: Client) -> None:
    many = {f"name{number}": 1 for number in range(900)}
    message = client.post("/v1/customer", {"abn": ABN} | many).json()["message"]
    assert message.endswith(" and others.")
    assert len(message) < 1_000


def test_a_wrong_value_of_an_enumeration_is_answered_with_the_valid_ones(client: Client) -> None:
    body = {"eventType": "job.done", "webhookUrl": "http://lender.example/hook", "customerIds": [str(uuid4())]}
    faults = client.post("/v1/webhooks/subscriptions", body).json()["errors"]
    assert {fault["pointer"] for fault in faults} == {"/eventType", "/webhookUrl", "/customerIds/0"}
    [enumeration] = [fault["message"] for fault in faults if fault["pointer"] == "/eventType"]
    assert all(name in enumeration for name in EVENT_TYPES)


def test_a_body_over_the_limit_is_answered_while_it_is_still_being_sent(client: Client, socket_url: str) -> None:
    answer = Client(socket_url, client.client_id, client.key).call(
        "POST", "/v1/customer", data=b" " * 8_000_000, headers=JSON
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "Request.TooLarge")
