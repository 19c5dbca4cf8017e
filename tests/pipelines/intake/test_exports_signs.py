"""Which amounts of an export are money out, and the evidence for it."""

import pytest

from pipelines.intake.exports import Contents, Signs, parse_layout, read

CARD = (
    "Date,Description,Amount\n2026-01-13,COLES,84.50\n2026-01-14,PAYMENT RECEIVED - THANK YOU,-500.00\n"
    "2026-01-15,BUNNINGS,20.00\n2026-01-16,KMART,30.00\n"
)
SPENT = ["-84.50", "500.00", "-20.00", "-30.00"]


def read_export(text: str, name: str = "export.csv", layout: str | None = None) -> Contents:
    return read(name, text.encode(), None if layout is None else parse_layout(layout))


def amounts(contents: Contents) -> list[str]:
    return [amount for statement in contents.statements for amount in statement.rows["amount"]]


CARD_MEMBER = (
    "Date,Card Member,Description,Amount\n2026-01-13,J,COLES,84.50\n2026-01-14,J,TRANSFER,-500.00\n"
    "2026-01-15,J,BUNNINGS,20.00\n2026-01-16,J,KMART,30.00\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("export.csv", CARD),
        ("visa-2026.csv", CARD.replace("PAYMENT RECEIVED - THANK YOU", "TRANSFER")),
        ("our card.csv", CARD.replace("PAYMENT RECEIVED - THANK YOU", "TRANSFER")),
        ("export.csv", CARD_MEMBER),
        ("export.csv", "Credit Card Statement\n" + CARD.replace("PAYMENT RECEIVED - THANK YOU", "TRANSFER")),
    ],
    ids=["words", "name of the file", "card in its name", "heading of a column", "line before the heading"],
)  # fmt: skip
def test_positive_charges_of_a_card_are_money_out_by_assumption(name: str, text: str) -> None:
    contents = read_export(text, name)
    assert amounts(contents) == SPENT
    assert contents.signs is Signs.ASSUMED
    assert "Signs are assumed: amounts without a minus are money out" in " ".join(contents.notes)


def test_charges_of_a_card_with_a_minus_are_not_changed() -> None:
    text = "Date,Description,Amount\n2026-01-13,COLES,-84.50\n2026-01-14,PAYMENT - THANK YOU,500.00\n"
    contents = read_export(text, "visa.csv")
    assert amounts(contents) == ["-84.50", "500.00"]
    assert contents.signs is Signs.ASSUMED


def test_charges_and_payments_of_a_card_without_any_minus_are_read() -> None:
    contents = read_export(CARD.replace("-500", "500"), "visa.csv")
    assert amounts(contents) == SPENT


@pytest.mark.parametrize(
    "taking",
    [
        "EFTPOS SETTLEMENT",
        "CBA EFTPOS MERCHANT",
        "WORLDLINE EFTPOS",
        "ATM DEPOSIT",
        "PURCHASE ORDER 55",
        "CASH ADVANCE",
    ],
)
def test_takings_and_one_odd_word_do_not_make_an_account_a_card(taking: str) -> None:
    """All signs of a shop's account would be inverted, and it would be stored as a card."""
    texts = [(taking, 310), ("RENT", -250), *(("SALE", 20) for _ in range(10)), ("WITHDRAWAL UNPAID", 5)]
    balances = [str(5_000 + sum(amount for _, amount in texts[: nth + 1])) for nth in range(len(texts))]
    for behind in (balances, [""] * len(texts)):
        rows = [f"2026-01-13,{text},{amount},{balance}" for (text, amount), balance in zip(texts, behind, strict=True)]
        contents = read_export("\n".join(["Date,Description,Amount,Balance", *rows]))
        assert amounts(contents) == [str(amount) for _, amount in texts]
        assert contents.statements[0].account_type is None


