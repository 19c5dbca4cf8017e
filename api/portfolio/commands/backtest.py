"""`tidemark policies backtest`: ask for a comparison over the portfolio, wait for it, and show what would change."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import polars as pl
import typer

from api.core.commands.awaiting import completed
from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_record, print_records
from api.core.commands.files import csv_of, write
from api.decisions.commands.policies import ForClient, Slug, findings_described, policies
from api.portfolio import backtesting
from api.portfolio.schemas.backtests import PUBLISHED, SentBacktest
from pipelines.decisions import kinds
from pipelines.decisions.backtest import AFTER, BEFORE, KNOWN_OUTCOMES
from pipelines.reports.page.wording import percent
from pipelines.risk_models import files
from pipelines.vocabulary.errors import InvalidRequest, Unprocessable
from pipelines.vocabulary.strict_json import Number
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Reading
from storage.core.paging import Page
from storage.decisions import backtests
from storage.decisions import policies as stored_policies
from storage.decisions.backtests import Against, Backtest, Knowledge
from storage.decisions.policies import PolicyVersion

BOOLEANS = {"true": True, "false": False}
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
SHOWN_CHANGES = 10
COLUMNS = ("customer", "defaulted")  # of a file of outcomes
ANY_DAY = "1970-01-01"  # outcomes here are of customers, not of a day

Days = Annotated[list[str] | None, typer.Option("--as-of", help="A day, YYYY-MM-DD; repeat for more. Default: today.")]
Inputs = Annotated[list[str] | None, typer.Option("--input", help="name=value, for a declared input; repeat for more.")]
Customers = Annotated[list[UUID] | None, typer.Option("--customer", help="Only this customer; repeat for more.")]
Attributes = Annotated[
    list[str] | None, typer.Option("--attribute", help="name=value: only who has this attribute now; repeat for more.")
]
OutcomesFile = Annotated[Path | None, typer.Option("--outcomes", help="A CSV file: customer,defaulted (0 or 1).")]


@policies.command("backtest")
def backtest(
    slug: Slug,
    client: ForClient,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Default: the newest.")] = None,
    against: Annotated[str, typer.Option(help="A version's number, published, recorded or challenger.")] = PUBLISHED,
    as_of: Days = None,
    known_then: Annotated[
        bool, typer.Option("--known-then", help="Look only at what was held by the end of each day.")
    ] = False,
    given: Inputs = None,
    customer: Customers = None,
    attribute: Attributes = None,
    outcomes: OutcomesFile = None,
    page: Annotated[Path | None, typer.Option("--page", help="Write the page with charts to this file.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is done.")] = True,
    as_json: AsJson = False,
) -> None:
    """Compare a version of a policy with another one, or with what was decided, over the whole portfolio.

    The work is done by the running service, as a job.

    Example: tidemark policies backtest overdraft-review --client 2f0c… --against 3 --as-of 2026-03-31 --page out.html
    """
    with opened_store() as store:
        with store.db.reading() as r:
            policy = stored_policies.get(r, client, slug)
            newest = stored_policies.newest(r, policy)
            champion = newest if version is None else stored_policies.version(r, policy, version)
            sent = _sent(champion, against, as_of or [], given or [], known_then=known_then)
            sent = sent.model_copy(update=_only(champion, customer or [], attribute or []))
            _require_another(newest, sent)
            with findings_described(as_json=as_json):
                chosen, asked = backtesting.asked(r, policy, sent, now().astimezone(store.settings.zone).date())
            known = None if outcomes is None else _known(r, client, outcomes)
        with store.db.writing() as w:
            job = backtests.request(w, policy, chosen.version, asked, known, OPERATOR.who, now())
            ids = {"policyId": policy.policy_id, "jobId": job.job_id}
            audit.append(w, OPERATOR, "Policy.BacktestRequested", ids, now(), client_id=client)
        if not wait:
            print_record({"jobId": job.job_id, "status": job.status}, as_json=as_json)
            return
        completed(store, job)
        with store.db.reading() as r:
            done = backtests.get(r, policy, job.job_id)
            days, parts = backtests.result(r, done), backtests.parts(r, done)
        first = [row for rows in backtesting.changes(store.lake, parts, None, Page(1, SHOWN_CHANGES)) for row in rows]
        if page is not None:
            write(page, backtesting.as_page(store.lake, done, chosen.policy.name, days, parts).encode())
    if as_json:
        print_json({**backtesting.shown(done), "days": days})
        return
    _print(done, days)
    _print_changes(first, sum(part.changed(None) for part in parts))


def _sent(
    champion: PolicyVersion,
    against: str,
    days: Sequence[str],
    given: Sequence[str],
    *,
    known_then: bool,
) -> SentBacktest:
    if not against.isdecimal() and against not in (PUBLISHED, Against.RECORDED, Against.CHALLENGER):
        raise typer.BadParameter("--against is a version's number, published, recorded or challenger")
    declared = kinds(champion.policy.declared_inputs)
    return SentBacktest.model_construct(
        version=champion.version,
        against=int(against) if against.isdecimal() else against,
        as_of=[_day(each) for each in days] or None,
        knowledge=Knowledge.THEN if known_then else Knowledge.NOW,
        inputs=dict(_input(each, declared) for each in given),
    )


def _only(champion: PolicyVersion, customers: Sequence[UUID], attributes: Sequence[str]) -> Mapping[str, Any]:
    """What narrows the portfolio down."""
    declared = kinds(champion.policy.attributes)
    values = dict(_attribute(each, declared) for each in attributes)
    return {"customer_ids": list(dict.fromkeys(customers)) or None, "attributes": values or None}


def _require_another(newest: PolicyVersion, sent: SentBacktest) -> None:
    """Raises InvalidRequest where there is no second version to compare with."""
    if newest.version == sent.version == 1 and sent.against in (PUBLISHED, 1):
        described = "There is only version 1: push a new draft, or compare with `--against recorded`."
        raise InvalidRequest("Backtest.SameVersion", described)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("--as-of is a day, YYYY-MM-DD") from None


def _input(text: str, declared: Mapping[str, str]) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter("--input is name=value")
    return name, BOOLEANS.get(value, value) if declared.get(name) == "boolean" else value


def _attribute(text: str, declared: Mapping[str, str]) -> tuple[str, Any]:
    """As the kind that the policy declares; of others what looks like a number, true or false is one."""
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter("--attribute is name=value")
    kind = declared.get(name)
    if kind == "decimal" or (kind is None and NUMBER.fullmatch(value)):
        return name, Number(value)
    return name, value if kind == "string" else BOOLEANS.get(value, value)


def _known(r: Reading, client: UUID, path: Path) -> pl.DataFrame:
    """KNOWN_OUTCOMES of the file's customers that are the client's; the others are left out, and said.

    Raises:
        Unprocessable: the file can't be read.
        InvalidRequest: it names a customer twice.
    """
    cases = _cases(path)
    if cases["customer"].is_duplicated().any():
        raise InvalidRequest("Backtest.CustomerTwice", f"{path} names a customer twice.")
    ids = {text: parsed for text in cases["customer"] if (parsed := _uuid(text)) is not None}
    numbers = backtesting.numbers_of(r, client, list(ids.values()))
    number_of = {text: numbers[parsed] for text, parsed in ids.items() if parsed in numbers}
    known = cases.select(
        customer_number=pl.col("customer").replace_strict(number_of, default=None, return_dtype=pl.Int64),
        defaulted=pl.col("defaulted") == 1,
    ).drop_nulls("customer_number")
    if left := cases.height - known.height:
        err.print(f"tidemark: warning: {left} of {cases.height} outcomes are of no customer: left out", style="yellow")
    return known.select(*KNOWN_OUTCOMES)


def _cases(path: Path) -> pl.DataFrame:
    table = csv_of(path)
    there = [name.strip().lstrip("\ufeff") for name in table.columns]
    if missing := [name for name in COLUMNS if name not in there]:
        raise _unusable(path, f"there is no column {', '.join(missing)}")
    try:
        return files.parse_outcomes(table.with_columns(pl.lit(ANY_DAY).alias("asOf"))).cases
    except files.Unusable as error:
        raise _unusable(path, error.reason) from error


def _unusable(path: Path, reason: str) -> Unprocessable:
    described = f"{path} can't be read as known outcomes (columns {','.join(COLUMNS)}): {reason}."
    return Unprocessable("File.UnusableOutcomes", described)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _print(done: Backtest, days: Sequence[Mapping[str, Any]]) -> None:
    before, after = backtesting.sides(done)
    out.print(f"Before: {before}. After: {after}.", highlight=False)
    for each in days:
        out.print(
            f"\nAs of {each['asOf']}: {each['customers']:,} customers, {each['outcomeChanged']:,} decided otherwise, "
            f"{each['limitsChanged']:,} with another limit\n"
        )
        print_records(list(_lines(each)), as_json=False, empty="")


def _lines(each: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for row in each["outcomes"]:
        before, after = row[BEFORE], row[AFTER]
        yield {
            "outcome": row["outcome"],
            "before": before["customers"],
            "after": after["customers"],
            "bad rate before": percent(before["badRate"]),
            "bad rate after": percent(after["badRate"]),
        }


def _print_changes(first: Sequence[Mapping[str, Any]], count: int) -> None:
    """Who changes, each with the codes of the rules that make it so."""
    if not count:
        return
    out.print(f"\nThe first {len(first)} of {count:,} changes\n" if count > len(first) else "\nWho changes\n")
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
