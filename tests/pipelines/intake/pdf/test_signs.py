"""Whether an amount is money in or out follows from columns, marks, titles and the type of account."""

from decimal import Decimal

import pytest

from pipelines.intake.pdf.page.amounts import money
from pipelines.intake.pdf.page.result import Box
from pipelines.intake.pdf.table.rows import RawRow, Title, title_of
from pipelines.intake.pdf.table.signs import AccountFacts, Signed, decide_signs, suggest_signs

HERE = (Box(1, 0, 0, 1, 1),)
HELD, OWED = AccountFacts(is_owing=False), AccountFacts(is_owing=True)


def row(flow: str, balance: str | None = None, title: Title | None = None, text: str = "SHOP") -> RawRow:
    """Build a row from a column and its text: `amount 5.00-`, `debit 5.00`."""
    role, printed = flow.split(" ")
    found, after = money(printed), money(balance) if balance else None
    assert found is not None
    return RawRow(None, None, None, text, {role: found}, after, None, title, HERE)


def amounts(*flows: str, described: AccountFacts = HELD) -> tuple[list[str], bool]:
    found = decide_signs([row(flow) for flow in flows], (), described, columns_known=True)
    return [str(amount) for amount in found.amounts], found.is_evident


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        (("debit 5.00", "credit 7.00"), ["-5.00", "7.00"]),
        (("debit 5.00-", "debit 6.00-", "debit 7.00-"), ["-5.00", "-6.00", "-7.00"]),  # a habit
        (("debit 5.00", "debit 6.00", "debit 7.00-"), ["-5.00", "-6.00", "7.00"]),  # a reversal
        (("credit 5.00-", "credit 6.00"), ["-5.00", "6.00"]),
        (("debit 5.00CR", "credit 6.00DR"), ["5.00", "-6.00"]),
        (("amount -5.00", "amount 7.00"), ["-5.00", "7.00"]),
        (("amount (5.00)", "amount 7.00"), ["-5.00", "7.00"]),
        (("amount 5.00", "amount +7.00"), ["-5.00", "7.00"]),
        (("amount 5.00", "amount 7.00CR"), ["-5.00", "7.00"]),
        (("amount 5.00DR", "amount 7.00"), ["-5.00", "7.00"]),
        (("amount 0.00", "amount -7.00"), ["0.00", "-7.00"]),
    ],
)
def test_signs_come_from_columns_and_marks(flows: tuple[str, ...], expected: list[str]) -> None:
    assert amounts(*flows) == (expected, True)


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        (("amount 5.00", "amount 7.00-"), ["-5.00", "7.00"]),
        (("amount 5.00", "amount 7.00CR"), ["-5.00", "7.00"]),
        (("amount 5.00", "amount 7.00"), ["-5.00", "-7.00"]),
        (("debit 5.00", "credit 7.00"), ["-5.00", "7.00"]),
    ],
)
def test_on_a_debt_a_bare_amount_is_a_purchase(flows: tuple[str, ...], expected: list[str]) -> None:
    assert amounts(*flows, described=OWED) == (expected, True)


@pytest.mark.parametrize("flows", [("amount 5.00",), ("amount 5.00", "amount 6.00DR", "amount 7.00CR")])
def test_bare_amounts_with_no_marks_or_both_have_no_evident_sign(flows: tuple[str, ...]) -> None:
    assert not amounts(*flows)[1]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (AccountFacts(is_owing=False, is_debt=True), ["-5.00", "7.00"]),  # balances say DR
        (AccountFacts(is_owing=False, minus=1, is_known=False), ["-5.00", "7.00"]),  # rows say what was paid
        (AccountFacts(is_owing=False, minus=1), ["5.00", "-7.00"]),  # an account's `Direct Credit Batch` is paid out
        (AccountFacts(is_owing=True, minus=-1), ["5.00", "-7.00"]),
        (AccountFacts(is_owing=False), ["5.00", "-7.00"]),
    ],
)
def test_the_account_or_its_rows_decide_what_a_minus_means(described: AccountFacts, expected: list[str]) -> None:
    rows = [row("amount 5.00", "20.00DR"), row("amount 7.00-", "13.00DR")]
    found = decide_signs(rows, (), described, columns_known=True)
    assert [str(amount) for amount in found.amounts] == expected
    assert found.is_evident


