"""Rate limits of keys and of wrong keys from an address, and the headers that report them."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import requests

from api.core.limits import address
from storage.core import shared_counters
from storage.core.settings import Quota, Settings
from storage.core.store import Store
from tests.api.conftest import ABN, HTTP, Client, answering, new_client, serving
from tests.api.core.operations import list_operations
from tests.conftest import open_store

parametrize = pytest.mark.parametrize
HOUR = 3600
Where = Callable[[Store], AbstractContextManager[str]]
Serve = Callable[..., tuple[Store, str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start services over one home, each with its own settings."""
    with ExitStack() as stack:

        def start(at: Where = answering, **settings: object) -> tuple[Store, str]:
            opened = open_store(Settings(home=tmp_path / "home", **settings))  # pyrefly: ignore[bad-argument-type]
            stack.callback(opened.close)
            return opened, stack.enter_context(at(opened))

        yield start


def limit_state(answer: requests.Response) -> tuple[str, int, int]:
    """Return the policy, remaining requests and seconds to renewal from the answer's headers."""
    reported = re.fullmatch('"(key|address)";r=([0-9]+);t=([0-9]+)', answer.headers["RateLimit"])
    policy = re.fullmatch('"(key|address)";q=[0-9]+;w=[0-9]+', answer.headers["RateLimit-Policy"])
    assert reported
    assert policy
    assert policy[1] == reported[1]
    return reported[1], int(reported[2]), int(reported[3])


def wrong(base_url: str, **headers: str) -> requests.Response:
    return HTTP.get(f"{base_url}/v1/jobs", headers={"x-api-key": "wrong"} | headers, timeout=10)


@contextmanager
def open_connection_from(source: str, base_url: str) -> Iterator[HTTPConnection]:
    """Open a connection from another address of this machine."""
    connection = HTTPConnection(urlsplit(base_url).netloc, timeout=10, source_address=(source, 0))
    try:
        yield connection
    finally:
        connection.close()


@parametrize("path", ["/v1/jobs", "/v1/jobs?page=0", "/v1/customer/unknown", "/v1/nothing", "/health/live", "/docs"])
@parametrize("method", ["GET", "PUT"])
def test_every_answer_has_rate_limit_headers(client: Client, method: str, path: str) -> None:
    _, remaining, reset_s = limit_state(client.call(method, path))
    assert remaining > 0
    assert 0 < reset_s <= 60


def test_a_key_over_its_quota_is_refused_with_retry_after(serve: Serve) -> None:
    store, url = serve(rate_limit=Quota(3, HOUR))
    client, other = new_client(store, url), new_client(store, url)
    assert [limit_state(client.get("/v1/jobs"))[:2] for _ in range(3)] == [("key", 2), ("key", 1), ("key", 0)]
    refused = client.get("/v1/jobs")
    assert (refused.status_code, refused.json()["code"]) == (429, "Request.RateLimited")
    assert refused.headers["RateLimit-Policy"] == '"key";q=3;w=3600'
    assert limit_state(refused) == ("key", 0, int(refused.headers["Retry-After"]))
    assert other.get("/v1/jobs").status_code == 200
    assert client.get("/health/live").status_code == 200


def test_refused_requests_count_and_a_request_over_the_quota_does_nothing(serve: Serve) -> None:
    store, url = serve(rate_limit=Quota(3, HOUR))
    client = new_client(store, url, ["customer:reports"])
    asked = [
        client.get("/v1/webhooks/subscriptions"),
        client.get("/v1/customer/unknown"),
        client.get("/v1/jobs?page=0"),
    ]
    assert [answer.status_code for answer in asked] == [403, 404, 400]
    assert client.get("/v1/webhooks/subscriptions").status_code == 429  # before the scope is checked
    client = new_client(store, url)
    for _ in range(5):
        client.post("/v1/customer", {"abn": ABN})
    assert new_client(store, url).get("/v1/customers").status_code == 200
    with store.db.reading() as r:
        assert r.exec_driver_sql("SELECT count(*) FROM customers").scalar() == 3


def test_too_many_wrong_keys_from_one_address_are_refused_unchecked(serve: Serve) -> None:
    store, url = serve(serving, wrong_key_limit=Quota(5, HOUR))
    client = new_client(store, url)
    assert [wrong(url).status_code for _ in range(5)] == [401] * 5
    for refused in (wrong(url), HTTP.get(f"{url}/v1/jobs", timeout=10)):
        assert (refused.status_code, refused.json()["code"]) == (429, "Authentication.RateLimited")
        assert limit_state(refused) == ("address", 0, int(refused.headers["Retry-After"]))
    assert client.get("/v1/jobs").status_code == 200  # a good key is served, from here …
    with open_connection_from("127.0.0.2", url) as elsewhere:  # … and from elsewhere, where wrong ones count anew
        for key, status in ((client.key, 200), ("wrong", 401)):
            elsewhere.request("GET", "/v1/jobs", headers={"x-api-key": key})
            answer = elsewhere.getresponse()
            assert (answer.status, bool(answer.read())) == (status, True)


