"""Figures are exact, the same everywhere, and null rather than wrong."""

from decimal import ROUND_HALF_EVEN, Decimal
from uuid import UUID

import polars as pl
from hypothesis import given

from pipelines.vocabulary.report_values import (
    name_band,
    ratio,
    score,
    uuid_text,
)
from tests.pipelines.reports.examples import cents


def figure(expression: pl.Expr, **columns: object) -> object:
    return pl.DataFrame({name: [value] for name, value in columns.items()}).select(expression).item()


def test_a_ratio_has_four_decimals() -> None:
    assert figure(ratio(pl.col("a"), pl.col("b")), a=Decimal("2.00"), b=3) == Decimal("0.6667")


def test_a_ratio_to_zero_or_to_nothing_is_null() -> None:
    frame = pl.DataFrame({"a": [1, 1, None], "b": [Decimal("0.00"), None, Decimal("2.00")]})
    assert frame.select(ratio(pl.col("a"), pl.col("b"))).to_series().to_list() == [None, None, None]


def test_a_zero_denominator_does_not_affect_other_rows() -> None:
    frame = pl.DataFrame({"a": [Decimal("1.00"), Decimal("1.00")], "b": [Decimal("0.00"), Decimal("4.00")]})
    assert frame.select(ratio(pl.col("a"), pl.col("b"))).to_series().to_list() == [None, Decimal("0.2500")]


@given(cents(), cents().filter(bool))
def test_ratios_equal_exact_arithmetic_rounded_half_to_even(a: Decimal, b: Decimal) -> None:
    exact = (a / b).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)
    assert figure(ratio(pl.col("a"), pl.col("b")), a=a, b=b) == exact


def test_ratios_of_very_large_sums_are_exact() -> None:
    most = Decimal("9999999999999.99") * 2_000_000
    assert figure(ratio(pl.col("a"), pl.col("b")), a=most, b=Decimal("0.01")) == most * 100


def test_a_score_has_two_decimals() -> None:
    assert str(figure(score(pl.col("a")), a=Decimal("71.2349"))) == "71.23"


def test_a_figure_is_in_the_first_band_it_reaches() -> None:
    frame = pl.DataFrame({"points": [95, 80, 79, 10, None]})
    named = frame.select(name_band(pl.col("points"), (("best", 80), ("middle", 50)), "lowest"))
    assert named.to_series().to_list() == ["best", "best", "middle", "lowest", "lowest"]


def test_an_id_is_printed_in_the_standard_uuid_form() -> None:
    text = "3a7c1e33-9b92-4f6f-93b3-7d552d5b57cd"
    assert figure(uuid_text("id"), id=UUID(text).bytes) == text
