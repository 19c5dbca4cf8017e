"""The main job through the API: submit, read back, refresh, read reports, receive events."""

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import inspect

from api.webhooks.listen import Received, Receiver
from pipelines.synthetic import plain_rows
from tests.flows.conftest import on_each_database
from tests.flows.service import Client, Service
from tests.root import ROOT
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)


def rows(count: int = 40, seed: int = 1) -> list[dict[str, Any]]:
    return plain_rows(count, seed=seed, until=date(2026, 10, 31))


@on_each_database
def test_submitted_rows_are_read_back_enriched(client: Client) -> None:
    customer, sent = client.customer(), rows()
    ended = client.wait_for_job(client.submit(customer, sent))
    assert (ended["status"], ended["enrichedCount"], ended["rejectedCount"]) == ("Completed", 40, 0)
    listed = client.transactions(customer)
    assert sum(Decimal(str(row["amount"])) for row in listed) == sum(Decimal(str(row["amount"])) for row in sent)
    assert [row["date"] for row in listed] == sorted(row["date"] for row in sent)
    assert {row["jobId"] for row in listed} == {ended["jobId"]}


def test_submitting_the_same_rows_again_lists_them_as_duplicates(client: Client) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, rows()))
    before = client.transactions(customer)
    again = client.wait_for_job(client.submit(customer, rows()))
    assert (again["status"], again["enrichedCount"], again["duplicateCount"]) == ("Completed", 0, 40)
    assert client.transactions(customer) == before
    repeated = client.data("GET", f"/v1/jobs/{again['jobId']}/duplicates")["duplicates"]
    assert {row["transactionId"] for row in repeated} == {row["transactionId"] for row in before}


def test_after_a_retraction_data_is_as_if_the_submission_was_never_sent(client: Client) -> None:
    customer, other, sent = client.customer(), client.customer(), rows()
    first = client.submit(customer, sent[:30])
    second = client.submit(customer, sent[20:])
    for job in (first, second, client.submit(other, sent[20:])):
        client.wait_for_job(job)
    before = {row["transactionId"] for row in client.transactions(customer)}
    retraction = client.data("DELETE", f"/v1/customer/{customer}/submissions/{first}")
    assert client.wait_for_job(retraction["jobId"])["status"] == "Completed"

    listed = client.transactions(customer)
    own = ("transactionId", "customerId", "jobId", "account", "transferPairId", "recurrence", "facilityId")
    facts = [
        [{k: v for k, v in row.items() if k not in own} for row in found]
        for found in (listed, client.transactions(other))
    ]
    assert facts[0] == facts[1]
    assert {row["jobId"] for row in listed} == {second}
    assert {row["transactionId"] for row in listed} < before
    again = client.wait_for_job(client.submit(customer, sent[:30]))
    assert (again["enrichedCount"], again["duplicateCount"]) == (20, 10)


def test_good_rows_are_accepted_next_to_bad_ones(client: Client) -> None:
    customer = client.customer()
    bad = {"date": "2026-02-30", "description": "RENT", "amount": -1}
    ended = client.wait_for_job(client.submit(customer, [*rows(10), bad]))
    assert (ended["status"], ended["enrichedCount"], ended["rejectedCount"]) == ("CompletedWithErrors", 10, 1)
    assert [(error["index"], error["field"]) for error in ended["errors"]] == [(10, "date")]
    assert len(client.transactions(customer)) == 10


def test_a_job_of_only_bad_rows_fails_and_adds_nothing(client: Client) -> None:
    customer = client.customer()
    ended = client.wait_for_job(client.submit(customer, [{"date": "no", "description": "x", "amount": 1}]))
    assert (ended["status"], ended["totalProcessedTransactions"]) == ("Failed", 0)
    assert client.transactions(customer) == []


@on_each_database
def test_reports_are_pending_then_ready_then_stale_then_ready(client: Client) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, rows()))
    assert statuses(client, customer) == ["pending"] * 3
    assert client.wait_for_job(client.refresh(customer))["status"] == "Completed"
    assert statuses(client, customer) == ["ready"] * 3
    client.wait_for_job(client.submit(customer, rows(5, seed=2), accountNumber="999"))
    assert statuses(client, customer) == ["stale"] * 3
    client.wait_for_job(client.refresh(customer))
    assert statuses(client, customer) == ["ready"] * 3
    client.wait_for_job(client.submit(customer, rows()))
    assert statuses(client, customer) == ["ready"] * 3, "duplicates alone change no version"


def statuses(client: Client, customer: str) -> list[str]:
    bundle = client.data("GET", f"/v1/customer/{customer}/reports")
    return [bundle[kind]["status"] for kind in ("completeness", "risk", "aggregate")]


