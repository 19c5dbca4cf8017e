"""Commands for rulesets as files (check, push, pull), for the library, and for matches."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.authoring import as_records
from api.core.commands import ids
from api.core.commands.console import AsJson, now, opened_store, print_json, print_record, print_records
from api.core.commands.files import folder_at, text_of, write
from api.decisions.commands.policies import printing_faults
from api.monitoring.rulesets import describe_matches, describe_with_counts, require_valid
from pipelines.decisions.authoring.text import as_yaml
from pipelines.decisions.canonical import fingerprint
from pipelines.monitoring import CheckedRuleset, Ruleset, check_document, check_text, library, schema
from pipelines.monitoring.library.listing import as_markdown
from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access import keys
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Reading, Writing
from storage.core.paging import Page
from storage.core.settings import Settings
from storage.customers import customers
from storage.monitoring import rule_matches
from storage.monitoring import rulesets as stored_rulesets
from storage.monitoring.rule_matches import Match
from storage.monitoring.rulesets import RulesetVersion, StoredRuleset

rulesets = typer.Typer(help="Monitoring: rulesets that watch customers, and their matches.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A ruleset's document in YAML, or in JSON if it ends in .json.")]
Slug = Annotated[str, typer.Argument(help="The ruleset's slug.")]
ForClient = Annotated[UUID, typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client's id.")]


@rulesets.command("check")
def check_file(file: File, as_json: AsJson = False) -> None:
    """List the faults of a document, and its likely mistakes. Needs no server.

    Example: tidemark rulesets check after-the-loan.yaml
    """
    found = _read_document(file)
    shown = {"faults": as_records(found.faults), "warnings": as_records(found.warnings)}
    if as_json:
        ruleset = found.ruleset
        print_json({"fingerprint": None if ruleset is None else fingerprint(ruleset), **shown})
    else:
        print_records([*shown["faults"], *shown["warnings"]], as_json=False, empty="Nothing is wrong with it.")
    require_valid(found)


@rulesets.command("push")
def push(file: File, client: ForClient, as_json: AsJson = False) -> None:
    """Create a ruleset from a document, or a new version if the slug exists.

    An unchanged document makes no new version. `active` in the document
    switches the ruleset on or off.

    Example: tidemark rulesets push after-the-loan.yaml --client 2f0c…
    """
    with printing_faults(as_json=as_json):
        ruleset = require_valid(_read_document(file))
    with opened_store() as store, printing_faults(as_json=as_json), store.db.writing() as w:
        saved = _save(w, client, ruleset)
    print_record(_record(saved), as_json=as_json)


@rulesets.command("list")
def list_rulesets(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only rulesets of this client.")
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Include archived rulesets.")] = False,
    as_json: AsJson = False,
) -> None:
    """List rulesets, and how often they matched in the last 30 days.

    Example: tidemark rulesets list --client 2f0c…
    """
    with opened_store() as store, store.db.reading() as r:
        if client is not None:
            keys.require_client(r, client)
        clients = [each.client_id for each in keys.find_clients(r)] if client is None else [client]
        found = [each for one in clients for each in stored_rulesets.find(r, one, include_archived=archived).items]
        records = [{**_record(each), **_sums(r, each, store.settings)} for each in found]
    columns = ("slug", "active", "rules", "observed", "unknown", "fired", "firedNow")
    print_records(records, as_json=as_json, empty="No rulesets yet: see tidemark rulesets library.", columns=columns)


@rulesets.command("pull")
def pull(
    slug: Slug,
    client: ForClient,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Default: the newest version.")] = None,
    file: Annotated[Path | None, typer.Option("--out", help="Write to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a ruleset's document as YAML, or as JSON with --json.

    Example: tidemark rulesets pull after-the-loan --client 2f0c… > after-the-loan.yaml
    """
    with opened_store() as store, store.db.reading() as r:
        stored = stored_rulesets.with_slug(r, client, slug)
        found = stored if version is None else _version(r, stored, version)
    text = f"{found.document}\n" if as_json else as_yaml(found.ruleset)
    if file is None:
        typer.echo(text, nl=False)
    else:
        write(file, text.encode())


@rulesets.command("archive")
def archive(slug: Slug, client: ForClient, as_json: AsJson = False) -> None:
    """Archive a ruleset: it watches nobody until it is unarchived.

    Example: tidemark rulesets archive after-the-loan --client 2f0c…
    """
    _set_archived(slug, client, "Ruleset.Archived", stored_rulesets.archive, as_json=as_json)


@rulesets.command("unarchive")
def unarchive(slug: Slug, client: ForClient, as_json: AsJson = False) -> None:
    """Unarchive a ruleset. If it is active, it watches customers again.

    Example: tidemark rulesets unarchive after-the-loan --client 2f0c…
    """
    _set_archived(slug, client, "Ruleset.Unarchived", stored_rulesets.unarchive, as_json=as_json)


@rulesets.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a ruleset's document, for editors.

    Example: tidemark rulesets schema > ruleset.schema.json
    """
    typer.echo(schema.as_text(), nl=False)


@rulesets.command("library")
def list_library(
    folder: Annotated[Path | None, typer.Option("--write", help="Write them to this folder as YAML.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/reference/monitoring-library.md.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the library of rulesets. They watch customers only after you adopt or push them.

    Example: tidemark rulesets library --write rulesets
    """
    found = library.load_library()
    if folder is not None:
        for slug, each in found.items():
            write(folder_at(folder) / f"{slug}.yaml", each.text.encode())
    if markdown:
        typer.echo(as_markdown(found), nl=False)
        return
    records = [{"slug": slug, "name": each.document["name"], "about": each.about} for slug, each in found.items()]
    print_records(records, as_json=as_json, empty="")


