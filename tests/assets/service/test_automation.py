"""Schedules and sensors that should run are turned on at every start, and those that stop are reported."""

from datetime import UTC, datetime

import pytest
import requests
from dagster_graphql.schema import create_schema
from graphql import parse, validate

from assets.core import graphql
from assets.core.graphql import DagsterGraphQL, RefusedError
from assets.service.automation import AutomationWatch
from storage.core.store import Store
from storage.operations import automations, health
from storage.operations.automations import Automation, Kind
from storage.operations.doctor import Severity, examine

SWEEP = Automation(Kind.SCHEDULE, "nightly_retention")
OUTBOX = Automation(Kind.SENSOR, "webhook_outbox_sensor")


class Dagster(DagsterGraphQL):
    """A replacement for Dagster. `off` lists what is stopped; None while Dagster doesn't answer."""

    def __init__(self, *stopped: Automation, obedient: bool = True) -> None:
        super().__init__("http://127.0.0.1:1", "token")
        self.off: list[Automation] | None = list(stopped)
        self._obedient = obedient

    def list_stopped(self) -> list[Automation] | None:
        return None if self.off is None else list(self.off)

    def turn_on(self, automation: Automation) -> None:
        if not self._obedient:
            raise RefusedError("PythonError: no")
        assert self.off is not None
        self.off.remove(automation)


def find_stopped(store: Store) -> set[Automation]:
    with store.db.reading() as r:
        return set(automations.find_stopped(r))


def test_a_schedule_stopped_at_the_start_is_turned_on(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    dagster = Dagster(SWEEP, OUTBOX)
    assert AutomationWatch(store, dagster).check()
    assert dagster.off == []
    assert find_stopped(store) == set()
    assert "the schedule nightly_retention was stopped: turned on again" in caplog.text


def test_a_schedule_stopped_later_stays_stopped_and_is_reported(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    dagster = Dagster()
    watch = AutomationWatch(store, dagster)
    watch.check()
    for off in ([SWEEP], [SWEEP, OUTBOX], [OUTBOX], []):
        dagster.off = list(off)
        assert watch.check(), "jobs are dispatched all the same"
        assert find_stopped(store) == set(off)
    assert caplog.text.count("the schedule nightly_retention is stopped, though it should run") == 1


def test_the_next_start_corrects_what_the_last_one_recorded(store: Store) -> None:
    dagster = Dagster()
    watch = AutomationWatch(store, dagster)
    watch.check()
    dagster.off = [SWEEP]
    watch.check()
    assert AutomationWatch(store, dagster).check()
    assert find_stopped(store) == set()


def test_the_first_answer_of_dagster_counts_as_the_start(store: Store) -> None:
    dagster = Dagster()
    dagster.off = None
    watch = AutomationWatch(store, dagster)
    assert not watch.check()
    dagster.off = [SWEEP]
    assert watch.check()
    assert dagster.off == []


def test_a_schedule_that_can_not_be_turned_on_is_reported(store: Store) -> None:
    watch = AutomationWatch(store, Dagster(SWEEP, obedient=False))
    assert watch.check()
    assert find_stopped(store) == {SWEEP}


def test_readiness_and_the_doctor_report_a_stopped_schedule(store: Store) -> None:
    now = datetime.now(UTC)
    assert health.check_work(store)["automation"].ok
    with store.db.writing() as w:
        automations.record(w, [SWEEP], now)
    assert not health.check_work(store)["automation"].ok
    [finding] = [each for each in examine(store.settings, lambda: now) if each.about == "automation"]
    assert finding.severity is Severity.ERROR
    assert "nightly_retention" in finding.problem


@pytest.mark.parametrize("query", [graphql.LAUNCH, graphql.AUTOMATIONS, *graphql.TURN_ON.values()])
def test_our_graphql_is_valid_in_dagsters_schema(query: str) -> None:
    assert validate(create_schema().graphql_schema, parse(query)) == []


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        ({"repositoryOrError": {"__typename": "PythonError"}}, None),
        (
            {
                "repositoryOrError": {
                    "__typename": "Repository",
                    "schedules": [
                        {"name": "nightly_retention", "defaultStatus": "RUNNING", "state": {"status": "STOPPED"}}
                    ],
                    "sensors": [
                        {"name": "by hand", "defaultStatus": "STOPPED", "state": {"status": "STOPPED"}},
                        {"name": "runs", "defaultStatus": "RUNNING", "state": {"status": "RUNNING"}},
                    ],
                }
            },
            [SWEEP],
        ),
        (requests.ConnectionError(), None),
    ],
)
def test_schedules_that_should_run_are_compared_with_those_that_run(
    answer: object, stopped: list[Automation] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(*_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(DagsterGraphQL, "_execute", execute)
    assert DagsterGraphQL("http://127.0.0.1:1", "token").list_stopped() == stopped
