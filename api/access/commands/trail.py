"""Commands for the audit trail: who did what to which resource, when, and with which outcome."""

from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, duration, now, opened_store, print_records
from storage.core import audit
from storage.core.audit import Entry

COLUMNS = ("at", "who", "action", "resource", "outcome")

trail = typer.Typer(help="The audit trail.", no_args_is_help=True)


@trail.command("list")
def list_entries(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only actions of this client, or for it.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only the latest period, such as 24h.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of entries.")] = 1_000,
    as_json: AsJson = False,
) -> None:
    """List the entries of the audit trail, newest first. Entries are never changed or deleted.

    Example: tidemark audit list --since 24h
    """
    start = None if since is None else now() - duration(since)
    with opened_store() as store, store.db.reading() as r:
        found = audit.find(r, client, start, limit)
    print_records([_record(each) for each in found], columns=COLUMNS, as_json=as_json, empty="No entries.")


def _record(entry: Entry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "who": entry.who,
        "clientId": entry.client_id,
        "action": entry.action,
        "resource": entry.resource,
        "outcome": entry.outcome,
        "times": entry.times,
        "requestId": entry.request_id,
        "ownRequestId": entry.own_request_id,
    }
