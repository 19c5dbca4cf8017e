"""`tidemark`: the operator's command line. The help of each command has an example; most commands can print JSON.

A command's module is imported when the command runs. Otherwise `tidemark --help` would take seconds.
"""

import gc
import os
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

SUMMARY = "Bank transactions in, decision-ready reports out."
FILES, SERVICE, OPERATION, LENDING, WEBHOOKS = (
    "On your own files, without a service",
    "Run the service",
    "Operate it",
    "Lend",
    "Webhooks",
)
# Between two garbage collections. Loading makes hundreds of thousands of objects that last; with Python's default of
# 700, a command spends a tenth of its time looking for garbage among them.
NEW_OBJECTS = 20_000


class Listed(NamedTuple):
    """A command in the list of commands, and where it is defined.

    `module` is `subject.name`, for `api.subject.commands.name`; its `attribute` is the command (a function) or a group
    of commands (a Typer). The modules in `more` add commands to the group.
    """

    panel: str
    summary: str
    module: str
    attribute: str
    more: tuple[str, ...] = ()


COMMANDS = {
    "up": Listed(SERVICE, "Start everything in one process tree. Ctrl-C stops it.", "service.processes", "up"),
    "demo": Listed(SERVICE, "Show the service at work on synthetic data.", "service.demo", "demo"),
    "api": Listed(SERVICE, "Start the API alone.", "service.processes", "api"),
    "worker": Listed(SERVICE, "Start a worker: runs and webhook deliveries.", "service.processes", "worker"),
    "dagster": Listed(SERVICE, "Start Dagster and the dispatcher.", "service.processes", "dagster"),
    "analyse": Listed(FILES, "Show the three reports of bank exports.", "reports.analyse", "analyse"),
    "categorise": Listed(FILES, "Categorise the rows of a file.", "enrichment.categorising", "categorise"),
    "statements": Listed(FILES, "Read bank statements in PDF files.", "intake.statements", "statements"),
    "synthetic": Listed(
        FILES, "Make synthetic businesses, their statements and the correct answers.", "service.synthetic", "synthetic"
    ),
    "sandbox": Listed(SERVICE, "Create synthetic customers by profile.", "sandbox.sandbox", "sandbox"),
    "clients": Listed(OPERATION, "Create and list clients: the lenders that use the API.", "access.access", "clients"),
    "keys": Listed(OPERATION, "Issue, list, rotate and revoke API keys.", "access.access", "api_keys"),
    "users": Listed(OPERATION, "The people who sign in to the console.", "access.users", "users"),
    "doctor": Listed(OPERATION, "Report problems and what to do about them.", "operations.maintenance", "doctor_"),
    "backup": Listed(
        OPERATION, "Back up the database and every file that it refers to.", "operations.maintenance", "back_up"
    ),
    "compact": Listed(OPERATION, "Rewrite the lake into fewer files.", "operations.maintenance", "compact"),
    "sweep": Listed(OPERATION, "Delete data older than the retention time.", "operations.maintenance", "sweep"),
    "find": Listed(OPERATION, "Find what is stored about a person.", "operations.maintenance", "find"),
    "homes": Listed(OPERATION, "List and forget homes that share the database.", "operations.homes", "homes"),
    "backfill": Listed(OPERATION, "Enrich customers again with the current rules.", "portfolio.backfill", "backfill"),
    "lake": Listed(OPERATION, "List the lake's current Parquet files.", "operations.lake", "lake"),
    "secrets": Listed(
        OPERATION, "List and rotate the keys that encrypt stored secrets.", "operations.secrets", "secrets"
    ),
    "audit": Listed(OPERATION, "List the audit trail.", "access.trail", "trail"),
    "report": Listed(LENDING, "Show a customer's three reports.", "reports.report", "report"),
    "metrics": Listed(LENDING, "List the registry of metrics.", "metrics.metrics", "metrics"),
    "policies": Listed(
        LENDING, "Check, publish and backtest policies.", "decisions.policies", "policies", ("portfolio.backtest",)
    ),
    "evaluations": Listed(LENDING, "List, show and replay decisions.", "decisions.evaluations", "evaluations"),
    "rulesets": Listed(
        LENDING, "Watch customers; simulate rulesets.", "monitoring.rulesets", "rulesets", ("portfolio.simulate",)
    ),
    "risk": Listed(LENDING, "Fit, compare and activate risk models.", "decisions.risk", "risk"),
    "attack": Listed(LENDING, "Try attacks on ratings, and see what is noticed.", "decisions.attack", "attack"),
    "categories": Listed(
        LENDING, "Train and activate models that learn categories.", "enrichment.categories", "categories"
    ),
    "enrichment": Listed(
        LENDING, "Compare releases and your own rules; activate rules.", "enrichment.enrichment", "enrichment"
    ),
    "subscriptions": Listed(
        WEBHOOKS, "List, pause and resume webhook subscriptions.", "webhooks.subscriptions", "subscriptions"
    ),
    "deliveries": Listed(WEBHOOKS, "List and resend webhook deliveries.", "webhooks.deliveries", "deliveries"),
    "events": Listed(WEBHOOKS, "List event types and print their schemas.", "webhooks.events", "events"),
    "listen": Listed(WEBHOOKS, "Receive and verify webhooks during development.", "webhooks.listening", "listen"),
}


class CommandsOnDemand(TyperGroup):
    """A group that lists COMMANDS without importing them, and imports the command that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, help=listed.summary, rich_help_panel=listed.panel)
            for name, listed in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else import_command(name), rest


def import_command(name: str) -> Any:
    """Import a command of COMMANDS and return it as Typer runs it."""
    listed = COMMANDS[name]
    module, *_ = map(_module, (listed.module, *listed.more))
    found, holder = getattr(module, listed.attribute), typer.Typer()
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


def _module(listed_as: str) -> ModuleType:
    subject, _, name = listed_as.partition(".")
    return import_module(f"api.{subject}.commands.{name}")


app = typer.Typer(
    cls=CommandsOnDemand,
    name="tidemark",
    help=SUMMARY,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidemark {version('tidemark')}")
        raise typer.Exit


@app.callback()
def options(
    home: Annotated[
        Path | None, typer.Option(help="Folder of the service's data. Default: TIDEMARK_HOME or ./.tidemark")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if home is not None:
        os.environ["TIDEMARK_HOME"] = str(home)


def main() -> None:
    """Run a command. An expected failure prints one line on standard error and exits with status 1."""
    gc.set_threshold(NEW_OBJECTS)
    # OpenBLAS's threads spin while they wait, for a twentieth of a short command, and no matrix here is large enough to
    # need them. Numpy reads this when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except Exception as error:
        from api.core.commands import failures  # noqa: PLC0415  # it imports SQLAlchemy and pydantic

        line = failures.explain_failure(error)
        if line is None:
            raise
        sys.stderr.write(f"tidemark: {line}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
