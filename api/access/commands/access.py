"""Commands for clients and their API keys."""

from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, duration, now, opened_store, print_record, print_records
from storage.access import approvals, keys
from storage.access.approvals import NO_FOUR_EYES, REQUIRABLE
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.models import ApprovalKind

clients = typer.Typer(help="Clients: the lenders' systems that call the API.", no_args_is_help=True)
api_keys = typer.Typer(help="API keys: issue, list, rotate, revoke.", no_args_is_help=True)

NOT_IN_ALL_SCOPES = "customer:delete"  # is for erasure, which can't be undone: nobody should have it by accident


@clients.command("create")
def create_client(
    name: Annotated[str, typer.Argument(help="Name of the client.")],
    no_decision_policies: Annotated[
        bool, typer.Option("--no-decision-policies", help="Do not enable decision policies.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a client.

    Example: tidemark clients create "Harbour Lending"
    """
    with opened_store() as store, store.db.writing() as w:
        client = keys.create_client(w, name, not no_decision_policies, now())
        audit.append(w, OPERATOR, "Client.Created", {}, now(), client_id=client.client_id)
    print_record(_client(client), as_json=as_json)


@clients.command("list")
def list_clients(as_json: AsJson = False) -> None:
    """List the clients.

    Example: tidemark clients list --json
    """
    with opened_store() as store, store.db.reading() as r:
        found = keys.find_clients(r)
    print_records([_client(client) for client in found], as_json=as_json, empty="No clients yet.")


@clients.command("set")
def set_client(
    client: Annotated[UUID, typer.Argument(parser=ids.CLIENT, metavar="ID", help="The client's id.")],
    four_eyes: Annotated[
        str,
        typer.Option(
            help="Actions that a second person or key must approve, separated by commas: "
            f"{', '.join(REQUIRABLE)}. Empty: none."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Set which actions of a client need an approval.

    Example: tidemark clients set 2f0c… --four-eyes publish,override
    """
    kinds = _approval_kinds(four_eyes)
    with opened_store() as store, store.db.writing() as w:
        approvals.set_four_eyes(w, client, kinds)
        named = {"fourEyes": ",".join(kinds) or NO_FOUR_EYES}
        audit.append(w, OPERATOR, "Client.FourEyesSet", named, now(), client_id=client)
        changed = keys.get_client(w, client)
    print_record(_client(changed), as_json=as_json)


@api_keys.command("create")
def create_key(
    client: Annotated[UUID, typer.Option(parser=ids.CLIENT, metavar="ID", help="The client's id.")],
    scope: Annotated[list[str] | None, typer.Option(help="A scope. Can be repeated.")] = None,
    all_scopes: Annotated[bool, typer.Option(help=f"All scopes except {NOT_IN_ALL_SCOPES}.")] = False,
    expires_in: Annotated[str | None, typer.Option(help="Lifetime, such as 90d. Default: unlimited.")] = None,
    as_json: AsJson = False,
) -> None:
    """Issue a key. It is shown only now.

    Example: tidemark keys create --client 2f0c… --scope transactions:enrich --expires-in 90d
    """
    scopes = _scopes(scope or [], all_scopes=all_scopes)
    created = now()
    expires = None if expires_in is None else created + duration(expires_in)
    with opened_store() as store, store.db.writing() as w:
        key, text = keys.create_key(w, client, scopes, expires, store.settings.key_prefix, created)
        audit.append(w, OPERATOR, "Key.Created", {"keyId": key.key_id}, created, client_id=client)
    print_record(_describe_issued_key(key, text), as_json=as_json)


@api_keys.command("list")
def list_keys(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only keys of this client.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List keys. The keys themselves are not shown.

    Example: tidemark keys list --client 2f0c…
    """
    with opened_store() as store, store.db.reading() as r:
        found = keys.find_keys(r, client)
    columns = ("keyId", "clientId", "hint", "scopes", "expiresAt", "revokedAt")
    print_records([_key(key) for key in found], as_json=as_json, empty="No keys yet.", columns=columns)


@api_keys.command("rotate")
def rotate_key(
    key_id: Annotated[UUID, typer.Argument(parser=ids.KEY, metavar="ID", help="The key's id.")],
    overlap: Annotated[str, typer.Option(help="How long the old key stays valid, such as 24h or 0s.")] = "24h",
    as_json: AsJson = False,
) -> None:
    """Replace a key by a new one with the same client and scopes. The new one is shown only now.

    Example: tidemark keys rotate 7d1e… --overlap 24h
    """
    rotated, lasting = now(), duration(overlap)
    with opened_store() as store, store.db.writing() as w:
        key, text = keys.rotate(w, key_id, lasting, store.settings.key_prefix, rotated)
        resource = {"keyId": key_id, "successorKeyId": key.key_id}
        audit.append(w, OPERATOR, "Key.Rotated", resource, rotated, client_id=key.client_id)
    print_record(_describe_issued_key(key, text), as_json=as_json)


@api_keys.command("revoke")
def revoke_key(
    key_id: Annotated[UUID, typer.Argument(parser=ids.KEY, metavar="ID", help="The key's id.")], as_json: AsJson = False
) -> None:
    """Revoke a key. Its next request is refused.

    Example: tidemark keys revoke 7d1e…
    """
    with opened_store() as store, store.db.writing() as w:
        client_id = keys.revoke(w, key_id, now())
        audit.append(w, OPERATOR, "Key.Revoked", {"keyId": key_id}, now(), client_id=client_id)
    print_record({"keyId": key_id, "revoked": True}, as_json=as_json)


def _scopes(named: Iterable[str], *, all_scopes: bool) -> set[str]:
    if unknown := set(named) - set(keys.SCOPES):
        raise typer.BadParameter(f"unknown scope {', '.join(sorted(unknown))}; the scopes are {', '.join(keys.SCOPES)}")
    scopes = set(named) | (set(keys.SCOPES) - {NOT_IN_ALL_SCOPES} if all_scopes else set())
    if not scopes:
        raise typer.BadParameter("give --scope or --all-scopes")
    return scopes


def _approval_kinds(named: str) -> list[ApprovalKind]:
    names = [name.strip() for name in named.split(",") if name.strip()]
    if unknown := set(names) - set(REQUIRABLE):
        raise typer.BadParameter(f"unknown action {', '.join(sorted(unknown))}; they are {', '.join(REQUIRABLE)}")
    return [kind for kind in REQUIRABLE if kind in names]


def _client(client: keys.Client) -> dict[str, Any]:
    return {
        "clientId": client.client_id,
        "name": client.name,
        "decisionPolicies": client.decision_policies,
        "fourEyes": list(client.four_eyes),
        "dateCreated": client.created_at,
    }


def _describe_issued_key(key: keys.Key, text: str) -> dict[str, Any]:
    return {"keyId": key.key_id, "key": text, "scopes": list(key.scopes), "expiresAt": key.expires_at}


def _key(key: keys.Key) -> dict[str, Any]:
    return {
        "keyId": key.key_id,
        "clientId": key.client_id,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "dateCreated": key.created_at,
        "expiresAt": key.expires_at,
        "revokedAt": key.revoked_at,
        "rotatedTo": key.rotated_to,
    }
