"""Rulesets are evaluated in the batch that changes transactions, at night, and when rulesets or attributes change."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRequest,
    SkipReason,
    build_sensor_context,
    materialize,
)
from sqlalchemy import event, insert, select, update

from assets.core.batches import read_claimed_batch, without_jobs
from assets.core.runs import ON_REQUEST_TAG, PARTITION_TAG
from assets.enrichment import transactions as enriching
from assets.monitoring import ruleset_evaluation
from assets.portfolio import maintenance as maintenance_work
from assets.portfolio import monitoring, schedules
from assets.portfolio.maintenance import Counts
from pipelines.enrichment.enrichment import Enriched, enrich
from pipelines.monitoring import Cause, observe_customers
from storage.core.buckets import BUCKETS, bucket_of
from storage.core.models import Queue, events, monitoring_ruleset_versions, monitoring_rulesets, rule_states
from storage.core.models import ruleset_evaluation_requests as request_rows
from storage.core.store import Store
from storage.enrichment import commit
from storage.jobs import batches
from storage.monitoring import attributes, evaluation_requests, rule_matches, rulesets
from storage.monitoring.attributes import NewAttribute
from storage.monitoring.rule_matches import Count, Match
from storage.monitoring.rulesets import StoredRuleset
from storage.portfolio import maintenance
from storage.webhooks import outbox
from tests.assets.conftest import FillStore
from tests.assets.lender import Lender
from tests.storage.ruleset_evaluations import LOW_SCORE, SCORE, a_rule, a_ruleset, create_ruleset
from tests.storage.values import renumber

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

TODAY = datetime.now(UTC).date()
SHORT, OTHER_ABN = "SHORT", "53004085616"


def item(back: int, text: str = "SALE") -> dict[str, Any]:
    return {"date": str(TODAY - timedelta(days=back)), "description": text, "amount": "812.40"}


class Borrower(Lender):
    """A lender whose customer may be watched, by default for a history of more than 30 days."""

    def watch(self, *rules: Any, **also: Any) -> StoredRuleset:
        return create_ruleset(self.store, self.customer.client_id, a_ruleset(*rules, **also), datetime.now(UTC))

    def trigger(self) -> Any:
        """Submit rows that make the history longer than 30 days."""
        return self.submit_and_end(item(60), item(1))

    @property
    def matches(self) -> list[Match]:
        """Return the matches, oldest first."""
        with self.store.db.reading() as r:
            return list(rule_matches.find(r, self.customer.client_id, customer=self.customer).items)[::-1]

    def read_fired_rules(self) -> list[str]:
        with self.store.db.reading() as r:
            mine = select(rule_states.c.rule).where(rule_states.c.customer_number == self.customer.number)
            return list(r.execute(mine).scalars())

    def evaluate(self, at: datetime | None = None, *, everybody: bool = True) -> Counts:
        """Evaluate the customer's bucket as the portfolio does, by night (`everybody`) or on request."""
        bucket = bucket_of(self.customer.number)
        return monitoring.evaluate(self.store, bucket, lambda: at or datetime.now(UTC), everybody=everybody)

    def score(self, value: str) -> None:
        self.note("score", Decimal(value))

    def note(self, name: str, value: Decimal | str) -> None:
        with self.store.db.writing() as w:
            attributes.put(w, self.customer, {name: NewAttribute(value)}, "test", datetime.now(UTC))

    @property
    def bucket(self) -> str:
        return f"{bucket_of(self.customer.number):02d}"

    def watch_unreadably(self) -> None:
        """Create a ruleset whose stored document is damaged."""
        ruleset_id, at, nothing = uuid4(), datetime.now(UTC), {"document": "{}", "sha256": bytes(32)}
        made = {"ruleset_id": ruleset_id, "version": 1, "created_at": at, "created_by": "test"}
        more = {"client_id": self.customer.client_id, "slug": "damaged", "name": "D", "active": True, "updated_at": at}
        with self.store.db.writing() as w:
            w.execute(insert(monitoring_rulesets).values(**made, **more))
            w.execute(insert(monitoring_ruleset_versions).values(**made, **nothing))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance_work, "LONGEST_WAIT_S", 0)


