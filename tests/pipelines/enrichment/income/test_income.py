"""Regular income: which payers are found however much is missing, what is no income, and of what kind it is."""

import random
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.income import PROBABILITIES
from pipelines.enrichment.income.kinds import FILE, parse_evidence
from pipelines.figures.facts import Facts
from pipelines.figures.income import income_rows, regular_payers
from pipelines.vocabulary.rule_files import RuleError
from tests.conftest import examples
from tests.pipelines.enrichment.examples import held_rows

FRIDAY, LAST = date(2025, 1, 3), date(2025, 12, 31)
FRIDAYS = [FRIDAY + timedelta(weeks=week) for week in range(52)]
WAGES = {
    "description": "DIRECT CREDIT COVE CAFE WAGES",
    "counterparty_group": "cove-cafe",
    "counterparty_name": "Cove Cafe",
    "counterparty_kind": "business",
    "category": "salary_received",
    "category_group": "other_income",
    "category_source": "pattern",
    "channel": "direct_credit",
}
CLIENT = {
    **WAGES,
    "description": "OSKO DEPOSIT APEX HOMES INV 4411",
    "counterparty_group": "apex-homes",
    "counterparty_name": "Apex Homes",
    "category": "customer_transfer",
    "category_group": "revenue",
    "channel": "npp",
}
Row = Mapping[str, Any]


def payments_on(
    days: Iterable[date], like: Row = WAGES, amounts: Iterable[str] = ("812.40",), **changes: Any
) -> list[Row]:
    """Return payments on these days, with these amounts in turn."""
    sums = list(amounts)
    return [{**like, "date": day, "amount": Decimal(sums[nth % len(sums)]), **changes} for nth, day in enumerate(days)]


def facts(rows: Iterable[Row]) -> Facts:
    """Return facts with a purchase on the account's last day."""
    shop = {"category": "groceries", "category_group": "cost_of_sales", "date": LAST}
    return Facts(held_rows(*rows, shop), LAST)


