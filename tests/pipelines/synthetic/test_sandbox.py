"""Sandbox businesses: what their profiles say is in their rows, and the rows go on as if nothing had been asked."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from stdnum.au import abn

from pipelines import metrics
from pipelines.attacks.ledger import as_ledger
from pipelines.decisions import INDETERMINATE, Attribute, Policy, Value, evaluate_plan, examples, plan_policy, readings
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.synthetic import Business, submissions
from pipelines.synthetic.sandbox import (
    FEED_DAYS,
    MIN_MONTHS,
    PROFILES,
    attributes_of,
    last_activity_statement,
    sandbox_business,
)
from pipelines.trials.subjects import as_accepted
from pipelines.vocabulary.schemas import TRANSACTIONS

UNTIL = date(2026, 11, 26)
INPUTS: Mapping[str, Value] = {
    "requestedAmount": Decimal(40_000),
    "termMonths": Decimal(12),
    "requestedLimit": Decimal(25_000),
    "basDueTo": Decimal(last_activity_statement(UNTIL)),
    "existingCustomer": False,
    "requestedAdvance": Decimal(20_000),
    "holdback": Decimal("0.12"),
    "channel": "direct",
}


@cache
def make_business(slug: str, seed: int, months: int = MIN_MONTHS) -> Business:
    return sandbox_business(slug, seed, months, UNTIL)


def history(business: Business, until: date = UNTIL) -> pl.DataFrame:
    """Return the rows until a day, each with the columns of its account."""
    return pl.concat(
        account.transactions.filter(pl.col("date") <= until).with_columns(
            account=pl.lit(account.account_number),
            account_type=pl.lit(account.account_type),
            bank=pl.lit(account.bank_name),
        )
        for account in business.accounts
    )


def days_of(rows: pl.DataFrame) -> list[date]:
    return rows["date"].unique().sort().to_list()


def test_the_same_values_give_the_same_business() -> None:
    for slug in ("healthy", "dressed_up"):
        again = sandbox_business(slug, 1, MIN_MONTHS, UNTIL)
        assert again.abn == make_business(slug, 1).abn
        assert_frame_equal(history(again, date.max), history(make_business(slug, 1), date.max))


def test_days_are_sent_once_each_and_for_a_year_after_the_history() -> None:
    for slug in PROFILES:
        business = make_business(slug, 1)
        days = [None, UNTIL, *(UNTIL + timedelta(days=day) for day in (1, 2, 9, FEED_DAYS))]
        parts = [row for after, through in pairwise(days) for row in _rows_sent(business, after, through)]
        assert sorted(map(str, parts)) == sorted(map(str, _rows_sent(business, None, None)))
        last = days_of(history(business, date.max))[-1]
        assert UNTIL + timedelta(days=FEED_DAYS - 7) < last <= UNTIL + timedelta(days=FEED_DAYS)


def _rows_sent(business: Business, after: date | None, through: date | None) -> list[dict[str, str | None]]:
    rows = (
        (body["accountNumber"], row) for body in submissions(business, after, through) for row in body["transactions"]
    )
    return [
        {name: value for name, value in row.items() if name != "transactionId"} | {"account": account}
        for account, row in rows
    ]


def test_every_balance_is_the_one_before_plus_the_amount() -> None:
    for slug in PROFILES:
        for account in make_business(slug, 1).accounts:
            rows = account.transactions
            assert (rows["balance"].diff() == rows["amount"]).slice(1).all(), slug


def test_a_profile_shows_in_the_history() -> None:
    recent = history(make_business("insolvent", 1)).filter(pl.col("category") == "insolvency", pl.col("amount") < 0)
    assert recent.height >= 1
    stacked = history(make_business("stacked", 1)).filter(pl.col("facility").is_not_null(), pl.col("amount") < 0)
    assert stacked.filter(pl.col("date") > UNTIL - timedelta(days=45))["counterparty"].n_unique() >= 3
    new = history(make_business("new", 1, 24))
    assert days_of(new)[0] > UNTIL - timedelta(days=300)
    dressed = history(make_business("dressed_up", 1))
    trips = dressed.filter(pl.col("category") == "related_entity", pl.col("date") > UNTIL - timedelta(days=62))
    received = trips.filter(pl.col("amount") > 0)["amount"]
    assert len(received) >= 4
    assert {-amount for amount in received} <= {*trips["amount"]}


def test_a_name_and_an_abn_can_be_given() -> None:
    business = sandbox_business("tax_plan", 1, MIN_MONTHS, UNTIL, name="Bright Ideas", abn="51824753556")
    assert (business.name, business.abn) == ("Bright Ideas", "51824753556")
    assert business.accounts[0].account_name.startswith("Bright Ideas")
    texts = history(business)["description"]
    drawn = make_business("tax_plan", 1)
    assert texts.str.contains("51824753556").any()
    assert not texts.str.contains(drawn.abn).any()
    assert abn.is_valid(drawn.abn)


def outcomes_of(businesses: Mapping[int, tuple[str, Business]], until: date) -> dict[str, list[str]]:
    """Return the outcomes of all example policies on the day after the history, by profile.

    Args:
        businesses: by number, each with its profile.
    """
    accepted = pl.concat(
        as_accepted(number, as_ledger(history(business, until)), {}) for number, (_, business) in businesses.items()
    )
    facts = Facts(enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect(), until + timedelta(days=1))
    known = {
        number: {name: Attribute(value) for name, value in attributes_of(slug, business, until).items()}
        for number, (slug, business) in businesses.items()
    }
    outcomes: dict[str, list[str]] = {}
    for document in examples.load().values():
        policy = Policy.model_validate(document)
        plan = plan_policy(policy)
        inputs = {each.name: INPUTS[each.name] for each in policy.declared_inputs}
        midnight = datetime.combine(facts.as_of, time(), UTC)
        read = readings.read_leaves(plan, metrics.values(facts, plan.metrics), known, inputs, midnight)
        for number, outcome in (
            evaluate_plan(plan, read).select(BY_CUSTOMER, pl.col("outcome").cast(pl.String)).iter_rows()
        ):
            outcomes.setdefault(businesses[number][0], []).append(outcome)
    return outcomes


@pytest.mark.service  # decides whole businesses by every policy
def test_no_example_policy_is_undecided() -> None:
    found = outcomes_of({number: (slug, make_business(slug, 1)) for number, slug in enumerate(PROFILES)}, UNTIL)
    for slug in PROFILES:
        assert INDETERMINATE not in found[slug], slug
    assert {*found["insolvent"]} == {"blocked"}
    assert "proceed" in found["healthy"]


@pytest.mark.slow
@pytest.mark.parametrize("until", [date(2026, 1, 7), date(2026, 4, 30), date(2026, 8, 15), date(2027, 2, 28)])
def test_no_example_policy_is_undecided_for_any_seed_in_any_season(until: date) -> None:
    drawn = [(slug, seed) for slug in PROFILES for seed in range(10, 15)]
    months = MIN_MONTHS + until.month
    found = outcomes_of(
        {n: (slug, sandbox_business(slug, seed, months, until)) for n, (slug, seed) in enumerate(drawn)}, until
    )
    for slug in PROFILES:
        assert INDETERMINATE not in found[slug], slug


@pytest.mark.parametrize(
    ("today", "last", "before"),
    [
        (date(2026, 1, 5), 202509, 202506),
        (date(2026, 2, 27), 202509, 202506),
        (date(2026, 2, 28), 202512, 202509),
        (date(2026, 4, 28), 202603, 202512),
        (date(2026, 10, 27), 202606, 202603),
        (date(2026, 12, 31), 202609, 202606),
    ],
)
def test_activity_statements_are_due_four_times_a_year(today: date, last: int, before: int) -> None:
    assert (last_activity_statement(today), last_activity_statement(today, 1)) == (last, before)
