"""Limits of connections, and input that isn't HTTP: refused or cut off, and never read as a request."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select
from typing import Any
from uuid import UUID

import psutil
import pytest
import requests

from api.core.limits import MAX_HELD_BODIES
from storage.core.models import JobStatus
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import jobs
from tests.api.conftest import ABN, Client, new_client, serving
from tests.api.wire import LONGEST_S, head, line, problem, rest_of, statuses, until_closed
from tests.api.worker import end_submissions
from tests.conftest import open_store

parametrize = pytest.mark.parametrize
CUSTOMER = b'{"abn": "%s"}' % ABN.encode()
JSON = "Content-Type: application/json"
MB = 2**20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store on SQLite only, because connections don't depend on the database."""
    opened = open_store(Settings(home=tmp_path_factory.mktemp("home"), max_json_bytes=200_000))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def base_url(store: Store) -> Iterator[str]:
    with serving(store) as url:
        yield url


@pytest.fixture
def key(client: Client) -> str:
    return f"x-api-key: {client.key}"


@pytest.fixture
def smuggled_request(key: str) -> bytes:
    """Return a whole request that would create a customer if it were read."""
    return head("POST", "/v1/customer", key, JSON, f"Content-Length: {len(CUSTOMER)}") + CUSTOMER


def customers_of(client: Client) -> int:
    return int(client.get("/v1/customers").json()["data"]["totalCount"])


@parametrize(
    "framing",
    [
        ["Content-Length: -1"],
        ["Content-Length: +22"],
        ["Content-Length: 0x16"],
        ["Content-Length: 22, 22"],
        ["Content-Length: "],
        ["Content-Length: 99999999999999999999999"],
        ["Content-Length: 22", "Content-Length: 22"],
        ["Content-Length: 22", "Content-Length: 0"],
        ["Content-Length: 22", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 22"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding : chunked"],
        ["Content-Length : 22"],
        ["Na me: x", "Content-Length: 22"],
        ["Name: x\0y", "Content-Length: 22"],
        ["Name: x\ry", "Content-Length: 22"],
    ],
    ids="; ".join,
)
def test_an_ambiguous_length_is_refused_and_nothing_after_it_is_read(
    client: Client, key: str, smuggled_request: bytes, framing: list[str]
) -> None:
    answer = until_closed(
        client.base_url, head("POST", "/v1/customer", key, JSON, *framing) + CUSTOMER + smuggled_request
    )
    assert statuses(answer) == [400]
    assert problem(answer)["code"] == "Request.Malformed"
    assert customers_of(client) == 0


@parametrize("chunks", [b"-1\r\nx", b"g\r\nx", b"1\r\nxy\r\n", b"fffffffffffffffff\r\nx", b"1 \n\nx", b"\r\nx"])
def test_a_malformed_chunk_is_refused_and_nothing_is_done(client: Client, key: str, chunks: bytes) -> None:
    answer = until_closed(
        client.base_url, head("POST", "/v1/customer", key, JSON, "Transfer-Encoding: chunked") + chunks
    )
    assert (statuses(answer), problem(answer)["code"]) == ([400], "Request.Malformed")
    assert customers_of(client) == 0


@parametrize(
    "not_http",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /v1/jobs\r\n\r\n",
        b"GET /v1/jobs HTTP/9.9\r\n\r\n",
        b"GET /v1/j obs HTTP/1.1\r\n\r\n",
        b"GET /v1/\xff HTTP/1.1\r\n\r\n",
        b"GET ?page=1 HTTP/1.1\r\n\r\n",
        b"CONNECT 10.0.0.1:22 HTTP/1.1\r\n\r\n",
        b"BREW /v1/jobs HTTP/1.1\r\n\r\n",
        b"\0" * 100,
    ],
)
def test_input_that_is_not_http_is_answered_with_a_problem(base_url: str, not_http: bytes) -> None:
    answer = until_closed(base_url, not_http)
    assert (statuses(answer), problem(answer)["code"]) == ([400], "Request.Malformed")
    assert UUID(problem(answer)["requestId"])


