"""Figures are exact, the same everywhere, and null rather than wrong."""

from decimal import ROUND_HALF_EVEN, Decimal
from uuid import UUID

import polars as pl
from hypothesis import given
from hypothesis.strategies import decimals

from pipelines.pages.wording import money, percent
from pipelines.vocabulary.report_values import (
    RATIO,
    count_text,
    dollars_text,
    name_band,
    percent_text,
    ratio,
    reason,
    reasons,
    score,
    uuid_text,
)
from pipelines.vocabulary.schemas import MONEY
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


@given(decimals(-(10**9), 10**9, places=4))
def test_shares_are_written_as_pages_do(number: Decimal) -> None:
    assert figure(percent_text(pl.col("a")), a=number) == percent(number)


def test_an_unknown_share_has_no_text() -> None:
    assert pl.DataFrame({"a": [None]}, {"a": RATIO}).select(percent_text(pl.col("a"))).item() is None


def test_a_score_has_two_decimals() -> None:
    assert str(figure(score(pl.col("a")), a=Decimal("71.2349"))) == "71.23"


def test_a_figure_is_in_the_first_band_it_reaches() -> None:
    frame = pl.DataFrame({"points": [95, 80, 79, 10, None]})
    named = frame.select(name_band(pl.col("points"), (("best", 80), ("middle", 50)), "lowest"))
    assert named.to_series().to_list() == ["best", "best", "middle", "lowest", "lowest"]


def test_only_reasons_that_hold_are_listed() -> None:
    details = reasons(
        reason("A.Holds", pl.col("n") > 0, pl.format("{} of them.", "n")),
        reason("A.DoesNot", pl.col("n") > 9, pl.lit("Many.")),
        reason("A.Unknown", pl.lit(None, pl.Boolean), pl.lit("Who knows.")),
    )
    assert pl.DataFrame({"n": [3]}).select(details).to_series().to_list() == [
        [{"code": "A.Holds", "message": "3 of them."}]
    ]


def test_an_id_is_printed_in_the_standard_uuid_form() -> None:
    text = "3a7c1e33-9b92-4f6f-93b3-7d552d5b57cd"
    assert figure(uuid_text("id"), id=UUID(text).bytes) == text


def test_counts_have_their_noun_in_the_singular_or_plural() -> None:
    counts = pl.DataFrame({"n": [0, 1, 2, 1_234, 1_234_567, None]})
    texts = counts.select(count_text(pl.col("n"), "row was", "rows were")).to_series().to_list()
    assert texts == ["0 rows were", "1 row was", "2 rows were", "1,234 rows were", "1,234,567 rows were", None]


@given(cents(-(10**14), 10**14))
def test_amounts_are_written_as_pages_write_them(amount: Decimal) -> None:
    frame = pl.DataFrame({"amount": [amount]}, schema={"amount": MONEY})
    assert frame.select(dollars_text(pl.col("amount"))).item() == money(amount)
