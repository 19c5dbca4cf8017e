"""Calls to Dagster's GraphQL API: launch a batch's run; list and turn on stopped schedules and sensors."""

from typing import Any

import requests

from assets.core.runs import CODE_LOCATION, JOB_OF, PARTITION_TAG, run_tags
from storage.jobs.batches import Batch
from storage.operations.automations import Automation, Kind

TIMEOUT_S = (2.0, 15.0)  # to connect; to respond
REPOSITORY = "__repository__"

LAUNCH = """
mutation Launch($execution: ExecutionParams!) {
  launchRun(executionParams: $execution) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on Error { message }
  }
}
"""
AUTOMATIONS = """
query Automations($repository: RepositorySelector!) {
  repositoryOrError(repositorySelector: $repository) {
    __typename
    ... on Repository {
      schedules { name defaultStatus state: scheduleState { status } }
      sensors { name defaultStatus state: sensorState { status } }
    }
  }
}
"""
TURN_ON = {
    Kind.SCHEDULE: """
mutation TurnOn($selector: ScheduleSelector!) {
  result: resetSchedule(scheduleSelector: $selector) { __typename ... on Error { message } }
}
""",
    Kind.SENSOR: """
mutation TurnOn($selector: SensorSelector!) {
  result: resetSensor(sensorSelector: $selector) { __typename ... on Error { message } }
}
""",
}
RUNNING = "RUNNING"


class RefusedError(Exception):
    """Dagster refused the request; nothing was done."""


class DagsterGraphQL:
    """A client of Dagster's GraphQL API, for use by one thread."""

    def __init__(self, address: str, token: str) -> None:
        self._url = f"{address}/graphql"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {token}"

    def launch(self, batch: Batch) -> str:
        """Launch the batch's run and return the run's id.

        Raises:
            RefusedError: the run was not launched.
            requests.ConnectionError: the server can't be reached. If it closed the connection without a response, the
                run may have been launched. Give the batch back: then its fencing token is no longer valid, and the run
                can't commit.
            requests.RequestException: no usable response in time; the run may have been launched.
        """
        result = self._execute(LAUNCH, {"execution": execution_params(batch)})["launchRun"]
        if result["__typename"] != "LaunchRunSuccess":
            raise RefusedError(f"{result['__typename']}: {result.get('message', '')}".strip())
        return str(result["run"]["runId"])

    def list_stopped(self) -> list[Automation] | None:
        """Return the schedules and sensors that should run and don't.

        None if the server doesn't respond or hasn't loaded the code location: then it can't launch runs either.
        """
        try:
            data = self._execute(AUTOMATIONS, {"repository": _repository()})
        except (requests.RequestException, RefusedError):
            return None
        repository = data["repositoryOrError"]
        if repository["__typename"] != "Repository":
            return None
        return [
            Automation(kind, automation["name"])
            for kind in Kind
            for automation in repository[f"{kind}s"]
            if automation["defaultStatus"] == RUNNING and automation["state"]["status"] != RUNNING
        ]

    def turn_on(self, automation: Automation) -> None:
        """Turn a schedule or sensor on by resetting it to its default status, which is to run.

        Raises:
            RefusedError: Dagster refused; the automation is still stopped.
            requests.RequestException: no usable response in time.
        """
        selector = {**_repository(), f"{automation.kind}Name": automation.name}
        result = self._execute(TURN_ON[automation.kind], {"selector": selector})["result"]
        if "message" in result:
            raise RefusedError(f"{result['__typename']}: {result['message']}")

    def _execute(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        response = self._session.post(
            self._url, json={"query": query, "variables": variables}, timeout=TIMEOUT_S, allow_redirects=False
        )
        body = response.json()
        if not body.get("data"):
            raise RefusedError(f"GraphQL responded {response.status_code} without data")
        return dict(body["data"])


def execution_params(batch: Batch) -> dict[str, Any]:
    """Return the `ExecutionParams` of a batch's run."""
    tags = {**run_tags(batch), PARTITION_TAG: batch.partition_day.isoformat()}
    return {
        "selector": {**_repository(), "jobName": JOB_OF[batch.queue]},
        "runConfigData": {},
        "mode": "default",
        "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
    }


def _repository() -> dict[str, str]:
    return {"repositoryLocationName": CODE_LOCATION, "repositoryName": REPOSITORY}
