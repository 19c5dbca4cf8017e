"""Revenue with and without GST, and the sources of the assumptions about it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.context import ATTRIBUTES, NO_CONTEXT, Context
from pipelines.reports.aggregate.gst import GST_REVENUE
from pipelines.reports.aggregate.tax_rules import GST, parse_gst
from pipelines.vocabulary.rule_files import RuleError
from tests.conftest import examples
from tests.pipelines.reports.examples import START, Row, any_row, posted_rows, row
from tests.pipelines.reports.tables import Value, assert_explained, facts_of, values

TODAY = date(2027, 6, 1)
CENT = Decimal("0.01")
SALE, NDIS, REFUND = "revenue/card_settlement", "revenue/government_receipt", "revenue/refund_paid"


def context_with(**attributes: str) -> Context:
    rows = [{"customer_number": 1, "name": name, "value": value} for name, value in attributes.items()]
    return Context(attributes=pl.DataFrame(rows, schema=ATTRIBUTES))


def gst(rows: Iterable[Row], context: Context = NO_CONTEXT) -> list[Value]:
    return values(GST_REVENUE, facts_of(rows, TODAY, context))


def months(rows: Iterable[Row], context: Context, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(value[name] for name in names) for value in gst(rows, context)]


def test_a_registered_business_keeps_ten_elevenths_of_taxed_revenue() -> None:
    rows = [
        row(0, "1100", kind=SALE),
        row(1, "500", kind=NDIS),
        row(2, "-110", kind=REFUND),
        row(3, "70", kind="other_income/grant"),
        row(4, "90", kind=SALE, is_transfer=True),
        row(30, "-5"),
    ]
    assert gst(rows, context_with(gstRegistered="true")) == [
        {
            "month": "2025-01-01",
            "partial": False,
            "gstRegistered": True,
            "gstRegisteredFrom": "attribute",
            "taxableShare": Decimal(1),
            "taxableShareFrom": "default",
            "revenue": Decimal("1490.00"),
            "revenueOfTaxedKinds": Decimal("990.00"),
            "taxableRevenue": Decimal("990.00"),
            "gstOnSales": Decimal("90.00"),
            "revenueWithoutGst": Decimal("1400.00"),
        }
    ]


def test_an_unregistered_business_has_no_gst() -> None:
    assert months(
        [row(0, "1100", kind=SALE)], context_with(gstRegistered="false"), "gstOnSales", "revenueWithoutGst"
    ) == [(0, 1100)]


def test_only_the_taxable_share_is_taxed() -> None:
    context = context_with(gstRegistered="true", taxableShare="0.25")
    columns = ("taxableShare", "taxableShareFrom", "taxableRevenue", "gstOnSales")
    assert months([row(0, "440", kind=SALE)], context, *columns) == [(Decimal("0.25"), "attribute", 110, 10)]


@pytest.mark.parametrize("share", ["2", "-0.1", "half", "", "NaN", "true"])
def test_an_invalid_share_is_ignored(share: str) -> None:
    [(taken, source)] = months([row(0, "1")], context_with(taxableShare=share), "taxableShare", "taxableShareFrom")
    assert (taken, source) == (1, "default")


@pytest.mark.parametrize(
    ("days", "revenue", "registered"),
    [
        (365, "75000", True),
        (365, "74999.99", False),
        (730, "74999.99", False),  # a year's worth counts, not all of it
        (73, "15000", True),
        (73, "14999.99", False),
        (1, "5753.42", False),  # a day is not stretched to a year, but counted as four weeks
        (1, "5753.43", True),
    ],
)
def test_registered_from_a_turnover_of_75000_a_year(days: int, revenue: str, registered: bool) -> None:
    first = [row(0, "9999999" if days == 730 else "0", kind=SALE)]
    rows = [*first, row(days - 1, revenue, kind=SALE)]
    assert {(value["gstRegistered"], value["gstRegisteredFrom"]) for value in gst(rows)} == {(registered, "turnover")}


def test_no_posted_rows_give_no_months() -> None:
    assert gst([row(0, "5", status="pending")]) == []
    assert gst([]) == []


def test_the_largest_amounts_are_exact() -> None:
    most = Decimal("9999999999999.99")
    [value] = gst([row(0, most, kind=SALE) for _ in range(100)], context_with(taxableShare="0.3333"))
    assert value["revenue"] == most * 100
    assert value["gstOnSales"] == exact_gst(most * 100, Decimal("0.3333"))


# The oracle: a loop over the rows of each month.


def exact_gst(of_taxed_kinds: Decimal, share: Decimal) -> Decimal:
    taxable = (of_taxed_kinds * share).quantize(CENT, ROUND_HALF_EVEN)
    return (taxable / 11).quantize(CENT, ROUND_HALF_EVEN)


def is_sale(each: Row) -> bool:
    return each["category_group"] == "revenue" and not each["is_transfer"]


def is_registered(posted: Sequence[Row]) -> bool:
    last, first = max(each["date"] for each in posted), min(each["date"] for each in posted)
    days = min(max((last - first).days + 1, 28), 365)
    sales = [each["amount"] for each in posted if is_sale(each) and (last - each["date"]).days < 365]
    return bool(sum(sales, Decimal(0)) * 365 / days >= 75_000)


def expected_gst(rows: Sequence[Row], registered: bool | None, share: Decimal) -> Mapping[str, tuple[Decimal, ...]]:
    posted = posted_rows(rows)
    sums: dict[str, list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for each in posted:
        month = sums[each["date"].replace(day=1).isoformat()]
        if is_sale(each):
            month[0] += each["amount"]
            month[1] += each["amount"] * (each["category"] != "government_receipt")
    charged = is_registered(posted) if registered is None else registered
    taxes = {month: exact_gst(kinds, share) * charged for month, (_, kinds) in sums.items()}
    return {month: (revenue, kinds, taxes[month], revenue - taxes[month]) for month, (revenue, kinds) in sums.items()}


some_rows = st.lists(
    st.one_of(
        any_row(),
        st.builds(
            lambda day, cents, kind: row(day, Decimal(cents).scaleb(-2), kind=kind),
            st.integers(0, 400),
            st.integers(-1_000_000, 5_000_000),
            st.sampled_from((SALE, NDIS, REFUND)),
        ),
    ),
    min_size=1,
    max_size=25,
)


@given(some_rows, st.sampled_from((None, True, False)), st.integers(0, 10_000).map(lambda n: Decimal(n).scaleb(-4)))
def test_every_month_agrees_with_the_oracle(rows: list[Row], registered: bool | None, share: Decimal) -> None:
    attributes = {"taxableShare": str(share)} | ({} if registered is None else {"gstRegistered": str(registered)})
    shown = {value["month"]: value for value in gst(rows, context_with(**attributes))}
    want = expected_gst(rows, registered, share) if posted_rows(rows) else {}
    names = ("revenue", "revenueOfTaxedKinds", "gstOnSales", "revenueWithoutGst")
    assert {month: tuple(value[name] for name in names) for month, value in shown.items() if month in want} == want
    assert all(value["revenue"] == 0 for month, value in shown.items() if month not in want)


@examples(1)
@given(some_rows)
def test_every_number_comes_from_rows(rows: list[Row]) -> None:
    facts = facts_of(rows, TODAY, context_with(gstRegistered="true", taxableShare="0.7"))
    assert_explained(GST_REVENUE, facts, {place.to_bytes(16, "big"): abs(r["amount"]) for place, r in enumerate(rows)})


def test_attributes_apply_to_their_customer_only() -> None:
    rows = [row(0, "1100", kind=SALE), row(0, "1100", kind=SALE, customer_number=2)]
    assert [value["gstOnSales"] for value in gst(rows, context_with(gstRegistered="true"))] == [100, 0]


def test_the_year_of_turnover_ends_with_the_last_row() -> None:
    rows = [row(START - timedelta(days=3000), "75000", kind=SALE)]
    assert gst(rows)[0]["gstRegistered"] is True


def document(**changes: object) -> dict[str, Any]:
    return {
        "divisor": 11,
        "registered_from": 75_000,
        "least_days": 28,
        "untaxed_revenue": ["government_receipt"],
        "taxed_cost_groups": ["premises"],
        "untaxed_costs": ["waste"],
        "other_taxed_costs": ["labour_hire"],
        **changes,
    }


def test_taxed_costs_come_from_groups_and_listed_categories() -> None:
    taxed = parse_gst(document()).taxed_costs
    assert {"rent", "labour_hire"} <= taxed
    assert not {"waste", "wages"} & taxed


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"divisor": 0}, "divisor must be a whole number"),
        ({"least_days": "28"}, "least_days must be a whole number"),
        ({"untaxed_revenue": ["sales"]}, "untaxed_revenue has 'sales'"),
        ({"taxed_cost_groups": ["rent"]}, "taxed_cost_groups has 'rent'"),
        ({"rate": 1}, "keys must be"),
    ],
)
def test_rules_with_a_fault_are_refused(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(RuleError, match=fault):
        parse_gst(document(**changes))


def test_wages_and_bank_fees_bring_no_gst_credits() -> None:
    assert not {"wages", "superannuation", "bank_fees", "government_fees", "groceries"} & GST.taxed_costs
