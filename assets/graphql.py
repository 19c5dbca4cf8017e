"""Dagster's GraphQL, as the dispatcher needs it: start a batch's run; say whether the code location answers."""

from typing import Any

import requests

from assets.runs import CODE_LOCATION, JOB_OF, PARTITION_TAG, tags_of
from storage.batches import Batch

TIMEOUT_S = (2.0, 15.0)  # to connect, to answer
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
LOCATION = """
query Location($repository: RepositorySelector!) {
  repositoryOrError(repositorySelector: $repository) { __typename }
}
"""


class RefusedError(Exception):
    """Dagster said no: the run did not begin."""


class DagsterGraphQL:
    """For use by one thread."""

    def __init__(self, address: str) -> None:
        self._url = f"{address}/graphql"
        self._session = requests.Session()
        self._session.trust_env = False

    def launch(self, batch: Batch) -> str:
        """Start the batch's run; its id.

        Raises:
            RefusedError: it did not begin.
            requests.RequestException: no answer; unless the connection failed, it may have begun.
        """
        result = self._ask(LAUNCH, {"execution": execution_of(batch)})["launchRun"]
        if result["__typename"] != "LaunchRunSuccess":
            raise RefusedError(f"{result['__typename']}: {result.get('message', '')}".strip())
        return str(result["run"]["runId"])

    def knows_the_code(self) -> bool:
        """Whether runs could be launched: the server answers and has loaded the code location."""
        try:
            answer = self._ask(LOCATION, {"repository": _repository()})
        except (requests.RequestException, RefusedError):
            return False
        return bool(answer["repositoryOrError"]["__typename"] == "Repository")

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        response = self._session.post(
            self._url, json={"query": query, "variables": variables}, timeout=TIMEOUT_S, allow_redirects=False
        )
        body = response.json()
        if not body.get("data"):
            raise RefusedError(f"GraphQL answered {response.status_code} without data")
        return dict(body["data"])


def execution_of(batch: Batch) -> dict[str, Any]:
    """The `ExecutionParams` of a batch's run."""
    tags = {**tags_of(batch), PARTITION_TAG: batch.partition_day.isoformat()}
    return {
        "selector": {**_repository(), "jobName": JOB_OF[batch.lane]},
        "runConfigData": {},
        "mode": "default",
        "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
    }


def _repository() -> dict[str, str]:
    return {"repositoryLocationName": CODE_LOCATION, "repositoryName": REPOSITORY}
