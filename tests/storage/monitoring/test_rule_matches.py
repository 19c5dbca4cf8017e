"""A rule's trigger is reported once, with a record that can't be changed, until the rule is reset."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from pipelines.monitoring import Cause, EvaluationEffect
from pipelines.vocabulary.errors import Corrupt, NotFound
from pipelines.webhooks.events import EventType
from storage.core.models import customers, deliveries, events, rule_states
from storage.core.models import rule_matches as matches_table
from storage.core.paging import Page
from storage.core.store import Store
from storage.monitoring import attributes, rule_matches, rulesets
from storage.monitoring.attributes import NewAttribute
from storage.monitoring.rule_matches import Count, Match
from storage.webhooks import subscriptions
from storage.work import items, timeline
from storage.work.timeline import EntryKind
from tests.storage.examples import a_client, a_customer
from tests.storage.ruleset_evaluations import a_rule, a_ruleset, an_evaluation, apply_evaluation, create_ruleset
from tests.storage.values import on_sqlite, plans_of

DAY = timedelta(days=1)


class Watched:
    """A client with two customers and a ruleset of two rules."""

    def __init__(self, store: Store, now: datetime) -> None:
        self.store = store
        self.client_id = a_client(store, now)
        self.one, self.other = a_customer(store, self.client_id, now), a_customer(store, self.client_id, now)
        self.ruleset = create_ruleset(store, self.client_id, a_ruleset(a_rule("A"), a_rule("B")), now)

    def evaluate(
        self, at: datetime, one: dict[str, bool | None], other: dict[str, bool | None] | None = None
    ) -> EvaluationEffect:
        """Apply an evaluation with these outcomes of rules for the two customers."""
        holds = {(self.one, self.ruleset, rule): value for rule, value in one.items()}
        holds |= {(self.other, self.ruleset, rule): value for rule, value in (other or {}).items()}
        return apply_evaluation(self.store, an_evaluation(self.store, at, holds), at)

    @property
    def matches(self) -> list[Match]:
        """Return the matches, newest first."""
        with self.store.db.reading() as r:
            return list(rule_matches.find(r, self.client_id).items)

    @property
    def states(self) -> dict[tuple[int, str], UUID]:
        with self.store.db.reading() as r:
            rows = r.execute(select(rule_states))
            return {(row.customer_number, row.rule): row.match_id for row in rows}

    def events(self) -> list[Any]:
        with self.store.db.reading() as r:
            return list(r.execute(select(events)).all())


@pytest.fixture
def watched(store: Store, now: datetime) -> Watched:
    return Watched(store, now)


def test_a_trigger_is_reported_once_however_often_it_is_evaluated(watched: Watched, now: datetime) -> None:
    for nth in range(3):
        assert len(watched.evaluate(now + nth * DAY, {"A": True}).matches) == (nth == 0)
    [match] = watched.matches
    assert (match.rules, match.customer_id, match.at, match.cause) == (["A"], watched.one.customer_id, now, Cause.DATA)
    assert watched.states == {(watched.one.number, "A"): match.match_id}
    assert len(watched.events()) == 1


def test_a_reset_rule_triggers_again(watched: Watched, now: datetime) -> None:
    for value, reported in ((True, 1), (False, 1), (False, 1), (True, 2), (True, 2)):
        watched.evaluate(now, {"A": value})
        assert len(watched.matches) == reported
    assert len(watched.states) == 1
    watched.evaluate(now, {"A": False})
    assert watched.states == {}


def test_an_unknown_condition_changes_nothing(watched: Watched, now: datetime) -> None:
    for value in (None, True, None, True):
        watched.evaluate(now, {"A": value})
    assert len(watched.matches) == 1
    with watched.store.db.reading() as r:
        assert rule_matches.sum_counts(r, watched.ruleset, now.date()) == [Count("A", 4, 2, 2, 1)]


def test_a_rule_that_stays_true_triggers_again_after_the_stated_days(watched: Watched, now: datetime) -> None:
    reported = []
    for day in range(8):
        at = now + day * DAY - day * timedelta(seconds=1)  # evaluations don't run at exactly the same time every night
        evaluated = an_evaluation(watched.store, at, {(watched.one, watched.ruleset, "A"): True}, repeat_after_days=3)
        reported.append(len(apply_evaluation(watched.store, evaluated, at).matches))
    assert reported == [1, 0, 0, 1, 0, 0, 1, 0]
    assert watched.states == {(watched.one.number, "A"): watched.matches[0].match_id}


def test_rules_of_one_ruleset_that_fire_together_are_one_match_per_customer(watched: Watched, now: datetime) -> None:
    made = watched.evaluate(now, {"A": True, "B": True}, {"A": False, "B": True})
    assert (len(made.matches), len(made.matched)) == (2, 2)
    assert {match.customer_number: list(match.rules) for match in watched.matches} == {
        watched.one.number: ["A", "B"],
        watched.other.number: ["B"],
    }
    watched.evaluate(now, {}, {"A": True, "B": True})
    assert list(watched.matches[0].rules) == ["A"], "B had fired already"


def test_rules_of_two_rulesets_have_their_own_states(watched: Watched, store: Store, now: datetime) -> None:
    second = create_ruleset(store, watched.client_id, a_ruleset(a_rule("A"), slug="second"), now)
    evaluated = an_evaluation(store, now, {(watched.one, each, "A"): True for each in (watched.ruleset, second)})
    assert len(apply_evaluation(store, evaluated, now).matches) == 2
    assert {match.slug for match in watched.matches} == {"early-warning", "second"}
    with store.db.reading() as r:
        assert [m.slug for m in rule_matches.find(r, watched.client_id, ruleset=second).items] == ["second"]
        assert rule_matches.count_firing(r, second) == {"A": 1}


def test_the_event_has_the_matchs_id_and_exactly_the_contracts_fields(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    [match], [event] = watched.matches, watched.events()
    assert json.loads(event.body) == {
        "eventType": "monitoring.rule.triggered",
        "eventId": str(match.match_id),
        "clientId": str(watched.client_id),
        "customerId": str(watched.one.customer_id),
        "timestamp": "2026-11-20T03:00:00Z",
        "ruleset": {"id": str(watched.ruleset.ruleset_id), "slug": "early-warning", "name": "Early-warning"},
    }
    assert (event.event_id, event.job_id, event.event_type) == (match.match_id, None, EventType.RULE_TRIGGERED)


def test_subscriptions_get_events_only_of_customers_in_their_scope(
    watched: Watched, store: Store, now: datetime
) -> None:
    scopes = {"all": [], "one": [watched.one.customer_id], "other": [watched.other.customer_id]}
    ids = {name: subscription(store, watched.client_id, scope, now) for name, scope in scopes.items()}
    subscription(store, a_client(store, now), [], now)
    watched.evaluate(now, {"A": True})
    with store.db.reading() as r:
        due = set(r.execute(select(deliveries.c.subscription_id)).scalars())
    assert due == {ids["all"], ids["one"]}


def subscription(store: Store, client_id: UUID, customer_ids: list[UUID], now: datetime) -> UUID:
    with store.db.writing() as w:
        made, _ = subscriptions.create(
            w, client_id, EventType.RULE_TRIGGERED, "https://example.com/", customer_ids, store.vault, now
        )
    return made.subscription_id


def test_the_record_states_the_observation_and_what_was_evaluated(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    [match] = watched.matches
    with watched.store.db.reading() as r:
        reported = json.loads(rule_matches.read_record(r, match))
        assert rule_matches.get(r, watched.client_id, match.match_id) == match
    assert reported == {
        "asOf": "2026-11-20",
        "at": "2026-11-20T03:00:00Z",
        "cause": "data",
        "clientId": str(watched.client_id),
        "customerId": str(watched.one.customer_id),
        "dataVersion": 0,
        "matchId": str(match.match_id),
        "observed": {"rules": [{"code": "A", "customer": watched.one.number}]},
        "rulesetId": str(watched.ruleset.ruleset_id),
        "rulesetVersion": 1,
    }


def test_a_match_is_never_changed(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    with pytest.raises(IntegrityError), watched.store.db.writing() as w:
        w.execute(update(matches_table).values(record=b"{}"))


def test_a_match_has_the_names_that_its_event_has_even_if_the_ruleset_is_renamed(
    watched: Watched, now: datetime
) -> None:
    watched.evaluate(now, {"A": True})
    with watched.store.db.writing() as w:
        rulesets.replace(w, watched.ruleset, a_ruleset(a_rule("A"), slug="renamed"), "test", now)
    [match], [event] = watched.matches, watched.events()
    named = json.loads(event.body)["ruleset"]
    with watched.store.db.reading() as r:
        [alert] = items.find_alerts(r, watched.client_id, now).items
        entries, _ = timeline.read_page(r, watched.one, None, 10)
    [raised] = [each for each in entries if each.place.kind is EntryKind.RAISED]
    assert {(each.slug, name) for each, name in ((match, match.name), (alert, alert.subject_name))} == {
        (named["slug"], named["name"])
    }
    assert raised.shown["ruleset_name"] == named["name"]


@on_sqlite
def test_a_record_that_was_changed_is_refused(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    with watched.store.db.writing() as w:
        w.exec_driver_sql("DROP TRIGGER rule_matches_rows_are_never_changed")
        w.execute(update(matches_table).values(record=b"{}"))
    with watched.store.db.reading() as r, pytest.raises(Corrupt):
        rule_matches.read_record(r, watched.matches[0])


def test_matches_are_found_by_customer_and_time_newest_first(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    watched.evaluate(now + DAY, {}, {"A": True})
    watched.evaluate(now + 2 * DAY, {"B": True})

    def find_times(**by: Any) -> list[datetime]:
        with watched.store.db.reading() as r:
            return [match.at for match in rule_matches.find(r, watched.client_id, **by).items]

    assert find_times() == [now + 2 * DAY, now + DAY, now]
    assert find_times(customer=watched.one) == [now + 2 * DAY, now]
    assert find_times(created_after=now, created_before=now + 2 * DAY) == [now + DAY]
    assert find_times(page=Page(2, 2)) == [now]
    with watched.store.db.reading() as r:
        assert rule_matches.find(r, watched.client_id, page=Page(1, 1)).total == 3


@on_sqlite
def test_matches_since_a_time_are_found_by_index(watched: Watched, now: datetime) -> None:
    with watched.store.db.reading() as r:
        plans = plans_of(r, lambda r: rule_matches.find(r, watched.client_id, created_after=now))
    assert len(plans) == 2  # of the matches, and of their number
    for plan in plans:
        assert any("INDEX ix_rule_matches_client_id_at (client_id=? AND at>?)" in step for step in plan), plan


def test_another_clients_match_is_not_found(watched: Watched, now: datetime) -> None:
    watched.evaluate(now, {"A": True})
    [match] = watched.matches
    other = a_client(watched.store, now)
    with watched.store.db.reading() as r:
        assert rule_matches.find(r, other).items == []
        for client_id, match_id in ((other, match.match_id), (watched.client_id, uuid4())):
            with pytest.raises(NotFound) as raised:
                rule_matches.get(r, client_id, match_id)
            assert raised.value.code == "RuleMatch.NotFound"


def test_evaluations_are_counted_by_day(watched: Watched, now: datetime) -> None:
    for at, value in ((now, True), (now, True), (now + DAY, False), (now + 2 * DAY, None)):
        watched.evaluate(at, {"A": value}, {"A": True})
    with watched.store.db.reading() as r:
        assert rule_matches.sum_counts(r, watched.ruleset, now.date()) == [Count("A", 8, 6, 1, 2)]
        assert rule_matches.sum_counts(r, watched.ruleset, (now + DAY).date()) == [Count("A", 4, 2, 1, 0)]
        assert rule_matches.count_firing(r, watched.ruleset) == {"A": 1}


# Changes since the evaluation


def test_an_evaluation_of_older_transactions_changes_nothing(watched: Watched, store: Store, now: datetime) -> None:
    evaluated = an_evaluation(store, now, {(each, watched.ruleset, "A"): True for each in (watched.one, watched.other)})
    with store.db.writing() as w:
        w.execute(update(customers).where(customers.c.number == watched.one.number).values(data_version=1))
    made = apply_evaluation(store, evaluated, now)
    assert (made.matched, made.superseded) == ({watched.other.number}, {watched.one.number})
    assert watched.matches[0].customer_number == watched.other.number


def test_an_evaluation_of_older_attributes_changes_nothing(watched: Watched, store: Store, now: datetime) -> None:
    evaluated = an_evaluation(store, now, {(watched.one, watched.ruleset, "A"): True})
    with store.db.writing() as w:
        attributes.put(w, watched.one, {"score": NewAttribute(Decimal(1))}, "test", now)
    made = apply_evaluation(store, evaluated, now)
    assert (made.matched, made.superseded) == (set(), {watched.one.number})
    assert (watched.matches, watched.states) == ([], {})


def test_an_attribute_that_no_ruleset_reads_supersedes_nothing(watched: Watched, store: Store, now: datetime) -> None:
    evaluated = an_evaluation(store, now, {(watched.one, watched.ruleset, "A"): True})
    with store.db.writing() as w:
        attributes.put(w, watched.one, {"branch_office": NewAttribute("x")}, "test", now)
    made = apply_evaluation(store, evaluated, now)
    assert (made.matched, made.superseded) == ({watched.one.number}, set())


@pytest.mark.parametrize("change", ["archived", "replaced"])
def test_an_evaluation_by_a_changed_ruleset_changes_nothing(
    watched: Watched, store: Store, now: datetime, change: str
) -> None:
    evaluated = an_evaluation(store, now, {(watched.one, watched.ruleset, "A"): True})
    with store.db.writing() as w:
        if change == "archived":
            rulesets.archive(w, watched.ruleset, now)
        else:
            rulesets.replace(w, watched.ruleset, a_ruleset(a_rule("A")), "test", now)
    assert apply_evaluation(store, evaluated, now).matches == []
    assert (watched.matches, watched.states) == ([], {})


def test_evaluations_at_once_report_a_trigger_once(watched: Watched, store: Store, now: datetime) -> None:
    evaluations = [an_evaluation(store, now, {(watched.one, watched.ruleset, "A"): True}) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda evaluated: len(apply_evaluation(store, evaluated, now).matches), evaluations))
    assert sorted(made) == [0] * 7 + [1]
    assert len(watched.matches) == len(watched.events()) == 1
    with store.db.reading() as r:
        assert rule_matches.sum_counts(r, watched.ruleset, now.date()) == [Count("A", 8, 8, 0, 1)]


def test_a_match_that_cannot_be_recorded_stops_no_other_customer(watched: Watched, store: Store, now: datetime) -> None:
    holds = {(each, watched.ruleset, "A"): True for each in (watched.one, watched.other)}
    made = apply_evaluation(store, an_evaluation(store, now, holds, unrecordable=[watched.one]), now)
    assert (made.matched, made.failed) == ({watched.other.number}, {watched.one.number})
    assert watched.states.keys() == {(watched.other.number, "A")}
    with store.db.reading() as r:
        assert rule_matches.sum_counts(r, watched.ruleset, now.date()) == [Count("A", 1, 1, 0, 1)]
    assert len(apply_evaluation(store, an_evaluation(store, now, holds), now).matches) == 1, (
        "the next evaluation finds the state unchanged"
    )


# Interrupted between any two steps


STEPS = ("_reset", "_fire", "_count")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interruption_at_any_step_undoes_all_and_repeating_applies_once(
    watched: Watched, now: datetime, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    watched.evaluate(now, {"B": True})
    done = getattr(rule_matches, step)

    def interrupt(*arguments: Any) -> None:
        if when == "after":
            done(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rule_matches, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            watched.evaluate(now + DAY, {"A": True, "B": False})
    assert watched.states.keys() == {(watched.one.number, "B")}
    assert len(watched.matches) == len(watched.events()) == 1
    for _ in range(2):
        watched.evaluate(now + DAY, {"A": True, "B": False})
        assert watched.states.keys() == {(watched.one.number, "A")}
        assert [list(match.rules) for match in watched.matches] == [["A"], ["B"]]
    assert len(watched.events()) == 2