def test_reports_have_the_members_of_the_contract(client: Client) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, rows()))
    client.wait_for_job(client.refresh(customer))
    bundle = client.data("GET", f"/v1/customer/{customer}/reports")
    summary = bundle["completeness"]["data"]["summary"]
    assert {"completenessScore", "completenessTier", "totalMissingness"} <= summary.keys()
    risk = bundle["risk"]["data"]
    assert {"value", "rating", "pdConfidenceScore", "pdConfidenceRating"} <= risk.keys()
    assert "Risk.Uncalibrated" in {error["code"] for error in risk["errorCodes"]}
    for table in bundle["aggregate"]["data"]["tables"]:
        assert {"id", "name", "hierarchy", "type", "values"} <= table.keys()


def test_a_replay_of_the_day_is_the_stored_report_byte_for_byte(client: Client) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, rows()))
    client.wait_for_job(client.refresh(customer))
    path = f"/v1/customer/{customer}/reports"
    stored = client.data("GET", path)
    moment = {"asOf": stored["risk"]["asOf"], "dataVersion": stored["risk"]["dataVersion"]}
    again = client.call("GET", path, **moment)
    client.wait_for_job(client.submit(customer, rows(5, seed=2), accountNumber="999"))
    much_later = client.call("GET", path, **moment)
    assert again.content == much_later.content
    for kind, member in again.json()["data"].items():
        assert member["data"] == stored[kind]["data"], kind


def test_a_new_row_changes_figures_and_the_diff_lists_them(client: Client) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, rows()))
    client.wait_for_job(client.submit(customer, rows(5, seed=2), accountNumber="999"))
    found = client.data("GET", f"/v1/customer/{customer}/reports/diff")
    assert (found["from"], found["to"], found["rowsAdded"]) == (1, 2, 5)
    assert any("rows" in figure["causes"] for figure in found["figures"])


def test_a_second_refresh_is_refused_while_the_first_runs(client: Client) -> None:
    customer = client.customer()
    assert client.call("POST", f"/v1/customer/{customer}/reports/refresh").status_code == 422
    client.wait_for_job(client.submit(customer, rows()))
    answers = [client.call("POST", f"/v1/customer/{customer}/reports/refresh") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 409]
    assert answers[0].json()["data"]["flow"] == "ReportRefresh"
    client.wait_for_job(answers[0].json()["data"]["jobId"])


@on_each_database
def test_each_subscription_gets_its_own_signed_event(client: Client, receiver: Receiver) -> None:
    kinds = ("job.completed", "job.enrichment.completed")
    for kind in kinds:
        body = {"eventType": kind, "webhookUrl": receiver.url}
        receiver.learn(client.data("POST", "/v1/webhooks/subscriptions", body)["secret"])
    customer = client.customer()
    job = client.submit(customer, rows())
    for kind in kinds:
        described = receiver.wait_for(
            lambda each, kind=kind: each.json.get("jobId") == job and each.json["eventType"] == kind,
            timeout_s=20,
        )
        assert described is not None
        assert described.verified
        assert described.json["customerId"] == customer


def test_a_receiver_that_reads_the_job_before_it_answers_sees_it_finished(client: Client, receiver: Receiver) -> None:
    seen: list[tuple[str, int]] = []

    def ask_back(received: Received) -> None:
        lender = Client(client.base_url, str(client.http.headers["x-api-key"]))
        job = lender.data("GET", f"/v1/jobs/{received.json['jobId']}/status")
        seen.append((job["status"], len(lender.transactions(received.json["customerId"]))))

    with Receiver(receiver.ca_path.parent.parent, on_delivery=ask_back) as asking:
        body = {"eventType": "job.completed", "webhookUrl": asking.url}
        subscription = client.data("POST", "/v1/webhooks/subscriptions", body)["webhookSubscriptionId"]
        job = client.submit(client.customer(), rows())
        assert asking.wait_for(lambda each: each.json.get("jobId") == job, timeout_s=20) is not None
        assert seen == [("Completed", 40)]
        log = f"/v1/webhooks/subscriptions/{subscription}/deliveries"
        until(lambda: client.data("GET", log)["deliveries"][0]["status"] == "delivered", within_s=20)


def test_a_refresh_sends_no_event(client: Client, receiver: Receiver) -> None:
    body = {"eventType": "job.completed", "webhookUrl": receiver.url}
    receiver.learn(client.data("POST", "/v1/webhooks/subscriptions", body)["secret"])
    customer = client.customer()
    first = client.submit(customer, rows())
    client.wait_for_job(first)
    refresh = client.refresh(customer)
    client.wait_for_job(refresh)
    marker = client.submit(customer, rows(3, seed=9))
    assert receiver.wait_for(lambda each: each.json.get("jobId") == marker, timeout_s=20) is not None
    assert refresh not in {each.json.get("jobId") for each in receiver.received}


