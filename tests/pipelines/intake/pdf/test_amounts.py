"""Amounts are read exactly in every form that statements print, and no other text is read as one."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.intake.minus_signs import MINUSES
from pipelines.intake.pdf.page.amounts import Money, money, printed_in
from pipelines.intake.pdf.page.page import Word

SIZE = 8.0
WRITINGS = {  # forms of an amount with a sign: texts before and after its digits
    None: [("", ""), ("$", ""), ("A$", ""), ("AUD", "")],
    -1: [("-$", ""), ("$-", ""), ("(", ")"), ("($", ")"), ("", "-"), ("", "DR"), ("", "OD")]
    + [(minus, "") for minus in MINUSES],
    1: [("+", ""), ("+$", ""), ("", "CR"), ("$", "Cr"), ("CR", "")],
}


def words(text: str, apart: float = 0.28) -> list[Word]:
    """Return the words of a line, with gaps in units of the size and letters half the size wide."""
    found, left = list[Word](), 0.0
    for each in text.split(" "):
        right = left + len(each) * SIZE / 2
        found.append(Word(each, left, 0, right, 10, "", SIZE))
        left = right + apart * SIZE
    return found


@given(
    st.integers(0, 10**13 - 1),
    st.sampled_from([(sign, writing) for sign, writings in WRITINGS.items() for writing in writings]),
    st.booleans(),
)
def test_every_form_of_an_amount_is_read_exactly(
    cents: int, signed: tuple[int | None, tuple[str, str]], commas: bool
) -> None:
    sign, (before, behind) = signed
    digits = f"{cents // 100:,}" if commas else str(cents // 100)
    found = money(f"{before}{digits}.{cents % 100:02}{behind}")
    assert found is not None
    assert (found.value, found.sign, found.is_contradictory) == (Decimal(cents) / 100, sign, False)


@pytest.mark.parametrize(
    "text",
    ["1234", "12.5", "1,23.00", "12,34.00", "1,2345.00", "(12.00", "12.00)", "5.25%", "", "$", "1.00.00", "a1.00"],
)
def test_other_texts_are_not_amounts(text: str) -> None:
    assert money(text) is None


def test_a_minus_with_cr_contradicts_itself_and_has_no_sign() -> None:
    found = money("-5.00CR")
    assert found is not None
    assert found.is_contradictory
    assert found.sign is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ 1,234.50 CR", [Money(Decimal("1234.50"), "CR")]),
        ("1 234.50", [Money(Decimal("1234.50"))]),
        ("1,2 34.56", [Money(Decimal("1234.56"))]),
        ("1,234 .56", [Money(Decimal("1234.56"))]),
        ("- 12.00", [Money(Decimal("12.00"), "-")]),
        ("( 12.00 )", [Money(Decimal("12.00"), "()")]),
        ("12.00 13.00", [Money(Decimal("12.00")), Money(Decimal("13.00"))]),
        ("CARD 1042 345.67", [Money(Decimal("345.67"))]),
        ("12.00 (", [Money(Decimal("12.00"))]),
    ],
)
def test_parts_of_one_amount_are_joined_and_two_amounts_are_not(text: str, expected: list[Money]) -> None:
    assert [each.money for each in printed_in(words(text))] == expected


def test_parts_far_apart_are_two_amounts() -> None:
    assert [each.money.value for each in printed_in(words("1 234.50", apart=2))] == [Decimal("234.50")]


def test_the_edge_is_the_end_of_the_digits_without_their_mark() -> None:
    (bare,), (marked,) = printed_in(words("12.00")), printed_in(words("12.00CR"))
    assert bare.edge == pytest.approx(marked.edge)
    assert marked.right > marked.edge
