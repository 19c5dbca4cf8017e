"""Names of accounts and drivers, for people."""

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.wording import plain, shortened, words_of


def account_name(account: Fields, most: int | None = None) -> str:
    """Return an account's name, or else its bank, and the end of its number, in at most `most` characters."""
    named = account.text("accountName") or account.text("bankName") or "Account without a name"
    number = account.text("accountNumberMasked") or ""
    return f"{named if most is None else shortened(named, most - len(number) - 1)} {number}".strip()


def driver_name(driver: Fields) -> str:
    return driver.text("name") or words_of(driver.text("feature") or driver.text("metric") or "Driver")


def points_of_most(driver: Fields) -> str:
    """Return the points like `5 of 20`."""
    points, most = driver.number("points"), driver.number("maxPoints")
    return plain(points) if most is None else f"{plain(points)} of {plain(most)}"
