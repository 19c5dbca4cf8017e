"""Commands for event types and their JSON Schemas."""

from pathlib import Path
from typing import Annotated

import typer

from api.core.commands.console import AsJson, print_records
from api.core.commands.files import folder_at, write
from api.webhooks import event_schemas
from pipelines.webhooks.events import EventType

events = typer.Typer(help="Events of webhooks: list the types, print their schemas.", no_args_is_help=True)


@events.command("list")
def list_types(as_json: AsJson = False) -> None:
    """List the event types. A subscription is for one of them.

    Example: tidemark events list
    """
    records = [{"eventType": each, "meaning": " ".join(event_schemas.DESCRIPTIONS[each].split())} for each in EventType]
    print_records(records, as_json=as_json, empty="")


@events.command("schema")
def print_schema(
    event_type: Annotated[EventType, typer.Argument(help="A type, such as job.completed.", metavar="TYPE")],
) -> None:
    """Print the JSON Schema of an event type, with an example.

    Example: tidemark events schema monitoring.rule.triggered
    """
    typer.echo(event_schemas.as_text(event_type), nl=False)


@events.command("write")
def write_schemas(folder: Annotated[Path, typer.Argument(help="The folder; created if missing.")]) -> None:
    """Write the JSON Schemas of all event types to a folder.

    Example: tidemark events write docs/reference/events
    """
    for name, text in event_schemas.files().items():
        write(folder_at(folder) / name, text.encode())
