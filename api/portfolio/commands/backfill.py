"""`tidemark backfill`: enrich customers again with the current version of the enrichment, bucket by bucket.

The command only writes requests to a table and reads the progress from it. Dagster does the work in the portfolio's
queue, as if it had been started from its pages or by the weekly schedule. So the command may be stopped at any time and
run again.
"""

import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from api.core.commands.console import AsJson, err, now, opened_store, print_json, print_records
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from storage.core import buckets, leases
from storage.core.store import Store
from storage.portfolio import maintenance
from storage.portfolio.maintenance import BucketProgress, State, Task

POLL_EVERY_S = 0.5

Bucket = Annotated[
    list[int] | None,
    typer.Option(help="A bucket of customers. Can be repeated.", min=buckets.ALL[0], max=buckets.ALL[-1]),
]
Everything = Annotated[bool, typer.Option("--all", help="All buckets.")]


def backfill(bucket: Bucket = None, everything: Everything = False, as_json: AsJson = False) -> None:
    """Enrich customers again with the current version of the enrichment.

    A bucket is one of 64 parts of all customers. Customers with the current
    version are skipped. A customer's data version changes only if its rows do.
    Ctrl-C leaves the work running.

    Example: tidemark backfill --bucket 3 --bucket 17
    """
    if bool(bucket) == everything:
        raise typer.BadParameter("give --bucket, or --all for all buckets")
    with opened_store() as store:
        requested = _request(store, buckets.ALL if everything else bucket or ())
        ended = _follow(store, requested, print_progress=not as_json) if requested else []
    _print(ended, as_json=as_json)
    if any(each.error or each.failed for each in ended):
        raise typer.Exit(1)


def _request(store: Store, wanted: Sequence[int]) -> list[int]:
    """Request the work of those buckets that have any, and return these buckets."""
    at = leases.clock(store.db)
    with store.db.writing() as w:
        due = maintenance.find_buckets_due(w, maintenance.is_outdated(ENRICHMENT_VERSION))
        requested = sorted(set(wanted).intersection(due))
        maintenance.request(w, Task.BACKFILL, requested, now())
        if requested and not leases.can_process_jobs(w, at):
            err.print("Requested. It begins when Dagster and a worker run (`tidemark up`).", highlight=False)
    return requested


def _follow(store: Store, requested: Sequence[int], *, print_progress: bool) -> list[BucketProgress]:
    """Wait until the requested work has ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("customers"))
    with Progress(*columns, console=err, disable=not print_progress) as progress:
        bar = progress.add_task("waiting", total=None)
        while True:
            with store.db.reading() as r:
                found = maintenance.read_progress(r, Task.BACKFILL, requested)
            states = [each.state(now()) for each in found]
            ended = sum(state in (State.DONE, State.FAILED) for state in states)
            progress.update(
                bar,
                description=f"{ended} of {len(requested)} buckets",
                completed=sum(each.done for each in found),
                total=sum(each.total for each in found),
            )
            if ended == len(requested):
                return found
            time.sleep(POLL_EVERY_S)


def _print(ended: Sequence[BucketProgress], *, as_json: bool) -> None:
    records = [
        {
            "bucket": each.bucket,
            "customers": each.done,
            "changed": each.changed,
            "failed": each.failed,
            "error": each.error,
            "startedAt": each.started_at,
            "completedAt": each.completed_at,
        }
        for each in ended
    ]
    if as_json:
        print_json({"enrichmentVersion": ENRICHMENT_VERSION, "buckets": records})
    else:
        current = f"Every customer of these buckets has version {ENRICHMENT_VERSION} of the enrichment already."
        print_records(records, as_json=False, empty=current)