def test_an_owed_balance_of_a_card_rises_with_positive_charges() -> None:
    text = (
        "Date,Description,Amount,Balance\n2026-01-13,COLES,84.50,1084.50\n2026-01-14,PAYMENT,-500.00,584.50\n"
        "2026-01-15,BUNNINGS,20.00,604.50\n"
    )
    contents = read_export(text, "credit-card.csv")
    assert amounts(contents) == ["-84.50", "500.00", "-20.00"]
    assert contents.statements[0].rows["balance"].to_list() == ["-1084.50", "-584.50", "-604.50"]
    assert contents.signs is Signs.ASSUMED


def test_a_balance_below_zero_proves_that_charges_are_positive() -> None:
    text = (
        "Date,Description,Amount,Balance\n2026-01-13,COLES,84.50,-1084.50\n2026-01-14,PAYMENT,-500.00,-584.50\n"
        "2026-01-15,BUNNINGS,20.00,-604.50\n2026-01-16,KMART,1.00,-605.50\n"
    )
    contents = read_export(text)
    assert amounts(contents) == ["-84.50", "500.00", "-20.00", "-1.00"]
    assert contents.statements[0].rows["balance"].to_list() == ["-1084.50", "-584.50", "-604.50", "-605.50"]
    assert contents.signs is Signs.PROVED


def test_balances_of_money_that_is_held_prove_the_signs() -> None:
    text = "Date,Description,Amount,Balance\n2026-01-13,RENT,-84.50,100.00\n2026-01-14,PAY,500.00,600.00\n"
    contents = read_export(text)
    assert amounts(contents) == ["-84.50", "500.00"]
    assert (contents.signs, contents.notes) == (Signs.PROVED, ())


def test_no_balance_proves_the_sign_of_the_first_of_amounts_without_any() -> None:
    rows = "2026-01-13,RENT,10.00,90.00\n2026-01-14,PAY,50.00,140.00\n2026-01-15,SHOP,20.00,120.00\n"
    contents = read_export("Date,Description,Amount,Balance\n" + rows)
    assert amounts(contents) == ["10.00", "50.00", "-20.00"]
    assert contents.signs is Signs.ASSUMED
    assert "The sign of 1 of 3 amounts is assumed, money in: no balance before them proves it." in contents.notes
    opened = read_export("Date,Description,Amount,Balance\n2026-01-13,Opening balance,,100.00\n" + rows)
    assert amounts(opened) == ["-10.00", "50.00", "-20.00"]
    assert opened.signs is Signs.PROVED


def test_without_any_proof_a_minus_is_assumed_to_be_money_out() -> None:
    contents = read_export("Date,Description,Amount\n2026-01-13,RENT,-84.50\n2026-01-14,PAY,500.00\n")
    assert amounts(contents) == ["-84.50", "500.00"]
    assert contents.signs is Signs.ASSUMED
    assert contents.notes == ("Signs are assumed: a minus is money out. No balance proves it.",)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("Debit", "84.50"), ("Credit", "500.00")], ["-84.50", "500.00"]),
        ([("Debit", "-84.50"), ("Credit", "500.00")], ["-84.50", "500.00"]),
        ([("Debit", "84.50"), ("Credit", "-500.00")], ["-84.50", "500.00"]),
        ([("Debit", "84.50"), ("Debit", "20.00"), ("Debit", "-84.50")], ["-84.50", "-20.00", "84.50"]),
    ],
)
def test_words_for_debit_and_credit_state_the_sign(rows: list[tuple[str, str]], expected: list[str]) -> None:
    lines = [f"2026-01-{day},SHOP,{kind},{amount}\n" for day, (kind, amount) in enumerate(rows, start=13)]
    contents = read_export("Date,Description,Type,Amount\n" + "".join(lines))
    assert amounts(contents) == expected
    assert contents.signs is Signs.STATED


