"""Findings of window dressing in words, and revenue without the receipts of open findings."""

from pipelines.pages import Column, Grid, Note, Section, drop_none, number_columns
from pipelines.pages.wording import UNKNOWN, day, money, percent, plain
from pipelines.reports.page.fields import Fields
from pipelines.reports.page.tables import place_items

NONE = "Nothing was found that makes the business look better than it is. That is no proof that there is nothing."


def section(integrity: Fields) -> Section:
    """Return the section of the risk report's member `integrity`; empty where the report has none."""
    if not integrity:
        return Section("integrity", "Integrity", ())
    parts = drop_none(_revenue(integrity), _findings(integrity) or Note(NONE))
    return Section("integrity", "Integrity", parts)


def _revenue(integrity: Fields) -> Grid | None:
    excluded = integrity.children("excluded")
    if not excluded:
        return None
    rows = [
        ("Stated revenue", money(integrity.number("statedRevenue"))),
        *((f"less: {each.text('name')}", money(each.number("amount"))) for each in excluded),
        ("True revenue", money(integrity.number("trueRevenue"))),
        ("Share of stated revenue", percent(integrity.number("trueShare"))),
    ]
    amounts = [f"{each}/amount" for each in place_items("risk/integrity/excluded", excluded)]
    figures = ("risk/integrity/statedRevenue", *amounts, "risk/integrity/trueRevenue", "risk/integrity/trueShare")
    columns = (Column("Figure", "prose"), *number_columns("Amount"))
    return Grid.of("Revenue of the last 180 days", columns, rows, places=[(None, place) for place in figures])


def _findings(integrity: Fields) -> Grid | None:
    found = integrity.children("findings")
    if not found:
        return None
    columns = (
        Column("What was found", "prose"),
        Column("About", "prose"),
        "From",
        "To",
        *number_columns("Rows", "Amount"),
        Column("What it may be instead", "prose"),
        Column("Resolved", "prose"),
    )
    listed = place_items("risk/integrity/findings", found)
    places = [(*[None] * 4, f"{place}/rows", f"{place}/amount", None, None) for place in listed]
    return Grid.of("Findings", columns, [_row(each) for each in found], places=places)


def _row(each: Fields) -> list[str]:
    resolved = f"{day(each.day('resolvedOn'))}: {each.text('resolution')}" if each.text("resolution") else "No"
    return [
        f"{each.text('name')}. {each.text('sentence')}.",
        each.text("about") or UNKNOWN,
        day(each.day("firstDate")),
        day(each.day("lastDate")),
        plain(each.number("rows")),
        money(each.number("amount")),
        each.text("honestExplanation") or UNKNOWN,
        resolved,
    ]
