"""Commands for decision policies as files: check, push, publish, compare and pull."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from api.core.authoring import as_records, require_acknowledged, require_valid
from api.core.commands import ids
from api.core.commands.console import AsJson, now, opened_store, print_json, print_record, print_records
from api.core.commands.files import folder_at, text_of, write
from api.decisions.reach import find_unreached_steps
from pipelines.decisions import Policy, check, examples
from pipelines.decisions.authoring import diff, schema, statement, text
from pipelines.decisions.canonical import fingerprint
from pipelines.decisions.check import CheckedPolicy
from pipelines.vocabulary.errors import InvalidRequest
from storage.access import keys
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Reading, Writing
from storage.decisions import policies as stored_policies
from storage.decisions.policies import PolicyVersion, StoredPolicy

policies = typer.Typer(help="Decision policies: check, push, publish, compare and pull them.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A policy's document in YAML, or in JSON if it ends in .json.")]
Slug = Annotated[str, typer.Argument(help="The policy's slug.")]
ForClient = Annotated[UUID, typer.Option("--client", parser=ids.CLIENT, metavar="ID", help="The client's id.")]
PolicyVersionNumber = Annotated[int | None, typer.Option("--version", min=1, help="Default: the published version.")]


@policies.command("check")
def check_file(file: File, as_json: AsJson = False) -> None:
    """List the faults of a document, and the warnings to acknowledge. Needs no server.

    Example: tidemark policies check loan.yaml
    """
    checked = _read_document(file)
    shown = {"faults": as_records(checked.faults), "warnings": as_records(checked.warnings)}
    if as_json:
        policy = checked.policy
        print_json({"fingerprint": None if policy is None else fingerprint(policy), **shown})
    else:
        print_records([*shown["faults"], *shown["warnings"]], as_json=False, empty="Nothing is wrong with it.")
    require_valid(checked)


@policies.command("push")
def push(
    file: File,
    client: ForClient,
    publish_too: Annotated[bool, typer.Option("--publish", help="Also publish it.")] = False,
    acknowledge: Annotated[
        list[str] | None, typer.Option(help="Accept all warnings with this code. Can be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Save a document as a new draft, unless the newest version is the same.

    Example: tidemark policies push loan.yaml --client 2f0c… --publish
    """
    checked = _read_document(file)
    with opened_store() as store:
        with store.db.reading() as r:
            stored_policies.require_enabled(r, client)
        with printing_faults(as_json=as_json):
            policy = require_valid(checked)
            warnings = [*checked.warnings, *find_unreached_steps(store, client, policy, now())]
            require_acknowledged(warnings, lambda warning: warning.code in (acknowledge or ()))
        with store.db.writing() as w:
            stored, saved = _save(w, client, policy, as_records(warnings))
            if publish_too:
                saved = _publish(w, stored, saved.version)
    print_record(_record(stored, saved), as_json=as_json)


