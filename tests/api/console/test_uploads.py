"""Uploading files in the console, following their jobs, and seeing what was read."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests

import isolation
from storage.access.roles import Role
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import jobs
from storage.jobs.jobs import Job
from tests.api.conftest import Client, answering, new_client
from tests.api.console.visitor import Visitor, visit_as
from tests.api.intake.test_uploads import CHEQUE, NEWEST_FIRST, WORKBOOK, read_here
from tests.api.worker import end_extractions, end_submissions
from tests.conftest import open_store
from tests.fake_statements import pdf
from tests.pipelines.pages.documents import parse_html

File = tuple[str, bytes]
PNG = b"\x89PNG\r\n\x1a\n and so on"
EXCEL = "The file is an Excel workbook: save it as CSV. Send the bank's own export as CSV, or its PDF statements."
MARKUP = "<script>alert(1)</script>&\u202e.pdf"


@pytest.fixture(autouse=True)
def _read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "read_export", read_here)


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


@pytest.fixture
def analyst(store: Store, base_url: str, client: Client) -> Visitor:
    return visit_as(store, base_url, client.client_id, Role.ANALYST)


def upload(
    visitor: Visitor, customer_id: str, *files: File, csrf: str | None = None, password: str = "", **more: Any
) -> requests.Response:
    """Send the form of the upload page."""
    parts = [("file", (name, content, "application/octet-stream")) for name, content in files]
    token = visitor.csrf if csrf is None else csrf
    return visitor.send(
        f"/customers/{customer_id}/upload?csrf={token}", files=[*parts, ("password", (None, password))], **more
    )


def find_jobs(store: Store, client: Client, customer_id: str) -> list[Job]:
    with store.db.reading() as r:
        return [*jobs.find(r, client.client_id, customer_id=UUID(customer_id)).items]


def test_one_file_leads_to_its_job(store: Store, analyst: Visitor, customer_id: str, client: Client) -> None:
    answer = upload(analyst, customer_id, ("june.pdf", pdf("june")))
    [job] = find_jobs(store, client, customer_id)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/customers/{customer_id}/uploads/{job.job_id}")
    waiting = analyst.get(answer.headers["location"]).text
    assert "Waiting" in waiting
    assert "from <bdi>Ada, analyst</bdi>" in waiting
    assert 'hx-trigger="every 1s"' in waiting
    end_extractions(store)
    end_submissions(store)
    ended = analyst.get(answer.headers["location"]).text
    assert "hx-trigger" not in ended
    for text in ("june.pdf", "Proved by its balances", "Retract 1 row"):
        assert text in ended
    [link] = set(re.findall(f"/customers/{customer_id}/statements/[0-9a-f-]+", ended))
    assert "june.pdf" in analyst.get(f"/customers/{customer_id}/statements").text
    page = analyst.get(link).text
    assert f'src="{link}/pages/1.png"' in page
    assert "password" not in page
    assert f'src="{link}/pages/1.png?row=1"' in analyst.get(f"{link}?row=1").text


def test_statement_of_a_file_with_a_password_says_that_it_is_not_stored(
    store: Store, analyst: Visitor, customer_id: str
) -> None:
    upload(analyst, customer_id, ("june.pdf", pdf("june")), password="sesame")
    end_extractions(store)
    [link] = set(re.findall(f"/customers/{customer_id}/statements/[0-9a-f-]+", statements_page(analyst, customer_id)))
    assert "The file was sent with a password, which is not stored" in unescape(analyst.get(link).text)


def test_pages_of_a_statement_are_pictures(
    store: Store, analyst: Visitor, customer_id: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    upload(analyst, customer_id, ("june.pdf", pdf("june")))
    end_extractions(store)
    end_submissions(store)
    [link] = set(re.findall(f"/customers/{customer_id}/statements/[0-9a-f-]+", statements_page(analyst, customer_id)))
    monkeypatch.setattr(isolation, "draw_page", lambda *_: PNG)
    drawn = analyst.get(f"{link}/pages/1.png?row=1")
    assert (drawn.content, drawn.headers["content-type"]) == (PNG, "image/png")
    assert "no-store" in drawn.headers["cache-control"]
    for path in (
        "?page=2",
        "?page=x",
        "?page=0",
        "?row=2",
        "?row=x",
        "/pages/2.png",
        "/pages/x.png",
        "/pages/1.png?row=2",
    ):
        with subtests.test(path):
            assert analyst.get(link + path).status_code == 404


def statements_page(visitor: Visitor, customer_id: str) -> str:
    return visitor.get(f"/customers/{customer_id}/statements").text


def test_list_of_several_jobs_is_fetched_again_until_all_have_ended(
    store: Store, analyst: Visitor, customer_id: str
) -> None:
    answer = upload(analyst, customer_id, ("june.pdf", pdf("june")), ("cheque.csv", CHEQUE))
    listed = analyst.get(answer.headers["location"]).text
    address = f"/customers/{customer_id}/upload?page=1"
    for text in (
        *("2 submissions were accepted.", "PDF statements", "Transactions", "2 jobs under way"),
        *(f'<tbody id="jobs" hx-get="{address}"', f'<noscript><p><a href="{address}">Reload</a>'),
    ):
        assert text in listed
    end_extractions(store)
    end_submissions(store)
    ended = analyst.get(address).text
    assert '<tbody id="jobs">' in ended
    for text in ("under way", "hx-trigger", "<noscript>"):
        assert text not in ended


def test_job_says_what_was_refused_and_what_to_do(store: Store, analyst: Visitor, customer_id: str) -> None:
    answer = upload(analyst, customer_id, ("a.xlsx", WORKBOOK), ("newest.csv", NEWEST_FIRST))
    rejected = {
        "position": 0,
        "field": "amount",
        "code": "Transaction.TooManyDecimals",
        "message": "amount has more than two decimals.",
    }
    end_submissions(store, rejected=[rejected])
    page = analyst.get(answer.headers["location"]).text
    for text in (
        "File 1 (a.xlsx) is an Excel workbook: save it as CSV.",
        "Send the bank&#39;s own export as CSV, or its PDF statements.",
        "rows are rejected on these lines: 2.",
        "Amount has more than two decimals.",
    ):
        assert text in page


def test_all_rejected_rows_can_be_read(
    store: Store, analyst: Visitor, customer_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.pages.uploads.ROWS", 1)
    answer = upload(analyst, customer_id, ("newest.csv", NEWEST_FIRST))
    reason = {"field": "amount", "code": "Transaction.TooManyDecimals", "message": "amount has more than two decimals."}
    end_submissions(store, rejected=[{"position": position, **reason} for position in (3, 7)])
    first = analyst.get(answer.headers["location"]).text
    assert ('<th scope="row" class="number">4</th>' in first, "2 rows, page 1 of 2" in first) == (True, True)
    [following] = re.findall('rel="next" href="([^"]+)"', first)
    assert '<th scope="row" class="number">8</th>' in analyst.get(following).text


def test_duplicate_rows_lead_to_the_transactions_that_they_repeat(
    store: Store, analyst: Visitor, customer_id: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.console.pages.uploads.LISTED", 1)
    job = upload(analyst, customer_id, ("june.pdf", pdf("june"))).headers["location"]
    end_extractions(store)
    end_submissions(store)
    assert f"{job}/duplicates" not in analyst.get(job).text
    assert "No row of it was a duplicate." in analyst.get(f"{job}/duplicates").text
    [stored] = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    job = upload(analyst, customer_id, ("newest.csv", NEWEST_FIRST)).headers["location"]
    repeated = {3: UUID(stored["transactionId"]), 7: uuid4()}  # the second was retracted since
    end_submissions(store, duplicates=[{"position": n, "transaction_id": id_.bytes} for n, id_ in repeated.items()])
    assert f'href="{job}/duplicates"' in analyst.get(job).text
    first = analyst.get(f"{job}/duplicates").text
    assert ('<th scope="row" class="number">4</th>' in first, "2 rows, page 1 of 2" in first) == (True, True)
    path = f"/customers/{customer_id}/transactions/{stored['transactionId']}"
    assert f'<a href="{path}"><bdi>{stored["description"]}</bdi></a>' in first
    [following] = re.findall('rel="next" href="([^"]+)"', first)
    assert "It is no longer stored." in analyst.get(following).text


def test_refused_upload_says_of_each_file_why_and_what_to_do(analyst: Visitor, customer_id: str) -> None:
    answer = upload(analyst, customer_id, (MARKUP, WORKBOOK), ("b 4111111111111111.csv", b""), ("", b""))
    assert answer.status_code == 400
    listed = parse_html(answer.text.partition('role="alert"')[2].partition("</div>")[0]).text
    for text in (
        "no file can be read",
        f"<script>alert(1)</script>&.pdf: {EXCEL}",
        "b 411111xxxxxx1111.csv: The file is empty. Export it again.",
        "File without a name: The file is empty.",
    ):
        assert text in listed, listed
    assert 'type="file"' in answer.text
    alone = upload(analyst, customer_id, ("a.xlsx", WORKBOOK)).text
    assert f"a.xlsx</bdi></b>: {EXCEL}" in unescape(alone)


def test_refused_upload_without_a_readable_file_is_explained(analyst: Visitor, customer_id: str) -> None:
    too_many = upload(analyst, customer_id, *[("a.csv", b"")] * 21)
    assert (too_many.status_code, "Send 1 to 20 files." in too_many.text) == (400, True)
    path = f"/customers/{customer_id}/upload?csrf={analyst.csrf}"
    for kind in (
        "multipart/form-data",
        "multipart/form-data; boundary=" + "b" * 300,
        "multipart/form-data; boundary=b",
    ):
        answer = analyst.call("POST", path, data=b"--c\r\n", headers={"origin": analyst.base_url, "content-type": kind})
        assert (answer.status_code, 'role="alert"' in answer.text) == (400, True), kind


def test_submission_is_retracted_by_a_form(store: Store, analyst: Visitor, customer_id: str) -> None:
    path = upload(analyst, customer_id, ("cheque.csv", CHEQUE)).headers["location"]
    end_submissions(store)
    answer = analyst.post(f"{path}/retract")
    assert "The submission is being retracted." in answer.text
    assert f'It retracts <a href="{path}">' in answer.text
    submission = analyst.get(path).text
    assert "retracted</a>" in submission
    assert "<button" not in submission.partition('id="job"')[2]


def test_names_and_texts_of_files_are_never_markup(store: Store, analyst: Visitor, customer_id: str) -> None:
    upload(analyst, customer_id, (MARKUP, pdf("june")), (MARKUP, WORKBOOK))
    end_extractions(store)
    end_submissions(store)
    listed = statements_page(analyst, customer_id)
    links = set(re.findall(f"/customers/{customer_id}/(?:statements|uploads)/[0-9a-f-]+", listed))
    links |= set(
        re.findall(f"/customers/{customer_id}/uploads/[0-9a-f-]+", analyst.get(f"/customers/{customer_id}/upload").text)
    )
    assert len(links) == 2
    for page in (listed, *(analyst.get(link).text for link in links)):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;.pdf" in page
        assert "<script>alert" not in page


def test_upload_needs_the_role_the_token_and_this_site(
    store: Store, base_url: str, client: Client, analyst: Visitor, customer_id: str, subtests: pytest.Subtests
) -> None:
    viewer = visit_as(store, base_url, client.client_id, Role.VIEWER)
    assert 'type="file"' not in viewer.get(f"/customers/{customer_id}/upload").text
    cases: dict[str, tuple[Visitor, dict[str, Any]]] = {
        "a viewer": (viewer, {}),
        "no token": (analyst, {"csrf": ""}),
        "another user's token": (analyst, {"csrf": viewer.csrf}),
        "another site": (analyst, {"headers": {"origin": "https://evil.example"}}),
    }
    for name, (visitor, more) in cases.items():
        with subtests.test(name):
            assert upload(visitor, customer_id, ("cheque.csv", CHEQUE), **more).status_code == 403
    assert find_jobs(store, client, customer_id) == []


def test_too_large_upload_is_refused_with_a_page(tmp_path: Path) -> None:
    store = open_store(Settings(home=tmp_path / "home", max_multipart_bytes=1_000))
    with answering(store) as base_url:
        client = new_client(store, base_url)
        visitor = visit_as(store, base_url, client.client_id, Role.ANALYST)
        customer_id = client.new_customer()
        answer = upload(visitor, customer_id, ("cheque.csv", CHEQUE * 100))
        assert (answer.status_code, answer.headers["content-type"]) == (413, "text/html; charset=utf-8")
        assert "1,000 bytes at most" in answer.text
        assert find_jobs(store, client, customer_id) == []
    store.close()
