"""Measure how well completeness finds what is missing, with faults in businesses that were not used in development.

A fault in an account is found if a gap of that account covers its place; other gaps in businesses with the fault are
false. A missing account, dropped or never supplied, is found if the mentioned accounts name it; `mentions` explains
how the truth is known.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any

import polars as pl

from benchmarks.accepted import accept_all
from benchmarks.mentions import Named, lone_sides, name_accounts, numbers
from benchmarks.table import Row
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import CUSTOMERS, Knowledge
from pipelines.enrichment.reading import NOTHING_HELD
from pipelines.figures.facts import Facts
from pipelines.reports.completeness import completeness_report
from pipelines.synthetic import Business, business
from pipelines.synthetic.ledger.faults import FAULTS, Fault, with_fault
from pipelines.vocabulary.report_values import uuid_text
from pipelines.vocabulary.schemas import TRANSACTIONS

TITLE = "How well completeness finds what is missing"
BUSINESSES, MONTHS, SEED, UNTIL = 120, 12, 77_120_531, date(2026, 10, 31)
AS_OF = date(2026, 11, 1)
ABOUT = (
    f"{BUSINESSES} synthetic businesses over {MONTHS} months, each with every fault that it can have, one at a time. "
    "Then the same without balances, where nobody could notice that a row or two are missing."
)
WANTED = "≥ 0.95"
TRUTH = ("true_injected", "true_category", "true_transfer_pair", "true_facility")


@dataclass(frozen=True)
class Found:
    """Counts of faults, of those that were found, and of what was reported."""

    found: int
    faults: int
    right: int
    reported: int

    @property
    def recall(self) -> str:
        return f"{self.found / self.faults:.3f}" if self.faults else "none"

    @property
    def precision(self) -> str:
        return f"{self.right / self.reported:.3f}" if self.reported else "nothing reported"


def measure() -> Sequence[Row]:
    clean = _enrich(_portfolio())
    rows = [*_rows_of_clean(clean), *_rows_of_clean(_without_balances(clean), "without balances, ")]
    rows += _rows("account never supplied", _count_all(_named_in_clean(clean)), WANTED)
    for fault in FAULTS:
        harmed = _enrich(_add_fault(fault))
        if fault == "account_dropped":
            rows += _rows(fault, _count_dropped(harmed, clean), WANTED)
        else:
            rows += _rows(fault, _count_gaps(harmed), WANTED)
            rows += _rows(f"without balances, {fault}", _count_gaps(_without_balances(harmed)), "")
    return rows


def _rows(what: str, found: Found, target: str) -> list[Row]:
    return [
        Row(f"{what}: recall of {found.faults} faults", found.recall, target),
        Row(f"{what}: precision of {found.reported} gaps or accounts", found.precision, target),
    ]


def _portfolio() -> Iterator[Business]:
    return (business(n, MONTHS, SEED, UNTIL) for n in range(BUSINESSES))


def _add_fault(fault: Fault) -> list[Business]:
    """Put a fault into each business. A business that can't have it is not changed: the n-th must stay customer n."""
    return [with_fault(each, fault, Random(f"{SEED}/{n}/{fault}")) or each for n, each in enumerate(_portfolio())]


def _enrich(businesses: Iterable[Business]) -> pl.DataFrame:
    """Return TRANSACTIONS and TRUTH. Customers' names are known, as sent by the client."""
    every = list(businesses)
    names = pl.DataFrame(
        [(number, each.name, each.abn) for number, each in enumerate(every, start=1)], schema=CUSTOMERS, orient="row"
    )
    rows = accept_all(every)
    facts = rows.select(pl.exclude("^true_.*$"))
    truth = rows.select("received_seq", "position", *TRUTH)
    found = enrich(NOTHING_HELD, facts, knowledge=Knowledge(customers=names)).transactions.collect()
    return found.join(truth, on=["received_seq", "position"], validate="1:1")


def _without_balances(enriched: pl.DataFrame) -> pl.DataFrame:
    return enriched.with_columns(
        pl.lit(None, enriched.schema[name]).alias(name) for name in ("balance", "balance_verified")
    )


def _reports(enriched: pl.DataFrame) -> dict[int, Any]:
    made = completeness_report(Facts(enriched.select(TRANSACTIONS.names()), AS_OF))
    return {number: json.loads(text) for number, text in made.iter_rows()}


def _rows_of_clean(enriched: pl.DataFrame, how: str = "") -> list[Row]:
    reports = _reports(enriched)
    accounts = [(number, each["accountId"]) for number, data in reports.items() for each in data["accounts"]]
    doubted = {(number, each["accountId"]) for number, data in reports.items() for each in data["gaps"]}
    share = 1 - len(doubted) / len(accounts)
    return [Row(f"{how}sound portfolios: accounts without any gap, of {len(accounts)}", f"{share:.4f}", "≥ 0.99")]


def _count_gaps(enriched: pl.DataFrame) -> Found:
    """Count the gaps found. A gap is right if it begins before and ends after a labelled row of its account."""
    labelled = enriched.drop_nulls("true_injected").select("customer_number", "date", accountId=uuid_text("account_id"))
    faults = {(number, account): str(day) for number, day, account in labelled.iter_rows()}
    faulty = {number for number, _ in faults}
    gaps = [(number, gap) for number, data in _reports(enriched).items() if number in faulty for gap in data["gaps"]]
    right = [
        (number, gap["accountId"])
        for number, gap in gaps
        if gap["lastSeen"] <= faults.get((number, gap["accountId"]), "") <= gap["nextSeen"]
    ]
    return Found(len(set(right)), len(faults), len(right), len(gaps))


def _named_in_clean(clean: pl.DataFrame) -> Named:
    return name_accounts(clean, _never_handed_over(lone_sides(clean)), AS_OF)


def _never_handed_over(lone: pl.DataFrame) -> pl.DataFrame:
    held_back = {number: each.not_supplied for number, each in enumerate(_portfolio(), start=1) if each.not_supplied}
    return lone.join(numbers(held_back), on="customer_number", validate="m:1")


def _count_dropped(harmed: pl.DataFrame, clean: pl.DataFrame) -> Found:
    """Count the dropped accounts that are named, and the named accounts that are missing, in businesses
    with the fault.
    """
    dropped = numbers(_dropped_accounts())
    lone, before = lone_sides(harmed), lone_sides(clean)
    by_fault = lone.join(before, on=lone.columns, how="anti").join(dropped, on="customer_number", validate="m:1")
    sides = pl.concat([_never_handed_over(lone.join(before, on=lone.columns, how="semi")), by_fault])
    mentions = name_accounts(harmed, sides, AS_OF).of_customers(dropped["customer_number"])
    found = mentions.matches().join(dropped, on=dropped.columns, how="semi")
    return Found(found.height, dropped.height, mentions.count_right(), mentions.named.height)


def _dropped_accounts() -> dict[int, str]:
    """Return the number of the account that the fault removes, by customer."""
    pairs = enumerate(zip(_portfolio(), _add_fault("account_dropped"), strict=True), start=1)
    return {
        number: account.account_number
        for number, (whole, left) in pairs
        for account in whole.accounts
        if account.account_number not in {each.account_number for each in left.accounts}
    }


def _count_all(mentions: Named) -> Found:
    return Found(mentions.matches().height, mentions.mentioned.height, mentions.count_right(), mentions.named.height)
