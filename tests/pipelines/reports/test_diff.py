"""A diff names every figure that changed, and the causes."""

from datetime import date
from decimal import Decimal

import polars as pl

from pipelines.figures.context import NO_CONTEXT
from pipelines.reports.diff import ChangedFigure, Diff, diff
from tests.pipelines.reports.examples import Row, row, transactions

TODAY = date(2025, 6, 1)


def with_id(number: int, each: Row) -> Row:
    return {**each, "transaction_id": number.to_bytes(16, "big"), "revision": 1, "position": number}


SALE = with_id(1, row(date(2025, 5, 1), "100", kind="revenue/card_settlement", category_source="pattern"))
COST = with_id(2, row(date(2025, 5, 2), "-40", category_source="fallback"))
NEW = with_id(3, row(date(2025, 5, 3), "25", kind="revenue/card_settlement", category_source="pattern"))


def between(before: list[Row], after: list[Row]) -> Diff:
    return diff(frame(before), frame(after), TODAY, NO_CONTEXT)


def frame(rows: list[Row]) -> pl.DataFrame:
    return transactions(rows).collect()


def revenue_of_may(found: Diff) -> list[ChangedFigure]:
    of_the_month = [each for each in found.figures if each.key == "month 2025-05-01"]
    return [each for each in of_the_month if each.figure == "/tables/monthly_cash_flow/values/0/revenue"]


def test_the_same_rows_change_nothing() -> None:
    assert between([SALE, COST], [COST, SALE]) == Diff(0, 0, 0, 0, [])


def test_a_new_row_changes_the_figures_it_counts_in() -> None:
    found = between([SALE], [SALE, NEW])
    assert (found.rows_added, found.rows_gone) == (1, 0)
    [revenue] = revenue_of_may(found)
    assert (revenue.before, revenue.after, revenue.causes) == (Decimal(100), Decimal(125), ("rows",))
    assert {each.causes for each in found.figures} == {("rows",)}


def test_a_correction_is_distinguished_from_a_change_of_rules() -> None:
    ours = {**COST, "category": "rent", "category_group": "premises", "category_source": "correction"}
    theirs = {**SALE, "category": "grant", "category_group": "other_income"}
    corrected, reenriched = between([SALE, COST], [SALE, ours]), between([SALE, COST], [theirs, COST])
    assert (corrected.rows_corrected, corrected.rows_reenriched) == (1, 0)
    assert (reenriched.rows_corrected, reenriched.rows_reenriched) == (0, 1)
    assert {each.causes for each in corrected.figures} == {("correction",)}
    assert {each.causes for each in reenriched.figures} == {("enrichment",)}


def test_rows_are_a_cause_only_if_some_come_or_go() -> None:
    """Both rows were taken for a pair; after the client corrects one, neither is a transfer."""
    pair = [{**each, "is_transfer": True, "transfer_pair_id": bytes(16)} for each in (SALE, COST)]
    ours = {**COST, "category": "rent", "category_group": "premises", "category_source": "correction"}
    corrected, reenriched = between(pair, [SALE, ours]), between(pair, [SALE, COST])
    assert {each.causes for each in corrected.figures} == {("correction",)}
    assert {each.causes for each in reenriched.figures} == {("enrichment",)}


def test_a_figure_may_have_several_causes() -> None:
    other = {**SALE, "category": "grant", "category_group": "other_income"}
    found = between([SALE], [other, NEW])
    [revenue] = revenue_of_may(found)
    assert (revenue.before, revenue.after, revenue.causes) == (Decimal(100), Decimal(25), ("rows", "enrichment"))


def test_a_removed_figure_is_named_by_its_earlier_place() -> None:
    found = between([SALE, COST], [SALE])
    gone = [each for each in found.figures if each.after is None]
    assert found.rows_gone == 1
    assert any(each.key and "unknown_debit" in each.key and each.before == Decimal(40) for each in gone)


def test_the_unreconciled_share_of_the_whole_report_is_compared() -> None:
    unproved = {**NEW, "date": date(2025, 4, 1), "statement_verdict": "unreconciled", "statement_proved": False}
    ours = {**unproved, "category": "rent", "category_group": "premises", "category_source": "correction"}
    came, corrected = between([SALE, COST], [SALE, COST, unproved]), between([SALE, unproved], [SALE, ours])
    moved = {each.figure: (each.after, each.causes) for each in came.figures if "unreconciled" in each.figure}
    assert moved["/unreconciled/rows"] == (1, ("rows",))
    assert len(moved) == 4
    assert not [each for each in corrected.figures if "unreconciled" in each.figure]
