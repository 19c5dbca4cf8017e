"""`tidemark listen`: receive webhooks while developing."""

from collections.abc import Sequence
from typing import Annotated

import typer

from api.core.commands.console import AsJson, out
from api.webhooks import listen as receiver
from api.webhooks.listen import Manners
from pipelines.webhooks.events import key_of
from storage.core.settings import Settings


def listen(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8443,
    secret: Annotated[list[str] | None, typer.Option(help="A signing secret to verify with; repeat for more.")] = None,
    forward_to: Annotated[
        str | None, typer.Option(metavar="URL", help="Pass each delivery on to this URL, and answer with its status.")
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="Answer with this status.")] = 204,
    hang: Annotated[bool, typer.Option("--hang", help="Never answer, to see what a time-out does.")] = False,
    drip: Annotated[bool, typer.Option("--drip", help="Answer one byte a second.")] = False,
    as_json: AsJson = False,
) -> None:
    """Receive webhooks while developing: an HTTPS server that verifies and prints.

    Example: tidemark listen --port 8443 --secret cGxlYXNl… --forward-to http://127.0.0.1:3000/hooks
    """
    manners = Manners(status=status, forward_to=forward_to, hang=hang, drip=drip)
    _check_manners(manners)
    _check_secrets(secret or [])
    receiver.listen(Settings().prepared().home, port, secret or [], manners, out, as_json=as_json)


def _check_manners(manners: Manners) -> None:
    if sum((manners.forward_to is not None, manners.hang, manners.drip)) > 1:
        raise typer.BadParameter("--forward-to, --hang and --drip exclude one another")
    if manners.status != Manners.status and (manners.hang or manners.forward_to is not None):
        raise typer.BadParameter("with --hang or --forward-to there is no --status to answer with")
    if manners.forward_to is not None and not manners.forward_to.startswith(("http://", "https://")):
        raise typer.BadParameter("--forward-to must be an http:// or https:// URL")


def _check_secrets(secrets: Sequence[str]) -> None:
    try:
        for each in secrets:
            key_of(each)
    except ValueError as error:
        raise typer.BadParameter(f"--secret: {error}") from error
