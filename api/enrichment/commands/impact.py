"""The impact of a change of the enrichment, on stored customers or on files: how it is computed and shown.

A customer's transactions under a version are the stored value, if that version made it; an earlier value that is still
retained; or, for the version of this program, a new computation from the stored rows. They are compared in memory,
bucket by bucket, and nothing is written.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from api.core.commands.console import err, out, print_json, print_record
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION, enrich
from pipelines.enrichment.knowledge import Knowledge
from pipelines.pages.wording import quantity
from pipelines.portfolio.impact import Impact, compare, merge
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from storage.core import buckets
from storage.core.database import Reading
from storage.core.logs import printable
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import deciders
from storage.enrichment import knowledge, versions
from storage.enrichment.transactions import Location

SHOWN = 20  # lines of a table for people; JSON has them all
SHOWN_ID = 8  # characters of a customer's id
SHOWN_TEXT = 60  # characters of a description
ChangeKnowledge = Callable[[Knowledge], Knowledge]


def change_nothing(known: Knowledge) -> Knowledge:
    return known


@dataclass(frozen=True)
class Named:
    """What a customer is called. `customer_id` is null in a file."""

    customer_id: str | None
    name: str | None

    @property
    def shown(self) -> str:
        return self.name or (self.customer_id or "–")[:SHOWN_ID]


@dataclass(frozen=True)
class Compared:
    """An impact, how many customers were left out, and what its customers are called."""

    impact: Impact
    skipped: int
    names: Mapping[int, Named]


@dataclass(frozen=True)
class Sides:
    """What to compare: the values that two versions made.

    `before`: None is the current value of each customer, whatever version made it. `change`: applied to what is known
    about the customers (`Knowledge`) before values of this program's version are computed.
    """

    before: int | None = None
    after: int = ENRICHMENT_VERSION
    change: ChangeKnowledge = change_nothing


def compare_stored(
    store: Store, stored: Mapping[int, int], sides: Sides, sample: int | None, now: datetime, *, quiet: bool
) -> Compared:
    """Compare stored customers (number → version of the stored value). Nothing is written."""
    chosen = _sample(list(stored), sample)
    with store.db.reading() as r:
        parts = _parts(r, {number: stored[number] for number in chosen})
        ids = customers.ids_of(r, chosen)
        names = {number: Named(str(ids[number]), name) for number, name, _ in customers.names(r, chosen)}
    shown = track(parts, "comparing", console=err, disable=quiet, transient=True)
    impacts = (_compare_part(store, client_id, part, sides, now) for client_id, part in shown)
    impact = merge(each for each in impacts if each is not None)
    return Compared(impact, len(chosen) - impact.customers, names)


def show_before(
    store: Store, stored: Mapping[int, int], change: Sides, sample: int, now: datetime, what: str, *, quiet: bool
) -> dict[str, Any] | None:
    """Show what a change would do to some customers, before it takes effect. Return it as data; None if none is stored.

    Args:
        what: what takes effect, in words.
        quiet: print nothing.
    """
    if not (sample and stored):
        return None
    compared = compare_stored(store, stored, change, sample, now, quiet=quiet)
    if not quiet:
        print_impact(f"Stored version → {what}", compared)
    return describe_impact(compared)


def show_chosen(record: Mapping[str, Any], impact: Mapping[str, Any] | None, *, as_json: bool) -> None:
    """Show what is used from now on, as data with the impact that `show_before` returned."""
    if as_json:
        print_json({**record, "impact": impact})
    else:
        print_record(record, as_json=False)


def _parts(r: Reading, stored: Mapping[int, int]) -> list[tuple[UUID, dict[int, int]]]:
    """Group customers by client and bucket, so that memory holds the transactions of one bucket at a time."""
    parts: defaultdict[tuple[UUID, int], dict[int, int]] = defaultdict(dict)
    for number, client_id in customers.clients_of(r, stored).items():
        parts[client_id, buckets.bucket_of(number)][number] = stored[number]
    return [(client_id, part) for (client_id, _), part in sorted(parts.items())]


def _compare_part(
    store: Store, client_id: UUID, stored: Mapping[int, int], sides: Sides, now: datetime
) -> Impact | None:
    today = now.astimezone(store.settings.zone).date()
    pair = _pair(store, stored, sides)
    if pair is None:
        return None
    with store.db.reading() as r:
        decide = deciders.read(r, client_id, customers.versions(r, stored), now, today, store.settings.zone)
    return compare(*pair, today, decide)


def _sample(numbers: Sequence[int], sample: int | None) -> list[int]:
    """Return every n-th customer: the same portfolio gives the same sample."""
    if sample is None or sample >= len(numbers):
        return list(numbers)
    return [numbers[place * len(numbers) // sample] for place in range(sample)]


def _pair(store: Store, stored: Mapping[int, int], sides: Sides) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Return the transactions (TRANSACTIONS) of customers stored under both versions, or None without any."""
    with store.db.reading() as r:
        places = versions.find_retained_locations(r, stored)
        known = knowledge.read(r, store.lake, stored)
    computed = sides.after == ENRICHMENT_VERSION
    olds = _stored_under(store, stored, places, sides.before)
    news = _stored_under(store, stored, places, None if computed else sides.after)
    both = sorted(olds.keys() & news.keys())
    if not both:
        return None
    old, new = (_rows(store, [chosen[number] for number in both]) for chosen in (olds, news))
    return old, _enrich_again(new, sides.change(known)) if computed else new


