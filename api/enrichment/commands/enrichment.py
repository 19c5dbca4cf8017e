"""`tidemark enrichment`: releases of the enrichment, and what one changes in the portfolio.

A customer's transactions under a version are the newest value that this version made and that is still stored. If the
later version is that of this program, they are computed from the current rows instead. Both are compared in memory,
bucket by bucket, and nothing is written.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import polars as pl
import typer
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from api.core.commands.console import AsJson, err, now, opened_store, out, print_json, print_records
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION, enrich
from pipelines.enrichment.knowledge import Knowledge
from pipelines.pages.wording import counted
from pipelines.portfolio.releases import Impact, Release, compare, fingerprint, merged, releases
from pipelines.vocabulary.errors import TidemarkError
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from storage.core import buckets
from storage.core.logs import printable
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import knowledge, versions
from storage.enrichment.transactions import Location

SHOWN = 20  # lines of a table for people; JSON has them all
SHOWN_ID = 8  # characters of a customer's id
SHOWN_TEXT = 60  # characters of a description

enrichment = typer.Typer(help="The enrichment: list and compare releases.", no_args_is_help=True)

Client = Annotated[UUID | None, typer.Option(help="Only this client's customers.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Only this many customers, spread evenly over the portfolio.")]


class NothingToCompare(TidemarkError):
    """No customer is stored under both versions."""


@enrichment.command("releases")
def list_releases(as_json: AsJson = False) -> None:
    """List the releases of the enrichment, and check that this program has the latest one.

    Exit status 1 if it has not. Record each change of rules, lists, taxonomy
    or model in releases.yaml, with the fingerprint that this command prints.

    Example: tidemark enrichment releases
    """
    recorded, here = releases(), fingerprint()
    same = here == recorded[-1].fingerprint
    if as_json:
        print_json({"releases": recorded, "fingerprint": here, "released": same})
    else:
        print_records([_release_line(each) for each in recorded], as_json=False, empty="")
        verdict = "[green]These rules are those of release" if same else "[yellow]These rules differ from release"
        out.print(f"\n{verdict} {recorded[-1].version}.[/]  fingerprint {here}", highlight=False, soft_wrap=True)
    if not same:
        raise typer.Exit(1)


def _release_line(release: Release) -> dict[str, Any]:
    return {
        "version": release.version,
        "taxonomy": release.taxonomy,
        "date": release.date,
        "changes": " ".join(release.changes),
        "impact": release.impact,
    }


@enrichment.command("diff")
def diff(
    from_version: Annotated[int, typer.Option("--from", help="The earlier version, which must be stored.")],
    to_version: Annotated[
        int,
        typer.Option("--to", help="The later version: a stored one, or that of this program, which is then computed."),
    ],
    client: Client = None,
    sample: Sample = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of the enrichment: categories, figures and examples.

    Nothing is written. Customers that are not stored under both versions are
    left out and counted.

    Example: tidemark enrichment diff --from 1 --to 2 --sample 200
    """
    with opened_store() as store:
        with store.db.reading() as r:
            stored = versions.of_customers(r, client)
        chosen = _sampled(list(stored), sample)
        today = now().astimezone(store.settings.zone).date()
        parts = _by_bucket(chosen)
        shown = track(parts, "comparing", console=err, disable=as_json, transient=True)
        pairs = (_pair(store, {number: stored[number] for number in part}, from_version, to_version) for part in shown)
        impact = merged(compare(*pair, today) for pair in pairs if pair is not None)
        if not impact.customers:
            raise NothingToCompare("Enrichment.NothingToCompare", _describe_stored(stored, from_version, to_version))
        with store.db.reading() as r:
            ids = {number: str(each) for number, each in customers.ids_of(r, chosen).items()}
    left_out = len(chosen) - impact.customers
    about = {"from": from_version, "to": to_version, "customers": impact.customers, "skipped": left_out}
    if as_json:
        print_json({**about, **_as_json(impact, ids)})
    else:
        _print(about, impact, ids)


