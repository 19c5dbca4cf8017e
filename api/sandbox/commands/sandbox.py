"""`tidemark sandbox`: create synthetic customers that a client can work with."""

from typing import Annotated
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, complaint, now, opened_store, print_record, print_records
from api.sandbox import creating
from api.sandbox.schemas import USUAL_MONTHS, NewSandboxCustomer
from pipelines.synthetic.sandbox import MAX_MONTHS, MIN_MONTHS, PROFILES
from storage.access import keys
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.settings import Environment

sandbox = typer.Typer(help="The sandbox: synthetic customers by profile.", no_args_is_help=True)


@sandbox.command("create")
def create(
    client: Annotated[UUID, typer.Option(parser=ids.CLIENT, metavar="ID", help="The client that gets the customer.")],
    profile: Annotated[str, typer.Option(help="The kind of business: see tidemark sandbox profiles.")],
    name: Annotated[str | None, typer.Option(help="Its name. Default: a made-up one.")] = None,
    months: Annotated[
        int, typer.Option(min=MIN_MONTHS, max=MAX_MONTHS, help="Months of transactions until yesterday.")
    ] = USUAL_MONTHS,
    as_json: AsJson = False,
) -> None:
    """Create a synthetic business as a customer, with attributes and transactions until yesterday.

    A running service enriches them, and every night adds the past day's.

    Example: tidemark sandbox create --client 2f0c81d6 --profile stacked
    """
    if profile not in PROFILES:
        raise typer.BadParameter(f"the profiles are {', '.join(PROFILES)}", param_hint="'--profile'")
    at = now()
    with opened_store() as store:
        if store.settings.environment is not Environment.SANDBOX:
            raise complaint("synthetic customers are refused in production: set TIDEMARK_ENVIRONMENT=sandbox")
        with store.db.reading() as r:
            keys.require_client(r, client)
        made = creating.make(store, NewSandboxCustomer.model_construct(profile=profile, name=name, months=months), at)
        with store.db.writing() as w:
            customer, jobs = creating.create(w, store, client, None, made, OPERATOR.who, at)
            resource = {"customerId": customer.customer_id}
            audit.append(w, OPERATOR, "Sandbox.CustomerCreated", resource, at, client_id=client)
    record = {
        "customerId": customer.customer_id,
        "name": customer.name,
        "abn": customer.abn,
        "profile": profile,
        "jobIds": [job.job_id for job in jobs],
    }
    print_record(record, as_json=as_json)


@sandbox.command("profiles")
def list_profiles(as_json: AsJson = False) -> None:
    """List the profiles.

    Example: tidemark sandbox profiles
    """
    records = [{"profile": slug, "summary": each.summary} for slug, each in PROFILES.items()]
    print_records(records, as_json=as_json, empty="")
