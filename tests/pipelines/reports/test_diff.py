"""A diff names every figure that changed, and the causes."""

import re
from collections import Counter
from datetime import date
from decimal import Decimal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.reports.diff import ChangedFigure, Diff, diff
from pipelines.reports.headlines import HEADLINES
from tests.pipelines.reports.examples import LOAN, Row, row, transactions

TODAY = date(2025, 6, 1)


def with_id(number: int, each: Row) -> Row:
    return {**each, "transaction_id": number.to_bytes(16, "big"), "revision": 1, "position": number}


SALE = with_id(1, row(date(2025, 5, 1), "100", kind="revenue/card_settlement", category_source="pattern"))
COST = with_id(2, row(date(2025, 5, 2), "-40", category_source="fallback"))
NEW = with_id(3, row(date(2025, 5, 3), "25", kind="revenue/card_settlement", category_source="pattern"))


def between(before: list[Row], after: list[Row], earlier_day: date = TODAY) -> Diff:
    return diff(Facts(frame(before), earlier_day), Facts(frame(after), TODAY))


def frame(rows: list[Row]) -> pl.DataFrame:
    return transactions(rows).collect()


def revenue_of_may(found: Diff) -> list[ChangedFigure]:
    of_the_month = [each for each in found.figures if each.key == "month 2025-05-01"]
    return [each for each in of_the_month if each.figure == "/tables/monthly_cash_flow/values/0/revenue"]


def test_the_same_rows_change_nothing() -> None:
    found = between([SALE, COST], [COST, SALE])
    assert (found.rows_added, found.rows_gone, found.rows_corrected, found.rows_reenriched) == (0, 0, 0, 0)
    assert found.figures == []
    assert all(each.before == each.after for each in found.headlines)


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


def test_what_a_revised_row_states_of_its_account_holds_in_every_step() -> None:
    """Else the card would be cash in the steps between, and the coverage of balances would have wrong causes."""
    card = {**COST, "account_id": LOAN, "balance": Decimal(-500)}
    stating = {**card, "account_type": "credit_card", "superseded_seq": 2}
    silent = {**card, "account_type": None, "revision": 2, "received_seq": 2}
    sale, new = {**SALE, "balance": Decimal(900)}, {**NEW, "balance": Decimal(925)}
    ours = {**sale, "category": "grant", "category_group": "other_income", "category_source": "correction"}
    found = between([stating, silent, sale], [stating, silent, ours, new])
    assert {each.causes for each in found.figures if each.figure.endswith("/coverage")} == {("rows",)}


def test_a_later_day_is_a_cause_of_its_own() -> None:
    found = between([SALE, COST], [SALE, COST, NEW], earlier_day=date(2025, 5, 1))
    assert found.rows_dated_between == 2
    causes = {each.figure: each.causes for each in found.figures if each.key == "month 2025-05-01"}
    assert causes["/tables/monthly_cash_flow/values/0/moneyOut"] == ("date",)
    assert causes["/tables/monthly_cash_flow/values/0/revenue"] == ("rows",)
    assert all(each.causes for each in found.figures)


def test_the_same_rows_on_another_day_differ_by_the_day_alone() -> None:
    found = between([SALE, COST], [SALE, COST], earlier_day=date(2025, 5, 1))
    assert {each.causes for each in found.figures} == {("date",)}
    [revenue] = [each for each in found.figures if each.key == "days 90" and each.figure.endswith("/moneyOut")]
    assert (revenue.before, revenue.after) == (Decimal(0), Decimal(40))


def test_a_figure_has_its_place_in_both_reports() -> None:
    earlier = with_id(4, row(date(2025, 4, 1), "10", kind="revenue/card_settlement", category_source="pattern"))
    [revenue] = [
        each
        for each in between([SALE], [earlier, SALE, NEW]).figures
        if each.key == "month 2025-05-01" and each.figure.endswith("monthly_cash_flow/values/1/revenue")
    ]
    assert revenue.figure_before == "/tables/monthly_cash_flow/values/0/revenue"
    [came] = [each for each in between([SALE], [SALE, earlier]).figures if each.figure.endswith("0/revenue")][:1]
    assert (came.before, came.figure_before) == (None, None)


def test_every_item_of_a_list_is_compared() -> None:
    """An account has two months, and two breaks of its balances on one day."""
    days = ((3, "-10", "90"), (4, "-20", "70"), (4, "-30", "25"), (4, "-5", "4"))
    each_month = [(date(2025, month, day), *money) for month in (3, 4) for day, *money in days]
    rows = [
        with_id(number, row(day, amount, balance=Decimal(balance)))
        for number, (day, amount, balance) in enumerate(each_month)
    ]
    doubled = [{**each, "amount": each["amount"] * 2, "balance": each["balance"] * 3} for each in rows]
    found = Counter(re.sub("[0-9]+", "N", each.figure) for each in between(rows, doubled).figures)
    assert found["/reconciliationByMonth/N/moneyOut"] == 2
    assert found["/gaps/N/missingAmount"] == len(rows) - 1


def test_headlines_are_listed_whether_they_changed_or_not() -> None:
    found = between([SALE], [SALE, NEW])
    assert [each.name for each in found.headlines] == [each.name for each in HEADLINES]
    by_name = {each.name: each for each in found.headlines}
    revenue = by_name["revenue90Days"]
    assert (revenue.before, revenue.after) == (Decimal(100), Decimal(125))
    assert revenue.figure == revenue.figure_before == "/tables/rolling_windows/values/2/revenue"
    assert by_name["rating"].after in ("A", "B", "C", "D", "E")
    nothing = between([], [SALE])
    assert {each.before for each in nothing.headlines} == {None}
    assert {each.figure_before for each in nothing.headlines} == {None}


def test_the_balance_of_the_last_month_is_a_headline() -> None:
    may = {**SALE, "balance": Decimal("500.00")}
    june = with_id(5, row(date(2025, 6, 1), "1", kind="revenue/card_settlement", category_source="pattern"))
    found = between([may], [may, {**june, "balance": Decimal("501.00")}])
    [balance] = [each for each in found.headlines if each.name == "closingBalance"]
    assert (balance.before, balance.after) == (Decimal(500), Decimal(501))
    assert balance.figure_before == "/tables/monthly_cash_flow/values/0/closingBalance"
    assert balance.figure == "/tables/monthly_cash_flow/values/1/closingBalance"
