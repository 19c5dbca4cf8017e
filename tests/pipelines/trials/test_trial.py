"""Trials on one small business, rated by the real reports."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipelines.attacks.registry import attacks, lookalikes
from pipelines.risk_models.files import parse_transactions
from pipelines.trials.subjects import Subject, cases_without_outcomes, subjects_of_files
from pipelines.trials.trial import UNTOUCHED, choose_in_turn, try_manipulations
from tests.pipelines.attacks.business import APPLICANT, LEDGER_BEFORE

pytestmark = pytest.mark.service  # rates whole portfolios, several times

CHOSEN = [attacks()["month_withheld"], lookalikes()["quiet_month"]]


def test_ratings_do_not_depend_on_what_is_rated_together() -> None:
    subjects = [Subject("vale", APPLICANT, defaults=True)]
    together = try_manipulations(subjects, choose_in_turn(CHOSEN, None), 7)
    assert_frame_equal(together, try_manipulations(subjects, choose_in_turn(CHOSEN, None), 7, most_rows=1))
    assert together["manipulation"].to_list() == [UNTOUCHED, "month_withheld", "quiet_month"]
    assert together["value"].null_count() == together["verdict"].null_count() == 0
    assert together["defaults"].all()


def test_copies_are_rated_on_their_own_day() -> None:
    earlier = replace(APPLICANT, applied_on=APPLICANT.applied_on - timedelta(days=1))
    subjects = [Subject("vale", APPLICANT), Subject("dale", earlier), Subject("hale", APPLICANT)]
    together = try_manipulations(subjects, lambda _: [], 7).sort("subject")
    apart = try_manipulations(subjects, lambda _: [], 7, most_rows=1).sort("subject")
    assert_frame_equal(together, apart)
    assert together["subject"].to_list() == [0, 1, 2]


def test_manipulation_that_changes_nothing_is_left_out() -> None:
    without_refunds = LEDGER_BEFORE.filter(pl.col("category") != "refund_paid")
    subject = Subject("vale", replace(APPLICANT, ledger=without_refunds))
    ratings = try_manipulations([subject], lambda _: [attacks()["refunds_hidden"]], 7)
    assert ratings["manipulation"].to_list() == [UNTOUCHED]


def test_every_manipulation_gets_its_turn() -> None:
    take = choose_in_turn([*attacks().values()], 5)
    slugs = [each.slug for place in range(len(attacks())) for each in take(place)]
    assert {slug: slugs.count(slug) for slug in attacks()} == dict.fromkeys(attacks(), 5)


def test_rows_of_files_get_their_meaning_from_enrichment() -> None:
    columns: Mapping[str, list[str]] = {
        "customer": ["b", "a", "b"],
        "account": ["1", "", "1"],
        "date": ["2026-03-02", "2026-03-05", "2026-03-03"],
        "description": ["Dishonour fee", "", "WAGES J SMITH"],
        "amount": ["-15.00", "20", "-900"],
        "balance": ["100", "", "-800"],
    }
    rows = parse_transactions(pl.DataFrame(columns))
    found, expected = subjects_of_files(rows, cases_without_outcomes(rows))
    subjects = {each.name: each.applicant for each in found}
    assert not expected.months
    assert subjects["b"].ledger["category"].to_list() == ["dishonour_fee", "wages"]
    assert str(subjects["b"].applied_on) == "2026-03-03"
    assert subjects["a"].ledger["account"].to_list() == [""]
