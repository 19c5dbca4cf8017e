"""Numbers, days and names are written as people write them."""

from datetime import date
from decimal import Decimal

import pytest

from pipelines.pages.wording import (
    abn,
    change,
    day,
    dollars,
    extent,
    label,
    money,
    month,
    percent,
    plain,
    quantity,
    reading,
    short_money,
    shorten,
    spell_out,
    title,
    whole_number,
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (money(Decimal("1234")), "$1,234.00"),
        (money(Decimal("-1234.5")), "−$1,234.50"),
        (money(None), "–"),
        (dollars(Decimal("1234.4")), "$1,234"),
        (dollars(Decimal("-0.4")), "$0"),
        (dollars(1234), "$1,234"),
        (day(date(2026, 3, 3)), "3 Mar 2026"),
        (day("2026-03-03"), "3 Mar 2026"),
        (month("2026-03-03"), "Mar 2026"),
        (day(None), "–"),
        (whole_number(1234), "1,234"),
        (change(1234), "+1,234"),
        (change(-3), "−3"),
        (change(0), "±0"),
        (extent(3, 3), "all of them"),
        (extent(100, 2345), "the first 100 of 2,345"),
        (quantity(1, "row"), "1 row"),
        (quantity(2000, "row"), "2,000 rows"),
        (quantity(0, "category", "categories"), "0 categories"),
        (shorten("abcdef", 6), "abcdef"),
        (shorten("abc defg", 5), "abc…"),
        (percent(Decimal("0.3215")), "32.15 %"),
        (plain(Decimal("-1234.50")), "−1,234.5"),
        (plain(Decimal("100")), "100"),
        (reading(None), "–"),
        (reading(True), "yes"),
        (reading("stock", "currency"), "stock"),
        (reading(Decimal(40000), "currency"), "$40,000.00"),
        (reading(Decimal("0.12"), "percent"), "12 %"),
        (reading(Decimal("27.2734"), "days"), "27.3 days"),
        (reading(14, "days"), "14 days"),
        (reading(Decimal("1.0649")), "1.0649"),
        (reading(Decimal("24"), "months"), "24 months"),
        (reading(1, "months"), "1 month"),
        (reading(202606, "yearMonth"), "Jun 2026"),
        (reading(Decimal("202613"), "yearMonth"), "202613"),
        (reading(Decimal("-2026.50"), "yearMonth"), "−2026.5"),
        (title("termMonths", "months"), "Term"),
        (title("termMonths"), "Term months"),
        (title("months", "months"), "Months"),
        (label("time_trading_months", "months"), "Time trading (months)"),
        (label("requestedAmount", "currency"), "Requested amount ($)"),
        (label("basDueTo", "yearMonth"), "BAS due to"),
        (short_money(-2_500_000.0), "−$2.5m"),
        (spell_out("in_arrears"), "In arrears"),
        (spell_out("moneyIn"), "Money in"),
        (spell_out("card_settlement"), "Card settlement"),
        (spell_out("2026 Q1"), "2026 Q1"),
        (abn("51824753556"), "51 824 753 556"),
    ],
)
def test_figures_are_written_as_people_do(written: str, expected: str) -> None:
    assert written == expected
