"""`tidemark`: the operator's door. Every command has an example in its help, and most speak JSON."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from api.commands import (
    access,
    analyse,
    backfill,
    backtest,
    categories,
    deliveries,
    demo,
    enrichment,
    evaluations,
    events,
    lake,
    metrics,
    policies,
    processes,
    report,
    risk,
    rulesets,
    sandbox,
    secrets,
    simulate,
    statements,
    subscriptions,
    trail,
    upkeep,
)
from api.commands.console import err
from pipelines.errors import TidemarkError
from storage.settings import SettingsError

app = typer.Typer(
    name="tidemark",
    help="Bank transactions in, decision-ready reports out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("up")(processes.up)
app.command("api")(processes.api)
app.command("worker")(processes.worker)
app.command("dagster")(processes.dagster)
app.command("listen")(processes.listen)
app.command("demo")(demo.demo)
app.command("categorise")(categories.categorise)
app.command("analyse")(analyse.analyse)
app.command("report")(report.report)
app.command("backfill")(backfill.backfill)
app.command("compact")(upkeep.compact)
app.command("sweep")(upkeep.sweep)
app.command("doctor")(upkeep.doctor_)
app.command("backup")(upkeep.back_up)
app.add_typer(access.clients, name="clients")
app.add_typer(access.api_keys, name="keys")
app.add_typer(deliveries.deliveries, name="deliveries")
app.add_typer(enrichment.enrichment, name="enrichment")
app.add_typer(categories.categories, name="categories")
app.add_typer(lake.lake, name="lake")
app.add_typer(metrics.metrics, name="metrics")
policies.policies.command("backtest")(backtest.backtest)
app.add_typer(policies.policies, name="policies")
app.add_typer(evaluations.evaluations, name="evaluations")
app.add_typer(events.events, name="events")
app.add_typer(risk.risk, name="risk")
rulesets.rulesets.command("simulate")(simulate.simulate)
app.add_typer(rulesets.rulesets, name="rulesets")
app.add_typer(sandbox.sandbox, name="sandbox")
app.add_typer(secrets.secrets, name="secrets")
app.add_typer(statements.statements, name="statements")
app.add_typer(subscriptions.subscriptions, name="subscriptions")
app.add_typer(trail.trail, name="audit")


@app.callback()
def options(
    home: Annotated[
        Path | None, typer.Option(help="Where this Tidemark keeps its state. Default: TIDEMARK_HOME or ./.tidemark")
    ] = None,
) -> None:
    """Bank transactions in, decision-ready reports out."""
    if home is not None:
        os.environ["TIDEMARK_HOME"] = str(home)


def main() -> None:
    """Run a command; whatever is expected to go wrong is one line on standard error and exit status 1."""
    try:
        app()
    except TidemarkError as error:
        _fail(error.detail)
    except SettingsError as error:
        _fail(str(error))
    except ValidationError as error:
        _fail("; ".join(f"TIDEMARK_{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()))
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        _fail(f"the database can't be used: {_first_line(cause)}")


def _first_line(error: BaseException) -> str:
    """What follows is the statement, or advice on where to read more."""
    return str(error).partition("\n")[0]


def _fail(line: str) -> None:
    err.print(f"tidemark: {line}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
