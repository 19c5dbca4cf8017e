"""Reading changes nothing: no GET of the API or the console writes to the tables of the business."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic.alias_generators import to_camel
from sqlalchemy import Engine, event, update

from storage.access.roles import Role
from storage.core.models import work_items
from storage.core.store import Store
from tests.api.conftest import Belongings, Client
from tests.api.console.test_pages import list_paths
from tests.api.console.visitor import visit_as
from tests.api.core.operations import list_operations

# Who read and when (`sessions`), what was refused (`audit`), and counts that are derived at the first reading
# (`storage.enrichment.day_counts`).
BOOKKEEPING = {"audit", "sessions", "client_day_counts", "customer_day_counts"}
NO_IDS = {"section_id": "monthly", "version": "1", "page_number": "1"}


@pytest.fixture
def own(store: Store, client: Client) -> Belongings:
    """Everything that a client may have, among it an alert whose snooze has ended."""
    own = Belongings(store, client)
    snooze = {"action": "snooze", "until": "2036-01-01T00:00:00Z"}
    assert client.post(f"/v1/alerts/{own['matchId']}/actions", snooze).ok
    with store.db.writing() as w:  # as if the time had come
        w.execute(update(work_items).values(snoozed_until=datetime.now(UTC)))
    return own


@contextmanager
def record_writes(engine: Engine) -> Iterator[set[str]]:
    """Yield the names of the tables that statements change, until the end of the block."""
    tables = set[str]()

    def note(_connection: Any, clause: Any, *_: object) -> None:
        if getattr(clause, "is_dml", False) and not clause.is_select:
            tables.add(clause.table.name)

    event.listen(engine, "before_execute", note)
    yield tables
    event.remove(engine, "before_execute", note)


@pytest.mark.service  # every page and operation answers, among them PDFs and page images: seconds
def test_reading_writes_nothing(store: Store, client: Client, own: Belongings, subtests: pytest.Subtests) -> None:
    visitor = visit_as(store, client.base_url, client.client_id, Role.ADMIN)
    operations = [each for each in list_operations() if each.method == "GET"]
    reads = {each.path_for({name: own[name] for name in each.ids}): client.get for each in operations}
    reads |= dict.fromkeys(list_paths(store, "GET", lambda name: NO_IDS.get(name) or own[to_camel(name)]), visitor.get)
    for path, read in reads.items():
        with subtests.test(path), record_writes(store.db.engine) as tables:
            assert read(path).status_code != 404
            assert tables <= BOOKKEEPING
