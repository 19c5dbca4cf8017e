"""Files of any kind in one request: PDFs and banks' exports."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pytest
import requests

import isolation
from isolation import child
from isolation.messages import ExportEnd, ExportRows, Invalid
from pipelines.intake.accounts import identify
from pipelines.intake.exports import name_accounts, read
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.schemas import LANDED
from storage.core.store import Store
from storage.jobs import jobs
from storage.jobs.jobs import Job
from tests.api.conftest import Client
from tests.api.worker import end_extractions, end_submissions
from tests.fake_statements import pdf

File = tuple[str, bytes]
HEADING = "Date,Description,Amount,Balance\n"
CARD = "4111 1111 1111 1111"
CHEQUE = f"{HEADING}01/07/2025,RENT,-5.00,95.00\n02/07/2025,CARD {CARD},-5.00,90.00\n".encode()
NEWEST_FIRST = f"{HEADING}02/07/2025,FEES,-5.005,90.00\n01/07/2025,RENT,-5.00,95.00\n\nfooter\n".encode()
SEVERAL = (
    b"BSB,Account,Date,Transaction,Debit,Credit,Balance\n"
    b"062-000,12345678,01/07/2025,SALES,,10.00,110.00\n"
    b"062-000,87654321,2/7/25,RENT,20.00,,80.00\n"
    b"062-000,12345678,03/07/2025,FEE,1.00,2.00,110.00\n"
)
CARD_EXPORT = b"Date;Payee;Amount;Card No\n01.07.2025;CAFE;12,50;1234\n02.07.2025;PAYMENT THANK YOU;-50,00;1234\n"
WORKBOOK = b"PK\x03\x04 and so on"


@pytest.fixture(autouse=True)
def _read_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the time that child processes need to start; tests/isolation/test_exports.py covers them."""
    monkeypatch.setattr(isolation, "read_export", read_here)


def read_here(name: str, content: bytes) -> isolation.Export:
    *parts, end = child.read_export(name, content)
    if isinstance(end, Invalid):
        raise InvalidRequest(end.code, end.detail)
    assert isinstance(end, ExportEnd)
    return isolation.Export(tuple(part.rows for part in parts if isinstance(part, ExportRows)), end.refused, end.notes)


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


def send(client: Client, customer_id: str, *files: File, **more: Any) -> requests.Response:
    parts = [("file", (name, content, "application/octet-stream")) for name, content in files]
    return client.call("POST", f"/v1/customer/{customer_id}/uploads", files=parts, **more)


def send_accepted(client: Client, customer_id: str, *files: File) -> Any:
    answer = send(client, customer_id, *files)
    assert answer.status_code == 202, answer.text
    return answer.json()["data"]


def job(store: Store, client: Client, job_id: str) -> Job:
    with store.db.reading() as r:
        return jobs.get(r, client.client_id, UUID(job_id))


def read_landed_rows(store: Store, found: Job) -> pl.DataFrame:
    return pl.read_parquet(store.lake.root / (found.landing_path or ""))


def warnings(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(each["code"], each["message"]) for found in answer["jobs"] for each in found["warnings"]]


def test_same_rows_as_analyse_reads(store: Store, client: Client, customer_id: str, subtests: pytest.Subtests) -> None:
    """Two files of one account, which neither names, are recognised by their rows."""
    files = {"cheque.csv": CHEQUE, "newest first.csv": NEWEST_FIRST, "several.csv": SEVERAL, "card.csv": CARD_EXPORT}
    each = [(name, statement) for name, content in files.items() for statement in read(name, content).statements]
    named = name_accounts([(name.removesuffix(".csv"), statement) for name, statement in each])
    answer = send_accepted(client, customer_id, *files.items())
    for sent in answer["files"]:
        with subtests.test(sent["fileName"]):
            expected = [own for (name, _), own in zip(each, named, strict=True) if name == sent["fileName"]]
            found = [job(store, client, job_id) for job_id in sent["jobIds"]]
            assert {
                UUID((one.submission or {})["account_id"]): rows(read_landed_rows(store, one)) for one in found
            } == {account_id(store, customer_id, statement): rows(statement.rows) for statement in expected}


