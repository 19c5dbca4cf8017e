"""The Python client against scripted answers: what it sends, when it sends again, and what it returns."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
from tidemark_client import AsyncClient, Client, JobFailedError, ProblemError, Request, operations

URL = "https://tidemark.example"
GET, PUT = Request[Any]("GET", "/v1/jobs"), Request[Any]("PUT", "/v1/jobs")
KEYED, BARE = Request[Any]("POST", "/v1/jobs", takes_idempotency_key=True), Request[Any]("POST", "/v1/jobs")
Scripted = httpx.Response | Exception


def success(data: object = "done", message: str | None = None) -> httpx.Response:
    return httpx.Response(200, json={"data": data, "message": message})


def refusal(status: int, code: str = "Some.Code", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "No.", "requestId": "7"}, headers=headers)


class Script:
    """A service that gives prepared answers, and records the requests."""

    def __init__(self, *answers: Scripted) -> None:
        self._answers = iter(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, retries: int = 5) -> Client:
        return Client("tm_live_key", URL, retries=retries, transport=httpx.MockTransport(self))

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that clients made, which take no time."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    # Not in the modules themselves, because threads of other tests may be pausing.
    monkeypatch.setattr("tidemark_client.clients.time", SimpleNamespace(sleep=made.append, monotonic=time.monotonic))
    monkeypatch.setattr("tidemark_client.clients.asyncio", SimpleNamespace(sleep=pause))
    return made


LOST, UNREACHED = httpx.ReadError("lost"), httpx.ConnectError("refused")
IN_FLIGHT = refusal(409, "Idempotency.InFlight")
RETRIES: Sequence[tuple[Request[Any], Scripted, bool]] = (
    *((each, refusal(429), True) for each in (GET, PUT, KEYED, BARE)),
    *((each, UNREACHED, True) for each in (GET, PUT, KEYED, BARE)),
    *((each, failure, True) for each in (GET, PUT, KEYED) for failure in (LOST, refusal(503), refusal(502))),
    *((BARE, failure, False) for failure in (LOST, refusal(503), refusal(504))),
    (KEYED, IN_FLIGHT, True),
    *((each, refusal(status), False) for each in (GET, KEYED) for status in (400, 401, 403, 404, 409, 422, 500)),
)


def test_a_request_is_repeated_only_if_that_changes_nothing(subtests: pytest.Subtests) -> None:
    for request, failure, repeated in RETRIES:
        with subtests.test(f"{request.method} {request.takes_idempotency_key} {failure!r}"):
            script = Script(failure, success())
            if repeated:
                assert script.client().send(request) == "done"
            else:
                with pytest.raises((ProblemError, httpx.TransportError)):
                    script.client().send(request)
            assert len(script.requests) == 1 + repeated


def test_retries_share_one_key_and_calls_do_not() -> None:
    script = Script(refusal(503), LOST, success(), success(), success(), success())
    client = script.client()
    client.send(KEYED)
    client.send(KEYED)
    client.send(KEYED, idempotency_key="mine")
    client.send(GET)
    first, second, third, fourth, mine, none = script.keys
    assert first == second == third
    assert UUID(first) != UUID(fourth)
    assert (mine, none) == ("mine", None)


def test_pauses_grow_unless_the_service_asks_for_one(pauses: list[float]) -> None:
    Script(refusal(429, **{"Retry-After": "7"}), success()).client().send(GET)
    assert pauses == [7]
    pauses.clear()
    with pytest.raises(httpx.ReadError):
        Script(*[LOST] * 9).client(retries=8).send(GET)
    for made, longest in zip(pauses, (0.5, 1, 2, 4, 8, 16, 30, 30), strict=True):
        assert longest / 2 <= made <= longest


def test_a_refusal_is_an_error_with_its_code_and_faults() -> None:
    fault = {"pointer": "/abn", "code": "Customer.InvalidAbn", "message": "abn has 11 digits."}
    answer = httpx.Response(400, json={"code": "Request.Invalid", "detail": "No.", "requestId": "7", "errors": [fault]})
    with pytest.raises(ProblemError, match=r"/abn: Customer\.InvalidAbn") as refused:
        Script(answer).client().send(KEYED)
    assert (refused.value.status, refused.value.code, refused.value.request_id) == (400, "Request.Invalid", "7")
    assert refused.value.errors == [fault]
    with pytest.raises(ProblemError, match="404 : <html>") as refused:
        Script(httpx.Response(404, text="<html>")).client().send(GET)
    assert refused.value.code == ""


def test_no_digit_is_lost_in_either_direction() -> None:
    amount = Decimal("9007199254740993.10")
    answer = f'{{"data": {{"amount": {amount}}}, "message": null}}'.encode()
    script = Script(httpx.Response(200, content=answer, headers={"Content-Type": "application/json"}))
    body = {"amount": amount, "date": date(2026, 6, 30)}
    answered = script.client().send(Request[Any]("PUT", "/v1/jobs", body=body))
    assert answered == {"amount": amount}
    assert json.loads(script.requests[0].content) == {"amount": "9007199254740993.10", "date": "2026-06-30"}


def test_other_answers_than_json_are_text_and_bytes() -> None:
    page = httpx.Response(200, html="<p>")
    picture = httpx.Response(200, content=b"\x89PNG", headers={"Content-Type": "image/png"})
    client = Script(page, picture).client()
    assert client.send(operations.get_report_page("c")) == "<p>"
    assert client.send(operations.get_statement_page("c", "s", "1")) == b"\x89PNG"


def test_a_remark_of_the_service_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Script(success(message="Unknown field: amuont")).client().send(GET)
    assert caplog.messages == ["GET /v1/jobs: Unknown field: amuont"]


def paged_service(total: int) -> Callable[[httpx.Request], httpx.Response]:
    """Return a service with a list of `total` numbers, in pages."""

    def answer(request: httpx.Request) -> httpx.Response:
        page, size = int(request.url.params["page"]), int(request.url.params["count"])
        items = list(range(total))[(page - 1) * size : page * size]
        return success({"customers": items, "totalCount": total, "pageSize": size})

    return answer


def test_pages_have_every_item_once(subtests: pytest.Subtests) -> None:
    for total in (0, 1, 3, 4, 6):
        with (
            subtests.test(str(total)),
            Client("key", URL, transport=httpx.MockTransport(paged_service(total))) as client,
        ):
            items: list[Any] = list(client.pages(operations.list_customers(), count=3))
            assert items == list(range(total))


def test_cursors_and_places_are_followed_where_there_are_some() -> None:
    first = success({"transactions": [1, 2], "nextCursor": "abc"})
    script = Script(first, success({"transactions": [3], "nextCursor": None}))
    assert list(script.client().pages(operations.list_transactions(), count=2)) == [1, 2, 3]
    assert [dict(each.url.params) for each in script.requests] == [
        {"cursor": "", "count": "2"},
        {"cursor": "abc", "count": "2"},
    ]
    full, rest = ([{"deliveryId": name} for name in names] for names in ("ab", "c"))
    script = Script(*(success({"deliveries": each, "pageSize": 2, "totalCount": 3}) for each in (full, rest)))
    assert list(script.client().pages(operations.list_all_deliveries(), count=2)) == [*full, *rest]
    assert [each.url.params.get("before") for each in script.requests] == [None, "b"]
    assert {each.url.params["page"] for each in script.requests} == {"1"}


def job(status: str) -> httpx.Response:
    return success({"jobId": "j", "status": status, "error": {"code": "Some.Code", "message": "No."}})


def test_wait_ends_with_the_job() -> None:
    script = Script(job("Queued"), job("Running"), job("CompletedWithErrors"))
    assert script.client().wait("j")["status"] == "CompletedWithErrors"
    assert {each.url.params["wait"] for each in script.requests} == {"30"}
    with pytest.raises(JobFailedError, match=r"job j failed: Some\.Code: No\."):
        Script(job("Failed")).client().wait("j")
    with pytest.raises(TimeoutError, match="job j has not ended: Running"):
        Script(job("Running")).client().wait("j", timeout_s=0)


def test_the_asynchronous_client_does_the_same(pauses: list[float]) -> None:
    script = Script(refusal(503), LOST, job("Running"), job("Completed"))

    async def use() -> None:
        async with AsyncClient("key", URL, transport=httpx.MockTransport(script)) as client:
            assert (await client.wait("j"))["status"] == "Completed"
        async with AsyncClient("key", URL, transport=httpx.MockTransport(paged_service(4))) as client:
            items: list[Any] = [item async for item in client.pages(operations.list_customers(), count=3)]
            assert items == [0, 1, 2, 3]

    asyncio.run(use())
    assert len(pauses) == 2


def test_ids_and_slugs_stay_in_their_place() -> None:
    assert operations.get_decision_policy("a/../b?").path == "/v1/decision-policies/a%2F..%2Fb%3F"
