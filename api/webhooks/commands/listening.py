"""`tidemark listen`: receive webhooks during development."""

from collections.abc import Sequence
from typing import Annotated

import typer

from api.core.commands.console import AsJson, out
from api.webhooks import listen as receiver
from api.webhooks.listen import Behaviour
from pipelines.webhooks.events import key_of
from storage.core.settings import Settings


def listen(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")] = 8443,
    secret: Annotated[list[str] | None, typer.Option(help="A signing secret to verify with. Can be repeated.")] = None,
    forward_to: Annotated[
        str | None, typer.Option(metavar="URL", help="Forward each delivery to this URL, and answer with its status.")
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="Answer with this status.")] = 204,
    hang: Annotated[bool, typer.Option("--hang", help="Never answer, to test a timeout.")] = False,
    drip: Annotated[bool, typer.Option("--drip", help="Answer with one byte per second.")] = False,
    as_json: AsJson = False,
) -> None:
    """Receive webhooks during development: an HTTPS server that verifies and prints them.

    Example: tidemark listen --port 8443 --secret cGxlYXNl… --forward-to http://127.0.0.1:3000/hooks
    """
    behaviour = Behaviour(status=status, forward_to=forward_to, hang=hang, drip=drip)
    _check_behaviour(behaviour)
    _check_secrets(secret or [])
    receiver.listen(Settings().prepared().home, port, secret or [], behaviour, out, as_json=as_json)


def _check_behaviour(behaviour: Behaviour) -> None:
    if sum((behaviour.forward_to is not None, behaviour.hang, behaviour.drip)) > 1:
        raise typer.BadParameter("--forward-to, --hang and --drip exclude each other")
    if behaviour.status != Behaviour.status and (behaviour.hang or behaviour.forward_to is not None):
        raise typer.BadParameter("--status excludes --hang and --forward-to")
    if behaviour.forward_to is not None and not behaviour.forward_to.startswith(("http://", "https://")):
        raise typer.BadParameter("--forward-to must be an http:// or https:// URL")


def _check_secrets(secrets: Sequence[str]) -> None:
    try:
        for each in secrets:
            key_of(each)
    except ValueError as error:
        raise typer.BadParameter(f"--secret: {error}") from error