def test_amounts_without_a_mark_are_debits_if_only_credits_are_marked() -> None:
    contents = read_export("Date,Description,Amount\n2026-01-13,COLES,84.50\n2026-01-14,PAYMENT,500.00 CR\n")
    assert amounts(contents) == ["-84.50", "500.00"]
    assert contents.signs is Signs.STATED


@pytest.mark.parametrize("name", ["export.csv", "visa.csv"])
@pytest.mark.parametrize("payment", ["150.00 CR", "-150.00"])
def test_balances_with_cr_are_held_if_the_others_have_no_mark(payment: str, name: str) -> None:
    rows = [("84.50", "100.00"), (payment, "50.00 CR"), ("20.00", "30.00 CR"), ("130.00", "100.00"), ("5.00", "105.00")]
    lines = [f"2026-01-1{day},SHOP,{amount},{balance}\n" for day, (amount, balance) in enumerate(rows)]
    contents = read_export("Date,Description,Amount,Balance\n" + "".join(lines), name)
    assert amounts(contents) == ["-84.50", "150.00", "-20.00", "-130.00", "-5.00"]
    [statement] = contents.statements
    assert statement.rows["balance"].to_list() == ["-100.00", "50.00", "30.00", "-100.00", "-105.00"]
    assert statement.account_type == "credit_card"


def test_an_account_with_mostly_credit_balances_is_no_card() -> None:
    rows = [("84.50", "15.50 CR"), ("100.00", "84.50"), ("150.00 CR", "65.50 CR"), ("5.00", "60.50 CR")]
    lines = [f"2026-01-1{day},SHOP,{amount},{balance}\n" for day, (amount, balance) in enumerate(rows)]
    [statement] = read_export("Date,Description,Amount,Balance\n" + "".join(lines)).statements
    assert statement.rows["amount"].to_list() == ["-84.50", "-100.00", "150.00", "-5.00"]
    assert statement.rows["balance"].to_list() == ["15.50", "-84.50", "65.50", "60.50"]
    assert statement.account_type is None


def test_an_opening_balance_with_cr_leaves_the_others() -> None:
    lines = ",OPENING BALANCE,,100.00 CR\n2026-01-13,COLES,-4.50,95.50\n2026-01-14,PAY,10.00,105.50\n"
    [statement] = read_export("Date,Description,Amount,Balance\n" + lines).statements
    assert statement.rows["balance"].to_list() == ["95.50", "105.50"]


def test_the_users_decision_overrides_all_evidence() -> None:
    for amount, expected in {"-3": SPENT, "+3": ["84.50", "-500.00", "20.00", "30.00"]}.items():
        contents = read_export(CARD, layout=f"date=1,description=2,amount={amount}")
        assert amounts(contents) == expected
        assert contents.signs is Signs.DECLARED


def test_signs_of_several_accounts_in_a_file_are_decided_separately() -> None:
    text = (
        "Date,Account,Description,Amount\n2026-01-13,Visa,COLES,84.50\n2026-01-13,Cheque,PAY,500.00\n"
        "2026-01-14,Visa,KMART,20.00\n2026-01-14,Cheque,RENT,-90.00\n"
    )
    visa, cheque = read_export(text).statements
    assert visa.rows["amount"].to_list() == ["-84.50", "-20.00"]
    assert cheque.rows["amount"].to_list() == ["500.00", "-90.00"]


def test_zeros_of_the_other_side_don_t_decide_the_sign_of_debits() -> None:
    rows = "2026-01-13,PAY,0.00,500.00\n2026-01-14,RENT,-84.50,0.00\n2026-01-15,PAY,0.00,500.00\n"
    assert amounts(read_export("Date,Description,Debit,Credit\n" + rows)) == ["500.00", "-84.50", "500.00"]


BOOKS = (
    "Date,Description,Debit,Credit,Balance\n2026-01-13,{},500.00,,1500.00\n2026-01-14,{},,84.50,1415.50\n"
    "2026-01-15,{},200.00,,1615.50\n"
)


