"""PDF statements: sent as a form and as JSON, and shown when they have been read."""

import base64
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import requests

from api.core.schemas.examples import example
from api.core.schemas.files import SentFiles
from api.http.uploads import Files
from storage.core.models import statement_files
from storage.core.settings import Settings
from storage.core.store import Store
from storage.intake import statements
from tests.api.conftest import Client, new_client, serving
from tests.api.wire import head, line, problem, rest_of
from tests.api.worker import end_extractions, end_submissions
from tests.conftest import open_store
from tests.fake_statements import pdf
from tests.waiting import until

parametrize = pytest.mark.parametrize
File = tuple[str, bytes]
JUNE = ("june.pdf", pdf("june"))


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


def path_of(customer_id: str) -> str:
    return f"/v1/customer/{customer_id}/statements"


def as_form(client: Client, customer_id: str, *files: File, passwords: Sequence[str] = (), **more: Any) -> Any:
    parts = [("file", (name, content, "application/pdf")) for name, content in files]
    secrets = [("password", (None, secret)) for secret in passwords]
    return client.call("POST", path_of(customer_id), files=[*secrets, *parts], **more)


def as_json(client: Client, customer_id: str, *files: File, **more: Any) -> requests.Response:
    sent = [{"fileName": name, "contentBase64": base64.b64encode(content).decode()} | more for name, content in files]
    return client.post(path_of(customer_id), {"files": sent})


def job_of(client: Client, answer: requests.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = client.get(f"/v1/jobs/{answer.json()['data']['jobId']}/status").json()["data"]
    return found


def read_statement_files(store: Store) -> list[dict[str, Any]]:
    """Return the files that the database refers to, in the order of their requests."""
    with store.db.reading() as r:
        rows = r.execute(statement_files.select().order_by(statement_files.c.created_at, statement_files.c.position))
        return [dict(row._mapping) for row in rows]


def of_customer(store: Store, client: Client, customer_id: str) -> list[dict[str, Any]]:
    jobs = client.get("/v1/jobs", params={"customerId": customer_id}).json()["data"]["jobs"]
    mine = {job["jobId"] for job in jobs}
    return [row for row in read_statement_files(store) if str(row["job_id"]) in mine]


@parametrize("submit", [as_form, as_json])
def test_files_are_accepted_as_a_job_with_two_stages(client: Client, customer_id: str, submit: Any) -> None:
    answer = submit(client, customer_id, JUNE, ("july.pdf", pdf("july")))
    job = job_of(client, answer)
    assert answer.headers["Location"] == f"/v1/jobs/{job['jobId']}/status"
    assert answer.headers["Retry-After"] == "1"
    assert (job["flow"], job["jobType"], job["status"]) == ("Extraction", "Extraction", "Queued")
    assert [(stage["stage"], stage["status"]) for stage in job["stages"]] == [
        ("extraction", "Queued"),
        ("enrichment", "Queued"),
    ]


def test_both_stages_of_a_job_are_shown_until_their_end(store: Store, client: Client, customer_id: str) -> None:
    accepted = as_form(client, customer_id, JUNE)
    end_extractions(store)
    landed = job_of(client, accepted)
    assert [stage["status"] for stage in landed["stages"]] == ["Completed", "Queued"]
    assert (landed["stages"][0]["pagesDone"], landed["stages"][0]["pagesTotal"]) == (1, 1)
    assert (landed["totalReceivedTransactions"], landed["totalProcessedTransactions"]) == (1, None)
    end_submissions(store)
    ended = job_of(client, accepted)
    assert [stage["status"] for stage in ended["stages"]] == ["Completed", "Completed"]
    assert all(stage["dateStarted"] and stage["dateCompleted"] for stage in ended["stages"])
    assert ended["status"] == "Completed"


def test_sent_files_are_stored_encrypted_under_our_own_names(store: Store, client: Client, customer_id: str) -> None:
    job_of(client, as_form(client, customer_id, ("../../etc/June 2026.pdf", pdf("june")), passwords=["s3cret"]))
    [row] = of_customer(store, client, customer_id)
    stored = store.lake.root / row["path"]
    assert stored.name == f"{row['file_id']}.pdf.sealed"
    for content in (stored.read_bytes(), row["password"]):
        assert b"june" not in content
        assert b"s3cret" not in content
    with store.db.reading() as r:
        file = statements.get_file(r, row["file_id"])
    assert statements.open_original(store, file) == pdf("june")
    assert statements.open_password(store.vault, file) == "s3cret"
    assert file.file_name == "../../etc/June 2026.pdf"


@parametrize(
    ("name", "shown"),
    [
        ("x" * 5_000 + ".pdf", "x" * 255),
        ("a\x00b\x1b[31m.pdf", "ab[31m.pdf"),
        ("fdp.\u202egnp", "fdp.gnp"),
        ("Kontoauszug für März.pdf", "Kontoauszug für März.pdf"),
        ("4111 1111 1111 1111.pdf", "411111xxxxxx1111.pdf"),
        ("", ""),
    ],
)
def test_a_files_name_is_never_used_as_a_path(
    store: Store, client: Client, customer_id: str, name: str, shown: str
) -> None:
    """Sent as a form, because a NUL in JSON is refused."""
    boundary = b"b0undary"
    disposition = b'Content-Disposition: form-data; name="file"; filename="' + name.encode() + b'"'
    body = b"--" + boundary + b"\r\n" + disposition + b"\r\n\r\n" + pdf("june") + b"\r\n--" + boundary + b"--\r\n"
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}"}
    job_of(client, client.call("POST", path_of(customer_id), data=body, headers=headers))
    [row] = of_customer(store, client, customer_id)
    assert row["file_name"] == shown


