"""Commands for maintenance: what schedules also do (compact, sweep), and doctor and backup."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import isolation
from api.core.commands.console import AsJson, now, opened_store, out, print_json, print_record, print_records, warn
from storage.core import buckets
from storage.core.settings import Settings
from storage.enrichment import compaction
from storage.operations import backup, doctor, personal_data, retention
from storage.operations.personal_data import Finding, Trace

Buckets = Annotated[
    list[int] | None,
    typer.Option(min=0, max=buckets.BUCKETS - 1, help="A bucket, 0–63. Can be repeated. Default: all."),
]
Deep = Annotated[bool, typer.Option("--deep", help="Also read every file and check its SHA-256.")]
Confirm = Annotated[bool, typer.Option("--confirm", help="Delete even an unexpectedly large share.")]
Texts = Annotated[list[str], typer.Argument(metavar="TEXT", help="A name, an email address, an id, a number …")]
Folder = Annotated[Path, typer.Argument(help="Folder of the backup, which is created or updated.")]

STYLES = {doctor.Severity.ERROR: "bold red", doctor.Severity.WARNING: "yellow", doctor.Severity.NOTE: "dim"}


def compact(bucket: Buckets = None, as_json: AsJson = False) -> None:
    """Rewrite rows of customers that are scattered over many files into a few. Safe while the service runs.

    Example: tidemark compact --bucket 7 --bucket 8
    """
    with opened_store() as store:
        done = [compaction.compact(store, each, now) for each in bucket or buckets.ALL]
    records = [
        {
            "bucket": each.bucket,
            "moved": each.moved,
            "skipped": each.skipped,
            "unreadable": each.unreadable,
            "files": each.files,
            "bytesRead": each.bytes_read,
            "bytesWritten": each.bytes_written,
        }
        for each in done
        if as_json or each.moved or each.skipped or each.unreadable
    ]
    print_records(records, as_json=as_json, empty="No customers are scattered enough to be rewritten.")


def sweep(confirm: Confirm = False, as_json: AsJson = False) -> None:
    """Delete versions older than TIDEMARK_RETENTION, unused files and old idempotency keys.

    Needs --confirm to delete an unexpectedly large share, which may be due to a
    wrong clock.

    Example: tidemark sweep
    """
    with opened_store() as store:
        swept = retention.sweep(store, now, confirmed=confirm)
    record = {
        "versions": swept.versions,
        "files": swept.files,
        "orphans": swept.orphans,
        "idempotencyKeys": swept.idempotency_keys,
        "bytesFreed": swept.bytes_freed,
    }
    print_record(record, as_json=as_json)


def doctor_(deep: Deep = False, as_json: AsJson = False) -> None:
    """Report problems and what to do about them. Exit status 1 if you need to act.

    Example: tidemark doctor --deep
    """
    findings = doctor.examine(Settings(), now, deep=deep)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    for finding in [] if as_json else findings:
        style = STYLES[finding.severity]
        out.print(f"[{style}]{finding.severity:>8}[/]  ", end="")
        out.print(f"{finding.about}: {finding.problem}", markup=False, highlight=False, soft_wrap=True)
        out.print(f"          → {finding.remedy}", markup=False, highlight=False, soft_wrap=True)
    if not as_json and not findings:
        out.print("No problems found.")
    if any(finding.needs_the_operator for finding in findings):
        raise typer.Exit(1)


def back_up(folder: Folder, as_json: AsJson = False) -> None:
    """Back up the database and every file that it refers to. Safe while the service runs.

    The master key is not part of the backup: keep it separately. Its
    fingerprint is printed.

    Example: tidemark backup /mnt/backup/tidemark
    """
    with opened_store() as store:
        done = backup.back_up(store, folder)
    record = {
        "snapshot": done.snapshot,
        "files": done.files,
        "copied": done.copied,
        "bytesCopied": done.bytes_copied,
        "masterKey": done.master_key,
        "damaged": [f"{path} is {problem}" for path, problem in done.damages],
    }
    print_record(record, as_json=as_json)
    if done.damages:
        raise typer.Exit(1)


def find(texts: Texts, as_json: AsJson = False) -> None:
    """Find everything that is stored about a person or business: rows and files.

    All that is stored is read, PDF statements and attachments included. Files
    that only a person can read, such as scanned letters, are listed, too. What
    a user did is found by the user's id. Exit status 1 if a place could not be
    searched.

    Example: tidemark find "Ada Lovelace" ada@example.com
    """
    unsearched = list[Trace]()
    with opened_store() as store:
        traces = personal_data.find(store, texts, isolation.read_pdf_text)
        records = _note_unsearched(traces, unsearched)
        print_records(map(asdict, records), as_json=as_json, empty="Nothing that is stored contains these texts.")
    for trace in unsearched:
        warn(f"not searched: {' '.join(filter(None, (trace.place, trace.key)))}: {trace.note}")
    if unsearched:
        raise typer.Exit(1)


def _note_unsearched(traces: Iterable[Trace], unsearched: list[Trace]) -> Iterator[Trace]:
    for trace in traces:
        if trace.finding is Finding.UNSEARCHED:
            unsearched.append(trace)
        yield trace