@pytest.fixture
def borrower(store: Store) -> Borrower:
    return Borrower(store)


@pytest.fixture
def triggered_borrower(fill_store: FillStore) -> Borrower:
    return fill_store(with_a_long_history)


def with_a_long_history(store: Store) -> Borrower:
    borrower = Borrower(store)
    borrower.trigger()
    return borrower


def event_types(store: Store) -> list[str]:
    """Return the types of all events, in the order in which they became due. Each has one subscription."""
    with store.db.reading() as r:
        return list(r.execute(select(events.c.event_type).order_by(events.c.created_at)).scalars())


# In the batch


def test_a_rule_that_triggers_resets_and_triggers_again_makes_two_matches(borrower: Borrower) -> None:
    ruleset = borrower.watch()
    borrower.submit_and_end(item(1))
    assert borrower.matches == []
    long = borrower.trigger()
    [match] = borrower.matches
    assert (match.rules, match.cause, match.data_version) == (["LONG"], Cause.DATA, 2)
    assert (match.ruleset_id, match.as_of) == (ruleset.ruleset_id, datetime.now(borrower.store.settings.zone).date())
    with borrower.store.db.reading() as r:
        reported = rule_matches.read_record(r, match)
    assert b"history_days" in reported
    borrower.submit_and_end(item(5, "COFFEE"))
    assert len(borrower.matches) == 1
    borrower.retract_and_end(long)
    assert borrower.read_fired_rules() == []
    borrower.trigger()
    assert [list(match.rules) for match in borrower.matches] == [["LONG"], ["LONG"]]


def test_a_batch_that_changes_nothing_evaluates_nobody(borrower: Borrower) -> None:
    ruleset = borrower.watch()
    for _ in range(2):
        borrower.trigger()
    with borrower.store.db.reading() as r:
        assert [count.observed for count in rule_matches.sum_counts(r, ruleset, date.min)] == [1]


def test_only_the_clients_own_customers_are_evaluated(store: Store) -> None:
    one, other = Borrower(store), Borrower(store, OTHER_ABN)
    one.watch()
    for each in (one, other):
        each.submit(item(60), item(1))
    one.end_all()
    assert (len(one.matches), len(other.matches)) == (1, 0)


def test_a_rule_with_unavailable_data_never_fires_and_is_counted(borrower: Borrower) -> None:
    ruleset = borrower.watch(
        a_rule("BALANCE", {"lessThan": [{"metric": "closing_balance"}, "1000000"]}),
        a_rule("SCORE", LOW_SCORE),
        attributes=[SCORE],
    )
    borrower.trigger()
    assert borrower.matches == []
    with borrower.store.db.reading() as r:
        assert rule_matches.sum_counts(r, ruleset, date.min) == [
            Count("BALANCE", 1, 0, 1, 0),
            Count("SCORE", 1, 0, 1, 0),
        ]


def test_an_attribute_that_is_set_is_read(borrower: Borrower) -> None:
    borrower.watch(a_rule("SCORE", LOW_SCORE), attributes=[SCORE])
    borrower.score("400")
    borrower.trigger()
    assert [list(match.rules) for match in borrower.matches] == [["SCORE"]]