@rulesets.command("adopt")
def adopt(
    slug: Slug,
    client: ForClient,
    inactive: Annotated[bool, typer.Option("--inactive", help="Leave it switched off, to simulate it first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Adopt a ruleset of the library. Adopt it again with or without --inactive to switch it off or on.

    To change it, pull, edit and push it. This command never overwrites a
    changed ruleset.

    Example: tidemark rulesets adopt dishonour-in-7-days --client 2f0c…
    """
    found = library.load_library().get(slug)
    if found is None:
        raise NotFound("Ruleset.NotFound", f"The library has no ruleset {slug}: see tidemark rulesets library.")
    ruleset = require_valid(check_document({**found.document, "active": not inactive}))
    with opened_store() as store, store.db.writing() as w:
        if not _is_as_shipped(w, client, ruleset):
            raise Conflict("Ruleset.SlugTaken", f"{slug} was changed after it was adopted: pull, edit and push it.")
        adopted = _save(w, client, ruleset)
    print_record(_record(adopted), as_json=as_json)


@rulesets.command("matches")
def list_matches(
    client: ForClient,
    customer: Annotated[
        UUID | None, typer.Option(parser=ids.CUSTOMER, metavar="ID", help="Only this customer.")
    ] = None,
    ruleset: Annotated[str | None, typer.Option(help="Only the ruleset with this slug.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of matches.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List matches, newest first. With --json, include the values that conditions read.

    Example: tidemark rulesets matches --client 2f0c… --ruleset after-the-loan
    """
    with opened_store() as store, store.db.reading() as r:
        only_customer = None if customer is None else customers.get(r, client, customer)
        only_ruleset = None if ruleset is None else stored_rulesets.with_slug(r, client, ruleset)
        found = rule_matches.find(r, client, customer=only_customer, ruleset=only_ruleset, page=Page(1, limit)).items
        records = list(describe_matches(r, found)) if as_json else [_line(each) for each in found]
    columns = ("matchId", "ruleset", "customerId", "dateMatched", "rules")
    print_records(records, as_json=as_json, empty="Nothing has matched.", columns=columns)


def _read_document(file: Path) -> CheckedRuleset:
    return check_text(text_of(file), yaml=file.suffix != ".json")


def _save(w: Writing, client: UUID, ruleset: Ruleset) -> StoredRuleset:
    moment = now()
    keys.require_client(w, client)
    try:
        stored = stored_rulesets.with_slug(w, client, ruleset.slug)
    except NotFound:
        return _create(w, client, ruleset, moment)
    saved = stored_rulesets.replace(w, stored, ruleset, OPERATOR.who, moment)
    if saved.updated_at == moment:  # an unchanged document makes no version
        _audit(w, "Ruleset.Replaced", saved, moment, version=str(saved.version))
    return saved


def _is_as_shipped(r: Reading, client: UUID, shipped: Ruleset) -> bool:
    """Return whether the client has no ruleset of this slug, or has it unchanged, apart from `active`."""
    try:
        stored = stored_rulesets.with_slug(r, client, shipped.slug)
    except NotFound:
        return True
    return stored.ruleset.model_copy(update={"active": shipped.active}) == shipped


def _create(w: Writing, client: UUID, ruleset: Ruleset, moment: datetime) -> StoredRuleset:
    created = stored_rulesets.create(w, client, ruleset, OPERATOR.who, moment)
    _audit(w, "Ruleset.Created", created, moment)
    return created


def _set_archived(
    slug: str,
    client: UUID,
    action: str,
    change: Callable[[Writing, StoredRuleset, datetime], StoredRuleset],
    *,
    as_json: bool,
) -> None:
    moment = now()
    with opened_store() as store, store.db.writing() as w:
        stored = change(w, stored_rulesets.with_slug(w, client, slug), moment)
        if stored.updated_at == moment:  # it was not in this state already
            _audit(w, action, stored, moment)
    print_record(_record(stored), as_json=as_json)


def _audit(w: Writing, action: str, stored: StoredRuleset, moment: datetime, **also: str) -> None:
    resource: dict[str, audit.Ids] = {"rulesetId": stored.ruleset_id, **also}
    audit.append(w, OPERATOR, action, resource, moment, client_id=stored.client_id)


def _record(stored: StoredRuleset) -> dict[str, Any]:
    return {
        "rulesetId": stored.ruleset_id,
        "clientId": stored.client_id,
        "slug": stored.slug,
        "name": stored.name,
        "version": stored.version,
        "active": stored.active,
        "isArchived": stored.is_archived,
        "dateUpdated": stored.updated_at,
        "rules": len(stored.ruleset.rules),
    }


def _sums(r: Reading, stored: StoredRuleset, settings: Settings) -> dict[str, int]:
    """Sum the counts of all rules."""
    counts = describe_with_counts(r, stored, now().astimezone(settings.zone).date())["counts"]
    return {name: sum(each[name] for each in counts) for name in ("observed", "held", "unknown", "fired", "firedNow")}


def _version(r: Reading, stored: StoredRuleset, number: int) -> RulesetVersion:
    if number > stored.version:
        raise typer.BadParameter(f"The newest version is {stored.version}.")
    return stored_rulesets.read_version(r, stored.ruleset_id, number)


def _line(match: Match) -> dict[str, Any]:
    """Return the fields of a match that fit on a line."""
    return {
        "matchId": match.match_id,
        "ruleset": match.slug,
        "customerId": match.customer_id,
        "dateMatched": match.at,
        "cause": match.cause,
        "rules": match.rules,
    }
