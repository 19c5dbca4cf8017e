"""The queue of alerts and decisions: what waits, for whom, and what people did with it."""

import random
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Conflict
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers import customers, summaries
from storage.customers.customers import Customer
from storage.decisions import evaluations
from storage.decisions.evaluations import NewEvaluation
from storage.monitoring.rulesets import StoredRuleset
from storage.work import items
from storage.work.items import NOBODY, Action, Item, ItemAction, ItemKind, ItemState
from tests.storage.decisions.test_policies import save_a_draft
from tests.storage.examples import a_client, a_customer
from tests.storage.ruleset_evaluations import a_rule, a_ruleset, an_evaluation, apply_evaluation, create_ruleset
from tests.storage.values import on_postgresql, on_sqlite, plans_of

HOUR = timedelta(hours=1)


class Team:
    """A client with two customers, a ruleset and a policy."""

    def __init__(self, store: Store, now: datetime) -> None:
        self.store, self.now = store, now
        self.client_id = a_client(store, now)
        self.one, self.other = (a_customer(store, self.client_id, now) for _ in range(2))
        self.ruleset = create_ruleset(store, self.client_id, a_ruleset(a_rule("A"), a_rule("B")), now)
        self.policy = save_a_draft(store, self.client_id, now, "loan")

    def alert(self, customer: Customer, rule: str = "A") -> UUID:
        """Let a rule fire for a customer, and return the id of the match."""
        holds: dict[tuple[Customer, StoredRuleset, str], bool | None] = {(customer, self.ruleset, rule): True}
        [match] = apply_evaluation(self.store, an_evaluation(self.store, self.now, holds), self.now).matches
        return match.match_id

    def decision(self, customer: Customer, outcome: str, *, what_if: bool = False, of: UUID | None = None) -> UUID:
        new = NewEvaluation(
            *(uuid4(), customer.client_id, customer.number, self.policy.policy_id, self.policy.version),
            *(self.now, "a key", what_if, outcome, 1, self.now.date(), b"{}", of),
        )
        with self.store.db.writing() as w:
            evaluations.save(w, new)
        return new.evaluation_id

    def override(self, evaluation_id: UUID) -> None:
        with self.store.db.writing() as w:
            found = evaluations.get(w, self.client_id, evaluation_id)
            evaluations.add_override(w, found, "proceed", "Seen.", "Dana Lee", "a key", self.now)

    def act(self, item_id: UUID, action: Action, who: str = "dana") -> None:
        with self.store.db.writing() as w:
            items.act(w, self.client_id, item_id, action, who, self.now)

    def waiting(self, **which: Any) -> list[UUID]:
        with self.store.db.reading() as r:
            return [each.item_id for each in items.find_waiting(r, self.client_id, self.now, **which).items]

    def alerts(self, **which: Any) -> list[UUID]:
        with self.store.db.reading() as r:
            return [each.item_id for each in items.find_alerts(r, self.client_id, self.now, **which).items]

    def item(self, item_id: UUID) -> Item:
        with self.store.db.reading() as r:
            return items.get(r, self.client_id, item_id, self.now)


@pytest.fixture
def team(store: Store, now: datetime) -> Team:
    return Team(store, now)


def test_every_match_is_an_open_alert(team: Team) -> None:
    first, second = team.alert(team.one), team.alert(team.other, "B")
    assert team.waiting() == team.alerts() == [second, first]
    shown = team.item(second)
    assert (shown.kind, shown.state, shown.assignee, shown.slug) == (
        ItemKind.ALERT,
        ItemState.OPEN,
        None,
        "early-warning",
    )
    assert (shown.customer_id, shown.rules, shown.outcome, shown.at) == (team.other.customer_id, ["B"], None, team.now)


