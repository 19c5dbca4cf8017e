"""`tidemark enrichment`: releases of the enrichment, a client's own rules, and what either changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands import ids
from api.core.commands.console import AsJson, now, opened_store, out, print_json, print_record, print_records
from api.enrichment.commands.impact import (
    Compared,
    Named,
    Sides,
    change_nothing,
    compare_stored,
    describe_impact,
    print_impact,
    show_before,
    show_chosen,
)
from api.enrichment.commands.options import ACTIVATING_SAMPLE, RulesOption, SampleOfActivation, read_rules
from api.intake.commands.exports import ColumnsFileOption, ColumnsOption, CurrencyOption, ExportFile, open_exports
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION, enrich
from pipelines.enrichment.knowledge import Knowledge
from pipelines.enrichment.own_rules import OwnRules, load_own_rules
from pipelines.intake.exports import as_submission, in_one_currency, name_accounts
from pipelines.intake.rows import validate
from pipelines.pages.wording import quantity
from pipelines.portfolio.impact import compare
from pipelines.portfolio.releases import Release, fingerprint, releases
from pipelines.vocabulary.errors import NotFound, TidemarkError
from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.access.keys import require_client
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment import own_rules, versions

enrichment = typer.Typer(help="Releases and your own rules: compare and activate.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The folder with counterparties/*.yaml, patterns/*.yaml, purposes.yaml.")]
ClientId = Annotated[
    UUID,
    typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client whose customers these rules are for."),
]
SHOWN_FINGERPRINT = 12  # characters
Client = Annotated[UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only this client's customers.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Only this many customers, spread evenly over the portfolio.")]


class NothingToCompare(TidemarkError):
    """No customer is stored under both versions."""


@enrichment.command("releases")
def list_releases(as_json: AsJson = False) -> None:
    """List the releases of the enrichment, and check that this program has the latest one.

    Exit status 1 if it has not. Record each change of rules, lists, taxonomy
    or model in releases.yaml, with the fingerprint that this command prints.

    Example: tidemark enrichment releases
    """
    recorded, here = releases(), fingerprint()
    same = here == recorded[-1].fingerprint
    if as_json:
        print_json({"releases": recorded, "fingerprint": here, "released": same})
    else:
        print_records([_release_line(each) for each in recorded], as_json=False, empty="")
        verdict = "[green]These rules are those of release" if same else "[yellow]These rules differ from release"
        out.print(f"\n{verdict} {recorded[-1].version}.[/]  fingerprint {here}", highlight=False, soft_wrap=True)
    if not same:
        raise typer.Exit(1)


def _release_line(release: Release) -> dict[str, Any]:
    return {
        "version": release.version,
        "taxonomy": release.taxonomy,
        "date": release.date,
        "changes": " ".join(release.changes),
        "impact": release.impact,
    }


@enrichment.command("diff")
def diff(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Bank exports to compare on, instead of stored customers. Needs --rules."),
    ] = None,
    from_version: Annotated[
        int | None,
        typer.Option("--from", help="The earlier version, which must be stored. Default: what is stored now."),
    ] = None,
    to_version: Annotated[
        int,
        typer.Option("--to", help="The later version: a stored one, or that of this program, which is then computed."),
    ] = ENRICHMENT_VERSION,
    rules: RulesOption = None,
    client: Client = None,
    sample: Sample = None,
    currency: CurrencyOption = None,
    columns: ColumnsOption = None,
    columns_file: ColumnsFileOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what a release or your own rules change, customer by customer, before they take effect.

    Compares categories, report figures, ratings, decisions by the published
    policies and the conditions of active rulesets. Nothing is written.
    Customers that are not stored under both versions are left out and counted.

    Example: tidemark enrichment diff --rules own-rules --client 2f0c… --sample 200
    """
    own = None if rules is None else read_rules(rules)
    if own is not None and to_version != ENRICHMENT_VERSION:
        raise typer.BadParameter("--rules is computed with the rules of this program: leave out --to")
    if files:
        if own is None:
            raise typer.BadParameter("files are compared without and with your own rules: give --rules")
        compared = _compare_on_files(open_exports(files, columns, columns_file, None), own, currency)
        _show({"from": to_version, "to": to_version}, f"Shipped rules → rules of {rules}", compared, as_json=as_json)
        return
    change = change_nothing if own is None else partial(_with_rules, own)
    with opened_store() as store:
        with store.db.reading() as r:
            stored = versions.read_enrichment_versions(r, client)
        compared = compare_stored(store, stored, Sides(from_version, to_version, change), sample, now(), quiet=as_json)
    if not compared.impact.customers:
        raise NothingToCompare("Enrichment.NothingToCompare", _say_nothing_to_compare(stored, from_version, to_version))
    before = "Stored version" if from_version is None else f"Version {from_version}"
    after = f"{to_version}" if own is None else f"rules of {rules}"
    _show({"from": from_version, "to": to_version}, f"{before} → {after}", compared, as_json=as_json)


@enrichment.command("check")
def check(folder: Folder, as_json: AsJson = False) -> None:
    """Check a folder of your own rules. Each fault is a line with file, line and what to write instead.

    Example: tidemark enrichment check own-rules
    """
    own = read_rules(folder)
    counts = {"counterparties": len(own.parties), "rules": len(own.rules), "fingerprint": own.fingerprint}
    print_record(counts, as_json=as_json)