def rows(frame: pl.DataFrame) -> list[Any]:
    """Return the rows as they land. Digests have another key in a command."""
    plain = frame.select(LANDED.names())
    return plain.with_columns(pl.col("transactionIdDigest", "descriptionDigest").is_null()).rows()


def account_id(store: Store, customer_id: str, statement: Any) -> UUID:
    fields = ("account_name", "bsb", "account_number", "bank_name", "account_type", "credit_limit")
    account, _ = identify(
        UUID(customer_id), **{name: getattr(statement, name) for name in fields}, digest=store.vault.digest
    )
    return account.account_id


def test_masked_rows_get_the_digests_of_a_submission(store: Store, client: Client, customer_id: str) -> None:
    """So that the same row is recognised, however it is sent."""
    answer = send_accepted(client, customer_id, ("cheque.csv", CHEQUE))
    item = {"date": "2025-07-02", "description": f"CARD {CARD}", "amount": "-5.00"}
    as_json = read_landed_rows(store, job(store, client, client.submit_transactions(customer_id, [item])))
    as_export = read_landed_rows(store, job(store, client, answer["jobs"][0]["jobId"]))
    assert CARD not in str(as_export.rows())
    assert as_export["descriptionDigest"][1] == as_json["descriptionDigest"][0] is not None


def test_pdfs_and_exports_are_sent_together(store: Store, client: Client, customer_id: str) -> None:
    answer = send_accepted(client, customer_id, ("june.pdf", pdf("june")), ("cheque.csv", CHEQUE), ("a.xlsx", WORKBOOK))
    assert [each["flow"] for each in answer["jobs"]] == ["Extraction", "Enrichment"]
    extraction, enrichment = (each["jobId"] for each in answer["jobs"])
    assert [each["jobIds"] for each in answer["files"]] == [[extraction], [enrichment], [extraction]]
    refusal = {"code": "Export.NotText", "message": "The file is an Excel workbook: save it as CSV."}
    assert [each["refused"] for each in answer["files"]] == [None, None, refusal]
    end_extractions(store)
    end_submissions(store)
    path = f"/v1/customer/{customer_id}"
    files = client.get(f"{path}/submissions/{extraction}/files").json()["data"]["files"]
    refused = {"code": "Statement.Unreadable", "message": refusal["message"]}
    assert [(each["fileName"], each["refused"]) for each in files] == [("june.pdf", None), ("a.xlsx", refused)]
    assert client.get(f"{path}/submissions/{enrichment}/files").json()["data"]["totalCount"] == 0
    for job_id, count in {extraction: 1, enrichment: 0}.items():
        found = client.get(f"{path}/statements", params={"jobId": job_id}).json()["data"]
        assert found["totalCount"] == count
    ended = client.get(f"/v1/jobs/{enrichment}/status").json()["data"]
    assert ended["status"] == "Completed"


def test_warnings_say_what_was_refused_and_assumed(client: Client, customer_id: str) -> None:
    answer = send_accepted(
        client, customer_id, ("a.xlsx", WORKBOOK), ("newest.csv", NEWEST_FIRST), ("several.csv", SEVERAL)
    )
    assert warnings(answer) == [
        ("Export.NamesNoAccount", "The file names no account: its rows belong to an account with the file's name."),
        ("Export.RowsRefused", "File 2 (newest.csv): rows are rejected on these lines: 2."),
        ("Export.NotText", "File 1 (a.xlsx) is an Excel workbook: save it as CSV."),
        *((code, message) for code, message in warnings(answer) if code == "Export.ReadAs"),
        ("Export.DebitAndCredit", "File 3 (several.csv), line 4: Debit and credit are both filled."),
    ]


def test_export_without_an_account_continues_a_known_one(store: Store, client: Client, customer_id: str) -> None:
    """By its rows, so that they don't count twice under another file's name."""
    [first] = send_accepted(client, customer_id, ("june.csv", CHEQUE))["jobs"]
    account = (job(store, client, first["jobId"]).submission or {})["account_id"]
    rent = {"date": date(2025, 7, 1), "description": "RENT", "amount": Decimal("-5.00"), "balance": Decimal("95.00")}
    end_submissions(store, rows=[rent | {"bank_name": "june"}])
    in_utc = f"{HEADING}2025-06-30T23:30:00Z,RENT,-5.00,95.00\n".encode()  # the first of July in Sydney
    overlapping, other = NEWEST_FIRST, CARD_EXPORT
    for content, is_known in ((overlapping, True), (in_utc, True), (other, False)):
        [found] = send_accepted(client, customer_id, ("july.csv", content))["jobs"]
        facts = job(store, client, found["jobId"]).submission or {}
        assert (facts["account_id"] == account) is is_known
        assert (facts["bank_name"] == "june") is is_known
        codes = {each["code"] for each in found["warnings"]}
        assert ("Export.KnownAccount" if is_known else "Export.NamesNoAccount") in codes


