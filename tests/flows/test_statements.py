"""PDF statements through the API: sent as a form, read in children, enriched, reported, and traced to their pages."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from api.webhooks.listen import Received, Receiver
from pipelines.synthetic.pdf import PrintedStatement, statement_pdf
from tests.flows.service import Client, Service
from tests.flows.test_main_job import read_dagster_storage
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

EVENTS = ("job.extraction.completed", "job.enrichment.completed", "job.completed")
FAILURES = ("job.extraction.failed", "job.failed")


def submit(client: Client, customer: str, *files: tuple[str, bytes], **form: str) -> str:
    parts = [("file", (name, content, "application/pdf")) for name, content in files]
    answer = client.http.post(
        f"{client.base_url}/v1/customer/{customer}/statements", files=parts, data=form, timeout=60
    )
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["data"]["jobId"]
    return job_id


def subscribe(client: Client, receiver: Receiver, *kinds: str) -> None:
    for kind in kinds:
        body = {"eventType": kind, "webhookUrl": receiver.url}
        receiver.learn(client.data("POST", "/v1/webhooks/subscriptions", body)["secret"])


def wait_for_event(receiver: Receiver, job_id: str, kind: str) -> Received:
    def meant(each: Received) -> bool:
        return bool(each.json.get("jobId") == job_id and each.json["eventType"] == kind)

    found = receiver.wait_for(meant, timeout_s=20)
    assert found is not None, kind
    assert found.verified
    return found


def facts(rows: Sequence[Any]) -> list[tuple[str, Decimal]]:
    return sorted((str(row["date"]), Decimal(str(row["amount"]))) for row in rows)


def printed_rows(made: PrintedStatement) -> list[tuple[str, Decimal]]:
    return sorted((str(row.date), row.amount) for row in made.rows)


def test_statements_become_transactions_and_every_stage_sends_its_event(client: Client, receiver: Receiver) -> None:
    subscribe(client, receiver, *EVENTS, *FAILURES)
    customer, made = client.customer(), statement_pdf("westpac", seed=7, pages=2)
    job_id = submit(client, customer, ("june.pdf", made.content), ("letter.pdf", b"%PDF-1.7 no more"))
    ended = client.wait_for_job(job_id)
    assert (ended["status"], ended["flow"]) == ("CompletedWithErrors", "Extraction")
    assert [(stage["stage"], stage["status"]) for stage in ended["stages"]] == [
        ("extraction", "CompletedWithErrors"),
        ("enrichment", "Completed"),
    ]
    assert [warning["code"] for warning in ended["warnings"]] == ["Statement.Corrupt"]
    assert facts(client.transactions(customer)) == printed_rows(made)
    assert ended["enrichedCount"] == len(made.rows)

    happened = [wait_for_event(receiver, job_id, kind).json for kind in EVENTS]
    assert [each["timestamp"] for each in happened] == sorted(each["timestamp"] for each in happened)
    assert happened[0]["timestamp"] < happened[1]["timestamp"]
    assert (happened[0]["extractedCount"], happened[0]["duplicateCount"]) == (len(made.rows), 0)
    assert happened[2]["totalReceivedTransactions"] == len(made.rows)
    assert {each["jobType"] for each in happened} == {"Extraction"}
    assert not [
        each for each in receiver.received if each.json.get("jobId") == job_id and each.json["eventType"] in FAILURES
    ]


def test_a_transaction_leads_back_to_its_row_on_the_page(client: Client) -> None:
    customer, made = client.customer(), statement_pdf("westpac", seed=7, pages=2)
    client.wait_for_job(submit(client, customer, ("june.pdf", made.content)))
    path = f"/v1/customer/{customer}"
    [listed] = client.data("GET", f"{path}/statements")["statements"]
    whole = client.data("GET", f"{path}/statements/{listed['statementId']}")
    assert facts(whole["rows"]) == printed_rows(made)
    for row in client.transactions(customer)[::20]:
        source = client.data("GET", f"{path}/transactions/{row['transactionId']}/source")
        assert source["statementId"] == listed["statementId"]
        [shown] = [each for each in whole["rows"] if each["row"] == source["row"]]
        assert (shown["date"], shown["amount"]) == (row["date"], row["amount"])
        page = source["boxes"][0]["page"]
        picture = client.call("GET", f"{path}/statements/{listed['statementId']}/pages/{page}.png", row=source["row"])
        assert (picture.status_code, picture.headers["Content-Type"]) == (200, "image/png")
        assert picture.content.startswith(b"\x89PNG")


def test_a_submission_without_a_readable_file_fails_with_a_reason(client: Client, receiver: Receiver) -> None:
    subscribe(client, receiver, *EVENTS, *FAILURES)
    customer = client.customer()
    job_id = submit(client, customer, ("letter.pdf", b"%PDF-1.7 no more"))
    ended = client.wait_for_job(job_id)
    assert (ended["status"], ended["error"]["code"]) == ("Failed", "Statement.Corrupt")
    assert [stage["stage"] for stage in ended["stages"]] == ["extraction"]
    for kind in FAILURES:
        assert wait_for_event(receiver, job_id, kind).json["error"]["code"] == "Statement.Corrupt"
    assert not [
        each for each in receiver.received if each.json.get("jobId") == job_id and each.json["eventType"] in EVENTS
    ]


def test_a_row_in_both_feed_and_statement_is_stored_once(client: Client) -> None:
    customer, made = client.customer(), statement_pdf("westpac", seed=7, pages=2)
    account = made.accounts[0]
    fed = [
        {"date": str(row.date), "description": row.description, "amount": str(row.amount)} for row in account.rows[:20]
    ]
    client.wait_for_job(client.submit(customer, fed, bsb=account.bsb, accountNumber=account.account_number))
    ended = client.wait_for_job(submit(client, customer, ("june.pdf", made.content)))
    again = client.wait_for_job(submit(client, customer, ("june again.pdf", made.content)))
    assert (ended["duplicateCount"], ended["enrichedCount"]) == (20, len(made.rows) - 20)
    assert (again["duplicateCount"], again["enrichedCount"]) == (len(made.rows), 0)
    assert facts(client.transactions(customer)) == printed_rows(made)
    retraction = client.data("DELETE", f"/v1/customer/{customer}/submissions/{ended['jobId']}")
    client.wait_for_job(retraction["jobId"])
    assert facts(client.transactions(customer)) == printed_rows(made)
    assert len(client.data("GET", f"/v1/customer/{customer}/statements")["statements"]) == 1


def test_neither_logs_nor_dagster_hold_the_content_of_pdfs(service: Service, client: Client) -> None:
    """Canary values: file names, right and wrong passwords, and a statement's account."""
    customer, made = client.customer(), statement_pdf("westpac", seed=9, pages=2)
    files = [("KANARIE.pdf", made.content), ("KANARIE-2.pdf", b"%PDF-1.7 KANARIENVOGEL")]
    client.wait_for_job(submit(client, customer, *files, password="KANARIE-PASSWORD"))
    path = f"{client.base_url}/v1/customer/{customer}/statements"
    for form in ({"password": ["KANARIE-PASSWORD"] * 3}, {"password": "KANARIE" * 500}):
        refused = client.http.post(path, files=[("file", files[0])], data=form, timeout=60)
        assert refused.status_code == 400
        assert "KANARIE" not in refused.text
    assert client.call("POST", f"/v1/customer/{customer}/statements", {"files": ["KANARIE"]}).status_code == 400

    account = made.accounts[0]
    canaries = ("KANARIE", account.account_number, account.account_name, made.rows[0].description)
    for place, content in {"log": service.log.read_bytes(), **read_dagster_storage(service)}.items():
        assert not [canary for canary in canaries if canary.encode() in content], place


def test_a_kill_while_pdfs_are_read_loses_and_duplicates_nothing(service: Service, client: Client) -> None:
    customer, made = client.customer(), statement_pdf("westpac", seed=8, pages=60)
    job_id = submit(client, customer, ("long.pdf", made.content))
    until(lambda: client.data("GET", f"/v1/jobs/{job_id}/status")["status"] == "Running")
    for process in service.processes("assets.dagster_internals.warm"):
        if "extraction" in process.cmdline():
            process.kill()
    ended = client.wait_for_job(job_id)
    assert (ended["status"], ended["enrichedCount"]) == ("Completed", len(made.rows))
    assert facts(client.transactions(customer)) == printed_rows(made)