def test_the_readmes_query_reads_the_lake_through_the_manifest(
    service: Service, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    client.wait_for_job(client.submit(client.customer(), rows()))  # an empty lake has nothing to read
    before = count_as_documented(service)
    customer, sent = client.customer(), rows()
    for part in (sent[:30], sent[10:]):  # two segments, of which one is replaced
        client.wait_for_job(client.submit(customer, part))
    assert count_as_documented(service) == before + len(sent)


def count_as_documented(service: Service) -> int:
    """Return the number of all current transactions of the lake."""
    return sum(count for _, count, _ in query_as_documented(service, 0))


def query_as_documented(service: Service, nth: int) -> list[Any]:
    """Run the documentation's nth query of the lake, and return its rows."""
    Path("manifest.json").write_text(json.dumps(service.manifest()))
    page = (ROOT / "docs" / "tutorials" / "data-engineer.md").read_text()
    queries = re.findall(r'duckdb -c "(.+?)"\n', page, re.DOTALL)
    return duckdb.execute(queries[nth]).fetchall()


@pytest.mark.slow
def test_a_running_service_is_seeded_once(service: Service) -> None:
    assert "8 businesses" in service.run("api.service.commands.seed")
    assert "Already seeded" in service.run("api.service.commands.seed")


@on_each_database
def test_neither_logs_nor_dagster_hold_submitted_data(service: Service, client: Client, receiver: Receiver) -> None:
    """Canary values pass through the API in accepted and rejected rows, until all work on them has ended."""
    personal = {"abn": "83914571673", "name": "Nora Kanarie", "reference": "KANARIE-REF-7"}
    account = {"accountName": "Kanarie Pty", "accountNumber": "918273645", "bsb": "736-492", "bankName": "Kanarie Bank"}
    described = [{"date": "2026-06-01", "description": f"KANARIENVOGEL {n}", "amount": -7741.25} for n in range(5)]
    bad = {"date": "2026-02-30", "description": "KANARIENVOGEL bad", "amount": "KANARIENVOGEL"}
    client.http.headers["Idempotency-Key"] = "KANARIE-KEY-7"
    customer = client.data("POST", "/v1/customer", personal)["customerId"]
    del client.http.headers["Idempotency-Key"]
    hook = {"eventType": "job.completed", "webhookUrl": f"{receiver.url}?token=KANARIE-TOKEN"}
    secret = client.data("POST", "/v1/webhooks/subscriptions", hook)["secret"]
    receiver.learn(secret)
    job = client.submit(customer, [*described, bad], **account)
    assert client.wait_for_job(job)["status"] == "CompletedWithErrors"
    client.wait_for_job(client.refresh(customer))
    assert receiver.wait_for(lambda each: each.json.get("jobId") == job, timeout_s=20) is not None

    for method, path, body in [
        ("GET", f"/v1/customers?abn={personal['abn']}&reference={personal['reference']}", None),
        ("GET", f"/v1/customer/{personal['abn']}", None),
        ("GET", f"/v1/{personal['reference']}/%0D%0AKANARIE%1B[31m", None),
        ("POST", "/v1/customer", personal | {"name": "Kanarie\r\nINFO forged\x1b[31m"}),
        ("POST", "/v1/customer", personal | {"abn": ["KANARIE"]}),
        ("POST", f"/v1/customer/{customer}/transactions", {"transactions": "KANARIENVOGEL", **account}),
        ("POST", "/v1/webhooks/subscriptions", hook | {"webhookUrl": "https://KANARIE:KANARIE@127.0.0.1/"}),
    ]:
        client.call(method, path, body)
    wrong_key = "tm_sandbox_KANARIE" + "x" * 40
    assert client.http.get(f"{service.base_url}/v1/jobs", headers={"x-api-key": wrong_key}).status_code == 401

    canaries = ["KANARIE", "Kanarie", "7741.25", secret, str(client.http.headers["x-api-key"]), *personal.values()]
    canaries += account.values()
    for place, content in {"log": service.log.read_bytes(), **read_dagster_storage(service)}.items():
        assert not [canary for canary in canaries if canary.encode() in content], place
    announced = ("API  ", "API documentation  ", "Dagster  ", "  operator's token  ", "Ready. ")
    lines = [line for line in service.log.read_text().splitlines() if not line.startswith(announced)]
    parts = {json.loads(line)["part"] for line in lines}
    assert "api" in parts


def read_dagster_storage(service: Service) -> dict[str, bytes]:
    """Return everything in Dagster's folder and tables, by place."""
    found = {str(path): path.read_bytes() for path in (service.home / "dagster").rglob("*") if path.is_file()}
    store = service.store()
    if not store.db.is_sqlite:
        with store.db.reading() as r:
            for table in inspect(r).get_table_names("dagster"):
                rows = r.exec_driver_sql(f'SELECT each::text FROM dagster."{table}" AS each').scalars()
                found[table] = "\n".join(rows).encode()
        assert found["event_logs"]
    store.close()
    return found
