"""After kills at awkward moments and a restart, every accepted job ends correctly and once."""

from collections.abc import Iterator
from datetime import date

import psutil
import pytest

from api.webhooks.listen import Receiver
from pipelines.synthetic import plain_rows
from tests.conftest import SQLITE_FIRST, new_database
from tests.flows.conftest import start_service
from tests.flows.service import Client, Service

pytestmark = pytest.mark.timeout(300)
ROWS = 50


@pytest.fixture(scope="module", params=SQLITE_FIRST)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> Iterator[Service]:
    """Return a service that the tests kill."""
    with start_service(tmp_path_factory.mktemp("killed"), new_database(request, request.param), receiver) as running:
        yield running


def submit_many(client: Client, customers: int) -> dict[str, str]:
    """Submit once for each of several new customers. Return the job of each customer."""
    rows = plain_rows(ROWS, seed=1, until=date(2026, 10, 31))
    made = [client.customer() for _ in range(customers)]
    return {customer: client.submit(customer, rows) for customer in made}


def assert_all_completed_once(client: Client, jobs: dict[str, str]) -> None:
    """Assert that each job is completed and each of its rows is visible exactly once."""
    for customer, job in jobs.items():
        ended = client.wait_for_job(job)
        assert (ended["status"], ended["enrichedCount"], ended["duplicateCount"]) == ("Completed", ROWS, 0)
        ids = [row["transactionId"] for row in client.transactions(customer)]
        assert len(ids) == len(set(ids)) == ROWS


def kill(victims: list[psutil.Process]) -> None:
    assert victims, "there was nothing to kill"
    for process in victims:
        process.kill()


def test_a_worker_killed_mid_batch_loses_nothing(service: Service, client: Client) -> None:
    jobs = submit_many(client, 5)
    kill(service.processes("assets.service.worker"))
    assert_all_completed_once(client, jobs)


def test_killing_the_daemon_delays_no_job(service: Service, client: Client) -> None:
    kill(service.processes("assets.dagster_internals.web_and_daemon"))
    assert_all_completed_once(client, submit_many(client, 3))


@pytest.mark.slow
def test_accepted_jobs_survive_a_kill_of_everything(service: Service, client: Client) -> None:
    jobs = submit_many(client, 20)
    service.kill_everything()
    service.start()
    assert_all_completed_once(client, jobs)


@pytest.mark.slow
def test_each_finished_job_sends_each_event_once_however_often_it_was_killed(
    service: Service, client: Client, receiver: Receiver
) -> None:
    body = {"eventType": "job.completed", "webhookUrl": receiver.url}
    receiver.learn(client.data("POST", "/v1/webhooks/subscriptions", body)["secret"])
    jobs = submit_many(client, 3)
    service.kill_everything()
    service.start()
    assert_all_completed_once(client, jobs)
    for job in jobs.values():
        assert receiver.wait_for(lambda each, job=job: each.json.get("jobId") == job, timeout_s=40)
        reported = [each for each in receiver.received if each.json.get("jobId") == job]
        assert len({each.json["eventId"] for each in reported}) == 1
        assert all(each.verified for each in reported)
