"""Coverage: shares agree with counting by hand, and what is left out never raises the points."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.facts import Facts
from pipelines.metrics import METRICS
from pipelines.risk_models.covered_days import ALLOWED_SILENCE
from pipelines.risk_models.needed_evidence import find_needed_evidence
from pipelines.risk_models.readings import readings
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.scorecard import COVERAGE_OF
from tests.conftest import examples
from tests.pipelines.reports.completeness_examples import add_ids
from tests.pipelines.reports.examples import (
    MAIN,
    SAVINGS,
    START,
    Row,
    add_balances,
    any_row,
    cents,
    mark_balances,
    posted_rows,
    row,
    transactions,
)

SLUGS = [feature.metric for feature in DEFAULT.features]
D = Decimal


def score_rows(rows: Sequence[Row], expected: Expected = EVERYTHING) -> dict[str, Any]:
    as_of = START + timedelta(days=800)
    read = readings(Facts(transactions(add_ids(rows)).collect(), as_of), SLUGS, expected=expected)
    [one] = DEFAULT.score(read).to_dicts()
    return one


def coverage(rows: Sequence[Row], slug: str, expected: Expected = EVERYTHING) -> Decimal | None:
    share: Decimal | None = score_rows(rows, expected)[COVERAGE_OF + slug]
    return share


def without_words(rows: Sequence[Row]) -> list[Row]:
    nothing_read = {"description": "", "other_account": None, "category": "unknown_debit", "category_group": "unknown"}
    return [{**each, **nothing_read} for each in rows]


def without_balances(rows: Sequence[Row]) -> list[Row]:
    return [{**each, "balance": None} for each in rows]


@pytest.mark.parametrize(
    ("slug", "kind", "side", "period", "beyond_revenue"),
    [
        ("below_7d_outflow_trend_90d", "balances", None, (180, 0), False),
        ("inflow_to_outflow_180d", "rows", None, (180, 0), False),
        ("revenue_trend_90d", "rows", None, (180, 0), False),
        ("revenue_volatility_12m", "rows", None, (365, 0), False),
        ("income_concentration_180d", "rows", "credit", (180, 0), True),
        ("buffer_days_180d", "balances", None, (180, 0), False),
        ("revenue_growth_12m", "rows", None, (365, 0), False),
        ("dishonours_per_month_180d", "rows", "credit", (180, 0), True),
        ("months_of_history", "history", None, (365, 0), False),
    ],
)
def test_a_reading_concerns_its_side_and_period(
    slug: str, kind: str, side: str | None, period: tuple[int, int], beyond_revenue: bool
) -> None:
    concern = find_needed_evidence(METRICS[slug], METRICS)
    assert (concern.kind, concern.side, (concern.since, concern.until)) == (kind, side, period)
    assert concern.beyond_revenue == beyond_revenue


def test_the_smaller_share_of_rows_and_money_counts() -> None:
    known = [row(day, "-1", kind="cost_of_sales/suppliers") for day in range(0, 180, 2)]
    unknown = [row(179, "-270")]
    assert coverage([*known, *unknown], "collector_payments_180d", Expected.of(["words"])) == D("0.2500")
    assert coverage([*known, *unknown], "dishonours_per_month_180d", Expected.of(["words"])) == 1  # no credits at all


def test_an_unproven_day_counts_half_and_a_proven_one_in_full() -> None:
    rows = [row(day, "-1", kind="cost_of_sales/suppliers") for day in range(400)]
    assert coverage(rows, "collector_payments_180d") == D("0.5000")
    assert coverage(add_balances(rows), "collector_payments_180d") == 1
    assert coverage(rows, "collector_payments_180d", Expected.of(["words", "months"])) == 1
    assert coverage(rows, "buffer_days_180d") == 0


def test_silence_is_seen_if_balances_agree_across_it() -> None:
    rows = [row(day, "-1", kind="cost_of_sales/suppliers") for day in (0, 399)]
    assert coverage(add_balances(rows), "buffer_days_180d") == 1
    broken = [add_balances(rows)[0], {**add_balances(rows)[1], "balance": D(5)}]
    assert coverage(broken, "buffer_days_180d") == 0
    seen = coverage(without_balances(rows), "collector_payments_180d", Expected.of(["words", "months"]))
    assert seen == (D(ALLOWED_SILENCE) / 180).quantize(D("0.0001"))


def test_balances_prove_nothing_after_a_silence_that_is_improbable() -> None:
    busy = [row(day, "-1", kind="cost_of_sales/suppliers") for day in range(400)]
    silent = [each for each in busy if not 250 <= (each["date"] - START).days < 280]
    assert coverage(add_balances(silent), "buffer_days_180d") == (D(250 - 220) / 180).quantize(D("0.0001"))
    assert coverage(add_balances(silent), "collector_payments_180d") == (D(30 + 120 / D(2)) / 180).quantize(D("0.0001"))
    now_and_then = [each for each in silent if (each["date"] - START).days % 14 == 0]
    assert coverage(add_balances(now_and_then), "buffer_days_180d") == 1


def test_no_row_replaces_months_that_were_left_out() -> None:
    busy = add_balances([row(day, "-100", kind="cost_of_sales/suppliers") for day in range(400)], opening=90_000)
    recent = busy[300:]
    sold = "revenue/customer_transfer"
    for old in ({0: "0"}, {0: "0.01"}, {0: "500"}, {0: "500", 150: "500"}, dict.fromkeys(range(0, 300, 12), "0"),
                dict.fromkeys(range(300), "-0.01")):  # fmt: skip
        old_rows = [row(day, amount, kind=sold) for day, amount in old.items()]
        opening = recent[0]["balance"] + 100 - sum((each["amount"] for each in old_rows), D(0))
        rows = [*add_balances(old_rows, opening=opening), *recent]
        assert coverage(rows, "buffer_days_180d") == (D(100) / 180).quantize(D("0.0001")), old
        assert coverage(rows, "collector_payments_180d") == (D(100) / 180).quantize(D("0.0001")), old


def test_months_that_were_left_out_show_no_growth() -> None:
    sold = [row(day, "100", kind="revenue/customer_transfer") for day in range(400)]
    lonely = add_balances([sold[0], *sold[200:]])
    for metric, whole in (("revenue_growth_12m", 0), ("revenue_volatility_12m", 0), ("revenue_trend_90d", 1)):
        assert coverage(add_balances(sold), metric) == 1
        assert coverage(lonely, metric) == whole
    assert coverage(lonely, "inflow_to_outflow_180d") == 1


def test_rows_without_money_end_no_silence() -> None:
    busy = [row(day, "-100", kind="cost_of_sales/suppliers") for day in range(400)]
    silent = [each for each in busy if not 250 <= (each["date"] - START).days < 340]
    filled = sorted([*silent, *(row(day, "0") for day in range(255, 340, 12))], key=lambda each: each["date"])
    assert coverage(add_balances(filled), "buffer_days_180d") == coverage(add_balances(silent), "buffer_days_180d")
    cut = add_balances([*busy[:300], row(399, "0")])  # the account goes on, but nothing shows it
    assert coverage(cut, "buffer_days_180d") == (D(300 - 220) / 180).quantize(D("0.0001"))


def test_an_account_that_was_hardly_ever_used_has_no_rhythm() -> None:
    rare = [row(day, "-100", kind="cost_of_sales/suppliers") for day in (0, 200, *range(300, 400, 5))]
    assert coverage(add_balances(rare), "buffer_days_180d") == 1


def test_rows_of_next_to_no_money_are_neither_categorised_nor_uncategorised() -> None:
    some = [row(day, "-100", kind="cost_of_sales/suppliers" if day % 2 else "unknown/unknown_debit", description="A")
            for day in range(400)]  # fmt: skip
    half = coverage(add_balances(some), "collector_payments_180d")
    assert half == D("0.5000")
    for amount, kind in (("0", "unknown/unknown_debit"), ("-0.01", "cost_of_sales/suppliers"), ("-0.3", "fees/fees")):
        more = [row(day, amount, kind=kind, description="A") for day in range(400) for _ in range(5)]
        rows = sorted([*some, *more], key=lambda each: each["date"])
        assert coverage(add_balances(rows), "collector_payments_180d") == half
    blank = without_words([row(day, "0") for day in range(400)])
    rows = sorted([*some, *blank], key=lambda each: each["date"])
    assert coverage(add_balances(rows), "buffer_days_180d") == 1


def test_a_row_that_is_missing_may_be_one_that_a_count_counts() -> None:
    rows = add_balances([row(day, "-100", kind="cost_of_sales/suppliers") for day in range(400)])
    missing = mark_balances([*rows[:390], *rows[391:]])
    assert coverage(missing, "inflow_to_outflow_180d") == (D(179) / 180).quantize(D("0.0001"))
    assert coverage(missing, "collector_payments_180d") == D("0.5000")
    assert coverage(mark_balances([*rows[:100], *rows[101:]]), "collector_payments_180d") == 1  # before the period
    fee = [{**each, "balance": each["balance"] - 41} for each in rows[390:]]
    by_days = coverage(mark_balances([*rows[:390], *fee]), "collector_payments_180d")
    assert by_days == D("0.9972")  # too small to be a finding


def test_a_forged_text_leaves_nothing_known_that_texts_of_debits_say() -> None:
    def read(metric: str, every: int) -> Decimal | None:
        paid = [row(day, "-400", kind="operating/software") for day in range(0, 100, every)]
        later = [row(day, "-1", kind="cost_of_sales/suppliers", account_id=SAVINGS) for day in range(400)]
        return coverage([*add_balances([row(0, "9000"), *paid]), *add_balances(later)], metric)

    of_debits = ("collector_payments_180d", "debt_service_to_revenue_180d", "stacked_running_180d")
    assert [read(metric, every=7) for metric in of_debits] == [0, 0, 0]  # in other accounts and later, too
    assert 0 not in [read(metric, every=30) for metric in of_debits]
    others = ("buffer_days_180d", "income_concentration_180d", "revenue_trend_90d")
    assert [read(metric, every=7) for metric in others] == [read(metric, every=30) for metric in others]


def test_an_account_that_begins_at_zero_is_new() -> None:
    old = add_balances([row(day, "-1", kind="cost_of_sales/suppliers") for day in range(400)])
    new = [row(day, "1", kind="cost_of_sales/suppliers", account_id=SAVINGS) for day in range(310, 400)]
    assert coverage([*old, *add_balances(new, opening=0)], "buffer_days_180d") == 1
    assert coverage([*old, *add_balances(new, opening=500)], "buffer_days_180d") == D("0.7500")


def is_near(found: D | None, share: float) -> bool:
    """Return whether the coverage is the share to within 0.005, because days and rows are counted whole."""
    return found is not None and abs(float(found) - share) < 0.005


def test_an_account_that_a_transfer_names_is_expected() -> None:
    rows = add_balances(
        [row(day, "-1", kind="cost_of_sales/suppliers", account_number="00112233") for day in range(400)]
    )
    named = {"description": "TFR TO 99887766", "other_account": "7766", "kind": "transfer/own_transfer"}
    last = row(399, "-5", account_number="00112233", balance=rows[-1]["balance"] - 5, **named)
    both = [*rows, last]
    # It took 5 of the year's 368, so a quarter and twice 5 / 364 of an account are expected.
    assert is_near(coverage(both, "buffer_days_180d"), 1 / (1 + 0.25 + 2 * 5 / 364))
    assert coverage(both, "buffer_days_180d", Expected.of(["words", "balances", "months"])) == 1


def test_an_account_counts_by_how_much_the_supplied_ones_rely_on_it() -> None:
    named = {"description": "TFR 99887766", "other_account": "7766", "kind": "transfer/own_transfer"}
    sales = {"description": "CARD TAKINGS", "kind": "revenue/card_settlement"}
    spent = [row(day, "-1", kind="cost_of_sales/suppliers") for day in range(200, 398)]  # 198 in the last year
    for by_it, by_others, reliance in (("0", "100", 0), ("25", "100", 0.25), ("300", "100", 3), ("5", "-1", 9),
                                       ("-99", "100", 0.5), ("-9999", "100", 9)):  # fmt: skip
        both = [row(398, by_it, **named), row(399, by_others, **sales)]
        rows = add_balances([*spent, *both], opening=20_000)
        of_rows, of_balances = 0.25 + reliance, min(0.25 + 2 * reliance, 1)
        assert is_near(coverage(rows, "collector_payments_180d"), 1 / (1 + of_rows)), (by_it, by_others)
        assert is_near(coverage(rows, "buffer_days_180d"), 1 / (1 + of_balances)), (by_it, by_others)


def test_three_own_transfers_of_a_year_without_another_side_mention_one_account() -> None:
    rows = add_balances([row(day, "-1", kind="cost_of_sales/suppliers", description="TIMBER") for day in range(500)])
    own = {"kind": "transfer/own_transfer", "description": "TRANSFER"}

    def with_transfers(days: Sequence[int]) -> list[Row]:
        return add_balances(
            [row(day, "-1", **own) if day in days else {**rows[day], "balance": None} for day in range(500)]
        )

    # A quarter of an account is expected, and twice the share that the three took: of the year's 365, others took 362.
    with_mention = 1 / (1 + 0.25 + 2 * 3 / 362)
    assert is_near(coverage(with_transfers([300, 310, 320]), "buffer_days_180d"), with_mention)
    assert coverage(with_transfers([10, 310, 320]), "buffer_days_180d") == 1
    assert is_near(coverage(with_transfers([10, 310, 320, 330]), "buffer_days_180d"), with_mention)


def test_rows_without_words_might_name_an_account() -> None:
    rows = add_balances([row(day, "-1", kind="cost_of_sales/suppliers", description="TIMBER") for day in range(400)])
    assert coverage(rows, "buffer_days_180d") == 1
    assert coverage(without_words(rows), "buffer_days_180d") == D("0.5000")
    a_half = [each if day % 2 else without_words([each])[0] for day, each in enumerate(rows)]
    assert coverage(a_half, "buffer_days_180d") == D("0.6679")  # 182 of the last 365 rows
    a_mention = {"description": "TFR 99887766", "other_account": "7766", "kind": "transfer/own_transfer"}
    named = [*a_half[:-1], {**a_half[-1], **a_mention}]
    assert is_near(coverage(named, "buffer_days_180d"), 0.6679), "an account that is named makes up for missing words"
    assert coverage(a_half, "buffer_days_180d", Expected.of(["words", "balances", "months"])) == 1


# Leaving out


@examples(2)
@given(st.lists(any_row(), min_size=1, max_size=30).filter(posted_rows))
def test_leaving_out_all_words_or_balances_never_raises_the_points(rows: list[Row]) -> None:
    whole = score_rows(rows)["points"]
    assert score_rows(without_words(rows))["points"] <= whole
    assert score_rows(without_balances(rows))["points"] <= whole


@st.composite
def complete_ledger(draw: st.DrawFn) -> list[Row]:
    """Draw one or two accounts without a missing row, all of whose rows state a balance."""
    rows = list[Row]()
    for account in (MAIN, SAVINGS)[: draw(st.integers(1, 2))]:
        moved = draw(st.lists(st.tuples(st.integers(0, 250), cents()), min_size=1, max_size=20))
        kind = {"account_id": account, "kind": "cost_of_sales/suppliers"}
        mine = [row(day, amount, **kind) for day, amount in sorted(moved)]
        rows += add_balances(mine, opening=draw(cents()))
    return rows


@examples(4)
@given(complete_ledger(), st.data())
def test_leaving_out_any_balances_never_raises_the_points(rows: list[Row], data: st.DataObject) -> None:
    left_out = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    fewer = [{**each, "balance": None} if nth in left_out else each for nth, each in enumerate(rows)]
    assert score_rows(fewer)["points"] <= score_rows(rows)["points"]


def test_leaving_out_the_balances_of_bad_days_never_raises_the_points() -> None:
    days = range(0, 400, 10)
    paid = [
        row(day, "2000" if day % 30 == 0 else "-990", kind="revenue/card_settlement" if day % 30 == 0 else "rent/rent")
        for day in days
    ]
    rows = add_balances(paid, opening=100)
    whole = score_rows(rows)["points"]
    for limit in (0, 500, 1200, 3000):
        fewer = [{**each, "balance": None} if each["balance"] < limit else each for each in rows]
        assert score_rows(fewer)["points"] <= whole, limit


def test_no_sum_of_balances_is_known_if_an_account_that_may_be_overdrawn_states_none() -> None:
    main = add_balances([row(day, "-1") for day in range(400)])
    other = [row(day, "-1", account_id=SAVINGS, account_type=None) for day in range(400)]
    both = Expected.of(["balances", "months"])
    assert coverage([*main, *other], "buffer_days_180d", both) == 0
    assert coverage([*main, *({**each, "account_type": "savings"} for each in other)], "buffer_days_180d", both) == D(
        "0.5"
    )


@examples(2)
@given(st.lists(any_row(), min_size=1, max_size=30).filter(posted_rows), st.sampled_from(["credit", "debit", None]))
def test_shares_of_rows_agree_with_counting_by_hand(rows: list[Row], side: str | None) -> None:
    either = "inflow_to_outflow_180d"
    slug = {"credit": "dishonours_per_month_180d", "debit": "collector_payments_180d", None: either}[side]
    rows = without_balances(rows)
    mine = posted_rows(rows)
    last: date = max(each["date"] for each in mine)
    sign = {"credit": 1, "debit": -1, None: 0}[side]
    concerned = [each for each in mine if (last - each["date"]).days < 180 and (not sign or sign * each["amount"] > 0)]
    known = [each for each in concerned if each["category_group"] != "unknown"]
    least = _least_counted(mine, last)
    shares = [
        _share(known, concerned, lambda each: D(abs(each["amount"]) >= least)),
        _share(known, concerned, lambda each: abs(each["amount"])),
    ]
    seen = D(_days_by_hand(mine, last)) / (180 * len({each["account_id"] for each in mine}))
    expected = Expected.of(["words", "months"])
    share = coverage(rows, slug, expected)
    assert share is not None
    assert abs(share - min(shares) * seen) <= D("0.0002")


def _least_counted(rows: Sequence[Row], last: date) -> Decimal:
    """Return a cent, or a ten-thousandth of what a usual month moves if that is more."""
    ages = [(last - each["date"]).days for each in rows]
    moved = sum((abs(each["amount"]) for each, age in zip(rows, ages, strict=True) if age < 365), D(0))
    return max(D("0.01"), moved * 30 / min(max(max(ages) + 1, 30), 365) / 10_000)


def _share(part: Sequence[Row], whole: Sequence[Row], size: Callable[[Row], Decimal]) -> Decimal:
    total = sum(map(size, whole), D(0))
    return sum(map(size, part), D(0)) / total if total else D(1)


def _days_by_hand(rows: Sequence[Row], last: date) -> int:
    """Count the days of the last 180 of each account that have a row at most ALLOWED_SILENCE days before the next."""
    found = 0
    for account in {each["account_id"] for each in rows}:
        days = sorted({each["date"] for each in rows if each["account_id"] == account})
        seen = set(days)
        for before, after in pairwise(days):
            seen |= {after - timedelta(days=ago) for ago in range(min((after - before).days, ALLOWED_SILENCE))}
        seen |= {days[-1] + timedelta(days=ahead) for ahead in range(1, ALLOWED_SILENCE + 1)}
        found += sum(0 <= (last - day).days < 180 for day in seen)
    return found
