"""The demo's days are those of the service's time zone."""

from datetime import UTC, date, datetime

import pytest

from api.service.commands import lender


@pytest.mark.parametrize(
    ("zone", "day", "due_to"),
    [("Australia/Sydney", date(2026, 7, 27), 202606), ("UTC", date(2026, 7, 26), 202603)],
)
def test_days_are_those_of_the_services_zone(
    monkeypatch: pytest.MonkeyPatch, zone: str, day: date, due_to: int
) -> None:
    monkeypatch.setenv("TIDEMARK_TIMEZONE", zone)
    monkeypatch.setattr(lender, "now", lambda: datetime(2026, 7, 27, 15, tzinfo=UTC))  # the 28th in Sydney
    assert lender.last_day() == day
    assert lender.known_attributes()["bas_lodged_to"] == due_to
