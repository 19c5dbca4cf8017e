"""The tables of both databases are searched. What else is searched: `tests.api.operations.test_personal_data`."""

from datetime import datetime
from uuid import uuid4

from storage.access import users
from storage.access.roles import Role
from storage.core.store import Store
from storage.operations.personal_data import Trace, find
from tests.storage.examples import a_client


def test_tables_are_searched(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    email = f"ada@{uuid4()}.example"
    with store.db.writing() as w:
        user = users.create(w, client_id, email, "Ada", Role.VIEWER, now)
    [trace] = find(store, [email.upper()], lambda _: ("", True))
    assert trace in (Trace("users", str(user.user_id)), Trace("users", user.user_id.hex))