def test_debits_of_a_business_s_own_books_are_money_in() -> None:
    contents = read_export(BOOKS.format("TAKINGS", "EFTPOS PURCHASE BUNNINGS", "TAKINGS"))
    assert amounts(contents) == ["500.00", "-84.50", "200.00"]
    assert contents.statements[0].rows["balance"].to_list() == ["1500.00", "1415.50", "1615.50"]
    assert contents.statements[0].account_type is None
    assert contents.signs is Signs.ASSUMED


def test_signs_are_assumed_where_balances_rise_with_debits() -> None:
    contents = read_export(BOOKS.format("A", "B", "C"))
    assert amounts(contents) == ["-500.00", "84.50", "-200.00"]
    assert contents.signs is Signs.ASSUMED
    assert read_export(BOOKS.format("A", "B", "C"), "visa.csv").signs is Signs.STATED


def test_notes_are_about_the_customer_that_is_asked_for() -> None:
    rows = "a,2026-01-13,RENT,-84.50,100.00\na,2026-01-14,PAY,500.00,600.00\nb,2026-01-13,RENT,-1.00,\n"
    text = "Customer,Date,Description,Amount,Balance\n" + rows
    whole = read("rows.csv", text.encode())
    assert whole.signs is Signs.ASSUMED
    assert whole.notes == ("Signs are assumed: a minus is money out. No balance proves it.",)
    asked = read("rows.csv", text.encode(), customer="a")
    assert (asked.signs, asked.notes) == (Signs.PROVED, ())
    assert amounts(asked) == amounts(whole)


def test_amounts_without_a_sign_are_counted_for_the_customer_that_is_asked_for() -> None:
    rows = "2026-01-13,RENT,10.00,90.00\n2026-01-14,PAY,50.00,140.00\n2026-01-15,SHOP,20.00,120.00\n"
    opening = "a,2026-01-13,Opening balance,,100.00\n"
    of = {name: "".join(f"{name},{row}\n" for row in rows.splitlines()) for name in "ab"}
    text = f"Customer,Date,Description,Amount,Balance\n{opening}{of['a']}{of['b']}"
    assert "The sign of 1 of 3 amounts is assumed" in " ".join(read("r.csv", text.encode(), customer="b").notes)
    assert "is assumed" not in " ".join(read("r.csv", text.encode(), customer="a").notes)


SIDES = [
    *(("Debit", "Credit"), ("DR.", "CR."), ("DBIT", "CRDT"), ("DB", "CR"), ("-", "+"), ("\u2212", "+")),
    *(("Out", "In"), ("Money out", "Money in"), ("OUTGOING", "INCOMING"), ("S", "H"), ("Soll", "Haben")),
]


@pytest.mark.parametrize("heading", ["Date,Description,Sign,Amount\n", ""])
def test_every_word_for_the_side_of_an_amount_without_sign_is_read(heading: str) -> None:
    for out, into in SIDES:
        text = f"{heading}2026-01-13,SHOP,{out},84.50\n2026-01-14,TAKINGS,{into},500.00\n2026-01-15,SHOP,{out},20.00\n"
        contents = read_export(text)
        assert (amounts(contents), contents.signs) == (["-84.50", "500.00", "-20.00"], Signs.STATED), (out, into)
        assert {row for each in contents.statements for row in each.rows["description"]} == {"SHOP", "TAKINGS"}


def test_debits_stay_debits_if_some_rows_are_of_another_kind() -> None:
    contents = read_export(
        "Date,Description,Type,Amount\n2026-01-13,SHOP,Debit,84.50\n2026-01-14,TAKINGS,Credit,500.00\n"
        "2026-01-15,MONTHLY,Fee,20.00\n"
    )
    assert (amounts(contents), contents.signs) == (["-84.50", "500.00", "20.00"], Signs.ASSUMED)
    assert "1 of 3 amounts is assumed, money in" in " ".join(contents.notes)