def test_export_without_an_account_continues_one_that_waits(store: Store, client: Client, customer_id: str) -> None:
    """Even if the other file was sent a moment ago."""
    [first] = send_accepted(client, customer_id, ("june.csv", CHEQUE))["jobs"]
    account = (job(store, client, first["jobId"]).submission or {})["account_id"]
    for content, is_known in ((CHEQUE, True), (NEWEST_FIRST, True), (CARD_EXPORT, False)):
        [found] = send_accepted(client, customer_id, ("july.csv", content))["jobs"]
        facts = job(store, client, found["jobId"]).submission or {}
        assert (facts["account_id"] == account) is is_known
        assert (facts["bank_name"] == "june") is is_known
    end_submissions(store)


def refused_files() -> Iterator[tuple[str, Sequence[File], list[str]]]:
    json = b'{"transactions": [{"date": "2025-07-01", "description": "RENT", "amount": -5}]}'
    long = HEADING + "".join(f"01/07/2025,ROW {n},-1.00,{100 - n}.00\n" for n in range(31))
    two = b"Customer,Date,Description,Amount\nAda,01/07/2025,RENT,-5.00\nBob,01/07/2025,RENT,-5.00\n"
    yield "a workbook", [("a.xlsx", WORKBOOK)], ["Export.NotText"]
    yield "JSON", [("a.json", json)], ["Export.IsJson"]
    yield "too many rows", [("a.csv", long.encode())], ["Export.TooManyRows"]
    accounts = "Account,Date,Description,Amount\n" + "".join(
        f"1234567{n:02},01/07/2025,RENT,-5.00\n" for n in range(21)
    )
    described = f"Account,Date,Description,Amount\n{'x' * 201},01/07/2025,RENT,-5.00\n"
    yield "many accounts", [("a.csv", accounts.encode())], ["Export.TooManyAccounts"]
    yield "a long account", [("a.csv", described.encode())], ["Export.LongAccount"]
    yield "several customers", [("a.csv", two)], ["Export.SeveralCustomers"]
    yield "nothing, and prose", [("a.csv", b""), ("b.txt", b"Dear lender")], ["Export.Empty", "Export.NoTransactions"]


def test_request_fails_if_no_file_can_be_read(client: Client, customer_id: str, subtests: pytest.Subtests) -> None:
    for case, files, codes in refused_files():
        with subtests.test(case):
            answer = send(client, customer_id, *files)
            assert (answer.status_code, answer.json()["code"]) == (400, "Upload.NothingToRead")
            assert [fault["code"] for fault in answer.json()["errors"]] == codes
            assert [fault["pointer"] for fault in answer.json()["errors"]] == [f"/files/{n}" for n in range(len(codes))]


def test_repeated_upload_is_answered_alike(client: Client, customer_id: str) -> None:
    files = [{"fileName": "cheque.csv", "contentBase64": base64.b64encode(CHEQUE).decode()}]
    path, headers = f"/v1/customer/{customer_id}/uploads", {"Idempotency-Key": "upload-1"}
    first, second = (client.call("POST", path, json={"files": files}, headers=headers) for _ in range(2))
    assert first.status_code == 202
    assert second.json() == first.json()
    assert len(client.get("/v1/jobs", params={"customerId": customer_id}).json()["data"]["jobs"]) == 1


def test_files_of_others_are_not_found(client: Client, other_client: Client, customer_id: str) -> None:
    assert send(other_client, customer_id, ("cheque.csv", CHEQUE)).json()["code"] == "Customer.NotFound"
    job_id = client.submit_transactions(customer_id)
    other = other_client.new_customer()
    for path in (f"/v1/customer/{customer_id}", f"/v1/customer/{other}"):
        assert other_client.get(f"{path}/submissions/{job_id}/files").status_code == 404
