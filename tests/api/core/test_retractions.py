"""A submission is retracted by a job, once, and only after it has ended."""

from uuid import uuid4

import pytest

from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.worker import end_submissions


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


@pytest.fixture
def submission(store: Store, client: Client, customer_id: str) -> str:
    """A submission that has ended."""
    job_id = client.submit_transactions(customer_id)
    end_submissions(store)
    return job_id


def retract(client: Client, customer_id: str, job_id: str) -> tuple[int, str]:
    """Retract a submission; return the status, and the code or the retraction's job id."""
    answer = client.delete(f"/v1/customer/{customer_id}/submissions/{job_id}")
    body = answer.json()
    return answer.status_code, body["code"] if "code" in body else body["data"]["jobId"]


def test_a_retraction_is_a_job_to_poll(store: Store, client: Client, customer_id: str, submission: str) -> None:
    answer = client.delete(f"/v1/customer/{customer_id}/submissions/{submission}")
    job = answer.json()["data"]
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/jobs/{job['jobId']}/status"
    assert answer.headers["Retry-After"] == "1"
    assert (job["flow"], job["jobType"], job["withdraws"]) == ("Withdrawal", "Withdrawal", submission)
    assert [stage["stage"] for stage in job["stages"]] == ["withdrawal"]
    with store.db.reading() as r:
        entry = audit.find(r, client.client_id)[0]
    assert (entry.action, entry.resource) == (
        "Submission.Retracted",
        {"customerId": customer_id, "jobId": submission},
    )
    end_submissions(store)
    ended = client.get(answer.headers["Location"]).json()["data"]
    assert (ended["status"], ended["totalReceivedTransactions"], ended["enrichedCount"]) == ("Completed", 0, 0)
    listed = client.get("/v1/jobs?flow=Withdrawal").json()["data"]["jobs"]
    assert [each["jobId"] for each in listed] == [job["jobId"]]


def test_a_repeated_retraction_answers_with_the_same_job(client: Client, customer_id: str, submission: str) -> None:
    first = retract(client, customer_id, submission)
    assert retract(client, customer_id, submission) == first


def test_an_unfinished_submission_is_not_retracted(client: Client, customer_id: str) -> None:
    waiting = client.submit_transactions(customer_id)
    assert retract(client, customer_id, waiting) == (409, "Submission.Unfinished")


def test_a_job_that_is_no_submission_of_the_customer_is_not_found(
    client: Client, other_client: Client, customer_id: str, submission: str
) -> None:
    refresh = client.post(f"/v1/customer/{customer_id}/reports/refresh").json()["data"]["jobId"]
    _, retraction = retract(client, customer_id, submission)
    for job_id in (refresh, retraction, str(uuid4()), "x"):
        assert retract(client, customer_id, job_id) == (404, "Job.NotFound")
    assert retract(client, client.new_customer(), submission) == (404, "Job.NotFound")
    assert retract(client, str(uuid4()), submission) == (404, "Customer.NotFound")
    assert retract(other_client, customer_id, submission) == (404, "Customer.NotFound")
    assert retract(other_client, other_client.new_customer(), submission) == (404, "Job.NotFound")
