"""Tables of drivers, accounts and gaps, with columns chosen for the page: the reports list them as plain objects."""

from collections.abc import Mapping, Sequence

from pipelines.pages import Column, Grid, number_columns
from pipelines.pages.wording import UNKNOWN, day, money, percent, plain, score, spell_out
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import STATES, account_name, driver_name, points_in_words, reading_in_words
from pipelines.reports.page.tables import place_items

NOT_MISSING: Mapping[str, str] = {
    "rounding": "only rounding: no row is missing",
    "ordering": "only in this order of the day's rows: no row is missing",
}
ACCOUNTS, GAPS = "completeness/accounts", "completeness/gaps"  # places of lists
_OF_ACCOUNT = ("daysBehind", "daysCovered", "transactionCount", "balanceShare", "balanceBreaks", "score")
EVIDENCE: Mapping[str, str] = {
    "balance_break": "The running balance does not follow",
    "silence": "Silent for longer than its rhythm explains",
    "series_missing": "A month without any of its recurring payments",
    "statement_period": "Between the periods of two submissions",
    "statement_missing": "Between the periods of two statements",
}


def driver_details(drivers: Sequence[Fields]) -> Grid | None:
    if not drivers:
        return None
    ranked = any(each.number("peerPercentile") is not None for each in drivers)
    directed = any(each.text("direction") for each in drivers)
    columns = (
        "Driver",
        *number_columns("Reading", "Points", *(["Peer percentile"] if ranked else [])),
        Column("Verified", "prose"),
        *(["Direction"] if directed else []),
        Column("Why it counts", "prose"),
    )
    rows = [
        [
            driver_name(each),
            _reading(each),
            points_in_words(each),
            *([plain(each.number("peerPercentile"))] if ranked else []),
            _verified(each),
            *([spell_out(each.text("direction") or UNKNOWN)] if directed else []),
            each.text("reason") or UNKNOWN,
        ]
        for each in drivers
    ]
    places = [_place_driver(each, len(columns)) for each in drivers]
    return Grid.of("Drivers of the risk rating", columns, rows, places=places)


def _place_driver(driver: Fields, columns: int) -> list[str | None]:
    """Return the places of a driver's cells: its reading is a metric's, and its points are an input of the value."""
    metric = driver.text("metric")
    named = [None, f"metrics/{metric}", f"risk/value/{metric}"] if metric and _is_read(driver) else []
    return [*named, *[None] * (columns - len(named))]


def _reading(driver: Fields) -> str:
    return reading_in_words(driver) if _is_read(driver) else "Unknown"


def _is_read(driver: Fields) -> bool:
    return driver.number("reading") is not None and driver.text("state") not in STATES


def _verified(driver: Fields) -> str:
    """Say how much of the evidence for a reading was there; what could not be verified is not bad."""
    coverage, state = driver.number("coverage"), driver.text("state")
    if state in STATES:
        return "Could not be verified" if state == "unknown" else "Not expected"
    if coverage is None:
        return UNKNOWN
    return "In full" if coverage >= 1 else f"Only {percent(coverage)} could be verified"


def account_details(accounts: Sequence[Fields]) -> Grid | None:
    if not accounts:
        return None
    columns = (
        Column("Account", "prose"),
        Column("Kind", "short"),
        "Bank",
        Column("First row", "short"),
        Column("Last row", "short"),
        *number_columns("Days behind", "Days covered", "Rows", "With balance", "Breaks", "Score"),
    )
    rows = [
        [
            account_name(each),
            spell_out(each.text("accountType") or UNKNOWN),
            each.text("bankName") or UNKNOWN,
            day(each.day("firstDate")),
            day(each.day("lastDate")),
            plain(each.number("daysBehind")),
            f"{plain(each.number('daysCovered'))} of {plain(each.number('daysSpanned'))}",
            plain(each.number("transactionCount")),
            percent(each.number("balanceShare")),
            plain(each.number("balanceBreaks")),
            score(each.number("score")),
        ]
        for each in accounts
    ]
    places = [[*[None] * 5, *(f"{place}/{name}" for name in _OF_ACCOUNT)] for place in place_items(ACCOUNTS, accounts)]
    return Grid.of("Accounts and how far they are covered", columns, rows, places=places)


def gap_details(gaps: Sequence[Fields], account_names: Mapping[str, str]) -> Grid | None:
    """Return a table of gaps; `account_names` is by id."""
    if not gaps:
        return None
    priced = any(each.number("missingAmount") is not None for each in gaps)
    columns = (
        "Account",
        Column("Evidence", "prose"),
        Column("Last row before", "short"),
        Column("Next row", "short"),
        *number_columns("Days without rows", *(["Amount missing"] if priced else [])),
    )
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
    explained = ("silentDays", *(["missingAmount"] if priced else []))
    places = [
        [*[None] * 4, *(f"{place}/{name}" if each.number(name) is not None else None for name in explained)]
        for place, each in zip(place_items(GAPS, gaps), gaps, strict=True)
    ]
    return Grid.of("Gaps", columns, rows, places=places)


def _evidence(gap: Fields) -> str:
    """Say what shows the gap, and what is likely behind it."""
    code, likely = gap.text("evidence") or UNKNOWN, gap.text("likely")
    shown = EVIDENCE.get(code) or spell_out(code)
    if likely in NOT_MISSING:
        return f"{shown}, {NOT_MISSING[likely]}"
    return f"{shown} (likely: {spell_out(likely).lower()})" if likely else shown
