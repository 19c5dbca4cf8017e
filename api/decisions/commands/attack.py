"""`tidemark attack`: show how attacks and honest lookalikes change ratings, of synthetic or of real customers.

Nothing is stored, and no service is needed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.progress import track
from rich.table import Table

from api.core.commands.console import AsJson, complaint, err, out, print_json
from api.core.commands.expecting import Expects, describe_expected
from api.core.commands.files import csv_of
from api.intake.commands.exports import show_indented
from pipelines.attacks.attack import Applicant, Attack, Lookalike, Manipulation
from pipelines.attacks.ledger import as_ledger
from pipelines.attacks.registry import attacks, lookalikes
from pipelines.risk_models import files
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.synthetic import Business, portfolio
from pipelines.trials import results
from pipelines.trials.subjects import Details, Subject, cases_without_outcomes, subjects_of_files
from pipelines.trials.trial import choose_in_turn, try_manipulations

MONTHS = 14  # of a synthetic customer's history: readings look back a year
UNTIL = date(2026, 10, 31)
IMPROVES = ("grade", "value", "limit", "verdict")


def attack(
    names: Annotated[
        list[str] | None, typer.Argument(help="Attacks and lookalikes to try. Default: all.", show_default=False)
    ] = None,
    synthetic: Annotated[bool, typer.Option("--synthetic", help="Try them on synthetic customers.")] = False,
    customers: Annotated[int, typer.Option(help="Number of synthetic customers.", min=1, max=100_000)] = 20,
    seed: Annotated[int, typer.Option(help="The same seed gives the same customers and attacks.")] = 1,
    transactions_file: Annotated[
        Path | None,
        typer.Option(
            "--transactions", help="CSV file with the columns customer, account, date, description, amount, balance."
        ),
    ] = None,
    outcomes_file: Annotated[
        Path | None,
        typer.Option("--outcomes", help="CSV file with the columns customer, asOf. Default: each customer's last day."),
    ] = None,
    per_customer: Annotated[
        int | None, typer.Option(min=1, help="Attacks and lookalikes for each customer. Default: all.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of attacks and lookalikes, such as share=0.3; may be repeated. --list shows them.",
        ),
    ] = None,
    expects: Expects = None,
    list_only: Annotated[bool, typer.Option("--list", help="Describe them instead of trying them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try attacks on customers; show which results they improve, and which are noticed. Needs no server.

    Each customer is rated untouched and attacked, by the default scorecard and
    the policy working-capital-loan. Lookalikes are honest changes that
    look the same: a finding on one is a false alarm.

    Example: tidemark attack round_trip loans_stacked --synthetic --customers 50
    """
    chosen = _set_parameters(_select_manipulations(names or []), settings or [])
    if list_only:
        _describe(chosen, as_json=as_json)
        return
    if synthetic == (transactions_file is not None):
        raise typer.BadParameter("give either --synthetic or --transactions")
    subjects, count, decided = (
        (synthetic_subjects(customers, seed), customers, EVERYTHING)
        if transactions_file is None
        else _read_subjects(transactions_file, outcomes_file)
    )
    expected = expects or decided
    shown = track(subjects, "attacking", count, console=err, disable=as_json, transient=True)
    try:
        ratings = try_manipulations(shown, choose_in_turn(chosen, per_customer), seed, expected)
    except ValueError as error:
        if not settings:
            raise
        raise complaint(f"no customer can be changed with {', '.join(settings)}: {error}") from None
    report = {**results.report(ratings, chosen), "expects": expected.names}
    if as_json:
        print_json(report)
    else:
        _print(report, expected)


def synthetic_subjects(customers: int, seed: int) -> Iterator[Subject]:
    """Yield the businesses of a synthetic portfolio on the day they apply, with the truth about each row till then."""
    return (subject_of(each) for each in portfolio(customers, MONTHS, seed, UNTIL))


def subject_of(business: Business) -> Subject:
    rows = pl.concat(
        account.transactions.filter(
            pl.col("injected").ne_missing("duplicate"), pl.col("date") <= business.applied_on
        ).select(
            *("date", "description", "amount", "balance", "category", "counterparty"),
            account=pl.lit(account.account_number),
            account_type=pl.lit(account.account_type),
            bank=pl.lit(account.bank_name),
        )
        for account in business.accounts
    )
    details = {
        account.account_number: Details(
            account.account_name, account.bsb, None if account.credit_limit is None else Decimal(account.credit_limit)
        )
        for account in business.accounts
    }
    applicant = Applicant(as_ledger(rows), business.applied_on, business.name, _owner(rows), business.related)
    lacks_account = business.not_supplied is not None
    return Subject(business.abn, applicant, details, business.outcome.defaults, lacks_account)


def _owner(rows: pl.DataFrame) -> str:
    """Return the person with the most drawings; empty if there are none."""
    drawings = rows.filter(pl.col("category") == "owner_drawings").drop_nulls("counterparty")
    ranked = drawings.group_by("counterparty").len().sort("len", "counterparty", descending=[True, False])
    return ranked["counterparty"].first() or ""  # pyrefly: ignore[bad-return]