# Passwords


@parametrize(
    ("passwords", "each"),
    [([], [None, None]), (["a"], ["a", "a"]), (["a", "b"], ["a", "b"]), (["", "b"], [None, "b"]), ([""], [None, None])],
)
def test_one_password_is_for_all_files_and_several_are_in_order(
    store: Store, client: Client, customer_id: str, passwords: list[str], each: list[str | None]
) -> None:
    job_of(client, as_form(client, customer_id, JUNE, ("july.pdf", pdf("july")), passwords=passwords))
    rows = of_customer(store, client, customer_id)
    with store.db.reading() as r:
        files = [statements.get_file(r, row["file_id"]) for row in rows]
    assert [statements.open_password(store.vault, file) for file in files] == each


def test_passwords_for_some_files_are_refused(client: Client, customer_id: str) -> None:
    three = [(f"{n}.pdf", pdf(str(n))) for n in range(3)]
    answer = as_form(client, customer_id, *three, passwords=["s3cret", "s3cret"])
    assert (answer.status_code, answer.json()["code"]) == (400, "Statement.PasswordsDontMatch")
    assert "s3cret" not in answer.text


def test_a_password_with_a_nul_is_refused(client: Client, customer_id: str) -> None:
    """The PDF library would take the NUL for the end, so that `s3cret` would open the file."""
    answer = as_form(client, customer_id, ("june.pdf", pdf("june")), passwords=["s3cret\0"])
    assert (answer.status_code, answer.json()["code"]) == (400, "Statement.InvalidPassword")


def test_in_json_each_file_has_its_own_password(store: Store, client: Client, customer_id: str) -> None:
    job_of(client, as_json(client, customer_id, JUNE, password="s3cret"))
    [row] = of_customer(store, client, customer_id)
    with store.db.reading() as r:
        assert statements.open_password(store.vault, statements.get_file(r, row["file_id"])) == "s3cret"


# Requests that can't be understood


@parametrize("submit", [as_form, as_json])
@parametrize("files", [[], [JUNE] * 21])
def test_a_request_has_one_to_twenty_files(client: Client, customer_id: str, submit: Any, files: list[File]) -> None:
    if submit is as_form and not files:
        answer = client.call("POST", path_of(customer_id), files=[("other", (None, "x"))])
    else:
        answer = submit(client, customer_id, *files)
    assert (answer.status_code, answer.json()["code"]) == (400, "Statement.WrongCount")
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 0


@parametrize("submit", [as_form, as_json])
@parametrize("content", [b"", b"PK\x03\x04 a zip", b" " * 1_024 + b"%PDF-1.7", b"<html>"])
def test_a_request_without_any_pdf_is_refused(client: Client, customer_id: str, submit: Any, content: bytes) -> None:
    answer = submit(client, customer_id, ("a.pdf", content), ("b.pdf", content))
    assert (answer.status_code, answer.json()["code"]) == (400, "Statement.NotPdf")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/files/0", "/files/1"]
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 0


def test_a_pdf_may_begin_after_a_few_bytes(client: Client, customer_id: str) -> None:
    job_of(client, as_form(client, customer_id, ("june.pdf", b"\xef\xbb\xbf junk " * 50 + b"%PDF-1.7")))