def test_the_rest_of_a_body_longer_than_its_length_is_not_a_request(
    client: Client, key: str, smuggled_request: bytes
) -> None:
    short = head("POST", "/v1/customer", key, JSON, f"Content-Length: {len(CUSTOMER)}")
    assert statuses(until_closed(client.base_url, short + CUSTOMER + b"garbage")) == [201]
    assert statuses(until_closed(client.base_url, short + CUSTOMER + smuggled_request + smuggled_request)) == [201]
    assert customers_of(client) == 2


def test_a_body_that_ends_before_its_length_does_nothing(client: Client, key: str) -> None:
    with line(client.base_url) as made:
        made.sendall(head("POST", "/v1/customer", key, JSON, f"Content-Length: {len(CUSTOMER) + 1}") + CUSTOMER)
    with line(client.base_url) as made:
        made.sendall(head("POST", "/v1/customer", key, JSON, "Transfer-Encoding: chunked"))
        made.sendall(b"%x\r\n%s\r\n" % (len(CUSTOMER), CUSTOMER))  # and no last chunk
    assert client.get("/health/live").status_code == 200
    assert customers_of(client) == 0


def test_a_request_to_upgrade_is_answered_in_http_1_1(client: Client, key: str, smuggled_request: bytes) -> None:
    upgrade = ("Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Key: eA==")
    assert statuses(until_closed(client.base_url, head("GET", "/v1/jobs", key, *upgrade))) == [200]
    sent = head(
        "POST",
        "/v1/customer",
        key,
        JSON,
        f"Content-Length: {len(CUSTOMER)}",
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
    )
    assert statuses(until_closed(client.base_url, sent, CUSTOMER, smuggled_request)) == [201]
    assert customers_of(client) == 1


def test_expect_continue_is_answered_only_with_a_valid_key(client: Client, key: str) -> None:
    length = f"Content-Length: {len(CUSTOMER)}"
    with line(client.base_url) as made:
        made.sendall(head("POST", "/v1/customer", JSON, length, "Expect: 100-continue"))
        assert statuses(made.recv(65536)) == [401]
    with line(client.base_url) as made:
        made.sendall(head("POST", "/v1/customer", key, JSON, length, "Expect: 100-continue", "Connection: close"))
        assert statuses(made.recv(65536)) == [100]
        made.sendall(CUSTOMER)
        assert statuses(rest_of(made)) == [201]


@parametrize("size", [300, 70_000, MB, 5 * MB])
def test_a_key_of_any_size_is_a_wrong_key(base_url: str, size: int) -> None:
    answer = until_closed(base_url, head("GET", "/v1/jobs", "Connection: close", f"x-api-key: {'k' * size}"))
    assert (statuses(answer), problem(answer)["code"]) == ([401], "Authentication.InvalidKey")
    assert b"www-authenticate: ApiKey" in answer


