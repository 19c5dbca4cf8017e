"""Tables of the page about drivers, accounts and gaps, with values in words."""

from collections.abc import Mapping, Sequence

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.grids import Column, Grid
from pipelines.reports.page.naming import account_name, driver_name, points_of_most
from pipelines.reports.page.wording import UNKNOWN, day, figure, money, percent, plain, words_of

EVIDENCE: Mapping[str, str] = {
    "balance_break": "The running balance does not continue",
    "silence": "No rows for longer than usual",
    "series_missing": "A month without the usual recurring payments",
    "statement_period": "Between the periods of two statements",
}


def driver_details(drivers: Sequence[Fields]) -> Grid | None:
    if not drivers:
        return None
    ranked = any(each.number("peerPercentile") is not None for each in drivers)
    directed = any(each.text("direction") for each in drivers)
    columns = [
        Column("Driver"),
        Column("Reading", "number"),
        Column("Points", "number"),
        *([Column("Peer percentile", "number")] if ranked else []),
        *([Column("Direction")] if directed else []),
        Column("Why it counts", "prose"),
    ]
    rows = [
        [
            driver_name(each),
            _reading(each),
            points_of_most(each),
            *([plain(each.number("peerPercentile"))] if ranked else []),
            *([words_of(each.text("direction") or UNKNOWN)] if directed else []),
            each.text("reason") or UNKNOWN,
        ]
        for each in drivers
    ]
    return Grid.of("Drivers of the risk rating", columns, rows)


def _reading(driver: Fields) -> str:
    """Format a driver's reading like `92.5 days`, `$410.00 per month`, `0.31` or `3.2 %`."""
    if driver.number("reading") is None:
        return "Unknown"
    unit, _, period = (driver.text("unit") or "").partition("per ")
    words = figure(driver.raw("reading"), unit.strip(), driver.text("metric") or driver.text("feature") or "")
    noun = unit if unit in ("days", "months") else ""
    return " ".join(filter(None, (words, noun, f"per {period}" if period else "")))


def changes(sensitivity: Sequence[Fields]) -> tuple[str, ...]:
    """Return what would change the rating, one sentence each."""
    return tuple(words for each in sensitivity if (words := each.text("words")))


def account_details(accounts: Sequence[Fields]) -> Grid | None:
    if not accounts:
        return None
    figures = ("Days behind", "Days covered", "Rows", "With balance", "Breaks", "Score")
    dates = (Column("First row", "short"), Column("Last row", "short"))
    columns = [
        Column("Account", "prose"),
        Column("Kind", "short"),
        Column("Bank"),
        *dates,
        *(Column(head, "number") for head in figures),
    ]
    rows = [
        [
            account_name(each),
            words_of(each.text("accountType") or UNKNOWN),
            each.text("bankName") or UNKNOWN,
            day(each.day("firstDate")),
            day(each.day("lastDate")),
            plain(each.number("daysBehind")),
            f"{plain(each.number('daysCovered'))} of {plain(each.number('daysSpanned'))}",
            plain(each.number("transactionCount")),
            percent(each.number("balanceShare")),
            plain(each.number("balanceBreaks")),
            plain(each.number("score")),
        ]
        for each in accounts
    ]
    return Grid.of("Accounts and how far they are covered", columns, rows)


def gap_details(gaps: Sequence[Fields], account_names: Mapping[str, str]) -> Grid | None:
    if not gaps:
        return None
    priced = any(each.number("missingAmount") is not None for each in gaps)
    columns = [
        Column("Account"),
        Column("Evidence", "prose"),
        Column("Last row before", "short"),
        Column("Next row", "short"),
        Column("Days without rows", "number"),
        *([Column("Amount missing", "number")] if priced else []),
    ]
    rows = [
        [
            account_names.get(each.text("accountId") or "", UNKNOWN),
            _evidence(each),
            day(each.day("lastSeen")),
            day(each.day("nextSeen")),
            plain(each.number("silentDays")),
            *([money(each.number("missingAmount"))] if priced else []),
        ]
        for each in gaps
    ]
    return Grid.of("Gaps", columns, rows)


def _evidence(gap: Fields) -> str:
    """Return what shows the gap, and its likely cause."""
    code, likely = gap.text("evidence") or UNKNOWN, gap.text("likely")
    shown = EVIDENCE.get(code) or words_of(code)
    return f"{shown} (likely: {words_of(likely).lower()})" if likely else shown
