"""`tidemark metrics`: list the metrics. Needs no server."""

from typing import Annotated

import typer

from api.core.commands.console import AsJson, print_json, print_records
from pipelines.metrics import METRICS
from pipelines.metrics.listing import as_markdown, record

metrics = typer.Typer(help="The registry of metrics.", no_args_is_help=True)

_SHOWN = ("slug", "name", "unit", "window")


@metrics.command("list")
def list_metrics(
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/reference/metrics.md.")] = False,
) -> None:
    """List the metrics that reports, policies and rules can read.

    Example: tidemark metrics list --json
    """
    records = [record(metric) for metric in METRICS.values()]
    if markdown:
        typer.echo(as_markdown(METRICS), nl=False)
    elif as_json:
        print_json(records)
    else:
        print_records([{name: each[name] for name in _SHOWN} for each in records], as_json=False, empty="")
