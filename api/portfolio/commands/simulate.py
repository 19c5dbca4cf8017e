"""`tidemark rulesets simulate`: try a ruleset on past days, and show when and for which customers it would fire."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands import ids
from api.core.commands.awaiting import wait_until_completed
from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_record, print_records
from api.core.commands.files import text_of, write
from api.decisions.commands.policies import printing_faults
from api.monitoring.commands.rulesets import rulesets as commands
from api.monitoring.rulesets import require_valid
from api.portfolio import simulating
from api.portfolio.portfolio_jobs import start
from api.portfolio.schemas.simulations import SentSimulation
from pipelines.decisions.canonical import canonical
from pipelines.monitoring import Ruleset, check_text
from pipelines.pages.wording import month, quantity
from pipelines.vocabulary.errors import NotFound
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.monitoring import rulesets, simulations
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Request
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import PortfolioJob

BAR_WIDTH = 40
SHOWN_CUSTOMERS = 20


@commands.command("simulate")
def simulate(
    ruleset: Annotated[str, typer.Argument(help="A ruleset's document in a file, or the slug of a ruleset.")],
    client: Annotated[
        UUID,
        typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client whose customers are evaluated."),
    ],
    first: Annotated[str | None, typer.Option("--from", help="The first day, YYYY-MM-DD. Default: a year ago.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last day. Default: today.")] = None,
    customer: Annotated[
        list[UUID] | None,
        typer.Option("--customer", parser=ids.CUSTOMER, metavar="ID", help="Only this customer. Can be repeated."),
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Write the page with charts to this file.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the result.")] = True,
    as_json: AsJson = False,
) -> None:
    """Try a ruleset on past days: how often, and for which customers, it would have fired.

    The running service does the work, as a job. If no ruleset has the file's
    slug, the file is first saved as an inactive ruleset.

    Example: tidemark rulesets simulate after-the-loan.yaml --client 2f0c… --from 2026-01-01 --page out.html
    """
    file = Path(ruleset)
    with printing_faults(as_json=as_json):
        document = _read_file(file) if file.is_file() else None
    sent = _build_request(document, first, last, customer or [])
    with opened_store() as store:
        with printing_faults(as_json=as_json), store.db.writing() as w:
            stored = rulesets.with_slug(w, client, ruleset) if document is None else _find_or_save(w, client, document)
            today = now().astimezone(store.settings.zone).date()
            job = start(w, simulating.new_job(w, stored, sent, today), OPERATOR, now())
        if not wait:
            print_record({"jobId": job.job_id, "status": job.status}, as_json=as_json)
            return
        wait_until_completed(store, job)
        with store.db.reading() as r:
            done = portfolio_jobs.get_of_any_client(r, job.job_id)
            result, listing = portfolio_jobs.read_result(r, done), portfolio_jobs.read_listing(r, done)
            simulated = simulations.simulated_ruleset(r, done)
        if page is not None:
            write(page, simulating.render_page(store, done, simulated, result, listing).encode())
    if as_json:
        print_json({**simulating.describe(done), "result": result})
    else:
        _print(done, result)


def _read_file(file: Path) -> Ruleset:
    return require_valid(check_text(text_of(file), yaml=file.suffix != ".json"))


def _build_request(
    document: Ruleset | None, first: str | None, last: str | None, customers: Sequence[UUID]
) -> SentSimulation:
    return SentSimulation.model_construct(
        from_=_day("--from", first),
        to=_day("--to", last),
        customer_ids=list(dict.fromkeys(customers)) or None,
        document=None if document is None else json.loads(canonical(document)),
    )


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option} must be a day, YYYY-MM-DD") from None


def _find_or_save(w: Writing, client: UUID, ruleset: Ruleset) -> StoredRuleset:
    """Return the client's ruleset with this slug; if there is none, save this one as inactive."""
    try:
        return rulesets.with_slug(w, client, ruleset.slug)
    except NotFound:
        inactive = ruleset.model_copy(update={"active": False})
    created = rulesets.create(w, client, inactive, OPERATOR.who, now())
    audit.append(w, OPERATOR, "Ruleset.Created", {"rulesetId": created.ruleset_id}, now(), client_id=client)
    err.print(f"Saved the ruleset {ruleset.slug}, switched off.", style="dim", highlight=False)
    return created


def _print(job: PortfolioJob, result: Mapping[str, Any]) -> None:
    request, fired = Request.from_json(job.request), quantity(result["customersFired"], "customer")
    out.print(
        f"From {request.first} to {request.last}: {quantity(result['events'], 'event')} for {fired} of "
        f"{result['customers']:,}; {result['atSwitchOn']['customers']:,} on the first day.",
        highlight=False,
    )
    if job.customers_failed:
        out.print(f"{quantity(job.customers_failed, 'customer')} left out: their data could not be read or computed.")
    out.print("\nEvents by month\n", highlight=False)
    for line in _bars([(month(date.fromisoformat(each["month"])), each["events"]) for each in result["months"]]):
        out.print(line, highlight=False, markup=False)
    out.print("\nRules\n", highlight=False)
    print_records([_rule(each) for each in result["rules"]], as_json=False, empty="")
    out.print("\nCustomers with the most events\n", highlight=False)
    print_records(
        [_customer(each) for each in result["byCustomer"][:SHOWN_CUSTOMERS]], as_json=False, empty="It never fired."
    )


def _bars(sizes: Sequence[tuple[str, int]]) -> list[str]:
    """Return a line with a bar for each figure; the largest bar has BAR_WIDTH characters."""
    largest = max((size for _, size in sizes), default=0) or 1
    return [f"{label:>9} {'█' * -(-size * BAR_WIDTH // largest)} {size:,}" for label, size in sizes]


def _rule(each: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "rule": each["code"],
        "severity": each["severity"],
        "fired": each["fired"],
        "customers": each["customers"],
        "days true": each["daysHeld"],
        "days unknown": each["daysUnknown"],
        "of days": each["daysObserved"],
    }


def _customer(each: Mapping[str, Any]) -> Mapping[str, Any]:
    rules = [f"{rule['code']} {rule['fired']}×" for rule in each["rules"]]
    return {"customer": each["customerId"], "events": each["events"], "last": each["lastFired"], "rules": rules}