def _read_subjects(transactions: Path, outcomes: Path | None) -> tuple[Iterable[Subject], int, Expected]:
    rows = files.parse_transactions(csv_of(transactions))
    cases = (
        cases_without_outcomes(rows)
        if outcomes is None
        else files.parse_outcomes(csv_of(outcomes), with_outcomes=False).cases
    )
    subjects, expected = subjects_of_files(rows, cases)
    return subjects, len(subjects), expected


def _select_manipulations(names: Sequence[str]) -> list[Manipulation]:
    known: Mapping[str, Manipulation] = {**attacks(), **lookalikes()}
    if unknown := [name for name in names if name not in known]:
        raise complaint(f"unknown {', '.join(unknown)}; choose from {', '.join(known)}")
    return [known[name] for name in names or known]


def _set_parameters(chosen: Sequence[Manipulation], settings: Sequence[str]) -> list[Manipulation]:
    """Set parameters, given as `name=value`, of those that have them."""
    pairs = [each.partition("=") for each in settings]
    values = {name.strip(): value.strip() for name, _, value in pairs}
    known = sorted({name for each in chosen for name in each.parameters})
    if wrong := [name for name, sign, _ in pairs if not sign or name.strip() not in known]:
        raise typer.BadParameter(f"--set {wrong[0]} is not NAME=VALUE of a parameter: {', '.join(known) or 'none'}")
    try:
        return [each.with_parameters(values) for each in chosen]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _describe(chosen: Sequence[Manipulation], *, as_json: bool) -> None:
    described = [_description(each) for each in chosen]
    if as_json:
        print_json(described)
        return
    for each in described:
        out.print(f"[bold]{each['slug']}[/]{' (held out)' if each['heldOut'] else ''}", highlight=False)
        out.print(each["words"], highlight=False, markup=False)
        for line in _describe_details(each):
            show_indented(out, line, "dim")
        out.print()


def _describe_details(each: Mapping[str, Any]) -> Iterator[str]:
    """Say who can see it or what it resembles, and what can be set."""
    if "resembles" in each:
        yield f"lookalike of {each['resembles']}"
    else:
        needs = ", ".join(name.replace("_", " ") for name in each["needs"])
        yield f"detectability: {each['detectability']}{f' (needs {needs})' if needs else ''}"
    if each["parameters"]:
        settings = (f"{name}={'drawn' if value is None else value}" for name, value in each["parameters"].items())
        yield f"parameters: {', '.join(settings)}"


def _description(each: Manipulation) -> dict[str, Any]:
    parameters = {name: None if value is None else str(value) for name, value in each.parameters.items()}
    described = {"slug": each.slug, "words": each.words, "heldOut": each.held_out, "parameters": parameters}
    if isinstance(each, Attack):
        return {**described, "detectability": each.detectability, "needs": each.needs}
    return {**described, "resembles": each.resembles} if isinstance(each, Lookalike) else described


def _print(report: Mapping[str, Any], expected: Expected) -> None:
    """Print tables of at most 80 columns."""
    if report["attacks"]:
        out.print(_attacks_table(report["attacks"]))
        out.print("\n* written without knowledge of the rules")
        out.print("of: customers that it changed and that were not rated A before;")
        out.print("grade, value, limit, verdict: share of these whose result it improved")
        out.print("shown: changed customers whose rows show it; noticed: share of these\n")
    if report["lookalikes"]:
        out.print(_lookalikes_table(report["lookalikes"]))
        out.print("\nn: customers changed; alarm: share with a finding; reason: with a new reason")
    untouched = report["untouched"]
    out.print(
        f"\n{untouched['customers']} customers untouched: {_percent(untouched['good'])} rated A or B, "
        f"{_percent(untouched['found'])} with a finding.\nExpected evidence: {describe_expected(expected)}",
        highlight=False,
    )


def _attacks_table(shown: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("attack", "seen", ("of", "grade", "value", "limit", "verdict", "shown", "noticed"))
    for each in shown:
        improved = (_percent(each[name]) for name in IMPROVES)
        counts = str(each["belowBest"]), str(each["withEvidence"])
        table.add_row(_name(each), each["detectability"], counts[0], *improved, counts[1], _percent(each["noticed"]))
    return table


def _lookalikes_table(shown: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("lookalike", "of", ("n", "alarm", "reason"))
    for each in shown:
        percents = (_percent(each[name]) for name in ("found", "newReason"))
        table.add_row(_name(each), each["resembles"], str(each["customers"]), *percents)
    return table


def _table(first: str, second: str, numbers: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    table.add_column(second, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _name(each: Mapping[str, Any]) -> str:
    return f"{each['slug']}{'*' if each['heldOut'] else ''}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}".replace("100.0", "100")