def test_default_limit_of_wrong_keys_is_below_a_thousand_a_minute() -> None:
    limit = Settings().wrong_key_limit
    assert limit.requests < 1000
    assert limit.window_s == 60


def test_a_forged_forwarding_header_does_not_change_the_address(serve: Serve) -> None:
    _, url = serve(serving, wrong_key_limit=Quota(2, HOUR))
    headers = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP")
    answers = [wrong(url, **{name: f"for=198.51.100.{number}"}) for number, name in enumerate(headers)]
    answers += [wrong(url, **{"X-Forwarded-For": f"198.51.100.{number}"}) for number in range(3)]
    assert [answer.status_code for answer in answers] == [401] * 2 + [429] * 6


def test_the_address_behind_a_trusted_proxy_is_counted(serve: Serve) -> None:
    _, url = serve(serving, wrong_key_limit=Quota(2, HOUR), trusted_proxies="127.0.0.1/32, 10.0.0.0/8")
    forged = [
        "198.51.100.7",
        "8.8.8.8, 198.51.100.7",
        "10.0.0.1, 198.51.100.7, 10.1.2.3",
        "x" * 9000 + ", 198.51.100.7",
    ]
    answers = [wrong(url, **{"X-Forwarded-For": sent}) for sent in forged]
    assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
    assert wrong(url, **{"X-Forwarded-For": "198.51.100.8"}).status_code == 401
    with open_connection_from("127.0.0.2", url) as no_proxy:
        no_proxy.request("GET", "/v1/jobs", headers={"X-Forwarded-For": "198.51.100.7"})
        assert no_proxy.getresponse().status == 401


@parametrize(
    ("host", "requester"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unix:", "unix:"),
    ],
)
def test_a_requester_is_an_address_or_the_network_of_one_subscriber(host: str, requester: str) -> None:
    assert address({"client": (host, 443)}) == requester


@pytest.fixture
def redis_url() -> Iterator[str]:
    """URL of a Redis, from which the counter of this machine's address is deleted before and after the test."""
    url = "redis://127.0.0.1:6379/13"
    server = redis.Redis.from_url(url)
    try:
        server.ping()
    except redis.ConnectionError:
        if os.environ.get("CI"):
            raise
        pytest.skip("start Redis on 127.0.0.1:6379 to run this")
    server.delete("tidemark:sandbox:address:127.0.0.1")
    yield url
    server.delete("tidemark:sandbox:address:127.0.0.1")
    server.close()


def test_processes_that_share_a_redis_share_their_limits(
    serve: Serve, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_counters, "TIMEOUT_S", 60)  # so that Redis doesn't count as down on a busy machine
    shared = {"rate_limit": Quota(3, 60), "wrong_key_limit": Quota(3, 60), "redis_url": redis_url}
    (store, one), (_, other) = serve(**shared), serve(**shared)
    client = new_client(store, one)
    twin = Client(other, client.client_id, client.key)
    assert [caller.get("/v1/jobs").status_code for caller in (client, twin, client, twin)] == [200] * 3 + [429]
    assert [wrong(url).status_code for url in (one, other, one, other)] == [401] * 3 + [429]


def test_a_service_counts_for_itself_while_redis_is_down(serve: Serve) -> None:
    store, url = serve(rate_limit=Quota(3, HOUR), redis_url="redis://127.0.0.1:1/0")
    client = new_client(store, url)
    assert [client.get("/v1/jobs").status_code for _ in range(4)] == [200, 200, 200, 429]


@parametrize("written", ["600", "600/1x", "0/1m", "-1/1m", "600/0m", "6e2/1m", "1/1m;", ""])
def test_an_invalid_limit_is_refused_at_the_start(written: str) -> None:
    with pytest.raises(ValueError, match="600/1m"):
        Settings(rate_limit=written)


def test_a_limit_is_written_as_requests_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_RATE_LIMIT", "600/15m")
    assert Settings().rate_limit == Quota(600, 900)


def test_every_operation_documents_its_limits(subtests: pytest.Subtests) -> None:
    for operation in filter(lambda each: each.needs_key, list_operations()):
        with subtests.test(str(operation)):
            responses = operation.documented["responses"]
            for status in ("429", "503"):
                assert "Retry-After" in responses[status]["headers"]
            for response in responses.values():
                assert {"RateLimit", "RateLimit-Policy", "X-Request-Id"} <= response["headers"].keys()
