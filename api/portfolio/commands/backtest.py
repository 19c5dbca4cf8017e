"""`tidemark policies backtest`: request a comparison over the portfolio, wait for it, and show what would change."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands import ids
from api.core.commands.awaiting import wait_until_completed
from api.core.commands.console import AsJson, now, opened_store, out, print_json, print_record, print_records, warn
from api.core.commands.files import csv_of, ids_in, write
from api.decisions.commands.policies import ForClient, Slug, policies, printing_faults
from api.portfolio import backtesting
from api.portfolio.portfolio_jobs import first_rows, numbers_of, start
from api.portfolio.schemas.backtests import PUBLISHED, SentBacktest
from pipelines.decisions import kinds_by_name
from pipelines.decisions.backtest import AFTER, BEFORE, KNOWN_OUTCOMES
from pipelines.pages.wording import percent
from pipelines.risk_models import files
from pipelines.vocabulary.errors import InvalidRequest, Unprocessable
from pipelines.vocabulary.strict_json import Number
from storage.core.audit import OPERATOR
from storage.core.database import Reading
from storage.decisions import policies as stored_policies
from storage.decisions.backtests import Against, Knowledge
from storage.decisions.policies import PolicyVersion
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import PortfolioJob

BOOLEANS = {"true": True, "false": False}
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
SHOWN_CHANGES = 10
COLUMNS = ("customer", "defaulted")  # of a file of outcomes
ANY_DAY = "1970-01-01"  # a placeholder, because these outcomes have no day

Days = Annotated[
    list[str] | None,
    typer.Option("--as-of", help="A day on which to decide, YYYY-MM-DD. Can be repeated. Default: today."),
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", help="name=value: the value of a declared input. Can be repeated.")
]
Customers = Annotated[
    list[UUID] | None,
    typer.Option("--customer", parser=ids.CUSTOMER, metavar="ID", help="Only this customer. Can be repeated."),
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", help="name=value: only customers with this attribute. Can be repeated."),
]
OutcomesFile = Annotated[Path | None, typer.Option("--outcomes", help="A CSV file: customer,defaulted (0 or 1).")]


@policies.command("backtest")
def backtest(
    slug: Slug,
    client: ForClient,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="The version to try. Default: the newest.")
    ] = None,
    against: Annotated[
        str, typer.Option(help="What to compare it with: a version's number, published, recorded or challenger.")
    ] = PUBLISHED,
    as_of: Days = None,
    known_then: Annotated[
        bool, typer.Option("--known-then", help="For each day, use only data that had been stored by its end.")
    ] = False,
    inputs: Inputs = None,
    customer: Customers = None,
    attribute: Attributes = None,
    outcomes: OutcomesFile = None,
    page: Annotated[Path | None, typer.Option("--page", help="Write the page with charts to this file.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the result.")] = True,
    as_json: AsJson = False,
) -> None:
    """Compare a version of a policy with another one, or with recorded decisions, over the whole portfolio.

    The running service does the work, as a job.

    Example: tidemark policies backtest overdraft-review --client 2f0c… --against 3 --as-of 2026-03-31 --page out.html
    """
    with opened_store() as store:
        with store.db.reading() as r:
            policy = stored_policies.get(r, client, slug)
            newest = stored_policies.newest(r, policy)
            tried = newest if version is None else stored_policies.version(r, policy, version)
            sent = _build_request(tried, against, as_of or [], inputs or [], known_then=known_then)
            sent = sent.model_copy(update=_filters(tried, customer or [], attribute or []))
            _require_another(newest, sent)
            with printing_faults(as_json=as_json):
                new = backtesting.new_job(r, policy, sent, now().astimezone(store.settings.zone).date())
            if outcomes is not None:
                new = replace(new, attachment=_read_outcomes(r, client, outcomes))
        with store.db.writing() as w:
            job = start(w, new, OPERATOR, now())
        if not wait:
            print_record({"jobId": job.job_id, "status": job.status}, as_json=as_json)
            return
        wait_until_completed(store, job)
        with store.db.reading() as r:
            done = portfolio_jobs.get_of_any_client(r, job.job_id)
            result, listing = portfolio_jobs.read_result(r, done), portfolio_jobs.read_listing(r, done)
        first = first_rows(store.lake, listing, SHOWN_CHANGES, backtesting.describe_change)
        if page is not None:
            write(page, backtesting.render_page(store, done, policy, result, listing).encode())
    if as_json:
        print_json({**backtesting.describe(done), "days": result})
        return
    _print(done, result)
    _print_changes(first, listing.total)


def _build_request(
    tried: PolicyVersion,
    against: str,
    days: Sequence[str],
    inputs: Sequence[str],
    *,
    known_then: bool,
) -> SentBacktest:
    if not against.isdecimal() and against not in (PUBLISHED, Against.RECORDED, Against.CHALLENGER):
        raise typer.BadParameter("--against must be a version's number, published, recorded or challenger")
    declared = kinds_by_name(tried.policy.declared_inputs)
    return SentBacktest.model_construct(
        version=tried.version,
        against=int(against) if against.isdecimal() else against,
        as_of=[_day(each) for each in days] or None,
        knowledge=Knowledge.THEN if known_then else Knowledge.NOW,
        inputs=dict(_input(each, declared) for each in inputs),
    )


def _filters(tried: PolicyVersion, customers: Sequence[UUID], attributes: Sequence[str]) -> Mapping[str, Any]:
    """Return the fields of a backtest that restrict its customers."""
    declared = kinds_by_name(tried.policy.attributes)
    values = dict(_attribute(each, declared) for each in attributes)
    return {"customer_ids": list(dict.fromkeys(customers)) or None, "attributes": values or None}


def _require_another(newest: PolicyVersion, sent: SentBacktest) -> None:
    """Raise InvalidRequest if there is no second version to compare with."""
    if newest.version == sent.version == 1 and sent.against in (PUBLISHED, 1):
        detail = "There is only version 1: push a new draft, or compare with `--against recorded`."
        raise InvalidRequest("Backtest.SameVersion", detail)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("--as-of must be a day, YYYY-MM-DD") from None


def _split(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"{option} must be name=value")
    return name, value


def _input(text: str, declared: Mapping[str, str]) -> tuple[str, Any]:
    name, value = _split(text, "--input")
    return name, BOOLEANS.get(value, value) if declared.get(name) == "boolean" else value


def _attribute(text: str, declared: Mapping[str, str]) -> tuple[str, Any]:
    """Parse an attribute as the kind that the policy declares.

    If it declares none, what looks like a number is one, `true` and `false` are booleans, and the rest is text.
    """
    name, value = _split(text, "--attribute")
    kind = declared.get(name)
    if kind == "decimal" or (kind is None and NUMBER.fullmatch(value)):
        return name, Number(value)
    return name, value if kind == "string" else BOOLEANS.get(value, value)


def _read_outcomes(r: Reading, client: UUID, path: Path) -> pl.DataFrame:
    """Read a file of known outcomes (columns KNOWN_OUTCOMES). Rows of unknown customers are left out, with a warning.

    Raises:
        Unprocessable: the file can't be read.
        InvalidRequest: it lists a customer twice.
    """
    cases = _cases(path)
    if cases["customer"].is_duplicated().any():
        raise InvalidRequest("Backtest.CustomerTwice", f"{path} lists a customer twice.")
    parsed_ids = ids_in(cases["customer"])
    numbers = numbers_of(r, client, list(parsed_ids.values()))
    number_of = {text: numbers[parsed] for text, parsed in parsed_ids.items() if parsed in numbers}
    known = cases.select(
        customer_number=pl.col("customer").replace_strict(number_of, default=None, return_dtype=pl.Int64),
        defaulted=pl.col("defaulted") == 1,
    ).drop_nulls("customer_number")
    if ignored := cases.height - known.height:
        warn(f"ignored {ignored} of {cases.height} outcomes: their customers are unknown")
    return known.select(*KNOWN_OUTCOMES)


def _cases(path: Path) -> pl.DataFrame:
    table = csv_of(path)
    names = [name.strip().lstrip("\ufeff") for name in table.columns]
    if missing := [name for name in COLUMNS if name not in names]:
        raise _unusable(path, f"there is no column {', '.join(missing)}")
    try:
        return files.parse_outcomes(table.with_columns(pl.lit(ANY_DAY).alias("asOf"))).cases
    except files.UnusableFile as error:
        raise _unusable(path, error.reason) from error


def _unusable(path: Path, reason: str) -> Unprocessable:
    detail = f"{path} can't be read as known outcomes (columns {','.join(COLUMNS)}): {reason}."
    return Unprocessable("File.UnusableOutcomes", detail)


def _print(job: PortfolioJob, days: Sequence[Mapping[str, Any]]) -> None:
    before, after = backtesting.name_sides(job)
    out.print(f"Before: {before}. After: {after}.", highlight=False)
    for each in days:
        out.print(
            f"\nAs of {each['asOf']}: {each['customers']:,} customers, "
            f"{each['outcomeChanged']:,} with another outcome, {each['limitsChanged']:,} with another limit\n"
        )
        print_records(list(_outcome_lines(each)), as_json=False, empty="")


def _outcome_lines(day: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for row in day["outcomes"]:
        before, after = row[BEFORE], row[AFTER]
        yield {
            "outcome": row["outcome"],
            "before": before["customers"],
            "after": after["customers"],
            "bad rate before": percent(before["badRate"]),
            "bad rate after": percent(after["badRate"]),
        }


def _print_changes(first: Sequence[Mapping[str, Any]], count: int) -> None:
    """Print the first changed customers, with the codes of the rules that cause the change."""
    if not count:
        return
    out.print(f"\nThe first {len(first)} of {count:,} changes\n" if count > len(first) else "\nChanged customers\n")
    print_records(
        [
            {
                "customer": each["customerId"],
                "before": each["before"],
                "after": each["after"] if each["change"] == "outcome" else "other limit",
                "changed by": each["changedBy"],
            }
            for each in first
        ],
        as_json=False,
        empty="",
    )