def test_a_jobs_events_come_before_those_of_rules(borrower: Borrower, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    enqueue = outbox.enqueue

    def note_and_enqueue(w: Any, new: Any) -> None:
        reported.extend(each.event_type for each in new)
        enqueue(w, new)

    monkeypatch.setattr(outbox, "enqueue", note_and_enqueue)
    borrower.watch()
    borrower.trigger()
    assert reported == ["job.enrichment.completed", "job.completed", "monitoring.rule.triggered"]


def test_without_a_ruleset_a_batch_asks_the_database_twice_whether_there_is_one(borrower: Borrower) -> None:
    """It asks before the ruleset evaluation, and when it commits."""
    asked: list[str] = []
    engine = borrower.store.db.engine

    def note_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", note_statement)
    borrower.trigger()
    event.remove(engine, "before_cursor_execute", note_statement)
    about = [each for each in asked if "monitoring_" in each or " rule_" in each]
    assert len(about) == 2, about
    assert all("FROM monitoring_rulesets" in each for each in about)


def failing(*_: Any, **__: Any) -> Any:
    raise ArithmeticError("this can't be computed")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        (ruleset_evaluation, "plan_rulesets"),
        (ruleset_evaluation, "observe_customers"),
        (rule_matches, "decide"),
        (rulesets, "lock_watching"),
    ],
)
def test_if_evaluating_rulesets_fails_the_batch_succeeds_and_the_night_catches_up(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch, where: Any, what: str
) -> None:
    borrower.watch()
    with monkeypatch.context() as patch:
        patch.setattr(where, what, failing)
        job = borrower.trigger()
    assert (job.status, borrower.customer.data_version) == ("Completed", 1)
    assert (borrower.matches, borrower.read_fired_rules()) == ([], [])
    assert borrower.evaluate().changed == 1
    [match] = borrower.matches
    assert match.cause is Cause.TIME