@parametrize("size", [70_000, MB, 5 * MB])
def test_a_head_over_the_limit_is_refused(client: Client, key: str, size: int) -> None:
    for oversized in (
        head("GET", "/v1/jobs", "Connection: close", key, f"X-Padding: {'x' * size}"),
        head("GET", "/v1/jobs", "Connection: close", f"X-Padding: {'x' * size}", key),
        head("GET", "/v1/jobs", "Connection: close", key, *["X: y"] * (size // 6)),
        head("GET", f"/v1/jobs?page={'1' * size}", "Connection: close", key),
    ):
        [status] = statuses(until_closed(client.base_url, oversized))
        assert status in (400, 431)  # an address that doesn't end within the limit is not HTTP


@contextmanager
def flat_memory(most_mb: int) -> Iterator[None]:
    """Check that this process, in which the service runs, takes less than `most_mb` more memory."""
    process = psutil.Process()
    before = process.memory_info().rss
    yield
    assert process.memory_info().rss - before < most_mb * MB


def flood(base_url: str, start: bytes, piece: bytes, most_mb: int = 200) -> bytes:
    """Send `piece` repeatedly until the service ends the connection or has received `most_mb`; return its answer."""
    with line(base_url) as made:
        made.sendall(start)
        try:
            for _ in range(most_mb * MB // len(piece)):
                made.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        made.settimeout(1)
        try:
            return made.recv(65536)
        except (TimeoutError, ConnectionResetError):
            return b""


@parametrize("start", [b"GET /v1/jobs HTTP/1.1\r\nx-api-key: ", b"GET /v1/jobs HTTP/1.1\r\nX: ", b"GET /"])
def test_an_endless_head_takes_no_memory(base_url: str, start: bytes) -> None:
    with flat_memory(40):
        assert statuses(flood(base_url, start, b"x" * MB)) in ([401], [431], [400])


@parametrize(
    "piece", [b"100000\r\n" + b" " * MB + b"\r\n", b"1;" + b"x" * MB + b"\r\n ", b"0\r\n" + b"X: y\r\n" * 100_000]
)
def test_an_endless_body_is_answered_early_and_takes_no_memory(client: Client, key: str, piece: bytes) -> None:
    start = head("POST", "/v1/customer", key, JSON, "Transfer-Encoding: chunked")
    with flat_memory(40):
        assert statuses(flood(client.base_url, start, piece)) in ([413], [400])
    assert customers_of(client) == 0


def test_an_unexpected_body_takes_no_memory(base_url: str) -> None:
    start = head("POST", "/v1/customer", JSON, f"Content-Length: {10**12}")
    with flat_memory(40):
        assert statuses(flood(base_url, start, b" " * MB)) == [401]


@contextmanager
def service(home: Path, **settings: Any) -> Iterator[tuple[Store, Client]]:
    """Run a service with these settings; yield it and a client of it."""
    opened = open_store(Settings(home=home, **settings))
    with serving(opened) as url:
        yield opened, new_client(opened, url)
    opened.close()


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Client]:
    """A client of a service that waits for at most half a second."""
    with service(tmp_path, client_timeout_s=0.5) as (_, client):
        yield client


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Client]:
    """A client of a service that handles five requests at once, three for one client, two of these for one key."""
    with service(tmp_path, max_requests=5) as (_, client):
        yield client


def drip(base_url: str, start: bytes, byte: bytes) -> bytes:
    """Send a byte at intervals until the service ends the connection; return its answer."""
    with line(base_url) as made:
        made.sendall(start)
        for _ in range(300):
            time.sleep(0.05)
            try:
                made.sendall(byte)
            except (BrokenPipeError, ConnectionResetError):
                return b""
            made.setblocking(False)
            try:
                if received := made.recv(65536):
                    return received
            except BlockingIOError:
                pass
            made.settimeout(30)
    raise AssertionError("the service did not end the connection")


def test_a_slow_head_is_cut_off(impatient: Client) -> None:
    answer = drip(impatient.base_url, b"GET /v1/jobs HTTP/1.1\r\nX-Slow: ", b"x")
    assert (statuses(answer), problem(answer)["code"]) == ([408], "Request.TooSlow")


def test_a_slow_body_is_cut_off_and_nothing_is_done(impatient: Client) -> None:
    start = head("POST", "/v1/customer", f"x-api-key: {impatient.key}", JSON, "Content-Length: 100000")
    answer = drip(impatient.base_url, start + CUSTOMER, b" ")
    assert (statuses(answer), problem(answer)["code"]) == ([408], "Request.TooSlow")
    assert customers_of(impatient) == 0


def test_a_silent_connection_is_closed(impatient: Client) -> None:
    assert until_closed(impatient.base_url) == b""


def test_a_client_that_does_not_read_its_answer_is_cut_off(tmp_path: Path) -> None:
    with service(tmp_path, client_timeout_s=0.75) as (store, client):
        customer_id = client.new_customer()
        client.submit_transactions(customer_id)
        end_submissions(store, [{}] * 15_000)
        asked = head("GET", f"/v1/customer/{customer_id}/transactions", f"x-api-key: {client.key}")
        with line(client.base_url, receive_buffer=4096) as made, flat_memory(100):
            made.sendall(asked)
            for _ in range(12):
                time.sleep(0.2)
                made.recv(1)
                # The unread answer holds no turn meanwhile, even if the client has only one.
                # Each request has a new connection, because a reused one may be closed just then.
                page = f"/v1/customer/{customer_id}/transactions?page=1&count=1"
                assert client.get(page, headers={"Connection": "close"}).status_code == 200
            assert not rest_of(made).endswith(b"0\r\n\r\n")


def test_a_busy_service_says_so_and_stays_healthy(narrow: Client) -> None:
    job_id = narrow.submit_transactions(narrow.new_customer())
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(narrow.get, f"/v1/jobs/{job_id}/status?wait=3") for _ in range(2)]
        time.sleep(1)
        refused = narrow.get("/v1/jobs")
        healthy = requests.get(f"{narrow.base_url}/health/live", timeout=10)
        assert [future.result().status_code for future in waiting] == [200] * 2
    assert (refused.status_code, refused.json()["code"]) == (503, "Service.Busy")
    assert int(refused.headers["Retry-After"]) >= 1
    assert healthy.status_code == 200
    assert narrow.get("/v1/jobs").status_code == 200


