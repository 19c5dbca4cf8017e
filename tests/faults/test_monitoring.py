"""Processes that evaluate rulesets are killed at their writes: every trigger is reported once, and none is missed."""

from collections import Counter
from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import ColumnElement, select

from storage.core.models import customers, deliveries, events, rule_matches
from tests.faults.faults import Fault, KillAtWrite
from tests.faults.lender import Lender
from tests.faults.scenarios import LONG_HISTORY, is_watched, watches
from tests.faults.survival import survives
from tests.faults.world import World
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WRITES = 120  # of the enrichment in the scenario; every seventh is tried, which covers all kinds
OF_AN_EVALUATION = 60  # of the portfolio's process around a ruleset evaluation; every twelfth is tried
EVALUATED_WITHIN_S = 240  # if a run's process died, Dagster takes a while to restart it


def count_matches(world: World, lender: Lender) -> Counter[UUID]:
    """Count the matches of each of the lender's customers, each with one event and one delivery per subscription."""
    subscriber = {UUID(each.subscription_id) for each in lender.ledger.subscriptions}
    with world.store.db.reading() as r:
        mine = select(rule_matches.c.match_id, customers.c.customer_id).join_from(rule_matches, customers)
        matches = {row.match_id: row.customer_id for row in r.execute(mine.where(_is_theirs(lender)))}
        happened = select(events.c.event_id).where(events.c.event_type == "monitoring.rule.triggered")
        assert matches.keys() <= set(r.execute(happened).scalars()), "a match without its event"
        sent = select(deliveries.c.event_id).where(deliveries.c.subscription_id.in_(subscriber))
        assert Counter(r.execute(sent).scalars()) == Counter(matches.keys()), "an event without exactly one delivery"
    return Counter(matches.values())


def _is_theirs(lender: Lender) -> ColumnElement[bool]:
    return customers.c.customer_id.in_([UUID(each) for each in lender.ledger.rows])


def run_experiment(
    world: World, scenario: Callable[[Lender], None], fault: Fault, seed: int
) -> tuple[bool, Counter[UUID]]:
    """Run an experiment. Return whether the fault was injected, and the reported matches."""
    lenders: list[Lender] = []

    def note_lender(lender: Lender) -> None:
        lenders.append(lender)
        scenario(lender)

    injected = survives(world, note_lender, fault, seed)
    return injected, count_matches(world, lenders[0])


@pytest.mark.parametrize("nth", range(1, WRITES, 7))
def test_killed_while_a_batch_evaluates_rulesets(world: World, nth: int) -> None:
    injected, matches = run_experiment(world, is_watched, KillAtWrite(world, "enrichment", nth), seed=nth)
    assert list(matches.values()) == [2], "a trigger, a reset and a trigger"
    assert injected or nth > WRITES // 3, "the scenario has fewer writes than expected: was nothing killed?"


@pytest.mark.parametrize("nth", range(1, OF_AN_EVALUATION, 12))
def test_killed_while_the_portfolio_evaluates_rulesets(world: World, nth: int) -> None:
    def is_watched_afterwards(lender: Lender) -> None:
        watched = [lender.customer() for _ in range(2)]
        for job in [lender.submit(each, LONG_HISTORY) for each in watched]:
            lender.wait_for_job(job)
        lender.subscribe("monitoring.rule.triggered")
        watches(lender)
        until(lambda: len(count_matches(world, lender)) == len(watched), EVALUATED_WITHIN_S)

    injected, matches = run_experiment(
        world, is_watched_afterwards, KillAtWrite(world, "assets.dagster_internals.warm portfolio", nth), nth
    )
    assert list(matches.values()) == [1, 1]
    assert injected or nth > OF_AN_EVALUATION // 3, "nothing was killed"
