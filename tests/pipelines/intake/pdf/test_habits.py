"""With any conventions of a bank: reconciled statements have the printed rows, and altered ones are never
reconciled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Verdict
from tests.conftest import examples
from tests.pipelines.intake.pdf.drawing import Drawing

PROVED = (Verdict.RECONCILED, Verdict.RECONCILED_DATES_DOUBTFUL)
EXAMPLES = settings(examples(5), suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Row:
    day: date
    lines: tuple[str, ...]
    amount: Decimal
    balance: Decimal


@dataclass(frozen=True)
class Habits:
    """The conventions by which a bank prints its rows."""

    day: str  # the format of dates
    once: bool  # a day's date on its first row only
    last: bool  # amounts on the last line of a row
    daily: bool  # balances at the end of a day only
    signed: bool  # one column of amounts, money out with a minus
    newest_first: bool
    right: float  # edge of the last column
    leading: float
    a_page: int  # lines


HABITS = st.builds(
    Habits,
    day=st.sampled_from(["%d %b", "%d/%m/%Y", "%d %b %y", "%d-%b-%Y", "%d/%m"]),
    once=st.booleans(),
    last=st.booleans(),
    daily=st.booleans(),
    signed=st.booleans(),
    newest_first=st.booleans(),
    right=st.sampled_from([520.0, 550.0]),
    leading=st.sampled_from([10.0, 11.0, 13.0]),
    a_page=st.integers(20, 45),
)
TEXTS = st.lists(
    st.sampled_from(
        ["CARD xx1234", "WOOLWORTHS 1042 SYDNEY", "to A SMITH", "INV 20240311", "ref 12/03", "5 STAR PTY LTD"]
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Draw up to 30 rows, oldest first, from a balance of 1,000.00."""
    day, balance, rows = date(2023, 12, 20), Decimal("1000.00"), list[Row]()
    for wait, lines, cents in draw(
        st.lists(
            st.tuples(st.integers(0, 3), TEXTS, st.integers(-200_000, 200_000).filter(bool)), min_size=3, max_size=30
        )
    ):
        day += timedelta(days=wait)
        balance += Decimal(cents) / 100
        rows.append(Row(day, lines, Decimal(cents) / 100, balance))
    return rows


def print_statement(rows: Sequence[Row], habits: Habits) -> bytes:
    drawing = Drawing().line((45, f"Statement period {rows[0].day:%d/%m/%Y} to {rows[-1].day:%d/%m/%Y}"))
    drawing.line((45, "BSB 123-456 Account number 12345678"))
    summary = (("Opening balance", rows[0].balance - rows[0].amount), ("Closing balance", rows[-1].balance))
    for label, balance in summary:
        drawing.line((45, label), (-300, f"{balance:,.2f}"))
    drawing.y += 20
    _heading(drawing, habits)
    in_order = list(rows[::-1] if habits.newest_first else rows)
    for index, row in enumerate(in_order):
        if drawing.y > 60 + habits.a_page * habits.leading * 1.5:
            drawing.next_page()
            _heading(drawing, habits)
        _row(drawing, habits, row, in_order[index - 1] if index else None, _ends_day(rows, row))
    return drawing.finish()


def _ends_day(rows: Sequence[Row], row: Row) -> bool:
    return next(each for each in reversed(rows) if each.day == row.day) is row


def _heading(drawing: Drawing, habits: Habits) -> None:
    flows = ((-habits.right + 90, "Amount"),) if habits.signed else ((-400, "Debit"), (-habits.right + 80, "Credit"))
    drawing.line((45, "Date"), (110, "Details"), *flows, (-habits.right, "Balance"), step=16)


def _row(drawing: Drawing, habits: Habits, row: Row, above: Row | None, ends_day: bool) -> None:
    if habits.signed:
        flow = (-habits.right + 90, f"{row.amount:,.2f}")
    else:
        flow = (-400 if row.amount < 0 else -habits.right + 80, f"{abs(row.amount):,.2f}")
    balance = ((-habits.right, f"{row.balance:,.2f}"),) if ends_day or not habits.daily else ()
    dated = not (habits.once and above and above.day == row.day)
    for n, text in enumerate(row.lines):
        cells: list[tuple[float, str]] = [(110, text)]
        if n == 0 and dated:
            cells.append((45, row.day.strftime(habits.day)))
        if n == (len(row.lines) - 1 if habits.last else 0):
            cells += [flow, *balance]
        drawing.line(*cells, step=habits.leading)
    drawing.y += habits.leading * 0.4


@EXAMPLES
@given(histories(), HABITS)
def test_a_reconciled_statement_has_the_printed_rows(rows: list[Row], habits: Habits) -> None:
    (found,) = extract(print_statement(rows, habits)).statements
    assert [(each.date, each.amount, each.balance) for each in found.entries] == [
        (row.day, row.amount, row.balance) for row in rows
    ]
    assert [each.description for each in found.entries] == [" ".join(row.lines) for row in rows]
    expected = any(row.amount < 0 for row in rows) or not habits.signed
    assert (found.verdict in PROVED) == expected, found.reasons


def test_one_day_printed_newest_first_with_a_balance_at_its_end_is_read_in_order() -> None:
    """No date tells the order, but a day's only balance belongs to its last transaction."""
    day, cent, lines = date(2023, 12, 20), Decimal("0.01"), ("CARD xx1234",)
    rows = [Row(day, lines, cent, Decimal("1000.00") + (index + 1) * cent) for index in range(3)]
    habits = Habits("%d %b", False, False, True, False, True, 520.0, 10.0, 20)
    (found,) = extract(print_statement(rows, habits)).statements
    assert [each.balance for each in found.entries] == [row.balance for row in rows]
    assert found.verdict in PROVED


@EXAMPLES
@given(histories(), HABITS, st.data())
def test_a_row_deleted_from_the_page_is_never_reconciled(rows: list[Row], habits: Habits, data: st.DataObject) -> None:
    inner = data.draw(st.integers(1, len(rows) - 2))
    (found,) = extract(print_statement(rows[:inner] + rows[inner + 1 :], habits)).statements
    assert found.verdict not in PROVED
    assert found.reasons


@EXAMPLES
@given(histories(), HABITS, st.data(), st.integers(0, 5), st.integers(1, 9))
def test_a_digit_changed_on_the_page_is_never_reconciled(
    rows: list[Row], habits: Habits, data: st.DataObject, place: int, digit: int
) -> None:
    index = data.draw(st.integers(1, len(rows) - 1))
    one = rows[index]
    cents = f"{abs(one.amount) * 100:06.0f}"
    place = min(place, len(cents) - 1)
    changed = cents[:place] + str((int(cents[place]) + digit) % 10) + cents[place + 1 :]
    forged = Row(one.day, one.lines, (Decimal(changed) / 100).copy_sign(one.amount), one.balance)
    (found,) = extract(print_statement([*rows[:index], forged, *rows[index + 1 :]], habits)).statements
    assert found.verdict not in PROVED
