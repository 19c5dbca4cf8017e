"""What people call the things that reports speak of."""

from pipelines.reports.page.fields import Fields
from pipelines.reports.page.wording import plain, shortened, words_of


def account_name(account: Fields, most: int | None = None) -> str:
    """An account's name, else its bank, and the end of its number; of a long name so many characters in all."""
    named = account.text("accountName") or account.text("bankName") or "Account without a name"
    number = account.text("accountNumberMasked") or ""
    return f"{named if most is None else shortened(named, most - len(number) - 1)} {number}".strip()


def driver_name(driver: Fields) -> str:
    return driver.text("name") or words_of(driver.text("feature") or driver.text("metric") or "Driver")


def of_most(driver: Fields) -> str:
    """`5 of 20` points."""
    points, most = driver.number("points"), driver.number("maxPoints")
    return plain(points) if most is None else f"{plain(points)} of {plain(most)}"