def test_each_account_of_a_file_has_its_own_order_of_rows() -> None:
    text = (
        "Account,Date,Description,Amount,Balance\n"
        "11111111,2026-03-01,A,100.00,100.00\n11111111,2026-03-02,B,50.00,150.00\n"
        "11111111,2026-03-02,C,50.00,200.00\n11111111,2026-03-03,D,-20.00,180.00\n"
        "22222222,2026-03-05,G,-20.00,60.00\n22222222,2026-03-05,F,-20.00,80.00\n22222222,2026-03-02,E,100.00,100.00\n"
    )
    contents = read_export(text)
    assert [each.rows["description"].to_list() for each in contents.statements] == [
        ["A", "B", "C", "D"],
        ["E", "F", "G"],
    ]
    assert contents.signs is Signs.PROVED


@pytest.mark.parametrize(
    ("heading", "more"),
    [("Amount", ["10.00", "50.00", "40.00"]), ("Total", ["990.00", "1040.00", "1000.00"]), ("Value", ["x", "", ""])],
    ids=["without signs", "a running total", "no amounts"],
)
def test_debits_and_credits_decide_beside_a_third_column_of_amounts(heading: str, more: list[str]) -> None:
    sides = [("10.00", ""), ("", "50.00"), ("40.00", "")]
    days = enumerate(zip(sides, more, strict=True), start=1)
    rows = [f"2026-02-0{day},A,{','.join(side)},{third}" for day, (side, third) in days]
    contents = read_export("\n".join([f"Date,Description,Debit,Credit,{heading}", *rows]))
    assert amounts(contents) == ["-10.00", "50.00", "-40.00"]
    balances = contents.statements[0].rows["balance"].to_list()
    assert balances == (more if heading == "Total" else [None] * 3)


def test_credits_with_a_minus_are_money_in() -> None:
    """Ledgers print debits without a sign and credits with a minus."""
    rows = "2026-02-13,A,10.00,\n2026-02-14,B,,-50.00\n2026-02-15,C,40.00,\n2026-02-16,D,,-30.00\n"
    contents = read_export("Date,Description,Debit,Credit\n" + rows)
    assert amounts(contents) == ["-10.00", "50.00", "-40.00", "30.00"]


def test_the_column_that_says_debit_or_credit_decides_beside_a_column_of_types() -> None:
    rows = "2026-02-13,A,POS,D,10.00\n2026-02-14,B,EFT,C,50.00\n2026-02-15,C,POS,D,40.00\n"
    contents = read_export("Date,Description,Transaction Type,Debit/Credit,Amount\n" + rows)
    assert amounts(contents) == ["-10.00", "50.00", "-40.00"]
    assert contents.signs is Signs.STATED


@pytest.mark.parametrize(("heading", "word"), [("Clr", "C"), ("Type", "Credit")])
def test_one_word_on_all_rows_turns_no_signs(heading: str, word: str) -> None:
    """All amounts would be inverted: `C` may mean cleared, and a credit may be a kind of account."""
    rows = f"2026-02-13,A,{word},-10.00\n2026-02-14,B,{word},-50.00\n2026-02-15,C,{word},100.00\n"
    contents = read_export(f"Date,Description,{heading},Amount\n{rows}")
    assert amounts(contents) == ["-10.00", "-50.00", "100.00"]
    assert contents.signs is Signs.ASSUMED


def test_a_column_called_something_else_is_no_balance_by_convention() -> None:
    for heading, balances in (("GST", [None, None]), ("Bal.", ["-1.00", "20.00"])):
        contents = read_export(f"When,What,Sum,{heading}\n2026-02-13,A,-11.00,-1.00\n2026-02-14,B,220.00,20.00\n")
        assert amounts(contents) == ["-11.00", "220.00"]
        assert contents.statements[0].rows["balance"].to_list() == balances