def test_silent_connections_are_closed_when_requests_arrive(narrow: Client) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(line(narrow.base_url)) for _ in range(30)]
        assert requests.get(f"{narrow.base_url}/health/live", timeout=10).status_code == 200
        assert silent[0].recv(1) == b""


def test_refused_connections_are_closed_when_others_arrive(narrow: Client) -> None:
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(line(narrow.base_url)).sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)
        assert narrow.get("/v1/jobs").status_code == 200


def test_memory_of_all_bodies_together_is_limited(tmp_path: Path) -> None:
    with service(tmp_path, max_json_bytes=1000) as (store, client), ExitStack() as stack:
        headers = (f"x-api-key: {client.key}", JSON, "Transfer-Encoding: chunked", "Connection: close")
        start = head("POST", "/v1/customer", *headers)
        lines = [stack.enter_context(line(client.base_url)) for _ in range(MAX_HELD_BODIES + 1)]
        for each in lines:
            each.sendall(start + b"3e8\r\n" + b" " * 1000 + b"\r\n")  # the whole limit, and no end
        refused, _, _ = select(lines, [], [], LONGEST_S)
        answer = rest_of(refused[0])
        assert (statuses(answer), problem(answer)["code"]) == ([503], "Service.Busy")
        other = new_client(store, client.base_url)
        assert other.post("/v1/customer", {"abn": ABN, "name": "x" * 200}).status_code == 201


def test_a_client_is_served_while_another_key_holds_half_sent_bodies(tmp_path: Path) -> None:
    with service(tmp_path, max_requests=8) as (store, client), ExitStack() as stack:
        other = new_client(store, client.base_url)
        unfinished = head("POST", "/v1/customer", f"x-api-key: {client.key}", JSON, "Content-Length: 100") + b"{"
        lines = [stack.enter_context(line(client.base_url)) for _ in range(12)]
        for each in lines:
            each.sendall(unfinished)
        assert select(lines, [], [], LONGEST_S)[0]  # requests beyond the limit are refused
        assert [other.get("/v1/jobs").status_code for _ in range(5)] == [200] * 5


def test_a_flood_of_slow_connections_closes_no_connection_of_another_client(narrow: Client) -> None:
    asking = head("GET", "/v1/jobs", f"x-api-key: {narrow.key}")
    with line(narrow.base_url) as retained, ExitStack() as stack:
        for _ in range(5):
            retained.sendall(asking)
            assert statuses(retained.recv(65536)) == [200]
            for _ in range(12):  # more than all connections that there may be
                stack.enter_context(line(narrow.base_url)).sendall(b"POST /v1/customer HTTP/1.1\r\nX-Slow: ")
        retained.sendall(asking)
        assert statuses(retained.recv(65536)) == [200]


def test_a_client_that_leaves_after_asking_leaves_a_whole_job_or_none(tmp_path: Path) -> None:
    store = open_store(Settings(home=tmp_path / "home"))
    with serving(store) as url:
        client = new_client(store, url)
        customer_id = client.new_customer()
        body = b'{"transactions": [{"date": "2026-06-01", "description": "COFFEE", "amount": -4.5}]}'
        headers = (f"x-api-key: {client.key}", JSON, f"Content-Length: {len(body)}")
        for number in range(40):
            with line(url) as made:
                made.sendall(head("POST", f"/v1/customer/{customer_id}/transactions", *headers) + body)
                time.sleep(number / 2000)
        client.submit_transactions(customer_id)
    end_submissions(store)  # after the service has stopped: nothing is still on its way
    with store.db.reading() as r:
        found = jobs.find(r, client.client_id).items
    store.close()
    assert {(job.status, job.received_rows, job.enriched_rows) for job in found} == {(JobStatus.COMPLETED, 1, 1)}
