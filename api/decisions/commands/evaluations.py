"""Commands for evaluations: list them, show everything that they read, and replay them to prove the result."""

from hashlib import sha256
from typing import Annotated, Any
from uuid import UUID

import msgspec
import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, opened_store, out, print_json, print_record, print_records
from api.decisions import deciding
from pipelines.decisions import PlannedPolicy, Replay, decision
from pipelines.vocabulary.errors import Gone
from storage.core.database import Reading
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import context, policies
from storage.decisions import evaluations as stored_evaluations
from storage.decisions.evaluations import Evaluation
from storage.enrichment import transactions
from storage.enrichment.transactions import Location

evaluations = typer.Typer(help="Decisions: list, show and replay them.", no_args_is_help=True)

EvaluationId = Annotated[UUID, typer.Argument(parser=ids.EVALUATION, metavar="ID", help="The evaluation's id.")]
ClientId = Annotated[UUID, typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client's id.")]
COLUMNS = ("evaluationId", "customerId", "slug", "outcome", "overriddenOutcome", "at")  # on a terminal
REPRODUCED = "The record is identical, byte for byte."
DIFFERS = {
    "policy": "The version of the policy has changed.",
    "data": "The customer's data give other figures.",
    "engine": "The decision engine has changed.",
}


@evaluations.command("list")
def list_evaluations(
    client: ClientId,
    customer: Annotated[
        UUID | None, typer.Option(parser=ids.CUSTOMER, metavar="ID", help="Only this customer.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Only the policy with this slug.")] = None,
    shadows: Annotated[bool, typer.Option("--shadows", help="Include evaluations by challengers.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of evaluations.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List a client's evaluations, newest first.

    Example: tidemark evaluations list --client 2f0c… --policy working-capital-loan
    """
    with opened_store() as store, store.db.reading() as r:
        found = stored_evaluations.find(
            r,
            client,
            customer=None if customer is None else customers.get(r, client, customer),
            policy=None if policy is None else policies.get(r, client, policy),
            shadows=shadows,
            page=Page(1, limit),
        )
    records = map(_record, found.items)
    print_records(records, as_json=as_json, empty="No evaluations yet.", columns=COLUMNS)


@evaluations.command("show")
def show(evaluation_id: EvaluationId, as_json: AsJson = False) -> None:
    """Show an evaluation: inputs, attributes, metrics with causes, the trace and the response.

    Example: tidemark evaluations show 5b0e… --json
    """
    with opened_store() as store, store.db.reading() as r:
        found = stored_evaluations.get_of_any_client(r, evaluation_id)
        content = stored_evaluations.read_record(r, found)
        overrides = stored_evaluations.overrides_of(r, found)
    if as_json:
        reported = {"overrides": [vars(each) for each in overrides], "record": msgspec.Raw(content)}
        print_json({**_record(found), **reported})
        return
    print_record({**_record(found), "sha256": found.sha256.hex()}, as_json=False)
    for each in overrides:
        out.print(f"\nOverridden: {each.outcome}, by {each.decided_by}: {each.reason}", markup=False, highlight=False)
    out.print()
    typer.echo(msgspec.json.format(content, indent=2))


@evaluations.command("replay")
def replay(evaluation_id: EvaluationId, as_json: AsJson = False) -> None:
    """Repeat a decision with the recorded versions, inputs and attributes.

    If the record differs, say whether the policy, the data or the engine
    is the reason (exit status 1).

    Example: tidemark evaluations replay 5b0e…
    """
    with opened_store() as store:
        found, again = _replay(store, evaluation_id)
    reported = {
        "evaluationId": found.evaluation_id,
        "reproduced": again.reproduced,
        "sha256": found.sha256.hex(),
        "replayedSha256": sha256(again.record).hexdigest() if again.record else None,
        "differs": list(again.differs),
        "notes": [*(DIFFERS[each] for each in again.differs), *again.notes] or [REPRODUCED],
    }
    print_record(reported, as_json=as_json)
    if not again.reproduced:
        raise typer.Exit(1)


def _replay(store: Store, evaluation_id: UUID) -> tuple[Evaluation, Replay]:
    with store.db.reading() as r:
        found = stored_evaluations.get_of_any_client(r, evaluation_id)
        earlier = stored_evaluations.read_record(r, found)
        policy = policies.get(r, found.client_id, found.slug)
        planned = PlannedPolicy.of(policies.version(r, policy, found.version).policy)
        location, is_stored = _find_evaluated_location(r, found)
        known = context.read_for_metrics(r, [found.customer_number], store.settings.zone, found.at)
    figures = (
        deciding.compute_figures(store.lake, location, known, found.customer_number, found.as_of, planned.plan)
        if is_stored
        else None
    )
    return found, decision.replay(planned, earlier, found.customer_number, figures)


def _find_evaluated_location(r: Reading, found: Evaluation) -> tuple[Location | None, bool]:
    """Return the location of the evaluated version of the data, and whether it is still stored."""
    customer = customers.get(r, found.client_id, found.customer_id)
    try:
        return transactions.find_location(r, customer, found.data_version), True
    except Gone:
        return None, False


def _record(found: Evaluation) -> dict[str, Any]:
    return {
        "evaluationId": found.evaluation_id,
        "customerId": found.customer_id,
        "slug": found.slug,
        "policyVersion": found.version,
        "at": found.at,
        "outcome": found.outcome,
        "overriddenOutcome": found.overridden_outcome,
        "whatIf": found.what_if,
        "dataVersion": found.data_version,
        "asOf": found.as_of,
        "shadowOf": found.shadow_of,
    }
