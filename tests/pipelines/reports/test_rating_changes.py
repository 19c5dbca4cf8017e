"""Which customers get another rating if another scorecard is used."""

from datetime import timedelta
from decimal import Decimal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS, rating_changes
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import EVERYTHING
from pipelines.scorecards.scorecard import Link, Scorecard
from tests.pipelines.reports.examples import START, row, transactions

STRICTER = Scorecard("stricter", "1", "none", DEFAULT.features, Link(Decimal(60), Decimal(10)))


def facts() -> Facts:
    rows = [
        row(day, "100" if day % 3 else "-150", customer_number=number, balance=str(1000 + 20 * day))
        for number in (1, 2)
        for day in range(0, 300, 2 * number)
    ]
    return Facts(transactions(rows).collect(), START + timedelta(days=300))


def test_ratings_are_those_of_the_report_and_of_the_other_scorecard() -> None:
    found = rating_changes.compare_ratings(facts(), DEFAULT, STRICTER, EVERYTHING)
    assert found.schema == rating_changes.RATINGS
    reports = REPORTS["risk"].compute(facts())["data"].str.json_path_match("$.rating")
    assert found["rating_before"].to_list() == reports.to_list()
    assert (found["value_after"] >= found["value_before"]).all()


def test_changes_are_counted_by_pair_and_described() -> None:
    before = pl.Series([Decimal("0.01"), Decimal("0.04"), Decimal("0.40"), Decimal("0.10")], dtype=pl.Decimal(38, 4))
    after = pl.Series([Decimal("0.03"), Decimal("0.04"), Decimal("0.20"), Decimal("0.50")], dtype=pl.Decimal(38, 4))
    ratings = rating_changes.compare_values(before, after)
    assert rating_changes.count_changes(ratings).rows() == [("A", "B", 1), ("C", "E", 1), ("E", "D", 1)]
    assert rating_changes.describe_changes(ratings) == (
        "3 of 4 change their rating: 1 to a better one, 2 to a worse one; 1 leave E, 1 fall to it"
    )
