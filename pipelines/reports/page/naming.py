"""Names of a report's accounts and drivers, and their readings and points in words."""

from collections.abc import Mapping
from decimal import Decimal

from pipelines.pages.wording import FORMAT_OF_UNIT, plain, score, shorten, spell_out, write_reading
from pipelines.reports.page.columns import figure
from pipelines.reports.page.fields import Fields

ZERO = Decimal(0)
# Unknown is not bad: such a driver has no points because nothing is known of it.
STATES: Mapping[str, str] = {"unknown": "unknown, up to {}", "not_expected": "not expected"}


def account_name(account: Fields, most: int | None = None) -> str:
    """Return an account's name, or else its bank, and the end of its number; `most` characters in all."""
    named = account.text("accountName") or account.text("bankName") or "Account without a name"
    number = account.text("accountNumberMasked") or ""
    return f"{named if most is None else shorten(named, most - len(number) - 1)} {number}".strip()


def driver_name(driver: Fields) -> str:
    return driver.text("name") or spell_out(driver.text("feature") or driver.text("metric") or "Driver")


def reading_in_words(driver: Fields, name: str = "reading") -> str:
    """Write a driver's reading, or another of its members, as decisions do: `92.5 days`, `31.25 %`, `0.5 per month`."""
    unit, _, each = (driver.text("unit") or "").partition("per ")
    if unit in FORMAT_OF_UNIT and (number := driver.number(name)) is not None:
        return write_reading(number, unit)
    return " ".join(filter(None, (figure(driver.raw(name), unit.strip()), f"per {each}" if each else "")))


def points_in_words(driver: Fields) -> str:
    """Write a driver's points: `5 of 20`, or that it could not earn any because nothing is known of it."""
    points, most = driver.number("points"), driver.number("maxPoints")
    if (state := driver.text("state")) in STATES:
        return STATES[state].format(plain(most or ZERO))
    return score(points) if most is None else f"{score(points)} of {plain(most)}"
