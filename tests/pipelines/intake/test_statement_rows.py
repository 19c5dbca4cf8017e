"""Statements from PDFs as rows to be stored and as rows to be enriched."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID, uuid4

import polars as pl
import pytest

from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.pdf.page.result import Verdict
from pipelines.intake.rows import validate
from pipelines.intake.statement_rows import (
    UNDESCRIBED,
    account_of,
    entries_of,
    fits,
    land_statement_rows,
    rows_of,
    shown_name,
)
from pipelines.vocabulary.schemas import LANDED, STATEMENT_COLUMNS, STATEMENT_ROWS
from tests.fake_statements import COFFEE, RENT, SALE, entry, statement

CUSTOMER, FIRST, SECOND = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("June.pdf", "June.pdf"),
        ("../../June.pdf", "../../June.pdf"),
        ("a\0b\nc\u202e.pdf", "abc.pdf"),
        (" x " * 200, ("x" + "  x" * 199)[:255]),
        ("4111111111111111.pdf", "411111xxxxxx1111.pdf"),
    ],
)
def test_harmful_characters_are_removed_from_a_file_name(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_rows_have_their_places_and_repeated_ones_are_not_landed_again() -> None:
    described = {FIRST: statement(RENT, SALE), SECOND: statement(SALE, COFFEE)}
    rows = rows_of(described, [frozenset(), frozenset({0})], temporary_digest)
    assert rows.schema == STATEMENT_ROWS
    assert rows["position"].to_list() == [0, 1, None, 2]
    assert rows["row"].to_list() == [1, 2, 1, 2]
    assert rows["boxes"].list.len().to_list() == [1] * 4
    landing = land_statement_rows(
        rows, {number: account_of(CUSTOMER, one, temporary_digest) for number, one in described.items()}, described
    )
    assert landing.schema == pl.Schema({**LANDED, **STATEMENT_COLUMNS})
    assert landing["position"].to_list() == [0, 1, 2]
    assert landing["description"].to_list() == ["RENT", "SALE", "COFFEE"]
    assert landing["amount"].to_list() == ["-900.00", "812.40", "-4.50"]
    assert landing["statement_id"].to_list() == [FIRST.bytes, FIRST.bytes, SECOND.bytes]


def test_an_unproved_row_is_landed_as_unproved() -> None:
    described = {FIRST: statement(RENT, replace(SALE, proved=True), verdict=Verdict.PARTIAL)}
    rows = rows_of(described, [frozenset()], temporary_digest)
    assert rows["proved"].to_list() == [False, True]
    landing = land_statement_rows(rows, {FIRST: account_of(CUSTOMER, described[FIRST], temporary_digest)}, described)
    assert landing["statement_proved"].to_list() == [False, True]
    assert landing["statement_verdict"].unique().to_list() == ["partial"]


def test_landed_rows_are_valid_whatever_is_printed() -> None:
    odd = statement(entry("", "0.00"), entry("a\x00b\nc", "1.00"), entry("x" * 5_000, "-9999999999999.99"))
    described = {FIRST: odd}
    landing = land_statement_rows(
        rows_of(described, [frozenset()], temporary_digest),
        {FIRST: account_of(CUSTOMER, odd, temporary_digest)},
        described,
    )
    received = pl.lit("2026-07-01T00:00:00").str.to_datetime(time_unit="us", time_zone="UTC")
    of_job = landing.lazy().with_columns(
        received_at=received, job_id=pl.lit(uuid4().bytes), customer_number=pl.lit(1, pl.Int64)
    )
    whole = of_job.with_columns(received_seq=pl.lit(1, pl.Int64), appended=pl.lit(value=False))
    validated = validate(whole, "Australia/Sydney")
    assert validated.rejected.collect().is_empty()
    assert validated.accepted.collect()["description"].str.len_chars().to_list() == [len(UNDESCRIBED), 5, 1_000]


def test_entries_are_read_back_from_their_rows_unchanged() -> None:
    whole = statement(RENT, COFFEE, SALE)
    assert entries_of(rows_of({FIRST: whole}, [frozenset()], temporary_digest)) == whole.entries


@pytest.mark.parametrize("amount", ["1e13", "0.001", "NaN", "-Infinity"])
def test_amounts_outside_the_range_of_rows_do_not_fit(amount: str) -> None:
    assert fits(statement(RENT))
    assert not fits(statement(entry("X", amount)))
    assert not fits(replace(statement(), closing_balance=Decimal(amount)))