def test_a_file_that_is_not_a_pdf_fails_by_itself(store: Store, client: Client, customer_id: str) -> None:
    accepted = as_form(client, customer_id, ("zip.pdf", b"PK"), JUNE)
    end_extractions(store)
    end_submissions(store)
    job = job_of(client, accepted)
    assert [(warning["code"], warning["message"]) for warning in job["warnings"]] == [
        ("Statement.Corrupt", "File 1: The file is not a PDF.")
    ]
    assert [stage["status"] for stage in job["stages"]] == ["CompletedWithErrors", "Completed"]
    assert [row["path"] is None for row in of_customer(store, client, customer_id)] == [True, False]


@parametrize(
    ("file", "pointer", "code"),
    [
        ({}, "/files/0/contentBase64", "Request.Missing"),
        ({"contentBase64": 7}, "/files/0/contentBase64", "Statement.InvalidContent"),
        ({"contentBase64": "%%%"}, "/files/0/contentBase64", "Statement.InvalidContent"),
        ({"contentBase64": "JVBERi0=", "fileName": 7}, "/files/0/fileName", "Statement.InvalidFileName"),
        ({"contentBase64": "JVBERi0=", "password": []}, "/files/0/password", "Statement.InvalidPassword"),
        (7, "/files/0", "Request.WrongType"),
    ],
)
def test_malformed_json_is_refused_with_a_pointer(
    client: Client, customer_id: str, file: object, pointer: str, code: str
) -> None:
    answer = client.post(path_of(customer_id), {"files": [file]})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


FORM = "multipart/form-data; boundary=b0undary"
PART = b'--b0undary\r\nContent-Disposition: form-data; name="file"; filename="june.pdf"\r\n\r\n'
MALFORMED: dict[str, tuple[str, bytes]] = {
    "no boundary": ("multipart/form-data", PART + pdf("june") + b"\r\n--b0undary--\r\n"),
    "an empty boundary": ("multipart/form-data; boundary=", PART + pdf("june") + b"\r\n--b0undary--\r\n"),
    "a boundary without end": ("multipart/form-data; boundary=" + "b" * 5_000, b"x"),
    "another boundary": ("multipart/form-data; boundary=other", PART + pdf("june") + b"\r\n--b0undary--\r\n"),
    "no end": (FORM, PART + pdf("june")),
    "no content": (FORM, b""),
    "a header without end": (FORM, b"--b0undary\r\nContent-Disposition: form-data" + b"x" * 70_000),
    "a great many headers": (FORM, b"--b0undary\r\n" + b"X: y\r\n" * 1_000 + b"\r\n"),
    "garbage": (FORM, os.urandom(3_000)),
    "a password that is not text": (
        FORM,
        b'--b0undary\r\nContent-Disposition: form-data; name="password"\r\n\r\n\xff\xfe\r\n'
        + (PART + pdf("june") + b"\r\n--b0undary--\r\n"),
    ),
    "a password without end": (
        FORM,
        b'--b0undary\r\nContent-Disposition: form-data; name="password"\r\n\r\n' + b"x" * 2_000 + b"\r\n--b0undary--",
    ),
    "a thousand parts": (
        FORM,
        b'--b0undary\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n' * 1_000 + b"--b0undary--\r\n",
    ),
    "a thousand files": (FORM, (PART + b"%PDF-\r\n") * 1_000 + b"--b0undary--\r\n"),
}


@parametrize("what", MALFORMED)
def test_a_malformed_form_is_refused_and_nothing_is_left_of_it(client: Client, customer_id: str, what: str) -> None:
    media, body = MALFORMED[what]
    answer = client.call("POST", path_of(customer_id), data=body, headers={"Content-Type": media})
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"].partition(".")[0] in ("Request", "Statement")
    until(lambda: not nameless_files())
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 0


def test_a_form_may_have_some_unknown_parts(client: Client, customer_id: str) -> None:
    others = [(f"x{n}", (None, "y")) for n in range(Files.accepted.most_parts - 1)]
    june = ("file", ("june.pdf", pdf("june")))
    job_of(client, client.call("POST", path_of(customer_id), files=[*others, june]))