@enrichment.command("rules")
def list_rules(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only the rules of this client.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the stored versions of clients' own rules, and which are in use.

    Example: tidemark enrichment rules
    """
    with opened_store() as store, store.db.reading() as r:
        found, uses = own_rules.find(r, client), own_rules.uses(r)
    records = [
        {
            "clientId": each.client_id,
            "version": each.version,
            "inUse": uses.get(each.client_id) == each.version,
            "fingerprint": each.fingerprint[:SHOWN_FINGERPRINT],
            "dateCreated": each.created_at,
            "createdBy": each.created_by,
        }
        for each in found
    ]
    print_records(records, as_json=as_json, empty="No client has own rules.")


@enrichment.command("activate")
def activate(
    rules: Annotated[str, typer.Argument(help="A folder of your own rules, or the number of a stored version.")],
    client: ClientId,
    sample: SampleOfActivation = ACTIVATING_SAMPLE,
    as_json: AsJson = False,
) -> None:
    """Show what own rules change, and use them for the client from now on. Its customers are queued for enrichment.

    Example: tidemark enrichment activate own-rules --client 2f0c…
    """
    with opened_store() as store:
        own = _own_rules(store, rules, client)
        impact = _show_before(store, client, own, sample, f"rules of {rules}", as_json=as_json)
        with store.db.writing() as w:
            version = own_rules.add(w, client, own, OPERATOR.who, now()).version
            own_rules.activate(w, client, version, OPERATOR.who, now())
            resource = {"version": str(version), "fingerprint": own.fingerprint}
            audit.append(w, OPERATOR, "OwnRules.Activated", resource, now(), client_id=client)
    show_chosen({"clientId": client, "version": version, "fingerprint": own.fingerprint}, impact, as_json=as_json)


@enrichment.command("deactivate")
def deactivate(client: ClientId, sample: SampleOfActivation = ACTIVATING_SAMPLE, as_json: AsJson = False) -> None:
    """Show what would change, and use only the shipped rules for the client from now on.

    Example: tidemark enrichment deactivate --client 2f0c…
    """
    with opened_store() as store:
        with store.db.reading() as r:
            if client not in own_rules.uses(r):
                raise NotFound("OwnRules.NotActive", "The client uses no own rules.")
        impact = _show_before(store, client, None, sample, "shipped rules", as_json=as_json)
        with store.db.writing() as w:
            used = own_rules.deactivate(w, client, OPERATOR.who, now())
            audit.append(w, OPERATOR, "OwnRules.Deactivated", {"version": str(used)}, now(), client_id=client)
    show_chosen({"clientId": client, "version": None}, impact, as_json=as_json)


def _own_rules(store: Store, rules: str, client: UUID) -> OwnRules:
    """Return the rules of a folder, or the client's stored version with this number."""
    if not rules.isdecimal():
        return read_rules(Path(rules))
    with store.db.reading() as r:
        return load_own_rules(own_rules.read_content(r, client, own_rules.get(r, client, int(rules)).version))


def _show_before(
    store: Store, client: UUID, own: OwnRules | None, sample: int, what: str, *, as_json: bool
) -> dict[str, Any] | None:
    with store.db.reading() as r:
        require_client(r, client)
        stored = versions.read_enrichment_versions(r, client)
    change = Sides(change=partial(_with_rules, own))
    return show_before(store, stored, change, sample, now(), what, quiet=as_json)


def _show(about: Mapping[str, Any], title: str, compared: Compared, *, as_json: bool) -> None:
    if as_json:
        print_json({**about, **describe_impact(compared)})
    else:
        print_impact(title, compared)


def _compare_on_files(files: Sequence[ExportFile], own: OwnRules, currency: str | None) -> Compared:
    """Compare the rows of bank exports without and with own rules."""
    named = name_accounts([(file.path.stem, each) for file in files for each in file.contents.statements])
    sent = as_submission(in_one_currency(named, currency).statements, now())
    settings = Settings()
    accepted = validate(sent.rows, settings.timezone).accepted.collect()
    nothing_held = pl.DataFrame(schema=TRANSACTIONS)
    before, after = (
        enrich(nothing_held, accepted, knowledge=Knowledge(lists=lists)).transactions.collect()
        for lists in (None, own.lists)
    )
    impact = compare(before, after, now().astimezone(settings.zone).date())
    stem = files[0].path.stem  # the name of a customer that the file doesn't name
    return Compared(impact, 0, {number: Named(None, name or stem) for number, name in sent.customers.items()})


def _with_rules(own: OwnRules | None, known: Knowledge) -> Knowledge:
    """Return the knowledge with these rules for all customers, or with the shipped ones alone."""
    return replace(known, lists=None if own is None else own.lists, own_lists=())


def _say_nothing_to_compare(stored: Mapping[int, int], before: int | None, after: int) -> str:
    """Return the error message, with the stored versions."""
    counts = Counter(stored.values())
    held = ", ".join(f"version {version} ({quantity(count, 'customer')})" for version, count in sorted(counts.items()))
    sides = (
        f"Version {after} can't be compared with what is stored"
        if before is None
        else (f"Versions {before} and {after} can't be compared: no customer is stored under both")
    )
    return (
        f"{sides}. Stored: {held or 'none'}; "
        f"--to {ENRICHMENT_VERSION} computes this program's. Replaced values are kept for TIDEMARK_RETENTION."
    )
