"""Synthetic businesses default with the probability that their condition gives, which no visible flag tells alone."""

from datetime import date
from math import exp
from random import Random

import pytest

from pipelines.synthetic import Business, Latents, portfolio
from pipelines.synthetic.businesses.risk import draw_causes, draw_condition, draw_outcome, stress

UNTIL = date(2025, 6, 30)
MIDDLING = Latents(0.0, 0.075, 0.25, 0.6, 0.0, 0.5, 4.0)
of_a_large_portfolio = pytest.mark.slow  # 900 businesses are drawn, only to test the generator of synthetic data
TROUBLES = ("dishonour", "arrears", "advance", "plan", "gambling")


@pytest.fixture(scope="module")
def businesses() -> list[Business]:
    return list(portfolio(900, 4, seed=21, until=UNTIL))


def probability(latents: Latents = MIDDLING, cushion: float = 0.5, late: int = 0, since: float = 12) -> float:
    return draw_outcome(Random(1), latents, cushion, late, since).probability


def test_the_probability_is_the_stated_formula() -> None:
    latents = Latents(-1.0, 0.2, 0.4, 0.3, 0.5, 0.0, 2.0)
    logit = -2.8 + 0.65 + 4.5 * 0.2 + 2.5 * 0.15 + 2.2 * 0.5 * 0.5 + 1.6 * 0.3 - 0.9 * 0.25 + 0.015 * 40
    assert probability(latents, 0.25, 40, 8) == pytest.approx(1 / (1 + exp(-logit)))


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (Latents(-1.0, 0.075, 0.25, 0.6, 0.0, 0.5, 4.0), MIDDLING),
        (Latents(0.0, 0.2, 0.25, 0.6, 0.0, 0.5, 4.0), MIDDLING),
        (Latents(0.0, 0.075, 0.5, 0.6, 0.0, 0.5, 4.0), MIDDLING),
        (Latents(0.0, 0.075, 0.25, 0.2, 0.0, 0.5, 4.0), MIDDLING),
        (Latents(0.0, 0.075, 0.25, 0.6, 0.4, 0.5, 4.0), MIDDLING),
    ],
    ids=["weakness", "leverage", "volatility", "imprudence", "shock"],
)
def test_every_cause_raises_stress_and_risk(worse: Latents, better: Latents) -> None:
    assert stress(worse) > stress(better)
    assert probability(worse) > probability(better)


def test_reserves_protect_and_arrears_warn() -> None:
    assert probability(cushion=1.0) < probability(cushion=0.0) < probability(cushion=0.0, late=60)


def test_the_outcome_is_a_draw_from_its_probability() -> None:
    rng = Random(3)
    draws = [draw_outcome(rng, MIDDLING, 0.5, 0, 12) for _ in range(20_000)]
    assert sum(one.defaults for one in draws) / len(draws) == pytest.approx(draws[0].probability, abs=0.01)


def test_about_15_per_cent_are_distressed_or_failing() -> None:
    rng = Random(4)
    states = [draw_condition(rng, draw_causes(rng)) for _ in range(20_000)]
    assert 0.13 < sum(state in ("distressed", "failing") for state in states) / len(states) < 0.2
    assert 0.025 < states.count("failing") / len(states) < 0.06
    assert 0.05 < states.count("start_up") / len(states) < 0.1


def rate(businesses: list[Business]) -> float:
    return sum(one.outcome.defaults for one in businesses) / len(businesses)


@of_a_large_portfolio
def test_five_to_fifteen_per_cent_default_and_the_distressed_more(businesses: list[Business]) -> None:
    by_condition = {
        state: [one for one in businesses if one.condition == state] for state in ("sound", "distressed", "failing")
    }
    assert 0.05 < rate(businesses) < 0.15
    assert rate(by_condition["sound"]) < 0.1
    assert rate(by_condition["distressed"]) > 2 * rate(by_condition["sound"])
    assert rate(by_condition["failing"]) > rate(by_condition["distressed"])


@of_a_large_portfolio
def test_probabilities_are_true(businesses: list[Business]) -> None:
    expected = sum(one.outcome.probability for one in businesses) / len(businesses)
    assert rate(businesses) == pytest.approx(expected, abs=0.03)


def troubles(one: Business) -> dict[str, bool]:
    """Return what a lender could see at a glance."""
    seen = {category for account in one.accounts for category in account.transactions["category"].unique()}
    return {
        "dishonour": "returned_payment" in seen,
        "arrears": any(facility.days_past_due > 7 for facility in one.facilities),
        "advance": "cash_advance_repayment" in seen,
        "plan": "tax_payment_plan" in seen,
        "gambling": "gambling" in seen,
    }


@pytest.mark.parametrize("trouble", TROUBLES)
@of_a_large_portfolio
def test_no_visible_flag_alone_decides(businesses: list[Business], trouble: str) -> None:
    flagged = [one for one in businesses if troubles(one)[trouble]]
    others = [one for one in businesses if not troubles(one)[trouble]]
    assert 0 < rate(flagged) < 0.75
    assert rate(others) > 0
    missed = sum(one.outcome.defaults for one in others) / sum(one.outcome.defaults for one in businesses)
    assert missed > 0.1, "nearly every default shows the flag"


@pytest.mark.parametrize("trouble", ["dishonour", "arrears", "advance", "plan"])
@of_a_large_portfolio
def test_troubles_that_are_seen_tell_something(businesses: list[Business], trouble: str) -> None:
    flagged = [one for one in businesses if troubles(one)[trouble]]
    assert rate(flagged) > 1.4 * rate(businesses)
