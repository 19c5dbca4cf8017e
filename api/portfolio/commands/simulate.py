"""`tidemark rulesets simulate`: try a ruleset on past days, wait for it, and show when it would fire, and for whom."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.commands.awaiting import completed
from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_record, print_records
from api.core.commands.files import text_of, write
from api.decisions.commands.policies import findings_described
from api.monitoring.commands.rulesets import rulesets as commands
from api.monitoring.rulesets import sound
from api.portfolio import simulating
from api.portfolio.schemas.simulations import SentSimulation
from pipelines.decisions.canonical import canonical
from pipelines.monitoring import Ruleset, read_text
from pipelines.pages.wording import counted, month
from pipelines.vocabulary.errors import NotFound
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.core.store import Store
from storage.jobs.jobs import Job
from storage.monitoring import rulesets, simulations
from storage.monitoring.rulesets import StoredRuleset
from storage.monitoring.simulations import Simulation

BAR_WIDTH = 40
SHOWN_CUSTOMERS = 20


@commands.command("simulate")
def simulate(
    ruleset: Annotated[str, typer.Argument(help="A ruleset's document in a file, or the slug of a ruleset.")],
    client: Annotated[UUID, typer.Option("--client", help="The client whose customers are looked at.")],
    first: Annotated[str | None, typer.Option("--from", help="The first day, YYYY-MM-DD. Default: a year ago.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last day. Default: today.")] = None,
    customer: Annotated[
        list[UUID] | None, typer.Option("--customer", help="Only this customer; repeat for more.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Write the page with charts to this file.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is done.")] = True,
    as_json: AsJson = False,
) -> None:
    """Try a ruleset on past days: how often, and for whom, it would have fired.

    The work is done by the running service, as a job. A file whose slug no ruleset has is saved first, switched off.

    Example: tidemark rulesets simulate after-the-loan.yaml --client 2f0c… --from 2026-01-01 --page out.html
    """
    file = Path(ruleset)
    with findings_described(as_json=as_json):
        of_file = _in_file(file) if file.is_file() else None
    sent = _sent(of_file, first, last, customer or [])
    with opened_store() as store:
        with findings_described(as_json=as_json), store.db.writing() as w:
            stored = rulesets.with_slug(w, client, ruleset) if of_file is None else _stored(w, client, of_file)
            today = now().astimezone(store.settings.zone).date()
            job = simulations.request(w, stored, simulating.asked(w, stored, sent, today), OPERATOR.who, now())
            ids = {"rulesetId": stored.ruleset_id, "jobId": job.job_id}
            audit.append(w, OPERATOR, "Ruleset.SimulationRequested", ids, now(), client_id=client)
        if not wait:
            print_record({"jobId": job.job_id, "status": job.status}, as_json=as_json)
            return
        completed(store, job)
        done, result = _read(store, client, job, page)
    if as_json:
        print_json({**simulating.shown(done), "result": result})
    else:
        _print(done, result)


def _in_file(file: Path) -> Ruleset:
    return sound(read_text(text_of(file), yaml=file.suffix != ".json"))


def _sent(of_file: Ruleset | None, first: str | None, last: str | None, customers: Sequence[UUID]) -> SentSimulation:
    return SentSimulation.model_construct(
        from_=_day("--from", first),
        to=_day("--to", last),
        customer_ids=list(dict.fromkeys(customers)) or None,
        document=None if of_file is None else json.loads(canonical(of_file)),
    )


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option} is a day, YYYY-MM-DD") from None


def _stored(w: Writing, client: UUID, ruleset: Ruleset) -> StoredRuleset:
    """The client's ruleset with this slug; if there is none, it is saved, switched off."""
    try:
        return rulesets.with_slug(w, client, ruleset.slug)
    except NotFound:
        off = ruleset.model_copy(update={"active": False})
    made = rulesets.create(w, client, off, OPERATOR.who, now())
    audit.append(w, OPERATOR, "Ruleset.Created", {"rulesetId": made.ruleset_id}, now(), client_id=client)
    err.print(f"Saved the ruleset {ruleset.slug}, switched off.", style="dim", highlight=False)
    return made


def _read(store: Store, client: UUID, job: Job, page: Path | None) -> tuple[Simulation, Mapping[str, Any]]:
    """What came of it; with a file for the page, that is written."""
    with store.db.reading() as r:
        done = simulations.get(r, client, job.job_id)
        result, firings = simulations.result(r, done), simulations.firings(r, done)
        simulated = simulations.simulated_ruleset(r, done)
    if page is not None:
        write(page, simulating.as_page(store.lake, done, simulated, result, firings).encode())
    return done, result


def _print(done: Simulation, result: Mapping[str, Any]) -> None:
    asked, fired = done.request, counted(result["customersFired"], "customer")
    out.print(
        f"From {asked.first} to {asked.last}: {counted(result['events'], 'event')} for {fired} of "
        f"{result['customers']:,}; {result['atSwitchOn']['customers']:,} on the first day.",
        highlight=False,
    )
    if done.customers_failed:
        out.print(f"{counted(done.customers_failed, 'customer')} left out: their data could not be read or computed.")
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
    """A line each, its bar as long as its figure to the largest."""
    whole = max((size for _, size in sizes), default=0) or 1
    return [f"{label:>9} {'█' * -(-size * BAR_WIDTH // whole)} {size:,}" for label, size in sizes]


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
