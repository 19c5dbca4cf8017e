"""Commands for the homes that use one database."""

from typing import Annotated

import typer

from api.core.commands.console import AsJson, now, opened_store, out, print_records
from pipelines.vocabulary.errors import NotFound
from storage.core import audit
from storage.core import homes as recorded
from storage.core.audit import OPERATOR

homes = typer.Typer(help="The other homes that use this home's database.", no_args_is_help=True)

Identity = Annotated[str, typer.Argument(help="As listed.", show_default=False)]


@homes.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the other homes: their machines, and the day they were last opened.

    Example: tidemark homes list
    """
    with opened_store() as store, store.db.reading() as r:
        found = recorded.list_others(r, store.settings)
    records = [{"identity": home.identity, "machine": home.machine, "openedAt": home.opened_at} for home in found]
    print_records(records, as_json=as_json, empty="No other home uses this database.")


@homes.command("forget")
def forget(identity: Identity) -> None:
    """Forget a home whose folder is gone, so that find no longer asks for it.

    A home that still exists is recorded again when it is next opened.

    Example: tidemark homes forget 3f2a9c0e7b1d4856
    """
    with opened_store() as store, store.db.writing() as w:
        if not recorded.forget(w, identity):
            raise NotFound("Home.NotFound", f"No home {identity} is recorded: tidemark homes list shows them.")
        audit.append(w, OPERATOR, "Home.Forgotten", {"home": identity}, now())
    out.print(f"Forgot home {identity}.")
