"""Turn on stopped schedules and sensors when Dagster starts, and report those that are stopped later.

A schedule or sensor that is stopped in Dagster's pages stays stopped until the next start. The setting
`TIDEMARK_SCHEDULES=off` switches all schedules off, also across restarts.
"""

import logging
from datetime import UTC, datetime

import requests

from assets.core.graphql import DagsterGraphQL, RefusedError
from storage.core.store import Store
from storage.operations import automations
from storage.operations.automations import Automation

log = logging.getLogger(__name__)


class AutomationWatch:
    """A watch over schedules and sensors, for use by one thread during one run of Dagster."""

    def __init__(self, store: Store, dagster: DagsterGraphQL) -> None:
        self._store = store
        self._dagster = dagster
        self._turned_on = False
        self._recorded: set[Automation] | None = None

    def check(self) -> bool:
        """Record which schedules and sensors are stopped. Return whether Dagster responds; if so, runs can be launched.

        The first check to which Dagster responds turns them on again before it records anything.
        """
        stopped = self._dagster.list_stopped()
        if stopped and not self._turned_on:
            self._turn_on(stopped)
            stopped = self._dagster.list_stopped()
        if stopped is None:
            return False
        self._turned_on = True
        self._record(set(stopped))
        return True

    def _turn_on(self, stopped: list[Automation]) -> None:
        for automation in stopped:
            try:
                self._dagster.turn_on(automation)
            except (RefusedError, requests.RequestException) as error:
                log.error("the %s is stopped and could not be turned on: %s", automation, type(error).__name__)
            else:
                log.warning("the %s was stopped: turned on again", automation)

    def _record(self, stopped: set[Automation]) -> None:
        if stopped == self._recorded:
            return
        for automation in stopped - (self._recorded or set()):
            log.error("the %s is stopped, though it should run", automation)
        with self._store.db.writing() as w:
            automations.record(w, stopped, datetime.now(UTC))
        self._recorded = stopped
