"""More trouble never allows a better rating, a person can resolve an event, and its figures lead to its rows."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, islice
from random import Random
from typing import Any

import msgspec
import polars as pl
import pytest

from pipelines.enrichment.enrichment import enrich
from pipelines.figures.context import RESOLUTIONS, Context
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Sum
from pipelines.reports.risk import risk_report
from pipelines.risk_models.event_definitions import definitions
from pipelines.risk_models.events import EVENTS, KIND, ceilings, events
from pipelines.vocabulary.schemas import TRANSACTIONS
from pipelines.vocabulary.taxonomy import GROUPS
from tests.pipelines.enrichment.examples import DEFAULTS, accepted_rows
from tests.root import ROOT

TODAY = date(2026, 10, 31)
ADVERSE = ("insolvency", "garnishee", "debt_collector", "late_fee", "overdrawn_fee")  # of money out
NEUTRAL = ("suppliers", "fuel", "rent")
PAID = ("wages", "superannuation", "term_loan_repayment")
TEXTS = ("TEXT", "WINDING UP APPLICATION", "ATO GARNISHEE", "NET PROCEEDS", "CHILD SUPPORT")
PARTIES = ("australian-taxation-office", "baycorp", "a", None)
LENDERS = ("a", "b", "c", None)
BUSINESSES = 400
Row = dict[str, Any]


def a_row(days_ago: int, amount: int, category: str, **fields: Any) -> Row:
    return {
        "date": TODAY - timedelta(days=days_ago),
        "amount": Decimal(amount),
        "category": category,
        "category_source": "pattern",
        **fields,
    }


def facts(rows: Sequence[Row], resolved: Sequence[str] = ()) -> Facts:
    usual = {**DEFAULTS, "since_seq": 1, "flags": [], "is_transfer": False}
    known = [
        {**usual, "position": n, "transaction_id": n.to_bytes(16), "category_group": GROUPS[row["category"]], **row}
        for n, row in enumerate(rows)
    ]
    by_person = [(1, KIND, key, "checked", TODAY) for key in resolved]
    resolutions = pl.DataFrame(by_person, schema=RESOLUTIONS, orient="row")
    return Facts(pl.DataFrame(known, schema=TRANSACTIONS), TODAY, Context(resolutions=resolutions))


AN_ORDER = "LOCAL COURT GARNISHEE 4411"
PAID_WEEKLY = [a_row(ago, -4_000, "wages") for ago in range(1, 360, 7)]
SALES = [a_row(ago, -9_000, "insolvency", description="SV PARTNERS NET PROCEEDS 44") for ago in range(10, 250, 30)]
COLLECTED = [a_row(ago, -300, "debt_collector", counterparty_group="prushka") for ago in (20, 50, 80, 110)]


def garnishees(*days: int, amount: int = -300) -> list[Row]:
    return [a_row(ago, amount, "garnishee", description=AN_ORDER, counterparty_group="local-court") for ago in days]


def from_collector(*days: int) -> list[Row]:
    return [a_row(ago, 1_200, "customer_transfer", counterparty_group="prushka") for ago in days]


def repayments(lender: str, *days: int, amount: int = -300) -> list[Row]:
    return [a_row(ago, amount, "term_loan_repayment", counterparty_lender_id=lender) for ago in days]


RUNNING = [row for lender in "abc" for row in repayments(lender, 40, 30, 10)]
LATE_WAGES = [a_row(40, 300, "returned_payment"), *(a_row(ago, -4_000, "wages") for ago in range(58, 101, 7))]
LATE_SUPER = [*PAID_WEEKLY, *(a_row(ago, -900, "superannuation") for ago in (340, 250, 160))]
REFINANCED = [*repayments("d", 40, 30), *repayments("d", 20, amount=-900)]
FUNDED = [a_row(25, 900, "term_loan_funding", counterparty_lender_id="e")]
# Businesses whose rows are ordinary business or excuse others.
ORDINARY: tuple[list[Row], ...] = (
    [*PAID_WEEKLY, *garnishees(*range(1, 60, 7))],
    [*COLLECTED, *from_collector(*range(5, 160, 30))],
    LATE_WAGES,
    LATE_SUPER,
    SALES,
    [*RUNNING, *REFINANCED, *FUNDED],
    [a_row(ago, 2_000, "insolvency") for ago in range(10, 250, 30)],
)


def numbered(businesses: Sequence[Sequence[Row]]) -> list[Row]:
    return [{**row, "customer_number": number} for number, business in enumerate(businesses) for row in business]


def best_ratings(businesses: Sequence[Sequence[Row]]) -> list[str]:
    """Return the best rating that is possible for each; letters sort from best to worst."""
    return ceilings(facts(numbered(businesses)))["ceiling"].fill_null("A").to_list()


def any_row(rng: Random) -> Row:
    """Draw a row of money out, or in a third of the cases of money in, up to two years ago."""
    is_in = rng.random() < 0.33
    categories = ("returned_payment", "insolvency", "customer_transfer") if is_in else (*ADVERSE, *NEUTRAL, *PAID)
    return a_row(
        rng.choice((rng.randrange(60), rng.randrange(800))),
        rng.randrange(20, 9_000) * (1 if is_in else -1),
        rng.choice(categories),
        category_source=rng.choice(("pattern", "counterparty", "learned")),
        description=rng.choice(TEXTS),
        counterparty_group=rng.choice(PARTIES),
        counterparty_lender_id=rng.choice(LENDERS),
    )


def any_businesses(rng: Random) -> list[list[Row]]:
    """Draw rows, and in half of the cases those of ORDINARY, which are not drawn by chance."""
    drawn = ([any_row(rng) for _ in range(rng.randrange(1, 25))] for _ in range(BUSINESSES))
    return [[*rows, *(rng.choice(ORDINARY) if rng.random() < 0.5 else ())] for rows in drawn]


def with_adverse_row(rng: Random, business: list[Row]) -> list[Row]:
    return [*business, {**any_row(rng), **a_row(rng.randrange(800), -rng.randrange(20, 9_000), rng.choice(ADVERSE))}]


def with_bounced_payment(rng: Random, business: list[Row]) -> list[Row]:
    return [*business, a_row(rng.randrange(800), rng.randrange(20, 9_000), "returned_payment")]


def with_relabelled_row(rng: Random, business: list[Row], *, keep_source: bool = False) -> list[Row]:
    """Give a neutral row an adverse category. Wages and repayments are left, because events may count them already."""
    nth = rng.choice([n for n, row in enumerate(business) if row["category"] in NEUTRAL] or [None])
    adverse = {"category": rng.choice(ADVERSE)} | ({} if keep_source else {"category_source": "pattern"})
    return [{**row, **adverse} if n == nth else row for n, row in enumerate(business)]


def test_more_trouble_never_allows_a_better_rating(subtests: pytest.Subtests) -> None:
    rng = Random(7)
    businesses = any_businesses(rng)
    before, drawn = best_ratings(businesses), rng.getstate()
    assert set(before) == {"A", "C", "D", "E"}
    for worsen in (with_adverse_row, with_bounced_payment, with_relabelled_row):
        with subtests.test(worsen.__name__):
            rng.setstate(drawn)
            worse = [worsen(rng, business) for business in businesses]
            after = best_ratings(worse)
            assert [rows for rows, was, now in zip(worse, before, after, strict=True) if now < was] == []


def test_relabelling_a_row_as_adverse_never_improves_value_rating_or_confidence() -> None:
    rng = Random(9)
    businesses = [add_balances(rows) for rows in any_businesses(rng)]
    worse = [with_relabelled_row(rng, rows, keep_source=True) for rows in businesses]
    before, after = reports(businesses), reports(worse)
    assert [rows for rows, was, now in zip(worse, before, after, strict=True) if is_better(now, was)] == []
    assert len({report["value"] for report in before}) > BUSINESSES / 4


def add_balances(business: list[Row]) -> list[Row]:
    by_day = sorted(business, key=lambda row: row["date"])
    sums = accumulate((row["amount"] for row in by_day), initial=Decimal(50_000))
    return [{**row, "balance": balance} for row, balance in zip(by_day, islice(sums, 1, None), strict=True)]


def reports(businesses: Sequence[Sequence[Row]]) -> list[Any]:
    return [msgspec.json.decode(report) for report in risk_report(facts(numbered(businesses)))["data"]]


def is_better(now: Any, was: Any) -> bool:
    is_lower = any(now[name] < was[name] for name in ("value", "rating"))
    return is_lower or now["pdConfidenceScore"] > was["pdConfidenceScore"]


def test_a_category_from_the_model_alone_caps_nobody() -> None:
    guessed = [[{**row, "category_source": "learned"} for row in rows] for rows in any_businesses(Random(8))]
    assert set(best_ratings(guessed)) == {"A"}


def test_the_worst_of_several_ceilings_holds_and_all_events_that_say_so_are_named() -> None:
    rows = [a_row(100, -900, "garnishee"), a_row(50, -300, "debt_collector"), a_row(20, -300, "debt_collector")]
    both = facts([*rows, a_row(10, -900, "garnishee", counterparty_group="australian-taxation-office")])
    assert ceilings(both).rows() == [(1, "D", ["garnishee", "tax_garnishee"])]
    assert events(both)["code"].to_list() == ["garnishee", "tax_garnishee", "collections"]


def test_nobody_is_capped_without_events() -> None:
    assert ceilings(facts([a_row(10, -900, "rent")])).rows() == [(1, None, [])]


def test_an_event_lasts_from_the_row_that_reaches_its_level() -> None:
    rows = [a_row(ago, -300, "debt_collector") for ago in (100, 70, 40)]
    event = events(facts([*rows, a_row(0, -10, "fuel")])).row(0, named=True)
    assert (event["count"], event["amount"], event["ceiling"]) == (3, Decimal(900), "C")
    assert event["firstDate"] == TODAY - timedelta(days=100)
    assert event["until"] == TODAY - timedelta(days=70) + timedelta(days=180)


def test_a_resolved_event_is_shown_and_caps_nothing_until_another_row_comes() -> None:
    rows = [a_row(100, -900, "garnishee"), a_row(0, -10, "fuel")]
    key = events(facts(rows))["key"].item()
    resolved = facts(rows, [key])
    assert events(resolved).select("code", "resolved").rows() == [("garnishee", True)]
    assert ceilings(resolved).rows() == [(1, None, [])]
    again = facts([*rows, a_row(20, -500, "garnishee")], [key])
    assert ceilings(again)["ceiling"].item() == "D"


def test_an_events_key_stays_when_the_business_trades_on() -> None:
    rows = [a_row(100, -900, "garnishee")]
    assert events(facts(rows))["key"].item() == events(facts([*rows, a_row(0, 500, "customer_transfer")]))["key"].item()


def test_an_events_figures_lead_to_its_rows() -> None:
    rows = [a_row(60, -300, "debt_collector"), a_row(60, -50, "debt_collector"), a_row(20, -200, "debt_collector")]
    known = facts(rows)
    event = events(known).row(0, named=True)
    for name, contributions in {"count": [1, 1], "amount": [300, 50, 200]}.items():
        traced = EVENTS.explain(known, event, (name,))
        assert isinstance(traced, Sum)
        assert traced.contributions["contribution"].to_list() == contributions
        assert traced.value == event[name]


def test_the_documented_ceilings_are_those_that_hold() -> None:
    documented = (ROOT / "docs/explanation/risk.md").read_text("utf-8")
    for code, event in definitions().items():
        levels = ", ".join(f"{level.ceiling} from {level.count}" for level in event.levels)
        row = f"| `{code}` | {event.sentence}. | {event.counted} | {levels} | {event.days} days | {event.why} |"
        assert row in documented, row


TEXTS_OF_EVENTS: dict[tuple[str, ...], tuple[tuple[str, int], ...]] = {
    ("insolvency", "tax_garnishee"): (
        ("Online J0321347050 Part 9 164479 JIRSCH SUTHERLAND", -1_300),
        ("Online J0215962426 SBR plan pmt FOX SYMES", -2_400),
        ("S260-5 575993 ATO Garnishee", -1_103),
    ),
    ("winding_up",): (("WINDING UP APPLICATION SETTLEMENT JONES LAWYERS", -9_000),),
    ("garnishee",): (("Payment To LOCAL COURT Garnishee 44112233", -900),),
    ("collections",): (
        ("DIRECT DEBIT BAYCORP COLLECTN 12345678", -300),
        ("DIRECT DEBIT RECOVERIESCORP ARRGMT 123456", -300),
    ),
    (): (
        ("DIRECT CREDIT BPSL LIQUIDATION FINAL DIV 4670", 95),
        ("JIRSCH SUTHERLAND CREDITOR DIV", 900),
        ("Garnishee Notice CHILD SUPPORT AGY 12345678", -400),
        ("SHERIFFS OFFICE payroll ded 1234567", -200),
        ("FEDERAL COURT WINDING UP APPLICATION FILING FEE", -900),
        ("SV PARTNERS NET PROCEEDS 4411", -9_000),
        ("DIRECT DEBIT BAYCORP COLLECTN 12345678", -300),
        ("TAX OFFICE PAYMENTS GIC", -50),
    ),
}


def test_texts_as_banks_print_them_lead_to_events() -> None:
    sent = [
        {
            "customer_number": number,
            "description": text,
            "amount": Decimal(amount),
            "date": TODAY - timedelta(days=20 * n + 1),
        }
        for number, texts in enumerate(TEXTS_OF_EVENTS.values())
        for n, (text, amount) in enumerate(texts)
    ]
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted_rows(*sent)).transactions.collect()
    found = events(Facts(enriched, TODAY)).group_by("customer_number").agg(pl.col("code").sort())
    codes = {number: tuple(each) for number, each in found.iter_rows()}
    assert [codes.get(number, ()) for number in range(len(TEXTS_OF_EVENTS))] == list(TEXTS_OF_EVENTS)


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([*PAID_WEEKLY, *garnishees(*range(1, 60, 7))], "A"),
        ([*PAID_WEEKLY, *garnishees(30, 61, 95, 130, 160, amount=-950)], "D"),
        ([*PAID_WEEKLY, *garnishees(*range(1, 60, 7), 24)], "D"),  # one on a day without wages
        ([*PAID_WEEKLY, *garnishees(*range(8, 60, 7)), *garnishees(1, amount=-900)], "D"),
        ([*PAID_WEEKLY, *garnishees(*range(1, 60, 7), amount=-1_100)], "D"),
        ([*(a_row(ago, -5, "wages") for ago in range(1, 60, 7)), *garnishees(*range(1, 60, 7), amount=-51)], "D"),
        ([*COLLECTED, *from_collector(*range(5, 160, 30))], "A"),
        ([*COLLECTED, *from_collector(5)], "D"),
        ([*COLLECTED, *from_collector(700)], "D"),
        ([*COLLECTED, *from_collector(*range(5, 11))], "D"),
        (LATE_WAGES, "D"),
        ([*LATE_WAGES, *(a_row(ago, -1, "wages") for ago in range(2, 52, 3))], "D"),
        ([*LATE_WAGES, *(a_row(ago, -2_000, "wages") for ago in (51, 44, 37, 30, 23, 16, 9, 2))], "A"),
        (LATE_SUPER, "C"),
        ([*LATE_SUPER, a_row(60, -1, "superannuation")], "C"),
        ([*LATE_SUPER, a_row(60, -700, "superannuation")], "A"),
        ([*LATE_SUPER, a_row(60, -700, "superannuation"), a_row(200, -27_500, "superannuation")], "A"),  # a director's
        ([*SALES, a_row(15, -2_000, "insolvency", description="SV PARTNERS PLAN PMT 44")], "C"),
        ([*SALES, a_row(15, -2_000, "insolvency", description="SV PARTNERS NET PORCEEDS 45")], "A"),
        ([*SALES, a_row(15, -2_000, "insolvency", description="JIRSCH SUTHERLAND slae a/c 45")], "A"),
        ([*SALES, a_row(15, -2_000, "insolvency", description="JIRSCH SUTHERLAND LOAT 45")], "C"),  # too short
        ([a_row(15, -2_000, "insolvency", description="SV PARTNERS NET PORCEEDS 45")], "C"),
        ([*RUNNING, a_row(10, -40, "overdrawn_fee", counterparty_lender_id="d")], "C"),
        ([*RUNNING, *REFINANCED, *FUNDED], "A"),
        ([*RUNNING, *REFINANCED], "C"),
        ([*RUNNING, *REFINANCED, {**FUNDED[0], "amount": Decimal(899)}], "C"),
        ([*RUNNING, *REFINANCED, {**FUNDED[0], "counterparty_lender_id": "d"}], "C"),
        ([*RUNNING, *REFINANCED, {**FUNDED[0], "date": TODAY - timedelta(days=35)}], "C"),
        ([*RUNNING, *REFINANCED, {**FUNDED[0], "category": "director_loan_in"}], "C"),
        ([*RUNNING, *repayments("e", 30, 10), *REFINANCED, *FUNDED, *repayments("c", 8, amount=-900)], "C"),
    ],
)
def test_one_row_or_small_ones_excuse_nothing(rows: list[Row], best: str) -> None:
    assert best_ratings([[*rows, a_row(0, -10, "fuel")]]) == [best]


def test_a_lender_that_a_new_one_paid_out_counts_again_once_it_charges_a_fee() -> None:
    repaid = [*repayments("d", 40, 30), *repayments("d", 20, amount=-9_000)]
    new = a_row(21, 9_500, "term_loan_funding", counterparty_lender_id="e")
    fees = {ago: a_row(ago, -40, "late_fee", counterparty_lender_id="d") for ago in (15, 35)}
    cases = [[*repaid, new], [*repaid, new, fees[15]], [*repaid[:2], new], [*repaid[1:], new, fees[35]]]
    assert best_ratings([[*RUNNING, *case] for case in cases]) == ["A", "C", "C", "C"]
