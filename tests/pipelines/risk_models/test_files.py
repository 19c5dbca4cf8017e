"""Two plain files become cases, and what can't be read is refused with one line that says where it is."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from pipelines.risk_models import cohorts, files
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import COVERAGE_OF
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.schemas import ACCEPTED


def table(text: str) -> pl.DataFrame:
    lines = "\n".join(line.strip() for line in text.strip().splitlines())
    return pl.read_csv(lines.encode(), infer_schema=False)


ROWS = """
    customer,account,date,description,amount,balance
    a,1,2024-01-05,,100.5,100.50
    a,1,2024-02-05, RENT ,-40,60.5
    a,2,2024-03-05,,7,
    b,1,2024-01-09,,-3.999,10
"""
OUTCOMES = """
    customer,asOf,defaulted,amount,purpose
    a,2024-02-20,no,1000,car
    a,2024-12-31,1,,boat
    b,2024-12-31,0,5.5,
    c,2024-12-31,TRUE,7,
"""


def test_outcomes_become_cases_with_the_given_columns() -> None:
    read = files.parse_outcomes(table(OUTCOMES))
    assert read.given == ("amount",)
    assert read.ignored == ("purpose",)
    assert read.cases.rows() == [
        (1, "a", date(2024, 2, 20), 0, 1000.0),
        (2, "a", date(2024, 12, 31), 1, None),
        (3, "b", date(2024, 12, 31), 0, 5.5),
        (4, "c", date(2024, 12, 31), 1, 7.0),
    ]


def test_money_is_exact_to_the_cent() -> None:
    rows = files.parse_transactions(table(ROWS))
    assert rows["amount"].to_list() == [Decimal("100.50"), Decimal(-40), Decimal(7), Decimal("-4.00")]
    assert rows["balance"].to_list() == [Decimal("100.50"), Decimal("60.50"), None, Decimal(10)]
    assert rows["description"].to_list() == ["", "RENT", "", ""]


def test_each_case_has_its_customers_rows_up_to_its_day() -> None:
    accepted = files.accepted_rows(files.parse_transactions(table(ROWS)), files.parse_outcomes(table(OUTCOMES)).cases)
    assert accepted.schema == ACCEPTED
    seen = accepted.group_by("customer_number", maintain_order=True).agg("date", pl.col("account_id").n_unique())
    assert seen.rows() == [
        (1, [date(2024, 1, 5), date(2024, 2, 5)], 1),
        (2, [date(2024, 1, 5), date(2024, 2, 5), date(2024, 3, 5)], 2),
        (3, [date(2024, 1, 9)], 1),
    ]


def test_cases_without_rows_are_counted() -> None:
    cohort = cohorts.cohort_from_files(files.parse_transactions(table(ROWS)), files.parse_outcomes(table(OUTCOMES)))
    assert cohort.without_transactions == 1
    assert cohort.cases["customer"].to_list() == ["a", "a", "b"]
    assert cohort.further.height == cohort.default_readings.height == 3
    assert cohort.further["amount"].to_list() == [1000.0, None, 5.5]


def test_without_descriptions_metrics_by_meaning_have_no_reading() -> None:
    rows = pl.DataFrame(
        {
            "customer": "a",
            "account": "1",
            "date": [f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in (1, 8, 15, 22)],
            "description": None,
            "amount": ["500", "-120", "-90", "-130"] * 12,
            "balance": ["900", "780", "690", "560"] * 12,
        },
        schema=dict.fromkeys(files.TRANSACTION_COLUMNS, pl.String),
    )
    outcomes = files.parse_outcomes(table("customer,asOf,defaulted\na,2024-12-31,0"))
    cohort = cohorts.cohort_from_files(files.parse_transactions(rows), outcomes)
    assert not cohort.expected.words
    [read] = cohort.default_readings.to_dicts()
    coverage = {feature.metric: read[COVERAGE_OF + feature.metric] for feature in DEFAULT.features}
    not_expected = {slug for slug, share in coverage.items() if share is None}
    assert {"dishonours_per_month_180d", "debt_service_to_revenue_180d", "stacked_running_180d"} <= not_expected
    plain = {"buffer_days_180d", "inflow_to_outflow_180d", "overdrawn_day_share_180d", "revenue_trend_90d"}
    assert not plain & not_expected
    assert all(read[slug] is not None for slug in plain)


def test_what_is_expected_is_decided_once_from_all_customers_unless_stated() -> None:
    rows, outcomes = files.parse_transactions(table(ROWS)), files.parse_outcomes(table(OUTCOMES))
    decided = cohorts.cohort_from_files(rows, outcomes).expected
    assert decided == Expected.of(["balances"])
    assert cohorts.cohort_from_files(rows, outcomes, expected=Expected.of(["words"])).expected == Expected.of(["words"])
    with pytest.raises(ValueError, match="there is no evidence word; there is words"):
        Expected.of(["word"])


def test_registry_only_leaves_out_flows_and_given_columns() -> None:
    rows, outcomes = files.parse_transactions(table(ROWS)), files.parse_outcomes(table(OUTCOMES))
    cohort = cohorts.cohort_from_files(rows, outcomes, registry_only=True)
    assert cohort.further.columns == []


def test_given_money_is_also_given_in_days_of_money_in() -> None:
    cohort = cohorts.cohort_from_files(files.parse_transactions(table(ROWS)), files.parse_outcomes(table(OUTCOMES)))
    first, *_ = cohort.further["amount in days of money in"].to_list()
    assert first == pytest.approx(1000 / (100.5 / 32), rel=1e-3)  # 32 days seen


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        ("customer,defaulted\na,1", "no column asOf; there are customer, defaulted"),
        ("customer,asOf,defaulted", "there are no rows"),
        ("customer,asOf,defaulted\na,31/12/2024,1\nb,2024-12-31,1", "in 1 rows of the outcomes the asOf can't be read"),
        (
            "customer,asOf,defaulted\na,2024-12-31,1\na,2024-12-31,maybe",
            "defaulted can't be read, first in row 3: 'maybe'",
        ),
        ("customer,asOf,defaulted\na,2024-12-31,", "defaulted can't be read"),
        ("customer,asOf,defaulted\n,2024-12-31,1", "customer can't be read"),
    ],
)
def test_unreadable_outcomes_are_refused(outcomes: str, reason: str) -> None:
    with pytest.raises(Unprocessable, match=reason.replace("(", r"\(")):
        files.parse_outcomes(table(outcomes))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a,1,2024-02-30,,1,", "date can't be read, first in row 2: '2024-02-30'"),
        ("a,1,2024-02-03,,one,", "amount can't be read"),
        ("a,1,2024-02-03,,1e30,", "amount can't be read"),
        ("a,1,2024-02-03,,,", "amount can't be read"),
        ("a,1,2024-02-03,,1,x", "balance can't be read"),
    ],
)
def test_unreadable_transactions_are_refused(line: str, reason: str) -> None:
    with pytest.raises(Unprocessable, match=reason):
        files.parse_transactions(table(f"customer,account,date,description,amount,balance\n{line}"))


def test_scoring_needs_no_outcome() -> None:
    read = files.parse_outcomes(table("customer,asOf\na,2024-12-31"), with_outcomes=False)
    assert read.cases["defaulted"].to_list() == [None]


def test_outcomes_without_any_known_customer_are_refused() -> None:
    rows = files.parse_transactions(table(ROWS))
    with pytest.raises(Unprocessable, match="No customer of the outcomes"):
        cohorts.cohort_from_files(rows, files.parse_outcomes(table("customer,asOf,defaulted\nz,2024-12-31,1")))