def test_a_minus_alone_proves_no_sign_if_the_type_of_account_is_unknown() -> None:
    unknown = AccountFacts(is_owing=False, is_known=False)
    assert not amounts("amount 5.00", "amount 7.00-", described=unknown)[1]
    assert amounts("amount 5.00DR", "amount 7.00CR", described=unknown) == (["-5.00", "7.00"], True)
    assert amounts("debit 5.00", "credit 7.00", described=unknown) == (["-5.00", "7.00"], True)


def test_a_minus_at_every_credit_inverts_no_sign() -> None:
    assert amounts("debit 5.00", "credit 7.00-", "credit 8.00-")[0] == ["-5.00", "7.00", "8.00"]
    assert amounts("debit 5.00", "credit 7.00-", described=OWED)[0] == ["-5.00", "7.00"]
    assert amounts("debit 5.00", "credit 7.00-")[0] == ["-5.00", "-7.00"]


def test_owed_balances_are_debts_unless_marked_cr_or_dr() -> None:
    rows = [row("debit 1.00", balance) for balance in ("100.00", "100.00CR", "100.00DR", "100.00-")]
    owed = decide_signs(rows, (), OWED, columns_known=True)
    assert [str(each) for each in owed.balances] == ["-100.00", "100.00", "-100.00", "100.00"]
    held = decide_signs(rows, (), HELD, columns_known=True)
    assert [str(each) for each in held.balances] == ["100.00", "100.00", "-100.00", "-100.00"]


def test_money_in_and_out_on_one_row_is_unreadable() -> None:
    both = row("debit 5.00")
    credit = row("credit 6.00")
    found = decide_signs([RawRow(None, None, None, "", {**both.flows, **credit.flows}, None, None, None, HERE)], (),
                   HELD, columns_known=True)  # fmt: skip
    assert found.unreadable == (0,)


def test_words_that_contradict_most_signs_are_reported() -> None:
    texts = ["ATM WITHDRAWAL", "EFTPOS COLES", "MONTHLY FEE", "SALARY"]
    mirrored = [row(f"amount {sign}5.00", text=text) for sign, text in zip(("-", "-", "-", ""), texts, strict=True)]
    assert decide_signs(mirrored, (), OWED, columns_known=True).is_contradicted
    assert not decide_signs(mirrored, (), HELD, columns_known=True).is_contradicted


def test_suggested_signs_are_not_evident() -> None:
    rows = [row("amount 50.00", "50.00"), row("amount 100.00", "150.00")]
    found: Signed = suggest_signs(decide_signs(rows, (), HELD, columns_known=True), rows, Decimal("100.00"))
    assert [str(amount) for amount in found.amounts] == ["-50.00", "100.00"]
    assert not found.is_evident


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Deposits", Title(1, 1)),
        ("Your withdrawals and debits:", Title(-1, -1)),
        ("Payments", Title(-1, 1)),
        ("Payments and other credits", Title(1, 1)),
        ("Purchases & cash advances (continued)", Title(-1, -1)),
        ("Interest and fees", Title(-1, -1)),
        ("Money in", Title(1, 1)),
        ("Deposits and withdrawals", None),
        ("Transactions", None),
        ("Fees for 3 months", None),
        ("DEPOSIT JOHN SMITH", None),
        ("", None),
    ],
)
def test_titles_give_the_signs_of_rows_below(text: str, expected: Title | None) -> None:
    assert title_of(text, {}) == expected


def test_a_banks_own_title_takes_precedence() -> None:
    assert title_of("Spendings", {"spendings": -1}) == Title(-1, -1)
