"""The letter to an applicant: the outcome in words, only what is meant for customers, no letter without a decision."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Event
from typing import Any

import pytest

from api.http.middleware import FRAMED_BY_NOBODY
from api.reports import browser
from pipelines.decisions.letter import DECISIONS
from pipelines.pages import CONTENT_POLICY
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.core.test_evaluate import DOCUMENT, INPUTS, evaluate_successfully, rule, save_policy
from tests.pipelines.pages.documents import Element, parse_html, table

HOSTILE = "<script>alert(1)</script> & Söhne \u202egnirts"


def letter(client: Client, evaluation_id: str) -> Element:
    answer = client.get(f"/v1/evaluations/{evaluation_id}/letter.html")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Security-Policy"] == f"{CONTENT_POLICY}; {FRAMED_BY_NOBODY}"
    return parse_html(answer.text)


def words(page: Element) -> str:
    return " ".join(page.one("body").text.split())


def override(client: Client, evaluation_id: str, outcome: str) -> None:
    sent = {"outcome": outcome, "reason": "An internal reason.", "decidedBy": "J. Citizen"}
    assert client.post(f"/v1/evaluations/{evaluation_id}/override", sent).status_code == 201


def create_scored_customer(client: Client, score: int | None, **fields: object) -> str:
    customer_id = client.new_customer(name="Harbour Bakery", **fields)
    attributes = {"attributes": {"score": score}}
    assert client.call("PUT", f"/v1/customer/{customer_id}/attributes", json=attributes).ok
    return customer_id


def for_every_outcome() -> Mapping[str, Any]:
    """Return the policy with a limit for customers who are approved or referred."""
    document = deepcopy(DOCUMENT)
    document["limits"][0]["outcomes"] = ["proceed", "conditional"]
    return document


CASES = {
    "proceed": (684, INPUTS, None, "$50,000.00"),
    "conditional": (684, INPUTS | {"secured": False}, "UNSECURED for the customer", "$50,000.00"),
    "blocked": (400, INPUTS, "SCORE for the customer", None),
}


def test_each_outcome_has_its_words_reasons_and_amounts(store: Store, client: Client) -> None:
    save_policy(store, client, for_every_outcome())
    for outcome, (score, inputs, reason, amount) in CASES.items():
        found = evaluate_successfully(
            client, create_scored_customer(client, score, reference=f"A-{outcome}"), inputs=inputs
        )
        page = letter(client, found["evaluationId"])
        text = words(page)
        assert DECISIONS[outcome] in text
        assert [each.text for each in page.all("dd")][:3] == ["Harbour Bakery", "51 824 753 556", f"A-{outcome}"]
        assert ("Main reasons" in text) == (reason is not None)
        offer = {"proceed": "What we offer", "conditional": "What we could offer"}.get(outcome)
        assert [each for each in ("What we offer", "What we could offer") if each in text] == ([offer] if offer else [])
        if reason is not None:
            assert reason in text
        if amount is not None:
            assert table(page, "Amounts")[1:] == [["Overdraft", amount]]


def test_an_overriding_outcome_is_told_without_the_policys_reasons(store: Store, client: Client) -> None:
    save_policy(store, client, for_every_outcome())
    for before, (score, inputs, reason, amount) in CASES.items():
        evaluation_id = evaluate_successfully(client, create_scored_customer(client, score), inputs=inputs)[
            "evaluationId"
        ]
        for after in CASES:
            override(client, evaluation_id, after)
            text = words(letter(client, evaluation_id))
            assert DECISIONS[after] in text
            assert ("Main reasons" in text) == (before == after and reason is not None)
            assert ("$50,000.00" in text) == (after != "blocked" and amount is not None)
            assert "internal" not in text
            assert "Citizen" not in text


def test_nothing_for_the_staff_is_in_the_letter(store: Store, client: Client) -> None:
    save_policy(store, client, for_every_outcome())
    found = evaluate_successfully(client, create_scored_customer(client, 684), inputs=INPUTS | {"secured": False})
    html = client.get(f"/v1/evaluations/{found['evaluationId']}/letter.html").text
    for internal in ("internally", "Call", "No more than asked", "score", "684", found["evaluationId"], "version"):
        assert internal not in html.partition("</style>")[2], internal
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", html.partition("</style>")[2])


def test_hostile_texts_stay_text(store: Store, client: Client) -> None:
    document = deepcopy(DOCUMENT)
    document["products"][0]["name"] = HOSTILE
    document["steps"][0]["rules"] = [rule("SCORE", {"lessThan": [{"attribute": "score"}, "500"]})]
    document["steps"][0]["rules"][0]["customerMessage"] = HOSTILE
    save_policy(store, client, document)
    for score in (400, 684):
        customer_id = client.new_customer(name=HOSTILE)
        client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": {"score": score}})
        page = letter(client, evaluate_successfully(client, customer_id, inputs=INPUTS)["evaluationId"])
        assert not list(page.all("script"))
        assert words(page).count("<script>alert(1)</script> & Söhne \ufffdgnirts") == 2


def test_without_a_decision_there_is_no_letter(store: Store, client: Client, other_client: Client) -> None:
    save_policy(store, client)
    undecided = evaluate_successfully(client, create_scored_customer(client, None), inputs=INPUTS)["evaluationId"]
    what_if = evaluate_successfully(
        client, create_scored_customer(client, 684), inputs=INPUTS, attributeOverrides={"score": 700}
    )["evaluationId"]
    for evaluation_id, code in ((undecided, "Evaluation.Indeterminate"), (what_if, "Evaluation.NotADecision")):
        for kind in ("html", "pdf"):
            path = f"/v1/evaluations/{evaluation_id}/letter.{kind}"
            assert (client.get(path).status_code, client.get(path).json()["code"]) == (409, code)
            assert other_client.get(path).status_code == 404
    override(client, undecided, "blocked")
    assert DECISIONS["blocked"] in words(letter(client, undecided))


def test_the_pdf_is_printed_from_the_page(store: Store, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    save_policy(store, client)
    evaluation = evaluate_successfully(client, create_scored_customer(client, 684), inputs=INPUTS)
    path = f"/v1/evaluations/{evaluation['evaluationId']}/letter"
    monkeypatch.setattr(browser, "print_pdf", lambda html: b"%PDF" + html.encode())
    answer = client.get(f"{path}.pdf")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/pdf")
    assert answer.content == b"%PDF" + client.get(f"{path}.html").content
    monkeypatch.undo()
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    assert (client.get(f"{path}.pdf").status_code, client.get(f"{path}.pdf").json()["code"]) == (422, "Browser.Missing")


def test_few_letters_are_printed_at_once(store: Store, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    save_policy(store, client)
    evaluation = evaluate_successfully(client, create_scored_customer(client, 684), inputs=INPUTS)
    path = f"/v1/evaluations/{evaluation['evaluationId']}/letter.pdf"
    is_printing, may_end = Event(), Event()

    def print_slowly(_: str) -> bytes:
        is_printing.set()
        assert may_end.wait(10)
        return b"%PDF-"

    monkeypatch.setattr(browser, "print_pdf", print_slowly)
    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(client.get, path)
        assert is_printing.wait(10)
        monkeypatch.setattr(browser, "print_pdf", lambda _: b"%PDF-")
        refused = client.get(path)
        may_end.set()
    assert (refused.status_code, refused.json()["code"]) == (503, "Service.Busy")
    assert first.result().status_code == 200