def _sampled(numbers: Sequence[int], sample: int | None) -> list[int]:
    """Return every n-th customer: the same portfolio gives the same sample."""
    if sample is None or sample >= len(numbers):
        return list(numbers)
    return [numbers[place * len(numbers) // sample] for place in range(sample)]


def _by_bucket(numbers: Sequence[int]) -> list[list[int]]:
    """Group customers by bucket, so that memory holds the transactions of one bucket at a time."""
    parts = ([number for number in numbers if buckets.bucket_of(number) == bucket] for bucket in buckets.ALL)
    return [part for part in parts if part]


def _pair(store: Store, stored: Mapping[int, int], before: int, after: int) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Return the transactions (TRANSACTIONS) of customers stored under both versions, or None without any."""
    with store.db.reading() as r:
        places = versions.places(r, stored)
        known = knowledge.read(r, store.lake, stored)
    computed = after == ENRICHMENT_VERSION
    olds = _stored_under(store, stored, places, before)
    news = (
        {number: each[0] for number, each in places.items()}
        if computed
        else _stored_under(store, stored, places, after)
    )
    both = sorted(olds.keys() & news.keys())
    if not both:
        return None
    old, new = (_rows(store, [chosen[number] for number in both]) for chosen in (olds, news))
    return old, _computed(new, known) if computed else new


def _stored_under(
    store: Store, stored: Mapping[int, int], places: Mapping[int, Sequence[Location]], version: int
) -> dict[int, Location]:
    """Return, by customer, the location of the newest value that this version made, or would make identically."""
    found = {}
    for number, retained in places.items():
        current_one, *replaced = retained
        if stored[number] == version:
            found[number] = current_one
        else:
            older = (each for each in replaced if versions.of_value(store.lake, each) == version)
            if (place := next(older, None)) is not None:
                found[number] = place
    return found


def _rows(store: Store, places: Sequence[Location]) -> pl.DataFrame:
    """Read the values. Columns that an older version did not have are null."""
    scans = (
        place.scan(store.lake).match_to_schema(TRANSACTIONS, missing_columns="insert", extra_columns="ignore")
        for place in places
    )
    return pl.concat(scans).collect()


def _computed(held: pl.DataFrame, known: Knowledge) -> pl.DataFrame:
    nothing_new = pl.DataFrame(schema=ACCEPTED)
    return enrich(held, nothing_new, knowledge=known).transactions.collect()


def _describe_stored(stored: Mapping[int, int], before: int, after: int) -> str:
    """Return the error message, with the stored versions."""
    counts = Counter(stored.values())
    held = ", ".join(f"version {version} ({counted(count, 'customer')})" for version, count in sorted(counts.items()))
    return (
        f"Versions {before} and {after} can't be compared: no customer is stored under both. Stored: {held or 'none'}; "
        f"--to {ENRICHMENT_VERSION} computes this program's. Replaced values are kept for TIDEMARK_RETENTION."
    )


def _as_json(impact: Impact, ids: Mapping[int, str]) -> dict[str, Any]:
    return {
        "transactions": impact.rows,
        "onlyUnderOne": impact.only_one,
        "moved": impact.moved.to_dicts(),
        "figures": {
            "all": impact.summed_figures().to_dicts(),
            "byCustomer": [_with_customer_id(each, ids) for each in impact.changed_figures().to_dicts()],
        },
        "examples": [_example(each, ids) for each in impact.examples.to_dicts()],
    }


def _with_customer_id(record: Mapping[str, Any], ids: Mapping[int, str]) -> dict[str, Any]:
    rest = {name: value for name, value in record.items() if name != "customer_number"}
    return {"customerId": ids[record["customer_number"]], **rest}


def _example(record: Mapping[str, Any], ids: Mapping[int, str]) -> dict[str, Any]:
    shown = _with_customer_id(record, ids)
    return {
        "customerId": shown.pop("customerId"),
        "transactionId": str(UUID(bytes=shown.pop("transaction_id"))),
        "fromSource": shown.pop("from_source"),
        "toSource": shown.pop("to_source"),
        **shown,
    }


def _print(about: Mapping[str, Any], impact: Impact, ids: Mapping[int, str]) -> None:
    moved = impact.moved
    count, dollars = moved["count"].sum(), moved["dollars"].sum()
    out.print(
        f"Version {about['from']} → {about['to']}: {counted(impact.rows, 'transaction')} of "
        f"{counted(impact.customers, 'customer')}; {counted(about['skipped'], 'customer')} left out. "
        f"[bold]{count:,} changed category ({count / impact.rows:.2%}), AUD {dollars:,.2f}.[/]",
        highlight=False,
    )
    _print_table("Categories moved", moved.rows(), ("from", "to", "count", "AUD"))
    summed = impact.summed_figures().filter(pl.col("customers") > 0)
    figures = summed.select("report", "figure", "customers", "before", "after", _kind()).rows()
    _print_table("Figures of the reports", figures, ("report", "figure", "customers changed", "before", "after", ""))
    _print_table(
        "Customers whose figures change most", _by_change(impact, ids), ("customer", "figure", "before", "after")
    )
    examples = [
        (
            ids[row["customer_number"]][:SHOWN_ID],
            row["date"],
            row["amount"],
            row["from"],
            row["to"],
            row["description"][:SHOWN_TEXT],
        )
        for row in impact.examples.to_dicts()
    ]
    _print_table("Largest examples", examples, ("customer", "date", "AUD", "from", "to", "description"))


def _kind() -> pl.Expr:
    return pl.when("summed").then(pl.lit("sum")).otherwise(pl.lit("mean"))


def _by_change(impact: Impact, ids: Mapping[int, str]) -> list[tuple[Any, ...]]:
    """Return the largest changes of money figures. Scores and ratios are only in the JSON output."""
    change = (pl.col("after").fill_null(0) - pl.col("before").fill_null(0)).abs()
    money = impact.changed_figures().filter(pl.col("report") == "aggregate")
    largest = money.sort(change, "customer_number", "figure", descending=[True, False, False]).head(SHOWN)
    return [
        (ids[row["customer_number"]][:SHOWN_ID], row["figure"], row["before"], row["after"])
        for row in largest.to_dicts()
    ]


def _print_table(title: str, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for name, value in zip(names, rows[0], strict=True):
        number = isinstance(value, Decimal | int)
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows[:SHOWN]:
        table.add_row(*(_cell(value) for value in row))
    out.print()
    out.print(table)
    if len(rows) > SHOWN:
        out.print(f"[dim]and {len(rows) - SHOWN:,} more; --json has them all[/]")


def _cell(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:,.4f}".removesuffix("00")  # money has two decimals, a ratio up to four
    return "–" if value is None else escape(printable(f"{value:,}" if isinstance(value, int) else str(value)))
