"""The fake worker ends every queued job, whenever it was received."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import update

from storage.core.models import jobs
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.worker import end_submissions


def test_submissions_received_before_and_after_midnight_end(store: Store, client: Client) -> None:
    customer_ids = [client.new_customer() for _ in range(2)]
    early, late = (client.submit_transactions(each) for each in customer_ids)
    with store.db.writing() as w:
        yesterday = datetime.now(UTC) - timedelta(days=1)
        w.execute(update(jobs).where(jobs.c.job_id == UUID(early)).values(created_at=yesterday))
    end_submissions(store)
    answers = [client.get(f"/v1/jobs/{each}/status").json()["data"] for each in (early, late)]
    assert [each["status"] for each in answers] == ["Completed", "Completed"]