def test_only_decisions_that_leave_something_to_a_person_wait(team: Team, subtests: pytest.Subtests) -> None:
    for outcome, waits in {"conditional": True, "indeterminate": True, "proceed": False, "blocked": False}.items():
        with subtests.test(outcome):
            made = team.decision(team.one, outcome)
            assert team.waiting() == ([made] if waits else [])
    with subtests.test("what-ifs and challengers"):
        real = team.decision(team.one, "conditional")
        team.decision(team.one, "proceed", what_if=True)
        team.decision(team.one, "proceed", of=real)
        assert team.waiting() == [real]
        assert (team.item(real).slug, team.item(real).outcome) == ("loan", "conditional")


def test_a_decision_waits_until_it_is_replaced_or_overridden_and_keeps_its_assignee(team: Team) -> None:
    first = team.decision(team.one, "conditional")
    team.act(first, Action(ItemAction.ASSIGN, assignee="dana"))
    second, other = team.decision(team.one, "indeterminate"), team.decision(team.other, "conditional")
    assert team.waiting() == [other, second]
    assert (team.item(second).assignee, team.item(other).assignee) == ("dana", None)
    with pytest.raises(Conflict):
        team.act(first, Action(ItemAction.ASSIGN, assignee="kim"))
    with pytest.raises(Conflict):
        team.act(uuid4(), Action(ItemAction.ASSIGN, assignee="kim"))
    team.override(second)
    assert team.waiting() == [other]
    team.decision(team.other, "blocked")
    assert team.waiting() == []


@on_sqlite
def test_ended_snoozes_are_found_among_snoozed_alerts_only(team: Team) -> None:
    with team.store.db.reading() as r:
        [[step]] = plans_of(r, lambda r: items.has_ended_snoozes(r, team.now))
    assert "INDEX ix_work_items_client_id_snoozed_until" in step


@on_postgresql
def test_the_end_of_snoozes_and_the_commit_of_a_batch_do_not_deadlock(team: Team) -> None:
    """A batch locks its customers, then the summaries of those with new alerts, then all summaries."""
    for customer in (team.one, team.other):
        team.act(team.alert(customer), Action(ItemAction.SNOOZE, until=team.now + HOUR))

    def end_snoozes() -> int:
        with team.store.db.writing() as w:
            return items.end_snoozes(w, team.now + 2 * HOUR)

    with ThreadPoolExecutor(1) as pool:
        with team.store.db.writing() as w:
            customers.lock_all(w, [team.one.number, team.other.number])
            summaries.refresh(w, [team.other.number], summaries.ALERT_COLUMNS)
            ending = pool.submit(end_snoozes)
            _, waiting = wait([ending], timeout=0.5)
            assert waiting
            summaries.refresh(w, [team.one.number, team.other.number], summaries.DATA_COLUMNS)
        assert ending.result(timeout=10) == 2


def test_the_last_action_applies_in_any_state_and_all_stay(team: Team, now: datetime) -> None:
    until, later = now + HOUR, team_at(team, now + HOUR)
    alert = team.alert(team.one)
    for action, state in (
        (Action(ItemAction.ACKNOWLEDGE), ItemState.ACKNOWLEDGED),
        (Action(ItemAction.SNOOZE, until=until), ItemState.SNOOZED),
        (Action(ItemAction.ASSIGN, assignee="kim"), ItemState.SNOOZED),
        (Action(ItemAction.CLOSE, reason="Paid."), ItemState.CLOSED),
        (Action(ItemAction.REOPEN), ItemState.OPEN),
        (Action(ItemAction.CLOSE, reason="Paid."), ItemState.CLOSED),
        (Action(ItemAction.SNOOZE, until=until), ItemState.SNOOZED),
    ):
        team.act(alert, action)
        shown = team.item(alert)
        assert shown.state is state, action
        assert shown.snoozed_until == (until if state is ItemState.SNOOZED else None)
        assert team.waiting() == ([alert] if state in (ItemState.OPEN, ItemState.ACKNOWLEDGED) else []), action
        assert [each for each in ItemState if team.alerts(state=each)] == [state]
    assert later.waiting() == later.alerts(state=ItemState.OPEN) == [alert], "a snoozed alert is open again in time"
    assert (later.item(alert).state, later.item(alert).snoozed_until) == (ItemState.OPEN, None)
    with team.store.db.reading() as r:
        history = items.find_history(r, team.item(alert))
    assert [each.action for each in history][::-1] == [
        "acknowledge",
        "snooze",
        "assign",
        "close",
        "reopen",
        "close",
        "snooze",
    ]
    assert {(each.at, each.who) for each in history} == {(now, "dana")}
    assert team.item(alert).assignee == "kim"


