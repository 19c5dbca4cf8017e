"""Commands for the keys that encrypt stored secrets: list and rotate them."""

from typing import Annotated, Any

import typer

from api.core.commands.console import AsJson, now, opened_store, out, print_json, print_record, print_records
from pipelines.vocabulary.errors import Conflict
from storage.core import vault_keys
from storage.core.database import Database
from storage.core.settings import Settings
from storage.core.vault_keys import DataKey, Sealed
from storage.operations import resealing

secrets = typer.Typer(help="Keys that encrypt stored secrets: list and rotate them.", no_args_is_help=True)

Reseal = Annotated[bool, typer.Option("--reseal", help="Replace the data key, and encrypt everything again.")]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm: what the lost key encrypted cannot be decrypted again.")]


@secrets.command("status")
def status(as_json: AsJson = False) -> None:
    """List the keys, and how much each encrypts. The keys themselves are not shown.

    Example: tidemark secrets status
    """
    with opened_store() as store:
        store.vault.refresh()  # keys are created when first needed
        with store.db.reading() as r:
            keys, sealed, master = (
                vault_keys.read_data_keys(r),
                vault_keys.count_sealed(r),
                vault_keys.find_master_key_fingerprint(r),
            )
        settings = store.settings
        source = str(settings.key_file) if settings.keeps_key_file else "TIDEMARK_MASTER_KEY"
        unfinished = settings.keeps_key_file and vault_keys.find_waiting_master_key(settings) is not None
    record = {"masterKey": master, "source": source, "rotationUnfinished": unfinished}
    records = [_key(key, sealed.get(key.key_id, Sealed()), master) for key in keys]
    if as_json:
        print_json({**record, "dataKeys": records})
        return
    print_record(record, as_json=False)
    out.print()
    print_records(records, as_json=False, empty="")


@secrets.command("rotate")
def rotate(reseal: Reseal = False, as_json: AsJson = False) -> None:
    """Replace the master key while the service runs. Run it again if it is interrupted.

    If the master key is in TIDEMARK_MASTER_KEY, put the new one in
    TIDEMARK_NEW_MASTER_KEY, run this, and restart all processes with it as
    TIDEMARK_MASTER_KEY. With --reseal the data key is replaced instead, which
    reads and writes every stored PDF and attachment.

    Example: tidemark secrets rotate
    """
    if reseal:
        _reseal(as_json)
        return
    settings = Settings().prepare()
    db = Database(settings.database)
    try:
        rotated = vault_keys.rotate_master_key(db, settings, now())
    finally:
        db.close()
    record = {"before": rotated.before, "masterKey": rotated.now, "resumed": rotated.resumed}
    print_record(record, as_json=as_json)
    if not as_json and settings.keeps_key_file:
        out.print(f"Keep a separate copy of {settings.key_file}. Earlier backups need the earlier key.")
    elif not as_json:
        out.print("Restart all processes with the new key as TIDEMARK_MASTER_KEY.")


def _reseal(as_json: bool) -> None:
    """Replace the data key. Exit with status 1 if something could not be decrypted."""
    with opened_store() as store:
        done = resealing.reseal(store, now)
        gone = vault_keys.delete_unused_keys(store.db, now())
    record = {
        "dataKey": done.data_key,
        "made": done.made,
        "webhookSecrets": done.webhook_secrets,
        "originals": done.originals,
        "passwords": done.passwords,
        "unreadable": list(done.unreadable),
        "forgottenKeys": gone,
    }
    print_record(record, as_json=as_json)
    if done.unreadable:
        raise typer.Exit(1)


@secrets.command("abandon")
def abandon(yes: Yes = False, as_json: AsJson = False) -> None:
    """Start again with the current master key after the previous one was lost.

    Webhook secrets must then be rotated.

    Example: tidemark secrets abandon --yes
    """
    if not yes:
        raise Conflict("Key.NotConfirmed", "What the lost key encrypted cannot be decrypted again. Confirm with --yes.")
    settings = Settings().prepare()
    db = Database(settings.database)
    try:
        vault_keys.abandon(db, settings, now())
        with db.reading() as r:
            print_record({"masterKey": vault_keys.find_master_key_fingerprint(r)}, as_json=as_json)
    finally:
        db.close()


def _key(key: DataKey, sealed: Sealed, master: str | None) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "purpose": key.purpose.value,
        "state": _state(key, master),
        "createdAt": key.created_at,
        "retiredAt": key.retired_at,
        "wrappedBy": key.wrapped_by,
        "webhookSecrets": sealed.webhook_secrets,
        "originals": sealed.originals,
        "passwords": sealed.passwords,
    }


def _state(key: DataKey, master: str | None) -> str:
    if key.retired_at is None:
        return "in use"
    return "retired" if key.wrapped_by == master else "lost"