@policies.command("publish")
def publish(
    slug: Slug,
    client: ForClient,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Default: the newest version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Publish a version: it decides from now on, and the previous one is retired.

    Example: tidemark policies publish working-capital-loan --client 2f0c…
    """
    with opened_store() as store, store.db.writing() as w:
        stored = _policy(w, client, slug)
        published = _publish(w, stored, version)
    print_record(_record(stored, published), as_json=as_json)


@policies.command("pull")
def pull(
    slug: Slug,
    client: ForClient,
    version: PolicyVersionNumber = None,
    file: Annotated[Path | None, typer.Option("--out", help="Write to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a version's document as YAML, or as JSON with --json.

    Example: tidemark policies pull working-capital-loan --client 2f0c… > loan.yaml
    """
    with opened_store() as store, store.db.reading() as r:
        found = stored_policies.version(r, _policy(r, client, slug), version)
    content = f"{found.document}\n" if as_json else text.as_yaml(found.policy)
    if file is None:
        typer.echo(content, nl=False)
    else:
        write(file, content.encode())


@policies.command("list")
def list_policies(
    client: Annotated[
        UUID | None, typer.Option(parser=ids.CLIENT, metavar="ID", help="Only policies of this client.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all policies with their newest version, including drafts and archived ones.

    Example: tidemark policies list --client 2f0c…
    """
    with opened_store() as store, store.db.reading() as r:
        if client is not None:
            stored_policies.require_enabled(r, client)
        clients = [each.client_id for each in keys.find_clients(r)] if client is None else [client]
        found = [each for one in clients for each in stored_policies.find_with_newest(r, one)]
    records = [{"clientId": stored.client_id, **_record(stored, version)} for stored, version in found]
    columns = ("slug", "version", "state", "isArchived", "dateCreated")
    print_records(records, as_json=as_json, empty="No policies yet: see tidemark policies examples.", columns=columns)


@policies.command("archive")
def archive(slug: Slug, client: ForClient, as_json: AsJson = False) -> None:
    """Archive a policy: it decides nothing until it is unarchived.

    Example: tidemark policies archive merchant-cash-advance --client 2f0c…
    """
    _set_archived(slug, client, "Policy.Archived", stored_policies.archive, as_json=as_json)


@policies.command("unarchive")
def unarchive(slug: Slug, client: ForClient, as_json: AsJson = False) -> None:
    """Unarchive a policy, with the version that was published.

    Example: tidemark policies unarchive merchant-cash-advance --client 2f0c…
    """
    _set_archived(slug, client, "Policy.Unarchived", stored_policies.unarchive, as_json=as_json)


@policies.command("diff")
def diff_versions(
    slug: Slug,
    client: ForClient,
    from_: Annotated[
        int | None, typer.Option("--from", min=1, help="The earlier version. Default: the published one.")
    ] = None,
    to: Annotated[int | None, typer.Option("--to", min=1, help="The later version. Default: the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe the differences between two versions in words.

    Example: tidemark policies diff working-capital-loan --client 2f0c… --from 1 --to 2
    """
    with opened_store() as store, store.db.reading() as r:
        stored = _policy(r, client, slug)
        before = stored_policies.version(r, stored, from_)
        after = stored_policies.newest(r, stored) if to is None else stored_policies.version(r, stored, to)
    changes = diff.describe_changes(before.policy, after.policy)
    if as_json:
        print_json({"from": before.version, "to": after.version, "changes": changes})
    else:
        same = f"Versions {before.version} and {after.version} do not differ."
        typer.echo("\n".join(changes or [same]))


@policies.command("adm-statement")
def adm_statement(client: ForClient, as_json: AsJson = False) -> None:
    """Print which personal information the published policies use for automated decisions.

    The Markdown text is material for the privacy policy that the Privacy Act
    requires.

    Example: tidemark policies adm-statement --client 2f0c… > statement.md
    """
    with opened_store() as store, store.db.reading() as r:
        stored_policies.require_enabled(r, client)
        published = [version.policy for _, version in stored_policies.find(r, client).items]
    reported = statement.describe_automation(published)
    if as_json:
        print_json(reported)
    else:
        typer.echo(statement.as_markdown(reported), nl=False)


@policies.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a policy's document, for editors.

    Example: tidemark policies schema > policy.schema.json
    """
    typer.echo(schema.as_text(), nl=False)


@policies.command("examples")
def print_examples(
    folder: Annotated[Path | None, typer.Option("--write", help="Write them to this folder as YAML.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the example policies that Tidemark includes.

    Example: tidemark policies examples --write policies
    """
    records = [{"slug": slug, "name": each["name"], "notes": each["notes"]} for slug, each in examples.load().items()]
    if folder is not None:
        for name, content in examples.texts().items():
            write(folder_at(folder) / name, content.encode())
    print_records(records, as_json=as_json, empty="")


def _read_document(file: Path) -> CheckedPolicy:
    return check.check_text(text_of(file), yaml=file.suffix != ".json")


@contextmanager
def printing_faults(*, as_json: bool) -> Iterator[None]:
    """List the faults of a refused document before the error is raised."""
    try:
        yield
    except InvalidRequest as error:
        print_records(as_records(error.faults), as_json=as_json, empty="")
        raise


def _policy(r: Reading, client: UUID, slug: str) -> StoredPolicy:
    stored_policies.require_enabled(r, client)
    return stored_policies.get(r, client, slug)


def _save(
    w: Writing, client: UUID, policy: Policy, warnings: Sequence[Mapping[str, str]]
) -> tuple[StoredPolicy, PolicyVersion]:
    moment = now()
    saved = stored_policies.save_draft(w, client, policy, warnings, OPERATOR.who, moment)
    stored = stored_policies.get(w, client, policy.slug)
    if saved.created_at == moment:
        _audit(w, "Policy.Saved", stored, saved.version)
    return stored, saved


def _publish(w: Writing, stored: StoredPolicy, version: int | None) -> PolicyVersion:
    moment = now()
    published = stored_policies.publish(w, stored, version, OPERATOR.who, moment)
    if published.published_at == moment:
        _audit(w, "Policy.Published", stored, published.version)
    return published


def _set_archived(
    slug: str,
    client: UUID,
    action: str,
    change: Callable[[Writing, StoredPolicy], StoredPolicy],
    *,
    as_json: bool,
) -> None:
    with opened_store() as store, store.db.writing() as w:
        before = stored_policies.lock(w, _policy(w, client, slug))
        stored = change(w, before)
        if stored != before:
            _audit(w, action, stored)
    shown = {"policyId": stored.policy_id, "slug": stored.slug, "isArchived": stored.is_archived}
    print_record(shown, as_json=as_json)


def _audit(w: Writing, action: str, stored: StoredPolicy, version: int | None = None) -> None:
    resource: dict[str, audit.Ids] = {"policyId": stored.policy_id}
    if version is not None:
        resource["version"] = str(version)
    audit.append(w, OPERATOR, action, resource, now(), client_id=stored.client_id)


def _record(stored: StoredPolicy, version: PolicyVersion) -> dict[str, Any]:
    return {
        "policyId": stored.policy_id,
        "slug": stored.slug,
        "name": version.policy.name,
        "isArchived": stored.is_archived,
        "version": version.version,
        "state": version.state,
        "dateCreated": version.created_at,
        "fingerprint": version.fingerprint[:12],
    }