def test_a_customer_that_cannot_be_evaluated_does_not_prevent_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Borrower(store)
    other = Borrower(store, OTHER_ABN, one.customer.client_id)
    one.watch()

    def unable(watch: Any, facts: Any, *rest: Any) -> Any:
        if one.customer.number in facts.customers["customer_number"]:
            raise ArithmeticError("this customer's figures can't be computed")
        return observe_customers(watch, facts, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(ruleset_evaluation, "observe_customers", unable)
        for each in (one, other):
            each.submit(item(60), item(1))
        one.end_all()
    assert (len(one.matches), len(other.matches)) == (0, 1)
    assert one.evaluate().changed == 1
    assert (len(one.matches), len(other.matches)) == (1, 1)


# What changes between the ruleset evaluation and the commit


def between_evaluation_and_commit(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    evaluate_batch = ruleset_evaluation.evaluate_batch

    def overtaken(*arguments: Any) -> Any:
        seen = evaluate_batch(*arguments)
        monkeypatch.setattr(ruleset_evaluation, "evaluate_batch", evaluate_batch)
        do()
        return seen

    monkeypatch.setattr(ruleset_evaluation, "evaluate_batch", overtaken)


def test_an_attribute_that_no_ruleset_reads_cancels_no_evaluation(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrower.watch(a_rule("LONG"), a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    borrower.evaluate()
    between_evaluation_and_commit(monkeypatch, lambda: borrower.note("branch_office", "x"))
    borrower.trigger()
    assert (len(borrower.matches), find_requested_buckets(borrower.store)) == (1, [])


def test_an_attribute_that_only_another_clients_ruleset_reads_cancels_no_evaluation(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Borrower(store), Borrower(store, OTHER_ABN)
    one.watch(a_rule("LONG"), a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    grade = {"name": "grade", "kind": "decimal"}
    other.watch(a_rule("LONG"), a_rule("BAD", {"lessThan": [{"attribute": "grade"}, "3"]}), attributes=[grade])
    between_evaluation_and_commit(monkeypatch, lambda: one.note("grade", Decimal(2)))
    for each in (one, other):
        each.submit(item(60), item(1))
    one.end_all()
    assert (len(one.matches), len(other.matches)) == (1, 1)


def test_an_evaluation_overtaken_by_an_attribute_is_requested_again(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrower.watch(a_rule("LONG"), a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    borrower.submit_and_end(item(1))
    borrower.evaluate()

    def score_and_evaluate() -> None:
        borrower.score("600")
        borrower.evaluate()

    between_evaluation_and_commit(monkeypatch, score_and_evaluate)
    borrower.trigger()
    assert (borrower.matches, find_requested_buckets(borrower.store)) == ([], [borrower.bucket])
    borrower.evaluate()
    assert [list(match.rules) for match in borrower.matches] == [["LONG"]]


@pytest.mark.parametrize("others", [0, 1])
def test_a_ruleset_that_a_batch_has_not_evaluated_yet_requests_an_evaluation(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """The ruleset itself requested an evaluation when it was created, but the customer had no transactions then."""

    def watch_and_evaluate() -> None:
        borrower.watch()
        borrower.evaluate()

    for nth in range(others):
        borrower.watch(slug=f"before-{nth}")
    between_evaluation_and_commit(monkeypatch, watch_and_evaluate)
    borrower.trigger()
    assert (len(borrower.matches), find_requested_buckets(borrower.store)) == (others, [borrower.bucket])
    borrower.evaluate()
    assert len(borrower.matches) == others + 1


def test_a_batch_that_evaluated_all_rulesets_requests_no_evaluation(borrower: Borrower) -> None:
    borrower.watch(a_rule("LONG"), a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    borrower.evaluate()
    borrower.trigger()
    assert find_requested_buckets(borrower.store) == []


# No trigger is reported twice


STEPS = {
    "the files are written": (enriching, "commit_values"),
    "the pointers have moved": (commit, "finish"),
    "the jobs have ended": (commit, "apply_ruleset_evaluation"),
    "the ruleset evaluation is applied": (commit, "_request_evaluations"),
    "the states are read": (rule_matches, "decide"),
    "the matches are made": (rule_matches, "_reset"),
    "rules are reset": (rule_matches, "_fire"),
    "the events are due": (rule_matches, "_count"),
}


def test_a_batch_killed_at_any_step_and_run_again_triggers_one_match(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """The run is killed at each step in turn, and finally not killed."""
    borrower.watch()
    job = borrower.submit(item(60), item(1))

    computed = list[Enriched]()

    def enrich_once(*of_the_same: Any) -> Enriched:
        if not computed:
            computed.append(enrich(*of_the_same))
        return computed[0]

    def dies(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(enriching, "enrich", enrich_once)
    with borrower.store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, borrower.store.settings, datetime.now(UTC))
    assert batch is not None
    again = partial(read_claimed_batch, borrower.store, batch.token, batch.partition_day)
    for step, place in STEPS.items():
        with subtests.test(step), monkeypatch.context() as patch:
            patch.setattr(*place, dies)
            with pytest.raises(KeyboardInterrupt):
                enriching.recompute(borrower.store, again())
            assert (borrower.customer.data_version, borrower.matches, borrower.read_fired_rules()) == (0, [], [])
    enriching.recompute(borrower.store, again())
    assert (borrower.now(job).status, len(borrower.matches)) == ("Completed", 1)
    assert event_types(borrower.store).count("monitoring.rule.triggered") == 1
    with pytest.raises(batches.Superseded):
        enriching.recompute(borrower.store, again())
    assert len(borrower.matches) == 1
    borrower.evaluate()
    assert len(borrower.matches) == 1


def test_a_batch_during_the_nightly_evaluation_triggers_one_match(
    borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch commits after the customer was evaluated at night, so that result is out of date."""
    ruleset = borrower.watch()
    borrower.submit_and_end(item(1))
    evaluated = ruleset_evaluation.evaluate

    def overtaken(*arguments: Any, **named: Any) -> Any:
        seen = evaluated(*arguments, **named)
        monkeypatch.setattr(ruleset_evaluation, "evaluate", evaluated)
        borrower.trigger()
        return seen

    monkeypatch.setattr(ruleset_evaluation, "evaluate", overtaken)
    counts = borrower.evaluate()
    assert (counts.skipped, counts.changed) == (1, 0)
    assert (len(borrower.matches), borrower.read_fired_rules()) == (1, ["LONG"])
    with borrower.store.db.reading() as r:
        assert rule_matches.sum_counts(r, ruleset, date.min) == [Count("LONG", 2, 1, 0, 1)]


def test_concurrent_nightly_evaluations_trigger_one_match(triggered_borrower: Borrower) -> None:
    triggered_borrower.watch()
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: triggered_borrower.evaluate(), range(4)))
    assert sum(each.changed for each in counts) == 1
    assert len(triggered_borrower.matches) == 1


# Nightly, and on request


def test_time_alone_fires_a_rule(borrower: Borrower) -> None:
    borrower.watch(a_rule("STALE", {"moreThan": [{"metric": "days_behind"}, "10"]}))
    borrower.trigger()
    now = datetime.now(UTC)
    for days, reported in ((1, 0), (8, 0), (11, 1), (12, 1)):
        borrower.evaluate(now + timedelta(days=days))
        assert len(borrower.matches) == reported, days
    assert borrower.matches[0].cause is Cause.TIME
    borrower.submit_and_end(item(0, "COFFEE"))
    assert borrower.read_fired_rules() == []


def test_the_nightly_evaluation_includes_customers_with_an_unfinished_submission(triggered_borrower: Borrower) -> None:
    """A submission that brings nothing new would not evaluate the rulesets."""
    triggered_borrower.watch()
    triggered_borrower.submit(item(1))
    assert triggered_borrower.evaluate() == Counts(customers=1, changed=1)


def test_a_bucket_is_evaluated_in_slices_and_only_watched_customers(store: Store) -> None:
    one = Borrower(store)
    others = [Borrower(store, OTHER_ABN, one.customer.client_id), Borrower(store, OTHER_ABN)]
    for each in (one, *others):
        each.submit(item(60), item(1))
    one.end_all()
    one.watch()
    sliced = dataclasses.replace(store, settings=store.settings.model_copy(update={"portfolio_slice_rows": 1}))
    clock = partial(datetime.now, UTC)
    buckets = [bucket_of(each.customer.number) for each in (one, *others)]
    counts = [monitoring.evaluate(sliced, bucket, clock, everybody=True) for bucket in buckets]
    assert counts == [Counts(1, 1), Counts(1, 1), Counts()]


def tick(store: Store, instance: DagsterInstance) -> list[RunRequest]:
    """Return the runs that the sensor requests."""
    answer = schedules.requested_ruleset_evaluations_sensor(
        build_sensor_context(instance=instance, resources={"store": store})
    )
    assert isinstance(answer, (list, SkipReason))
    return answer if isinstance(answer, list) else []


def find_requested_buckets(store: Store) -> list[str | None]:
    """Return the buckets for which the sensor requests a run."""
    with DagsterInstance.ephemeral() as instance:
        return [request.partition_key for request in tick(store, instance)]


def test_a_changed_ruleset_or_attribute_is_evaluated_without_waiting_for_the_night(
    triggered_borrower: Borrower,
) -> None:
    store, bucket = triggered_borrower.store, f"{bucket_of(triggered_borrower.customer.number):02d}"
    ruleset = triggered_borrower.watch(a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    for score, reported in (("400", 1), ("600", 1), ("300", 2)):
        triggered_borrower.score(score)
        assert find_requested_buckets(store) == [bucket]
        triggered_borrower.evaluate()
        assert find_requested_buckets(store) == []
        assert len(triggered_borrower.matches) == reported
    more = a_ruleset(a_rule("LOW", LOW_SCORE), a_rule("LONG"), attributes=[SCORE])
    with store.db.writing() as w:
        rulesets.replace(w, ruleset, more, "test", datetime.now(UTC))
    assert find_requested_buckets(store) == [bucket]
    triggered_borrower.evaluate()
    assert [list(match.rules) for match in triggered_borrower.matches] == [["LOW"], ["LOW"], ["LONG"]]


@pytest.fixture
def bucket_mates(fill_store: FillStore) -> list[Borrower]:
    return fill_store(mates_of_a_bucket)


def mates_of_a_bucket(store: Store) -> list[Borrower]:
    """Return three customers whose rules hold: the first two are one client's, the third is another's."""
    borrower = Borrower(store)
    others = [Borrower(store, OTHER_ABN, borrower.customer.client_id), Borrower(store, OTHER_ABN)]
    with store.db.writing() as w:
        for nth, each in enumerate(others, 1):
            renumber(w, each.customer.number, borrower.customer.number + BUCKETS * nth)
    mates = [borrower, *others]
    for each in mates:
        each.submit(item(60), item(1))
    borrower.end_all()
    for each in (borrower, others[1]):
        each.watch(a_rule("LONG"), a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    with store.db.writing() as w:  # as if these had been evaluated
        evaluation_requests.delete_answered(
            w, evaluation_requests.find_unanswered(w, bucket_of(borrower.customer.number))
        )
    return mates


def matches(of: list[Borrower]) -> list[int]:
    return [len(each.matches) for each in of]


def test_an_evaluation_on_request_includes_only_customers_that_the_change_concerns(
    bucket_mates: list[Borrower],
) -> None:
    one, other, _ = bucket_mates
    assert one.evaluate(everybody=False) == Counts()
    other.score("700")
    assert one.evaluate(everybody=False) == Counts(1, 1)
    assert matches(bucket_mates) == [0, 1, 0]
    one.watch(a_rule("MORE"), slug="more")
    assert one.evaluate(everybody=False) == Counts(2, 2)
    assert matches(bucket_mates) == [2, 2, 0]
    only = {"customers": [str(other.customer.customer_id)]}
    one.watch(a_rule("HIS"), slug="his", appliesTo=only)
    assert one.evaluate(everybody=False) == Counts(1, 1)
    assert matches(bucket_mates) == [2, 3, 0]
    assert find_requested_buckets(one.store) == []


def test_the_nightly_evaluation_includes_everybody_and_answers_requests(bucket_mates: list[Borrower]) -> None:
    one = bucket_mates[0]
    one.score("700")
    assert one.evaluate() == Counts(3, 3)
    assert find_requested_buckets(one.store) == []


@pytest.mark.parametrize(("tags", "reported"), [({ON_REQUEST_TAG: "ruleset_evaluation"}, [1, 0, 0]), ({}, [1, 1, 1])])
def test_the_tag_of_a_run_decides_whom_it_evaluates(
    bucket_mates: list[Borrower], tags: dict[str, str], reported: list[int]
) -> None:
    one = bucket_mates[0]
    one.score("700")
    with DagsterInstance.ephemeral() as instance:
        [asked] = tick(one.store, instance)
    assert asked.tags.items() >= {ON_REQUEST_TAG: "ruleset_evaluation"}.items()
    resources = {"store": one.store}
    assert materialize([monitoring.monitored_customers], partition_key=one.bucket, tags=tags, resources=resources)
    assert matches(bucket_mates) == reported


def test_a_killed_evaluation_is_requested_again(triggered_borrower: Borrower, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    triggered_borrower.watch()
    with monkeypatch.context() as patch:
        patch.setattr(batches, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            triggered_borrower.evaluate(everybody=False)
    assert find_requested_buckets(triggered_borrower.store) == [triggered_borrower.bucket]
    assert triggered_borrower.evaluate(everybody=False).changed == 1


def test_a_run_is_requested_where_none_is_in_progress_with_one_key_for_each_request(borrower: Borrower) -> None:
    """Dagster starts no second run with the same key, so a run that fails doesn't begin again immediately."""
    keys = list[str | None]()
    with DagsterInstance.ephemeral() as instance:

        def requests_runs() -> bool:
            runs = tick(borrower.store, instance)
            keys.extend(run.run_key for run in runs)
            return bool(runs)

        borrower.watch()
        assert requests_runs()
        assert requests_runs()
        borrower.watch(slug="another")
        assert requests_runs()
        tags = {PARTITION_TAG: borrower.bucket}
        running = DagsterRun(schedules.evaluate_rulesets.name, str(uuid4()), tags=tags, status=DagsterRunStatus.STARTED)
        instance.add_run(running)
        assert not requests_runs()
        instance.report_run_canceled(running)
        assert requests_runs()
        with borrower.store.db.writing() as w:
            w.execute(update(request_rows).values(requested_at=datetime.now(UTC) - schedules.GIVEN_UP_AFTER))
        assert requests_runs()
    first, again, later, canceled, superseded = keys
    assert first == again
    assert later == canceled
    assert len({first, later, superseded}) == 3


def test_a_change_during_an_evaluation_is_evaluated_afterwards(
    triggered_borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggered_borrower.watch(a_rule("LOW", LOW_SCORE), attributes=[SCORE])
    evaluated = ruleset_evaluation.evaluate

    def overtaken(*arguments: Any, **named: Any) -> Any:
        seen = evaluated(*arguments, **named)
        triggered_borrower.score("400")
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(ruleset_evaluation, "evaluate", overtaken)
        assert triggered_borrower.evaluate().skipped == 1
    assert find_requested_buckets(triggered_borrower.store) == [f"{bucket_of(triggered_borrower.customer.number):02d}"]
    assert triggered_borrower.evaluate().changed == 1


def test_the_nightly_schedule_evaluates_the_buckets_of_watched_customers(store: Store) -> None:
    def due() -> list[str | None]:
        answer = schedules.nightly_ruleset_evaluation(store)
        return [request.partition_key for request in answer] if isinstance(answer, list) else []

    one, other = Borrower(store), Borrower(store, OTHER_ABN)
    for each in (one, other):
        each.trigger()
    assert due() == []
    ruleset = one.watch()
    assert due() == [f"{bucket_of(one.customer.number):02d}"]
    with store.db.writing() as w:
        rulesets.archive(w, ruleset, datetime.now(UTC))
    assert due() == []


def test_a_ruleset_created_during_a_run_is_evaluated_or_requests_another_run(
    triggered_borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = maintenance.find_due

    def overtaken(*arguments: Any) -> Any:
        """The run knows its customers; a ruleset can be created only once the run has begun."""
        found = due(*arguments)
        monkeypatch.setattr(maintenance, "find_due", due)
        coming.append(pool.submit(triggered_borrower.watch))
        with suppress(TimeoutError):
            coming[0].result(timeout=1)
        return found

    coming: list[Future[StoredRuleset]] = []
    monkeypatch.setattr(maintenance, "find_due", overtaken)
    with ThreadPoolExecutor(1) as pool:
        triggered_borrower.evaluate()
    coming[0].result()
    assert triggered_borrower.matches or find_requested_buckets(triggered_borrower.store) == [triggered_borrower.bucket]


# One client's ruleset that can't be read


def test_an_unreadable_ruleset_does_not_prevent_evaluations_of_other_clients(store: Store) -> None:
    one, other = Borrower(store), Borrower(store, OTHER_ABN)
    one.watch_unreadably()
    other.watch()
    other.evaluate()
    for each in (one, other):
        each.submit(item(60), item(1))
    one.end_all()
    assert (len(one.matches), len(other.matches)) == (0, 1)
    assert (one.customer.data_version, find_requested_buckets(store)) == (1, []), "it is tried again at night"


def test_an_unreadable_ruleset_fails_only_its_own_clients_customers_at_night(store: Store) -> None:
    one, other = Borrower(store), Borrower(store, OTHER_ABN)
    for each in (one, other):
        each.submit(item(60), item(1))
    one.end_all()
    one.watch_unreadably()
    other.watch()
    numbers = [one.customer.number, other.customer.number]
    with without_jobs(store, Queue.PORTFOLIO, TODAY, numbers) as work:
        counts = monitoring.evaluate_slice(store, work, lambda: datetime.now(UTC))
    assert counts == Counts(customers=2, changed=1, failed=1)
    assert len(other.matches) == 1


def test_an_evaluation_that_fails_does_not_end_the_run(
    triggered_borrower: Borrower, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggered_borrower.watch()
    with monkeypatch.context() as patch:
        patch.setattr(rule_matches, "decide", failing)
        assert triggered_borrower.evaluate() == Counts(customers=1, failed=1)
    assert triggered_borrower.matches == []
    assert triggered_borrower.evaluate().changed == 1


def test_an_attribute_can_be_set_although_a_ruleset_is_unreadable(triggered_borrower: Borrower) -> None:
    triggered_borrower.watch_unreadably()
    triggered_borrower.note("phone", "x")
    assert find_requested_buckets(triggered_borrower.store) == [triggered_borrower.bucket]
