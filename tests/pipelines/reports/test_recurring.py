"""Recurring payments have the same figures in the list of series and in the aggregate report."""

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from uuid import UUID

from pipelines.enrichment.recurrence import describe_series, mark_series
from pipelines.figures.facts import Facts
from pipelines.reports.aggregate.commitments import RECURRING
from tests.conftest import Subtests, times
from tests.pipelines.enrichment.examples import held_rows
from tests.pipelines.reports.examples import Row
from tests.pipelines.reports.tables import values

BOTH = {  # members of the report, by the name that the list has
    "usual_amount": "usualAmount",
    "latest_amount": "lastAmount",
    "last_date": "lastDate",
    "period": "period",
    "next_date": "nextExpectedDate",
    "counterparty_name": "counterparty",
    "category": "category",
}


def drawn_rows(rng: Random) -> list[Row]:
    """Return weekly and monthly payments and receipts of varying amounts, some due dates paid twice or not at all."""
    rows: list[Row] = []
    for payer, days, sign in (("Acme", 7, -1), ("Bolt", 30, -1), ("Cove", 7, 1), ("Dune", 14, 1)):
        usual, count = rng.randrange(5_000, 90_000), rng.choice((10, 11, 24))
        for nth in range(count):
            posted = date(2025, 1, 6) + timedelta(days=days * nth)
            for _ in range(rng.choices((0, 1, 2), (1, 8, 1))[0]):
                cents = sign * (usual + rng.randrange(2_000))
                named = {"counterparty_group": payer, "counterparty_name": rng.choice((payer, f"{payer} Pty", None))}
                sent = {"received_seq": rng.randrange(1, 4), "category": rng.choice(("rent", "wages"))}
                channel = "direct_debit" if sign < 0 else "direct_credit"
                rows.append({"date": posted, "amount": Decimal(cents) / 100, "channel": channel, **named, **sent})
                posted += timedelta(days=rng.randrange(2))
    return sorted(rows, key=lambda row: (row["date"], row["received_seq"]))


def test_the_list_of_series_and_the_report_agree(subtests: Subtests) -> None:
    series = 0
    for seed in range(times(6)):
        rows = held_rows(*drawn_rows(Random(seed))).pipe(mark_series)
        listed = {str(UUID(bytes=each["series_id"])): each for each in describe_series(rows).to_dicts()}
        reported = {each["seriesId"]: each for each in values(RECURRING, Facts(rows, date(2027, 1, 1)))}
        with subtests.test(seed=seed):
            assert listed.keys() == reported.keys()
            for series_id, each in listed.items():
                assert {name: _as_reported(each[name]) for name in BOTH} == {
                    name: reported[series_id][of_report] for name, of_report in BOTH.items()
                }
        series += len(listed)
    assert series > 12


def _as_reported(value: object) -> object:
    """Return a value as the report writes it: sizes without signs, and days as text."""
    return abs(value) if isinstance(value, Decimal) else str(value) if isinstance(value, date) else value
