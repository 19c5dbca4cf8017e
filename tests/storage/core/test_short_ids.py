"""Resources are found by the first digits of their ids."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import insert

from storage.core import short_ids
from storage.core.models import clients
from storage.core.store import Store

IDS = [UUID(f"{start:<032}") for start in ("2f0c81d6", "2f0c81d7", "ffffffff", "000000")]


def test_ids_are_found_by_their_first_digits(store: Store, now: datetime) -> None:
    rows = [{"client_id": each, "name": "A lender", "decision_policies": True, "created_at": now} for each in IDS]
    with store.db.writing() as w:
        w.execute(insert(clients), rows)
        for each in IDS:
            for count in range(short_ids.MIN_DIGITS, short_ids.DIGITS + 1):
                digits = each.hex[:count]
                same = [other for other in IDS if other.hex.startswith(digits)]
                assert sorted(short_ids.find_ids_starting_with(w, clients.c.client_id, digits)) == sorted(same)
        assert short_ids.find_ids_starting_with(w, clients.c.client_id, "2f0c82") == []