def _stored_under(
    store: Store, stored: Mapping[int, int], places: Mapping[int, Sequence[Location]], version: int | None
) -> dict[int, Location]:
    """Return, by customer, the location of the newest value that this version made, or would make identically.

    Without a version, this is the current value.
    """
    found = {}
    for number, retained in places.items():
        current_one, *replaced = retained
        if version in (None, stored[number]):
            found[number] = current_one
        else:
            older = (each for each in replaced if versions.read_version_of_value(store.lake, each) == version)
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


def _enrich_again(held: pl.DataFrame, known: Knowledge) -> pl.DataFrame:
    nothing_new = pl.DataFrame(schema=ACCEPTED)
    return enrich(held, nothing_new, knowledge=known).transactions.collect()


def describe_impact(compared: Compared) -> dict[str, Any]:
    """Return an impact as data for JSON."""
    impact, names = compared.impact, compared.names
    return {
        "customers": impact.customers,
        "skipped": compared.skipped,
        "transactions": impact.rows,
        "onlyUnderOne": impact.only_one,
        "moved": impact.moved.to_dicts(),
        "figures": {
            "all": impact.summed_figures().to_dicts(),
            "byCustomer": [_with_customer_name(each, names) for each in impact.changed_figures().to_dicts()],
        },
        "ratings": [_with_customer_name(each, names) for each in impact.ratings.to_dicts()],
        "decisions": [_with_customer_name(each, names) for each in impact.decisions.to_dicts()],
        "matches": [_with_customer_name(each, names) for each in impact.matches.to_dicts()],
        "changedCustomers": [_with_customer_name(each, names) for each in _changes(impact)],
        "examples": [_example(each, names) for each in impact.examples.to_dicts()],
    }


def _with_customer_name(record: Mapping[str, Any], names: Mapping[int, Named]) -> dict[str, Any]:
    rest = {name: value for name, value in record.items() if name != "customer_number"}
    named = names[record["customer_number"]]
    return {"customerId": named.customer_id, "customerName": named.name, **rest}


def _changes(impact: Impact) -> list[dict[str, Any]]:
    """Return what changes for each customer, the most important changes first."""
    moved = {number: (count, dollars) for number, count, dollars in impact.of_customers.rows()}
    ratings = {number: f"{before or '–'} → {after or '–'}" for number, before, after in impact.ratings.rows()}
    decisions, matches = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
    for each in impact.decisions.to_dicts():
        decisions[each["customer_number"]].append(_decision(each))
    for number, ruleset, rule, holds in impact.matches.rows():
        matches[number].append(f"{'+' if holds else '−'}{ruleset} {rule}")
    return [
        {
            "customer_number": number,
            "moved": moved.get(number, (0, Decimal(0)))[0],
            "dollars": moved.get(number, (0, Decimal(0)))[1],
            "rating": ratings.get(number),
            "decisions": decisions[number],
            "matches": matches[number],
        }
        for number in impact.changed_customers()
    ]