def nameless_files() -> list[str]:
    """Return this process's open files that have no name on disk. The server runs in this process."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.endswith("(deleted)") and "/home" in target and "SQL" not in target and ".db" not in target:
            found.append(target)
    return found


@pytest.fixture
def small(tmp_path: Path) -> Iterator[tuple[Store, Client]]:
    """A service with low limits, and a client of it."""
    settings = Settings(home=tmp_path / "home", max_file_bytes=1_500_000, max_multipart_bytes=4_000_000)
    store = open_store(settings)
    with serving(store) as url:
        yield store, new_client(store, url)
    store.close()


def test_a_file_over_the_limit_is_refused_and_nothing_is_left_of_it(small: tuple[Store, Client]) -> None:
    store, client = small
    customer_id = client.new_customer()
    large = ("large.pdf", pdf("large") + b" " * 1_500_000)
    for submit in (as_form, as_json):
        answer = submit(client, customer_id, JUNE, large)
        assert (answer.status_code, answer.json()["code"]) == (413, "Statement.FileTooLarge")
    until(lambda: not nameless_files())
    assert read_statement_files(store) == []
    assert not list(store.lake.files("statements"))


def test_a_request_over_the_limit_is_cut_off_with_and_without_a_length(small: tuple[Store, Client]) -> None:
    _, client = small
    path = path_of(client.new_customer())
    parts = [("file", (f"{n}.pdf", pdf(str(n)) + b" " * 1_400_000)) for n in range(3)]
    body = requests.Request("POST", client.base_url + path, files=parts).prepare()
    assert isinstance(body.body, bytes)
    media = {"Content-Type": body.headers["Content-Type"]}
    stated = client.call("POST", path, data=body.body, headers=media)
    chunked = client.call(
        "POST", path, data=(body.body[i : i + 65_536] for i in range(0, len(body.body), 65_536)), headers=media
    )
    for answer in (stated, chunked):
        assert (answer.status_code, answer.json()["code"]) == (413, "Request.TooLarge")
    until(lambda: not nameless_files())


def test_large_files_arrive_as_they_were_sent(small: tuple[Store, Client]) -> None:
    store, client = small
    customer_id = client.new_customer()
    contents = [pdf("a") + os.urandom(1_200_000), pdf("b") + b"\r\n--boundary\r\n" * 60_000]
    job_of(client, as_form(client, customer_id, *((f"{n}.pdf", content) for n, content in enumerate(contents))))
    with store.db.reading() as r:
        files = [statements.get_file(r, row["file_id"]) for row in read_statement_files(store)]
    assert [statements.open_original(store, file) for file in files] == contents
    until(lambda: not nameless_files())


def test_an_interrupted_upload_leaves_nothing(small: tuple[Store, Client]) -> None:
    store, client = small
    path = path_of(client.new_customer())
    headers = [f"x-api-key: {client.key}", f"Content-Type: {FORM}", "Content-Length: 3000000"]
    with line(client.base_url) as wire:
        wire.sendall(head("POST", path, *headers) + PART + pdf("june") + b" " * 1_000_000)
        until(nameless_files)
    until(lambda: not nameless_files())
    assert read_statement_files(store) == []
    assert not list(store.lake.files("statements"))


def test_bytes_after_the_form_are_ignored(client: Client, customer_id: str) -> None:
    body = PART + pdf("june") + b"\r\n--b0undary--\r\nan epilogue"
    job_of(client, client.call("POST", path_of(customer_id), data=body, headers={"Content-Type": FORM}))


def test_the_customer_is_looked_up_before_the_form_is_read(client: Client, socket_url: str) -> None:
    address = urlsplit(socket_url)
    body = b"garbage"
    headers = [f"x-api-key: {client.key}", f"Content-Type: {FORM}", f"Content-Length: {len(body)}", "Connection: close"]
    with socket.create_connection((address.hostname or "", address.port or 0), 10) as wire:
        wire.sendall(head("POST", path_of(str(uuid4())), *headers) + body)
        assert problem(rest_of(wire))["code"] == "Customer.NotFound"


# Sent again


def test_a_form_sent_again_with_its_key_gets_the_first_answer(store: Store, client: Client, customer_id: str) -> None:
    """The form has another boundary each time."""
    again = {"headers": {"Idempotency-Key": "june"}}
    first, second = (as_form(client, customer_id, JUNE, passwords=["a"], **again) for _ in range(2))
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(of_customer(store, client, customer_id)) == 1
    for other in (
        as_form(client, customer_id, ("june.pdf", pdf("July")), passwords=["a"], **again),
        as_form(client, customer_id, JUNE, passwords=["b"], **again),
        as_form(client, customer_id, ("july.pdf", JUNE[1]), passwords=["a"], **again),
    ):
        assert (other.status_code, other.json()["code"]) == (422, "Idempotency.KeyReused")


# What was read


@pytest.fixture
def statement_id(store: Store, client: Client, customer_id: str) -> str:
    """A statement that was read and enriched."""
    pdf = base64.b64decode(example(SentFiles)["files"][0]["contentBase64"])
    job_of(client, as_form(client, customer_id, ("june.pdf", pdf)))
    end_extractions(store)
    end_submissions(store)
    [found] = client.get(path_of(customer_id)).json()["data"]["statements"]
    return str(found["statementId"])


def test_a_statement_is_shown_with_its_rows_and_their_places(
    client: Client, customer_id: str, statement_id: str
) -> None:
    listed = client.get(path_of(customer_id)).json()["data"]
    found = client.get(f"{path_of(customer_id)}/{statement_id}").json()["data"]
    assert (listed["totalCount"], listed["currentPage"], listed["pageSize"], listed["totalPages"]) == (1, None, 1, 1)
    assert {name: found[name] for name in listed["statements"][0]} == listed["statements"][0]
    assert (found["verdict"], found["accountNumber"], found["openingBalance"]) == ("reconciled", "12345678", 5000.0)
    assert [signal["code"] for signal in found["signals"]] == ["IncrementalUpdate"]
    [row] = found["rows"]
    assert (row["row"], row["date"], row["amount"]) == (1, "2026-06-02", -900.0)
    assert (row["index"], row["repeated"]) == (0, False)
    assert row["boxes"] == [{"page": 1, "left": 40.0, "top": 102.0, "right": 550.0, "bottom": 112.0}]


def test_a_transaction_has_its_place_on_the_page(client: Client, customer_id: str, statement_id: str) -> None:
    [row] = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    found = client.get(f"/v1/customer/{customer_id}/transactions/{row['transactionId']}/source").json()["data"]
    assert (found["statementId"], found["row"], found["jobId"]) == (statement_id, 1, row["jobId"])
    assert [box["page"] for box in found["boxes"]] == [1]


def test_a_transaction_that_came_as_json_has_no_place(store: Store, client: Client, customer_id: str) -> None:
    client.submit_transactions(customer_id)
    end_submissions(store)
    [row] = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    answer = client.get(f"/v1/customer/{customer_id}/transactions/{row['transactionId']}/source")
    assert (answer.status_code, answer.json()["code"]) == (404, "Transaction.NoSource")
    answer = client.get(f"/v1/customer/{customer_id}/transactions/{uuid4()}/source")
    assert (answer.status_code, answer.json()["code"]) == (404, "Transaction.NotFound")


@parametrize(
    ("page", "query", "code"),
    [
        ("2", "", "Statement.PageNotFound"),
        ("2", "?row=x", "Statement.PageNotFound"),
        ("0", "", "Statement.PageNotFound"),
        ("01x", "", "Statement.PageNotFound"),
        ("99999999999", "", "Statement.PageNotFound"),
        ("1", "?row=2", "Statement.RowNotFound"),
    ],
)
def test_an_unknown_page_or_row_is_not_found(
    client: Client, customer_id: str, statement_id: str, page: str, query: str, code: str
) -> None:
    answer = client.get(f"{path_of(customer_id)}/{statement_id}/pages/{page}.png{query}")
    assert (answer.status_code, answer.json()["code"]) == (404, code)


@parametrize("query", ["?row=0", "?row=x", "?row=1&row=1"])
def test_a_row_must_be_a_whole_number(client: Client, customer_id: str, statement_id: str, query: str) -> None:
    answer = client.get(f"{path_of(customer_id)}/{statement_id}/pages/1.png{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "Statement.InvalidRow")


def test_a_page_is_drawn_with_a_row_marked(client: Client, customer_id: str, statement_id: str) -> None:
    plain, marked = (client.get(f"{path_of(customer_id)}/{statement_id}/pages/1.png{row}") for row in ("", "?row=1"))
    for answer in (plain, marked):
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png"), answer.text
        assert answer.content.startswith(b"\x89PNG")
    assert plain.content != marked.content


def test_a_retracted_statement_is_gone(store: Store, client: Client, customer_id: str, statement_id: str) -> None:
    [job] = client.get("/v1/jobs", params={"customerId": customer_id}).json()["data"]["jobs"]
    assert client.delete(f"/v1/customer/{customer_id}/submissions/{job['jobId']}").status_code == 202
    end_submissions(store)
    assert client.get(path_of(customer_id)).json()["data"]["statements"] == []
    gone = client.get(f"{path_of(customer_id)}/{statement_id}")
    assert (gone.status_code, gone.json()["code"]) == (404, "Statement.NotFound")
