"""People: who pays them, what is missing, and what is held out."""

from datetime import date

import polars as pl
import pytest

from pipelines.synthetic import Part, Person, held_out_banks, people
from pipelines.synthetic.people.situations import situations

pytestmark = pytest.mark.slow  # the generator of synthetic data alone

UNTIL = date(2025, 6, 30)


def make_people(count: int = 40, part: Part | None = None) -> list[Person]:
    return list(people(count, 12, 5, UNTIL, part))


def credits_of(person: Person) -> pl.DataFrame:
    return pl.concat(account.transactions for account in person.accounts).filter(pl.col("amount") > 0)


def test_the_same_seed_gives_the_same_people() -> None:
    for one, again in zip(make_people(6), make_people(3) + make_people(6)[3:], strict=True):
        assert (one.name, one.incomes) == (again.name, again.incomes)
        assert one.accounts[0].transactions.equals(again.accounts[0].transactions)


def test_every_payment_of_an_income_names_its_payer() -> None:
    for person in make_people():
        paid = credits_of(person)["counterparty"].value_counts()
        times = dict(paid.rows())
        for income in {income.payer: income for income in person.incomes}.values():
            assert times[income.payer] >= income.payments


def test_balances_follow_the_amounts_and_are_never_overdrawn() -> None:
    for person in make_people():
        rows = person.accounts[0].transactions
        assert (rows["balance"] >= 0).all()
        assert (rows["balance"].diff().drop_nulls() == rows["amount"][1:]).all()


def test_every_situation_and_kind_occurs_and_some_due_dates_are_missed() -> None:
    many = make_people(120)
    incomes = [income for person in many for income in person.incomes]
    assert {person.situation for person in many} == set(situations().situations)
    assert {income.kind for income in incomes} == {
        "wages",
        "benefit",
        "pension",
        "rent",
        "contract_revenue",
        "regular",
    }
    assert 0.1 < sum(income.missed > 0 for income in incomes) / len(incomes) < 0.7


def test_banks_and_agencies_for_testing_are_held_out() -> None:
    known = {agency.name.title() for agency in situations().super_pensions.of("train")}
    for person in make_people(60, "test"):
        assert person.accounts[0].bank_name in held_out_banks()
        assert not known & {income.payer for income in person.incomes}


def test_no_wording_or_payer_is_in_two_parts(subtests: pytest.Subtests) -> None:
    """What calibrates must not be what is measured, nor what the evidence was written for. Many write nothing."""
    parts: tuple[Part, ...] = ("train", "test", "calibration")
    for field in ("employers", "wages", "casual_wages", "property_managers", "managers_rent", "tenants_rent", "family"):
        with subtests.test(field):
            used = [text for part in parts for text in set(getattr(situations(), field).of(part)) - {""}]
            assert len(set(used)) == len(used)
    for field in ("benefits", "age_pensions", "super_pensions", "investments"):
        with subtests.test(field):
            agencies = [each for part in parts for each in getattr(situations(), field).of(part)]
            texts = [(each.name, text) for each in agencies for text in each.texts]
            assert len(set(texts)) == len(texts)
