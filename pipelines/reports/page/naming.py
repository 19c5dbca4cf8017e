"""What people call the accounts and drivers of a report."""

from collections.abc import Mapping
from decimal import Decimal

from pipelines.pages.wording import plain, shortened, words_of
from pipelines.reports.page.fields import Fields

ZERO = Decimal(0)
# Unknown is not bad: such a driver has no points because nothing is known of it.
STATES: Mapping[str, str] = {"unknown": "unknown, up to {}", "not_expected": "not expected"}


def account_name(account: Fields, most: int | None = None) -> str:
    """Return an account's name, or else its bank, and the end of its number; `most` characters in all."""
    named = account.text("accountName") or account.text("bankName") or "Account without a name"
    number = account.text("accountNumberMasked") or ""
    return f"{named if most is None else shortened(named, most - len(number) - 1)} {number}".strip()


def driver_name(driver: Fields) -> str:
    return driver.text("name") or words_of(driver.text("feature") or driver.text("metric") or "Driver")


def of_most(driver: Fields) -> str:
    """Write a driver's points: `5 of 20`, or that it could not earn any because nothing is known of it."""
    points, most = driver.number("points"), driver.number("maxPoints")
    if (state := driver.text("state")) in STATES:
        return STATES[state].format(plain(most or ZERO))
    return plain(points) if most is None else f"{plain(points)} of {plain(most)}"
