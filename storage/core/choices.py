"""Choices of clients, in tables that only grow. A client's last row applies; null means that it has no choice now."""

from typing import Any

from sqlalchemy import Column, select

from storage.core.database import Reading


def find_last_chosen(r: Reading, chosen: Column[Any]) -> dict[Any, Any]:
    """Return the last value of a column by client, without the clients whose last value is null.

    Args:
        chosen: a column of a table with `number`, which orders the choices, and `client_id`.
    """
    table = chosen.table.c
    rows = r.execute(select(table.client_id, chosen).order_by(table.number)).all()
    last = dict(map(tuple, rows))
    return {client_id: value for client_id, value in last.items() if value is not None}
