"""The audit trail stores entries; `test_tables` checks that the database refuses to change them."""

from datetime import datetime, timedelta
from uuid import uuid4

from storage.core import audit
from storage.core.audit import OPERATOR, Actor, Entry, Outcome
from storage.core.store import Store


def test_entry_has_actor_action_resource_time_and_outcome(store: Store, now: datetime) -> None:
    client_id, key_id, subscription_id = uuid4(), uuid4(), uuid4()
    with store.db.writing() as w:
        audit.append(w, OPERATOR, "Client.Created", {}, now, client_id=client_id)
        actor = Actor(str(key_id), client_id, "request-1", "own-1")
        audit.append(w, actor, "Subscription.Deleted", {"subscriptionId": subscription_id}, now)
    with store.db.reading() as r:
        newest, oldest = audit.find(r, client_id)
    ids = {"subscriptionId": str(subscription_id)}
    deleted = (now, str(key_id), client_id, "Subscription.Deleted", ids, Outcome.DONE, 1, "request-1", "own-1")
    assert newest == Entry(*deleted)
    assert (oldest.who, oldest.client_id, oldest.resource) == ("operator", client_id, {})


def test_entries_are_found_by_client_and_time(store: Store, now: datetime) -> None:
    ours, theirs = uuid4(), uuid4()
    with store.db.writing() as w:
        audit.append(w, OPERATOR, "Key.Created", {}, now - timedelta(days=2), client_id=ours)
        audit.append(w, OPERATOR, "Key.Revoked", {}, now, client_id=ours)
        audit.append(w, OPERATOR, "Key.Created", {}, now, client_id=theirs)
    with store.db.reading() as r:
        assert [entry.action for entry in audit.find(r, ours)] == ["Key.Revoked", "Key.Created"]
        assert [entry.action for entry in audit.find(r, ours, now - timedelta(days=1))] == ["Key.Revoked"]
        assert [entry.client_id for entry in audit.find(r, limit=2)] == [theirs, ours]
