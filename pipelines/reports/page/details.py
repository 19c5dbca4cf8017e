"""Tables of drivers, accounts and gaps, with columns chosen for the page: the reports list them as plain objects."""

from collections.abc import Mapping, Sequence

from pipelines.pages import Column, Grid, number_columns
from pipelines.pages.wording import UNKNOWN, day, money, percent, plain, score, spell_out
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.naming import STATES, account_name, driver_name, points_in_words, reading_in_words

NOT_MISSING: Mapping[str, str] = {
    "rounding": "only rounding: no row is missing",
    "ordering": "only in this order of the day's rows: no row is missing",
}
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
    return Grid.of("Drivers of the risk rating", columns, rows)


def _reading(driver: Fields) -> str:
    if driver.number("reading") is None or driver.text("state") in STATES:
        return "Unknown"
    return reading_in_words(driver)


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
    return Grid.of("Accounts and how far they are covered", columns, rows)


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
    return Grid.of("Gaps", columns, rows)


def _evidence(gap: Fields) -> str:
    """Say what shows the gap, and what is likely behind it."""
    code, likely = gap.text("evidence") or UNKNOWN, gap.text("likely")
    shown = EVIDENCE.get(code) or spell_out(code)
    if likely in NOT_MISSING:
        return f"{shown}, {NOT_MISSING[likely]}"
    return f"{shown} (likely: {spell_out(likely).lower()})" if likely else shown
