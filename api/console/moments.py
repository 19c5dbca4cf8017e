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
    return given | {name: add_offset(page, given[name]) for name in given.keys() & set(TIMES)}


def add_offset(page: Page, text: str) -> str:
    """Return a form's time with the offset of the service's time zone. Other text is returned for the API to refuse."""
    zone = find_zone(page)
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text)
        return (time.astimezone(zone) if time.tzinfo else time.replace(tzinfo=zone)).isoformat()
    return text


def find_zone(page: Page) -> ZoneInfo:
    store: Store = page.request.app.state.store
    return store.settings.zone


def find_today(page: Page) -> date:
    """Return today's date in the service's time zone."""
    return datetime.now(find_zone(page)).date()