def test_items_are_found_by_kind_assignee_customer_and_ruleset(team: Team, subtests: pytest.Subtests) -> None:
    mine, nobodys = team.alert(team.one), team.alert(team.other)
    decision = team.decision(team.one, "conditional")
    team.act(mine, Action(ItemAction.ASSIGN, assignee="dana"))
    stranger = Team(team.store, team.now)
    strangers = stranger.alert(stranger.one)
    for which, found in (
        ({}, [decision, nobodys, mine]),
        ({"kind": ItemKind.ALERT}, [nobodys, mine]),
        ({"kind": ItemKind.DECISION}, [decision]),
        ({"assignee": "dana"}, [mine]),
        ({"assignee": NOBODY}, [decision, nobodys]),
        ({"assignee": "kim"}, []),
        ({"page": Page(2, 2)}, [mine]),
    ):
        with subtests.test(str(which)):
            assert team.waiting(**which) == found
    for which, found in (
        ({"customer": team.one}, [mine]),
        ({"ruleset_id": team.ruleset.ruleset_id}, [nobodys, mine]),
        ({"ruleset_id": uuid4()}, []),
        ({"assignee": NOBODY, "state": ItemState.OPEN}, [nobodys]),
    ):
        with subtests.test(str(which)):
            assert team.alerts(**which) == found
    assert stranger.waiting() == [strangers]
    with pytest.raises(Conflict):
        team.act(strangers, Action(ItemAction.CLOSE, reason="Not mine."))


def test_of_actions_at_once_the_last_one_applies_and_none_is_lost(team: Team) -> None:
    alert = team.alert(team.one)
    people = [f"person {nth}" for nth in range(8)]
    with ThreadPoolExecutor(len(people)) as threads:
        list(threads.map(lambda who: team.act(alert, Action(ItemAction.ASSIGN, assignee=who), who), people))
    with team.store.db.reading() as r:
        history = items.find_history(r, team.item(alert))
    assert sorted(each.who for each in history) == people
    assert team.item(alert).assignee == history[0].assignee


def test_of_decisions_at_once_one_waits(team: Team) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: team.decision(team.one, "conditional"), range(8)))
    with team.store.db.reading() as r:
        [last] = evaluations.find(r, team.client_id, page=Page(1, 1)).items
    assert team.waiting() == [last.evaluation_id]


def test_the_queue_equals_what_the_records_say(team: Team) -> None:
    """Whatever happens, the queue is what its definition says of evaluations, overrides and matches."""
    chance = random.Random(7)
    customers, real, overridden = (team.one, team.other), list[tuple[Customer, UUID, str]](), set[UUID]()
    for _ in range(60):
        customer, what = chance.choice(customers), chance.choice(("decide", "decide", "what if", "override"))
        outcome = chance.choice(("proceed", "blocked", "conditional", "indeterminate"))
        if what == "decide":
            real.append((customer, team.decision(customer, outcome), outcome))
        elif what == "what if":
            team.decision(customer, outcome, what_if=True)
        elif real:
            overridden.add(chosen := chance.choice(real)[1])
            team.override(chosen)
        latest = {customer.number: (made, outcome) for customer, made, outcome in real}
        waits = {made for made, outcome in latest.values() if outcome in items.UNDECIDED and made not in overridden}
        assert set(team.waiting()) == waits


def team_at(team: Team, now: datetime) -> Team:
    """Return the same team at another time."""
    later = object.__new__(Team)
    later.__dict__.update(team.__dict__, now=now)
    return later
