"""Days and times in the address of a page."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime
from zoneinfo import ZoneInfo

from api.console.visits import Page
from storage.core.store import Store

TIMES = ("knownAt", "fromKnownAt")  # parameters that are times


def read_moment(page: Page, names: Iterable[str]) -> dict[str, str]:
    """Return the parameters of these names that the address has, with times in the service's time zone.

    Forms show and send times without an offset.
    """
    given = {name: value for name in names if (value := page.request.query_params.get(name, ""))}
    zone = find_zone(page)
    for name in given.keys() & set(TIMES):
        with suppress(ValueError, OverflowError):  # the API refuses what isn't a time
            time = datetime.fromisoformat(given[name])
            given[name] = (time.astimezone(zone) if time.tzinfo else time.replace(tzinfo=zone)).isoformat()
    return given


def find_zone(page: Page) -> ZoneInfo:
    store: Store = page.request.app.state.store
    return store.settings.zone


def find_today(page: Page) -> date:
    """Return today's date in the service's time zone."""
    return datetime.now(find_zone(page)).date()