def payers(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return regular_payers(facts(rows)).to_dicts()


def payer(rows: Iterable[Row]) -> dict[str, Any]:
    [only] = payers(rows)
    return only


def monthly(day_of_month: int, months: Iterable[int]) -> list[date]:
    return [date(2025, month, day_of_month) for month in months]


# How regularly


def test_casual_work_paid_on_fridays_is_weekly_however_many_weeks_are_missed() -> None:
    found = payer(payments_on(FRIDAYS[::3] + FRIDAYS[1::9], amounts=("310.20", "122.75", "478.90")))
    assert (found["period"], found["anchor"]) == ("weekly", "Friday")
    assert (found["due_dates"], found["dates_paid"], found["longest_gap"]) == (52, 24, 2)
    assert found["next_date"] == date(2026, 1, 2)


def test_a_pause_of_two_months_leaves_a_fortnightly_payer_whole() -> None:
    found = payer(payments_on(FRIDAYS[0:20:2] + FRIDAYS[28::2]))
    assert (found["period"], found["anchor"]) == ("fortnightly", "Friday")
    assert (found["due_dates"], found["dates_paid"], found["longest_gap"]) == (26, 22, 4)
    assert found["next_date"] is not None


def test_a_monthly_payer_that_moved_is_one_payer() -> None:
    found = payer(payments_on(monthly(4, range(1, 7)) + monthly(22, range(7, 13))))
    assert (found["period"], found["anchor"], found["dates_paid"]) == ("monthly", None, 12)


def test_two_payments_a_week_are_one_weekly_payer() -> None:
    mondays = [day - timedelta(days=4) for day in FRIDAYS[1:]]
    found = payer(payments_on([*mondays, *FRIDAYS], amounts=("210.10", "388.05")))
    assert found["period"] == "weekly"
    assert round(found["monthly"]) == pytest.approx(103 * 299.08 / 12, rel=0.03)


def test_invoices_paid_some_weeks_apart_are_irregular() -> None:
    gaps = (24, 37, 29, 41, 18, 33, 27, 36, 30)
    days = [FRIDAY + timedelta(days=sum(gaps[:nth])) for nth in range(len(gaps) + 1)]
    found = payer(payments_on(days, CLIENT, ("1840.00", "3120.50", "990.00", "2415.75")))
    assert (found["period"], found["anchor"]) == ("monthly", None)
    assert found["kind"] == "contract_revenue"


def test_a_payer_that_stopped_has_no_next_date() -> None:
    assert payer(payments_on(FRIDAYS[:20]))["next_date"] is None
    assert payer(payments_on(FRIDAYS[:20:3], amounts=("99.10", "240.00")))["next_date"] is None


def test_now_and_then_is_not_regular() -> None:
    days = [date(2025, 1, 11), date(2025, 2, 27), date(2025, 6, 3), date(2025, 9, 16), date(2025, 11, 30)]
    assert payers(payments_on(days, amounts=("80.00", "31.00", "140.00"))) == []


# What is an income


def test_money_that_is_no_income_has_no_payer(subtests: pytest.Subtests) -> None:
    near_misses: Mapping[str, Row] = {
        "own savings": {"category": "own_transfer", "category_group": "transfer", "category_source": "pattern"},
        "matched own transfer": {"is_transfer": True},
        "a savings account that nobody names": {
            "category": "unknown_credit",
            "category_group": "unknown",
            "category_source": "fallback",
            "other_account": "4411",
        },
        "refunds": {"category": "refund_received", "category_source": "pattern"},
        "loan drawdowns": {"category": "term_loan_funding", "category_group": "debt_inflow"},
        "an owner's loans": {"category": "director_loan_in", "category_group": "debt_inflow"},
        "card takings": {"category": "card_settlement", "category_group": "revenue"},
        "a processor": {"category": "platform_payout", "category_group": "revenue", "counterparty_kind": "processor"},
        "the customer itself": {"counterparty_kind": "own"},
        "cash": {"channel": "cash", "category": "unknown_credit", "category_group": "unknown"},
        "interest": {"category": "interest_received"},
        "returned payments": {"category": "returned_payment"},
        "money out": {"amount": Decimal("-812.40"), "category": "wages", "category_group": "payroll"},
    }
    for what, changes in near_misses.items():
        with subtests.test(what):
            assert payers(payments_on(FRIDAYS, **changes)) == []


def test_a_shop_that_pays_wages_is_an_employer_though_its_name_means_refunds() -> None:
    assumed = {"category": "refund_received", "category_source": "counterparty"}
    assert payer(payments_on(FRIDAYS, **assumed))["kind"] == "wages"


def test_rows_without_a_counterparty_are_one_payer_by_the_words_that_recur() -> None:
    nameless = {"counterparty_group": None, "counterparty_name": None, "counterparty_kind": None}
    rows = [
        {**row, **nameless, "description": f"PAYROLL 00{nth} FRIDAY", "clean_description": f"PAYROLL 00{nth} FRIDAY"}
        for nth, row in enumerate(payments_on(FRIDAYS))
    ]
    assert payer(rows)["payer"] == "PAYROLL FRIDAY"


# Which kind


def test_a_customers_varied_invoices_are_not_wages() -> None:
    invoices = payments_on(FRIDAYS[::2], CLIENT, ("1210.00", "340.00", "2750.50", "88.00", "960.00"))
    found = payer(invoices)
    assert found["kind"] == "contract_revenue"
    assert found["probability_wages"] < 0.1
    silent = payer([{**row, "description": "APEX HOMES"} for row in invoices])
    assert silent["kind"] in ("contract_revenue", "regular")


def test_nobody_pays_wages_or_benefits_to_a_business() -> None:
    same_pay = payments_on(
        FRIDAYS, description="DIRECT CREDIT COVE CAFE", category="customer_transfer", category_group="revenue"
    )
    of_person = payer([{**row, "account_name": "Ana Silva Everyday"} for row in same_pay])
    of_business = payer([{**row, "account_name": "Silva Tiles Business Account"} for row in same_pay])
    later = payer(
        [{**row, "account_name": None if n else "Silva Tiles Business Account"} for n, row in enumerate(same_pay)]
    )
    assert of_person["kind"] == "wages"
    assert of_business["kind"] == later["kind"] == "contract_revenue"


def test_words_and_agencies_distinguish_benefits_and_pensions(subtests: pytest.Subtests) -> None:
    agency = {"counterparty_kind": "government", "category": "government_receipt", "category_group": "revenue"}
    kinds = {
        "CENTRELINK JOBSEEKER 123456789": "benefit",
        "CTRLINK BENEFIT 123456789V": "benefit",
        "SERVICES AUSTRALIA 123456789": "benefit",
        "CTRLINK AGE PENSION 123456789": "pension",
        "DVA PENSION 4411": "pension",
    }
    for text, kind in kinds.items():
        with subtests.test(text):
            assert payer(payments_on(FRIDAYS[::2], description=text, **agency))["kind"] == kind


def test_other_payers_change_the_likely_kind_of_a_payer(subtests: pytest.Subtests) -> None:
    """A sure payer of another kind changes what is likely, unless it is the same payer in another account."""
    agency = {
        "description": "SERVICES AUSTRALIA 123456789",
        "counterparty_kind": "government",
        "category": "government_receipt",
        "category_group": "revenue",
        "counterparty_group": "services-australia",
        "counterparty_name": "Services Australia",
    }
    fund = {
        **agency,
        "description": "BAY FUND PENSION 44",
        "counterparty_group": "bay",
        "counterparty_name": "Bay Fund",
    }
    firm = {"description": "ALDER HOMES 4411", "counterparty_group": "alder", "counterparty_name": "Alder Homes"}
    months = [date(2025, month, 15) for month in range(1, 13)]
    monthly = payments_on(months, {**WAGES, **firm, "category_source": "learned"}, ("1640.10", "1710.55", "1520.40"))
    cases = {
        "a pension": (payments_on(FRIDAYS[::2], WAGES, **agency), payments_on(months, WAGES, **fund), "pension"),
        "wages": (monthly, payments_on(FRIDAYS), "wages"),
    }
    for beside, (rows, others, kind) in cases.items():
        with subtests.test(f"beside {beside}"):
            group = rows[0]["counterparty_group"]
            [alone] = payers(rows)
            [both] = [each for each in payers([*rows, *others]) if each["payer"] == group]
            name = f"probability_{kind}"
            assert (both[name] > alone[name]) is (kind == "pension")
            assert f"beside {beside}" in both["signs"]
            [itself] = [each for each in payers([*rows, *others]) if each["payer"] != group]
            assert "beside" not in itself["signs"]


def test_wages_in_two_accounts_are_not_beside_themselves() -> None:
    other = bytes(15) + b"2"
    found = payers([*payments_on(FRIDAYS), *payments_on(FRIDAYS, account_id=other)])
    assert len(found) == 2
    assert not any("beside" in each["signs"] for each in found)


def test_the_clients_correction_decides() -> None:
    corrected = {"category": "rent_received", "category_group": "revenue", "category_source": "correction"}
    assert payer(payments_on(FRIDAYS, **corrected))["kind"] == "rent"


def test_the_signs_that_count_are_named() -> None:
    assert payer(payments_on(FRIDAYS))["signs"].split("; ") == [
        *("words of wages", "business", "weekly or fortnightly", "always the same"),
        *("3,000 to 10,000 a month", "odd amounts"),
    ]


def test_broken_evidence_is_refused() -> None:
    sign = {"sign": "odd", "because": "It is.", "weights": {"wages": 1}, "says": ["^*"], "periods": ["hourly"]}
    document = {"prior": {"because": "It is.", "weights": {}}, "groups": {"words": [sign]}}
    with pytest.raises(RuleError, match=rf"(?s){FILE}: odd: .*no letter.*unknown periods: hourly"):
        parse_evidence(document)
    with pytest.raises(RuleError, match="wage"):
        parse_evidence({**document, "prior": {"because": "It is.", "weights": {"wage": 1}}})


# Properties


@st.composite
def credits_(draw: st.DrawFn) -> list[Row]:
    """Draw payers with habits of all kinds: their own days, gaps, amounts and words."""
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 4))):
        chance = random.Random(draw(st.integers(0, 10**6)))
        days = [FRIDAY + timedelta(days=nth * chance.choice((7, 14, 30))) for nth in range(chance.randint(1, 40))]
        paid_on = [
            min(day + timedelta(days=chance.choice((0, 0, 0, 1))), LAST) for day in days if chance.random() < 0.8
        ]
        words = chance.choice(("WAGES", "RENT", "INV 12", "PENSION", "thanks", ""))
        name = {"counterparty_group": f"payer-{number}", "description": f"CREDIT {words}"}
        amounts = [f"{chance.randint(10, 4000)}.{chance.choice(('00', '37'))}" for _ in range(chance.choice((1, 3)))]
        rows += payments_on(paid_on, {**WAGES, "category_source": "learned", **name}, amounts)
    return rows