def _decision(changed: Mapping[str, Any]) -> str:
    """Describe a changed decision: the outcomes if they differ, else the limits."""
    if changed["change"] == "outcome":
        return f"{changed['policy']}: {changed['before']} → {changed['after']}"
    limits = (each for each in changed["limits"] if each["before"] != each["after"])
    return f"{changed['policy']}: " + ", ".join(f"{_cell(each['before'])} → {_cell(each['after'])}" for each in limits)


def _example(record: Mapping[str, Any], names: Mapping[int, Named]) -> dict[str, Any]:
    shown = _with_customer_name(record, names)
    return {
        "customerId": shown.pop("customerId"),
        "customerName": shown.pop("customerName"),
        "transactionId": str(UUID(bytes=shown.pop("transaction_id"))),
        "fromSource": shown.pop("from_source"),
        "toSource": shown.pop("to_source"),
        **shown,
    }


def print_impact(title: str, compared: Compared) -> None:
    """Print an impact for people: totals, then what changes for which customers."""
    impact, names = compared.impact, compared.names
    moved = impact.moved
    count, dollars = moved["count"].sum(), moved["dollars"].sum()
    out.print(
        f"{title}: {quantity(impact.rows, 'transaction')} of "
        f"{quantity(impact.customers, 'customer')}; {quantity(compared.skipped, 'customer')} left out. "
        f"[bold]{count:,} changed category ({count / max(impact.rows, 1):.2%}), AUD {dollars:,.2f}.[/]",
        highlight=False,
    )
    changed = (
        quantity(impact.ratings.height, "rating"),
        quantity(impact.decisions.height, "decision"),
        quantity(impact.matches.height, "monitoring match", "monitoring matches"),
    )
    out.print(f"Changed: {', '.join(changed)}.", highlight=False)
    _print_table("Categories moved", moved.rows(), ("from", "to", "count", "AUD"))
    summed = impact.summed_figures().filter(pl.col("customers") > 0)
    figures = summed.select("report", "figure", "customers", "before", "after", _kind()).rows()
    _print_table("Figures of the reports", figures, ("report", "figure", "customers changed", "before", "after", ""))
    heads = ("customer", "rows", "AUD", "rating", "decisions", "matches (+ begin, − end)")
    _print_table("Customers that change", [_line(each, names) for each in _changes(impact)], heads)
    _print_table(
        "Customers whose figures change most", _by_change(impact, names), ("customer", "figure", "before", "after")
    )
    examples = [
        (
            names[row["customer_number"]].shown,
            row["date"],
            row["amount"],
            row["from"],
            row["to"],
            row["description"][:SHOWN_TEXT],
        )
        for row in impact.examples.to_dicts()
    ]
    _print_table("Largest examples", examples, ("customer", "date", "AUD", "from", "to", "description"))


def _line(change: Mapping[str, Any], names: Mapping[int, Named]) -> tuple[Any, ...]:
    who = names[change["customer_number"]].shown
    lists = ("; ".join(change[name]) for name in ("decisions", "matches"))
    return who, change["moved"], change["dollars"], change["rating"], *lists


def _kind() -> pl.Expr:
    return pl.when("summed").then(pl.lit("sum")).otherwise(pl.lit("mean"))


def _by_change(impact: Impact, names: Mapping[int, Named]) -> list[tuple[Any, ...]]:
    """Return the largest changes of money figures. Scores and ratios are only in the JSON output."""
    change = (pl.col("after").fill_null(0) - pl.col("before").fill_null(0)).abs()
    money = impact.changed_figures().filter(pl.col("report") == "aggregate")
    largest = money.sort(change, "customer_number", "figure", descending=[True, False, False]).head(SHOWN)
    return [
        (names[row["customer_number"]].shown, row["figure"], row["before"], row["after"]) for row in largest.to_dicts()
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
