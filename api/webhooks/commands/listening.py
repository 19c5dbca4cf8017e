"""`tidemark listen`: receive webhooks during development."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, complaint, opened_store, out, print_json, warn
from api.webhooks import listen as receiver
from api.webhooks.listen import Behaviour, Receiver
from api.webhooks.subscribing import is_reached, temporary_subscriptions
from pipelines.webhooks.events import EventType, decode_secret
from storage.access import keys
from storage.core.settings import Environment, Settings
from storage.core.store import Store


def listen(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")] = 8443,
    secret: Annotated[list[str] | None, typer.Option(help="A signing secret to verify with. Can be repeated.")] = None,
    forward_to: Annotated[
        str | None, typer.Option(metavar="URL", help="Forward each delivery to this URL, and respond with its status.")
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="Respond with this status.")] = 204,
    hang: Annotated[bool, typer.Option("--hang", help="Never answer, to test a timeout.")] = False,
    drip: Annotated[bool, typer.Option("--drip", help="Respond with one byte per second.")] = False,
    subscribe: Annotated[
        bool, typer.Option("--subscribe", help="Subscribe while listening, in a sandbox on this machine.")
    ] = False,
    client: Annotated[
        UUID | None,
        typer.Option(
            parser=ids.CLIENT, metavar="ID", help="With --subscribe: whose events. Default: the only client's."
        ),
    ] = None,
    event_type: Annotated[
        list[EventType] | None,
        typer.Option(metavar="TYPE", help="With --subscribe: only this type of event. Can be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Receive webhooks during development: an HTTPS server that verifies and prints them.

    With --subscribe, a service with the same home sends events here while
    the command runs; it needs no setting and no restart. Ctrl-C deletes the
    subscriptions.

    Example: tidemark listen --subscribe --event-type job.completed
    """
    behaviour = Behaviour(status=status, forward_to=forward_to, hang=hang, drip=drip)
    _check_behaviour(behaviour)
    _check_secrets(secret or [])
    settings = Settings().prepare()
    if not subscribe and (client or event_type):
        raise typer.BadParameter("--client and --event-type go with --subscribe")
    if not subscribe:
        receiver.listen(settings.home, port, secret or [], behaviour, out, as_json=as_json)
        return
    if settings.environment is not Environment.SANDBOX:
        raise complaint("webhooks of production never go to this machine: set TIDEMARK_ENVIRONMENT=sandbox")
    with opened_store() as store:
        client_id = client or _only_client(store)
        around = partial(_subscribing, store, client_id, event_type or list(EventType), as_json)
        receiver.listen(settings.home, port, secret or [], behaviour, out, as_json=as_json, meanwhile=around)


@contextmanager
def _subscribing(
    store: Store, client: UUID, event_types: Sequence[EventType], as_json: bool, to: Receiver
) -> Iterator[None]:
    """Subscribe the receiver, and report whether a test event arrives."""
    with temporary_subscriptions(store, to, client, event_types) as made:
        if as_json:
            print_json({"subscriptionIds": [each.subscription_id for each in made]})
        else:
            out.print(f"Subscribed to {', '.join(event_types)}.", highlight=False)
        if not is_reached(store, to, made[0]):
            warn("no test event arrived: start a service with this home on this machine, for example tidemark up")
        yield


def _only_client(store: Store) -> UUID:
    with store.db.reading() as r:
        found = keys.find_clients(r)
    if len(found) != 1:
        raise typer.BadParameter("there is no client yet" if not found else "give --client: there is more than one")
    return found[0].client_id


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
            decode_secret(each)
    except ValueError as error:
        raise typer.BadParameter(f"--secret: {error}") from error
