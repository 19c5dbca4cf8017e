"""Notes, attachments and the timeline over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.core import audit
from storage.core.models import idempotency_keys
from storage.core.store import Store
from storage.work.attachments import MAX_BYTES
from tests.api.conftest import Belongings, Client
from tests.api.work.test_alerts import act, get_data

HOSTILE = "<script>alert(1)</script> \u202e \r\nSet-Cookie: x=1; \"'/..\\"


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


def add_note(client: Client, customer_id: str, text: str, **more: object) -> Any:
    answer = client.post(f"/v1/customer/{customer_id}/notes", {"text": text, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def attach(client: Client, customer_id: str, name: str, content: bytes, **options: Any) -> Any:
    return client.post(f"/v1/customer/{customer_id}/attachments", files={"file": (name, content)}, **options)


def test_notes_are_listed_and_deleted(store: Store, client: Client, customer_id: str) -> None:
    first = add_note(client, customer_id, HOSTILE.replace("\r", ""))
    second = add_note(client, customer_id, "His card is 4111 1111 1111 1111.")
    listed = get_data(client, f"/customer/{customer_id}/notes")["notes"]
    assert [each["noteId"] for each in listed] == [second["noteId"], first["noteId"]]
    assert listed[1]["text"] == HOSTILE.replace("\r", "")
    assert "4111 1111" not in listed[0]["text"]
    gone = client.delete(f"/v1/customer/{customer_id}/notes/{second['noteId']}").json()["data"]
    again = client.delete(f"/v1/customer/{customer_id}/notes/{second['noteId']}").json()["data"]
    assert gone == again == get_data(client, f"/customer/{customer_id}/notes")["notes"][0]
    assert (gone["text"], gone["createdBy"]) == (None, gone["deletedBy"])
    with store.db.reading() as r:
        actions = [each.action for each in audit.find(r, client.client_id) if each.action.startswith("Note.")]
    assert actions == ["Note.Deleted", "Note.Added", "Note.Added"]


def test_a_deleted_note_is_in_no_stored_answer(store: Store, client: Client, customer_id: str) -> None:
    made = add_note(client, customer_id, "A secret about the owner.")
    headers = {"Idempotency-Key": str(uuid4())}
    path = f"/v1/customer/{customer_id}"
    client.post(f"{path}/notes", {"text": "A secret about the owner."}, headers=headers)
    attach(client, customer_id, "secret-name.pdf", b"x", headers={"Idempotency-Key": str(uuid4())})
    with store.db.reading() as r:
        stored = [row.body or b"" for row in r.execute(idempotency_keys.select())]
    assert made["noteId"]
    assert not [each for each in stored if b"secret about" in each or b"secret-name" in each]


def test_notes_are_about_what_the_customer_has(store: Store, client: Client, customer_id: str) -> None:
    ids = Belongings(store, client)
    own = ids["customerId"]
    about = add_note(client, own, "This one.", matchId=ids["matchId"])
    add_note(client, own, "This one.", evaluationId=ids["evaluationId"])
    [found] = get_data(client, f"/customer/{own}/notes", matchId=ids["matchId"])["notes"]
    assert (found["noteId"], found["matchId"]) == (about["noteId"], ids["matchId"])
    answer = client.post(f"/v1/customer/{customer_id}/notes", {"text": "?", "matchId": ids["matchId"]})
    assert (answer.status_code, answer.json()["code"]) == (400, "Note.UnknownSubject")
    assert answer.json()["errors"][0]["pointer"] == "/matchId"
    for text in ("", "x" * 10_001, None, 1):
        answer = client.post(f"/v1/customer/{own}/notes", {"text": text})
        assert (answer.status_code, answer.json()["code"]) == (400, "Note.InvalidText")


def test_an_attachment_comes_back_as_it_was_sent_and_is_never_shown(client: Client, customer_id: str) -> None:
    content = b"<html><script>alert(1)</script>" + bytes(range(256))
    answer = attach(client, customer_id, HOSTILE, content)
    assert answer.status_code == 201, answer.text
    location = answer.headers["Location"]
    downloaded = client.get(location)
    assert downloaded.content == content
    assert downloaded.headers["Content-Type"] == "application/octet-stream"
    assert downloaded.headers["X-Content-Type-Options"] == "nosniff"
    disposition = downloaded.headers["Content-Disposition"]
    assert disposition.startswith("attachment; filename*=UTF-8''")
    assert not set(disposition.split("''")[1]) & set("<>\"'\\/; \r\n")
    [listed] = get_data(client, f"/customer/{customer_id}/attachments")["attachments"]
    assert (listed["size"], listed["attachmentId"]) == (len(content), answer.json()["data"]["attachmentId"])
    gone = client.delete(location.removesuffix("/content")).json()["data"]
    assert (gone["fileName"], gone["dateDeleted"] is None) == (None, False)
    assert (client.get(location).status_code, client.get(location).json()["code"]) == (410, "Attachment.Gone")
    assert client.delete(location.removesuffix("/content")).json()["data"] == gone


def test_an_attachment_can_be_sent_as_json(client: Client, customer_id: str) -> None:
    answer = client.post(f"/v1/customer/{customer_id}/attachments", {"fileName": "a.txt", "contentBase64": "YQ=="})
    assert client.get(answer.headers["Location"]).content == b"a"


def test_what_is_not_one_small_file_is_refused(
    subtests: pytest.Subtests, client: Client, customer_id: str, other_client: Client
) -> None:
    path = f"/v1/customer/{customer_id}/attachments"
    large, part = b"x" * (MAX_BYTES + 1), ("a", b"x")
    for name, options, status, code in (
        ("too large", {"files": {"file": ("a", large)}}, 413, "Attachment.FileTooLarge"),
        ("two files", {"files": [("file", part), ("file", part)]}, 400, "Attachment.WrongCount"),
        ("no file", {"files": {"other": part}}, 400, "Attachment.WrongCount"),
        ("many parts", {"files": [("other", part)] * 3 + [("file", part)]}, 400, "Attachment.TooManyParts"),
        ("empty file", {"files": {"file": ("a", b"")}}, 400, "Attachment.Empty"),
        ("empty Base64", {"json": {"contentBase64": ""}}, 400, "Attachment.Empty"),
        ("no Base64", {"json": {"contentBase64": "?"}}, 400, "Attachment.InvalidContent"),
        ("nothing", {"json": {}}, 400, "Attachment.InvalidContent"),
    ):
        with subtests.test(name):
            answer = client.call("POST", path, **options)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
    with subtests.test("another client's customer"):
        assert attach(other_client, customer_id, "a", b"x").status_code == 404
    assert get_data(client, f"/customer/{customer_id}/attachments")["attachments"] == []


def entries_of(client: Client, customer_id: str, count: int) -> Iterator[Any]:
    cursor: str | None = ""
    while cursor is not None:
        data = get_data(client, f"/customer/{customer_id}/timeline", cursor=cursor, count=count)
        assert len(data["entries"]) <= count
        yield from data["entries"]
        cursor = data["nextCursor"]


def test_the_timeline_tells_what_happened(store: Store, client: Client) -> None:
    ids = Belongings(store, client)
    customer_id, match = ids["customerId"], ids["matchId"]
    note = ids["noteId"]
    act(client, match, action="close", reason="Repaid.")
    attributes = {"score": 500, "time_trading_months": 40}
    client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": attributes})
    whole = list(entries_of(client, customer_id, 1000))
    for count in (1, 4):
        assert list(entries_of(client, customer_id, count)) == whole
    assert [each["date"] for each in whole] == sorted((each["date"] for each in whole), reverse=True)
    told = {each["sentence"]: each for each in whole}
    for sentence, name, id_ in (
        ("An alert was closed: Repaid.", "matchId", match),
        ("The ruleset Spending raised an alert: Spent.", "matchId", match),
        ("A note was added.", "noteId", note),
        ("An attribute was set: Score.", "jobId", None),
        ("An attribute was set: Time trading (months).", "jobId", None),
        ("A correction was made: Meals.", "correctionId", ids["correctionId"]),
        ("The customer was created.", "jobId", None),
    ):
        assert told[sentence][name] == id_, sentence
    assert {"Transactions were submitted.", "The submission was processed: 1 new row."} <= told.keys()
    by_client = ("An alert was closed: Repaid.", "Transactions were submitted.", "The customer was created.")
    assert len({told[sentence]["who"] for sentence in by_client} - {None}) == 1


def test_the_timeline_names_policies_and_has_the_times_of_the_service(store: Store, client: Client) -> None:
    ids = Belongings(store, client)
    customer_id, match = ids["customerId"], ids["matchId"]
    path = f"/v1/customer/{customer_id}/decision-policies/{ids['slug']}/evaluate"
    evaluation_id = client.post(path, {"inputs": {"requestedAmount": 1}}).json()["data"]["evaluationId"]
    name = get_data(client, f"/evaluations/{evaluation_id}")["policyName"]
    assert name == get_data(client, f"/decision-policies/{ids['slug']}")["name"]
    until = datetime.now(UTC) + timedelta(days=3)
    act(client, match, action="snooze", until=until.isoformat())
    told = {each["sentence"] for each in entries_of(client, customer_id, 1000)}
    assert any(each.startswith(f"Decision by {name}, version 1: ") for each in told), told
    local = until.astimezone(store.settings.zone)
    assert f"An alert was snoozed until {local.day} {local:%b %Y, %H:%M}." in told


def test_a_wrong_cursor_is_refused(client: Client, customer_id: str, subtests: pytest.Subtests) -> None:
    path = f"/v1/customer/{customer_id}/timeline"
    for cursor in ("x", "!", "A" * 500, "wBkB", "k8DAwA"):
        with subtests.test(cursor[:9]):
            answer = client.get(path, params={"cursor": cursor})
            assert (answer.status_code, answer.json()["code"]) == (400, "Pagination.InvalidCursor")
    assert client.get(path, params={"count": 0}).json()["code"] == "Pagination.InvalidCount"