@examples(20)
@given(credits_(), st.randoms(use_true_random=False))
def test_probabilities_sum_to_one_whatever_the_order_and_whoever_else_is_there(
    rows: list[Row], chance: random.Random
) -> None:
    found = regular_payers(facts(rows))
    sums = found.select(pl.sum_horizontal(PROBABILITIES.values())).to_series()
    assert ((sums - 1).abs() < 1e-9).all()
    transactions = facts(rows).transactions
    others = transactions.with_columns(customer_number=pl.lit(2, pl.Int64), counterparty_group=pl.lit("one-payer"))
    mixed = pl.concat([others, transactions]).sample(fraction=1, shuffle=True, seed=chance.randrange(10**6))
    again = regular_payers(Facts(mixed, LAST))
    assert_frame_equal(again.filter(pl.col("customer_number") == 1), found)


@examples(4)
@given(st.integers(0, 10**6))
def test_missed_weeks_never_remove_a_payer(seed: int) -> None:
    chance = random.Random(seed)
    days = list(FRIDAYS)
    while len(days) > len(FRIDAYS) * 2 // 5:
        for _ in range(4):
            days.remove(chance.choice(days[1:-1]))
        found = payer(payments_on(days, amounts=("312.10", "405.85", "198.40")))
        assert (found["period"], found["anchor"]) == ("weekly", "Friday")


def test_rows_behind_payers_are_their_payments_only() -> None:
    rows = income_rows(facts([*payments_on(FRIDAYS), *payments_on(FRIDAYS[:2], CLIENT)]))
    assert rows["payer"].unique().to_list() == ["cove-cafe"]
    assert rows.height == len(FRIDAYS)
