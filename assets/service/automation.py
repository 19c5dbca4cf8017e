"""Seeing that the schedules and sensors that should run do: turned on again at every start, and reported meanwhile.

Whoever stops one in Dagster's pages stops it until the next start; for good, settings decide what should run.
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
    """For use by one thread, from one start of Dagster to its end."""

    def __init__(self, store: Store, dagster: DagsterGraphQL) -> None:
        self._store = store
        self._dagster = dagster
        self._restored = False
        self._recorded: set[Automation] | None = None

    def check(self) -> bool:
        """Record what is stopped, after it was turned on again when this is the first look. Return whether Dagster
        answers and runs could be launched.
        """
        stopped = self._dagster.stopped()
        if stopped and not self._restored:
            self._turn_on(stopped)
            stopped = self._dagster.stopped()
        if stopped is None:
            return False
        self._restored = True
        self._record(set(stopped))
        return True

    def _turn_on(self, stopped: list[Automation]) -> None:
        for each in stopped:
            try:
                self._dagster.turn_on(each)
            except (RefusedError, requests.RequestException) as error:
                log.error("the %s is stopped and could not be turned on: %s", each, type(error).__name__)
            else:
                log.warning("the %s was stopped: turned on again", each)

    def _record(self, stopped: set[Automation]) -> None:
        if stopped == self._recorded:
            return
        for each in stopped - (self._recorded or set()):
            log.error("the %s is stopped, though it should run", each)
        with self._store.db.writing() as w:
            automations.record(w, stopped, datetime.now(UTC))
        self._recorded = stopped
