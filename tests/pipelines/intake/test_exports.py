"""Exports as banks write them. The layouts are hand-written from general knowledge, with a few lines each."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from pipelines.intake.exports import REFUSED, Contents, Statement, as_submission, read
from pipelines.intake.minus_signs import MINUSES
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.schemas import LANDED

# The rows of every sample below, oldest first: two on one day, one in, one out.
ROWS = [
    ("2026-01-30", "RENT UNIT 4", "-1500.00"),
    ("2026-02-02", "DIRECT CREDIT TYRO PAYMENTS", "2812.40"),
    ("2026-02-02", "EFTPOS BUNNINGS ALEXANDRIA", "-84.50"),
]
BALANCES = ["8500.00", "11312.40", "11227.90"]

COMMONWEALTH = """\
02/02/2026,"-84.50","EFTPOS BUNNINGS ALEXANDRIA","+11227.90"
02/02/2026,"+2812.40","DIRECT CREDIT TYRO PAYMENTS","+11312.40"
30/01/2026,"-1500.00","RENT UNIT 4","+8500.00"
"""
WESTPAC = """\
Bank Account,Date,Narrative,Debit Amount,Credit Amount,Balance,Categories,Serial
032000123456,02/02/2026,"EFTPOS BUNNINGS ALEXANDRIA",84.50,,11227.90,PAYMENT,
032000123456,02/02/2026,"DIRECT CREDIT TYRO PAYMENTS",,2812.40,11312.40,DEP,
032000123456,30/01/2026,"RENT UNIT 4",1500.00,,8500.00,PAYMENT,
"""
ANZ = """\
02/02/2026,-84.50,EFTPOS BUNNINGS ALEXANDRIA
02/02/2026,2812.40,DIRECT CREDIT TYRO PAYMENTS
30/01/2026,-1500.00,RENT UNIT 4
"""
NAB = """\
Date,Amount,Account Number,,Transaction Type,Transaction Details,Balance,Category,Merchant Name
02 Feb 26,-84.50,123456789,,EFTPOS DEBIT,EFTPOS BUNNINGS ALEXANDRIA,11227.90,Hardware,
02 Feb 26,2812.40,123456789,,INTER-BANK CREDIT,DIRECT CREDIT TYRO PAYMENTS,11312.40,Income,
30 Jan 26,-1500.00,123456789,,TRANSFER DEBIT,RENT UNIT 4,8500.00,Rent,
"""
NAB_WITHOUT_HEADING = """\
02-Feb-26,-84.50,123456789,,EFTPOS,BUNNINGS ALEXANDRIA,11227.90
02-Feb-26,2812.40,123456789,,DIRECT CREDIT,TYRO PAYMENTS,11312.40
30-Jan-26,-1500.00,123456789,,RENT,UNIT 4,8500.00
"""
ST_GEORGE = """\
Date,Description,Debit,Credit,Balance
30/01/2026,RENT UNIT 4,1500.00,,8500.00
02/02/2026,DIRECT CREDIT TYRO PAYMENTS,,2812.40,11312.40
02/02/2026,EFTPOS BUNNINGS ALEXANDRIA,84.50,,11227.90
"""
ING = """\
Date,Description,Credit,Debit,Balance
02/02/2026,"EFTPOS BUNNINGS ALEXANDRIA",,-84.50,11227.90
02/02/2026,"DIRECT CREDIT TYRO PAYMENTS",2812.40,,11312.40
30/01/2026,"RENT UNIT 4",,-1500.00,8500.00
"""
MACQUARIE = """\
Transaction Date,Details,Account,Category,Subcategory,Tags,Notes,Debit,Credit,Balance,Original Description
02 Feb 2026,Bunnings,Business Cheque,Shopping,Hardware,,,84.50,,11227.90,EFTPOS BUNNINGS ALEXANDRIA
02 Feb 2026,Tyro,Business Cheque,Income,Sales,,,,2812.40,11312.40,DIRECT CREDIT TYRO PAYMENTS
30 Jan 2026,Rent,Business Cheque,Bills,Rent,,,1500.00,,8500.00,RENT UNIT 4
"""
BENDIGO = """\
"20260202","-84.50","EFTPOS BUNNINGS ALEXANDRIA"
"20260202","2812.40","DIRECT CREDIT TYRO PAYMENTS"
"20260130","-1500.00","RENT UNIT 4"
"""
SUNCORP = """\
Account History for Account:,123456789

Date,Description,Amount,Balance
02/02/2026,EFTPOS BUNNINGS ALEXANDRIA,-$84.50,"$11,227.90"
02/02/2026,DIRECT CREDIT TYRO PAYMENTS,"$2,812.40","$11,312.40"
30/01/2026,RENT UNIT 4,"-$1,500.00","$8,500.00"
"""
BANKWEST = """\
BSB Number,Account Number,Transaction Date,Narration,Cheque,Debit,Credit,Balance,Transaction Type
306-000,1234567,02/02/2026,"EFTPOS BUNNINGS ALEXANDRIA",,84.50,,11227.90,WDL
306-000,1234567,02/02/2026,"DIRECT CREDIT TYRO PAYMENTS",,,2812.40,11312.40,DEP
306-000,1234567,30/01/2026,"RENT UNIT 4",000017,1500.00,,8500.00,CHQ
"""
BOQ = """\
Posted Date,Transaction Description,Debit Amount ($),Credit Amount ($),Balance ($)
2-Feb-2026,EFTPOS BUNNINGS ALEXANDRIA,84.50,0.00,"11,227.90 CR"
2-Feb-2026,DIRECT CREDIT TYRO PAYMENTS,0.00,"2,812.40","11,312.40 CR"
30-Jan-2026,RENT UNIT 4,"1,500.00",0.00,"8,500.00 CR"
"""
UP = """\
Time,BSB / Account Number,Transaction Type,Payee,Description,Category,Tags,Subtotal (AUD),Currency,\
Subtotal (Transaction Currency),Fee (AUD),Round Up (AUD),Total (AUD),Payment Method,Settled Date
2026-02-02T17:10:00+11:00,633-123 123456789,Purchase,EFTPOS BUNNINGS ALEXANDRIA,,Home,,-84.50,USD,-55.00,0.00,0.00,\
-84.50,Card,2026-02-03
2026-02-02T09:00:00+11:00,633-123 123456789,Deposit,DIRECT CREDIT TYRO PAYMENTS,,,,2812.40,,,0.00,0.00,2812.40,,
2026-01-30T08:00:00+11:00,633-123 123456789,Transfer,RENT UNIT 4,,,,-1500.00,,,0.00,0.00,-1500.00,,2026-01-30
"""
CARD_WITH_SUFFIXES = """\
Processed Date;Particulars;Amount;Balance
30 January 2026;RENT UNIT 4;1,500.00 DR;8,500.00 CR
2 February 2026;DIRECT CREDIT TYRO PAYMENTS;2,812.40 CR;11,312.40 CR
2 February 2026;EFTPOS BUNNINGS ALEXANDRIA;84.50 DR;11,227.90 CR
"""
BOOKKEEPER = """\
Tran Date\tMemo\tType\tValue\tRunning Balance
2026-01-30\tRENT UNIT 4\tDebit\t1500.00\t8500.00
2026-02-02\tDIRECT CREDIT TYRO PAYMENTS\tCredit\t2812.40\t11312.40
2026-02-02\tEFTPOS BUNNINGS ALEXANDRIA\tDebit\t84.50\t11227.90
"""
IN_BRACKETS = """\
Date,Text,Amount,Balance
30/01/26,RENT UNIT 4,"(1,500.00)",8500.00
02/02/26,DIRECT CREDIT TYRO PAYMENTS,"2,812.40",11312.40
02/02/26,EFTPOS BUNNINGS ALEXANDRIA,(84.50),11227.90
"""
WITHOUT_SIGN = """\
Date,Details,Amount,Balance
30/01/2026,OPENING BALANCE,,"10,000.00"
30/01/2026,RENT UNIT 4,1500.00,8500.00
02/02/2026,DIRECT CREDIT TYRO PAYMENTS,2812.40,11312.40
02/02/2026,EFTPOS BUNNINGS ALEXANDRIA,84.50,11227.90
"""
DECIMAL_COMMAS = """\
Date;Text;Amount;Balance
30.01.2026;RENT UNIT 4;-1.500,00;8.500,00
02.02.2026;DIRECT CREDIT TYRO PAYMENTS;2.812,40;11.312,40
02.02.2026;EFTPOS BUNNINGS ALEXANDRIA;-84,50;11.227,90
"""
FIVE_COLUMNS_WITHOUT_HEADING = """\
02/02/2026,EFTPOS BUNNINGS ALEXANDRIA,84.50,,11227.90
02/02/2026,DIRECT CREDIT TYRO PAYMENTS,,2812.40,11312.40
30/01/2026,RENT UNIT 4,1500.00,,8500.00
"""
LAYOUTS = {
    "Commonwealth Bank": (COMMONWEALTH, True, {}),
    "Westpac": (WESTPAC, True, {"account_number": "032000123456"}),
    "ANZ": (ANZ, False, {}),
    "NAB": (NAB, True, {"account_number": "123456789"}),
    "NAB without heading": (NAB_WITHOUT_HEADING, True, {"account_number": "123456789"}),
    "St.George and BankSA": (ST_GEORGE, True, {}),
    "ING": (ING, True, {}),
    "Macquarie": (MACQUARIE, True, {"bank_name": "Business Cheque"}),
    "Bendigo": (BENDIGO, False, {}),
    "Suncorp": (SUNCORP, True, {}),
    "Bankwest": (BANKWEST, True, {"bsb": "306-000", "account_number": "1234567"}),
    "Bank of Queensland": (BOQ, True, {}),
    "Up": (UP, False, {"bsb": "633-123", "account_number": "123456789"}),
    "suffixes and semicolons": (CARD_WITH_SUFFIXES, True, {}),
    "a bookkeeping program": (BOOKKEEPER, True, {}),
    "amounts in brackets": (IN_BRACKETS, True, {}),
    "amounts without sign": (WITHOUT_SIGN, True, {}),
    "decimal commas": (DECIMAL_COMMAS, True, {}),
    "debit and credit without heading": (FIVE_COLUMNS_WITHOUT_HEADING, True, {}),
}
ACCOUNT_FIELDS = ("customer", "account_name", "bsb", "account_number", "bank_name", "account_type", "credit_limit")


def only_statement(text: str | bytes) -> Statement:
    contents = read("export.csv", text if isinstance(text, bytes) else text.encode())
    assert len(contents.statements) == 1
    assert contents.refused.is_empty()
    assert contents.refused.schema == REFUSED
    return contents.statements[0]


def rows_of(statement: Statement) -> list[tuple[str, str, str]]:
    return statement.rows.select("date", "description", "amount").rows()


def lines_without_rows(text: str) -> list[tuple[int, str]]:
    return read("export.csv", text.encode()).no_rows.rows()


def notes_of(text: str) -> str:
    return " ".join(read("export.csv", text.encode()).notes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_and_each_its_line_number(layout: str) -> None:
    text, has_balances, account = LAYOUTS[layout]
    statement = only_statement(text)
    assert rows_of(statement) == ROWS
    assert statement.rows["balance"].to_list() == (BALANCES if has_balances else [None] * 3)
    assert statement.rows.select(LANDED.names()).schema == LANDED
    assert statement.rows["position"].to_list() == [0, 1, 2]
    named = {name: getattr(statement, name) for name in ACCOUNT_FIELDS if getattr(statement, name) is not None}
    assert named == account
    lines = text.splitlines()
    for description, line in zip(statement.rows["description"], statement.lines, strict=True):
        assert description.split()[-1] in lines[line - 1]


@pytest.mark.parametrize("layout", ["Commonwealth Bank", "Westpac"])  # without a heading and with one
def test_byte_order_mark_line_ends_and_blank_lines_make_no_difference(layout: str) -> None:
    text, _, _ = LAYOUTS[layout]
    for variant in (
        b"\xef\xbb\xbf" + text.encode(),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
        text.replace("\n", "\n\n\n").encode(),
        text.rstrip("\n").encode(),
        text.encode("utf-16"),
    ):
        assert rows_of(only_statement(variant)) == ROWS


def test_debit_and_credit_without_heading_or_balance_are_assumed_in_the_usual_order() -> None:
    text = "02/02/2026,BUNNINGS,84.50,\n30/01/2026,TYRO,,12.00\n"
    assert [row[2] for row in rows_of(only_statement(text))] == ["12.00", "-84.50"]
    assert "usual order" in notes_of(text)


def test_a_preamble_and_a_footer_are_not_transactions() -> None:
    text = f"Harbour Coffee Pty Ltd\nAccount statement,,,\n\n{ST_GEORGE}\nClosing balance,,,,11227.90\nEnd of report\n"
    assert rows_of(only_statement(text)) == ROWS
    assert lines_without_rows(text) == [
        (1, "before the rows"),
        (2, "before the rows"),
        (3, "blank"),
        (8, "blank"),
        (9, "without date and amount"),
        (10, "without date and amount"),
    ]


def test_repeated_headings_of_concatenated_exports_are_skipped() -> None:
    assert rows_of(only_statement(ST_GEORGE + ST_GEORGE)) == ROWS + ROWS


def test_several_accounts_and_customers_in_one_file_are_several_statements() -> None:
    text = (
        "customer,account,date,description,amount,balance\n"
        "Harbour,cheque,2026-01-30,RENT,-1500,8500\n"
        "Harbour,062-000 12345678,2026-01-30,TYRO,5,5\n"
        "Pier,cheque,2026-01-30,RENT,-1,\n"
        "Harbour,cheque,2026-02-02,,3.5,8503.50\n"
    )
    contents = read("plain.csv", text.encode())
    found = [(s.customer, s.bank_name, s.bsb, s.account_number, s.lines.to_list()) for s in contents.statements]
    assert found == [
        ("Harbour", "cheque", None, None, [2, 5]),
        ("Harbour", None, "062-000", "12345678", [3]),
        ("Pier", "cheque", None, None, [4]),
    ]
    assert rows_of(contents.statements[0]) == [("2026-01-30", "RENT", "-1500"), ("2026-02-02", "-", "3.5")]


def test_the_name_of_an_account_gives_its_type() -> None:
    rows = "date,description,amount,account\n2026-01-30,A,-1,{}\n2026-01-31,B,-1,{}\n"
    types = {
        name: only_statement(rows.format(name, name)).account_type
        for name in ("Business Visa", "Online Saver", "Equipment Loan", "Everyday")
    }
    assert types == {
        "Business Visa": "credit_card",
        "Online Saver": "savings",
        "Equipment Loan": "loan",
        "Everyday": None,
    }


def test_month_first_needs_a_date_that_proves_it() -> None:
    ambiguous = "Date,Description,Amount\n02/03/2026,A,1.00\n03/04/2026,B,-2.00\n"
    assert [row[0] for row in rows_of(only_statement(ambiguous))] == ["2026-03-02", "2026-04-03"]
    assert "the day was assumed" in notes_of(ambiguous)
    proven = ambiguous + "04/25/2026,C,-3.00\n"
    assert [row[0] for row in rows_of(only_statement(proven))] == ["2026-02-03", "2026-03-04", "2026-04-25"]
    assert "month first: 04/25/2026 on line 4" in notes_of(proven)


def test_dates_that_prove_both_orders_are_read_day_first_and_the_others_are_left_as_printed() -> None:
    text = "Date,Description,Amount\n13/03/2026,A,1.00\n04/25/2026,C,-3.00\n"
    assert [row[0] for row in rows_of(only_statement(text))] == ["2026-03-13", "04/25/2026"]
    assert "04/25/2026 on line 3 is a date only with the month first" in notes_of(text)


@pytest.mark.parametrize(
    "printed",
    [
        *("5/3/2026", "05/03/26", "05-03-2026", "5.3.2026", "2026-03-05", "2026/3/5", "20260305", "5 Mar 2026"),
        *(
            "05MAR2026",
            "5-March-26",
            "Thu, 5 Mar 2026",
            "Mar 5, 2026",
            "5/03/2026 4:05 PM",
            "2026-03-05T23:30:00+11:00",
        ),
    ],
)
def test_a_day_is_read_in_every_form(printed: str) -> None:
    text = f'Date,Description,Amount\n"{printed}",A,-1.00\n'
    assert rows_of(only_statement(text)) == [("2026-03-05", "A", "-1.00")]


@pytest.mark.parametrize(
    ("printed", "read_as"),
    [
        *(
            (text, "-1234.50")
            for text in ("-1234.50", "-$1,234.50", "$-1,234.50", "(1,234.50)", "1234.50-", "−1234.50")
        ),
        *((f"{minus}1234.50", "-1234.50") for minus in MINUSES),
        *((text, "-1234.50") for text in ("1,234.50 DR", "DR 1234.50", "A$1,234.50dr", "-1,234.50 DR", "AUD -1234.50")),
        *((text, "1234.50") for text in ("1234.50", "+1,234.50", "$1,234.50", "1234.50CR", "1 234.50")),
        *((text, text) for text in ("12,34.50", "1.2.3", "-1.00 CR", "abc", "(5.00", "--5.00", "-", "1234.505")),
        (".5", "0.5"),
        ("5.", "5"),
        *((text, "5") for text in ("5.-", "5.—", "$5.--")),
        *(("-5.-", "-5"), ("1.200,-", "1.200,-")),
    ],
)
def test_an_amount_is_read_or_left_as_printed(printed: str, read_as: str) -> None:
    text = f'Date,Description,Amount\n2026-01-01,A,-9.99\n2026-01-02,B,"{printed}"\n'
    assert rows_of(only_statement(text))[1][2] == read_as


@pytest.mark.parametrize("moment", ["14/01/2026 00:00", "2026-01-14 00:00", "2026-01-14T00:00:00"])
def test_no_delimiter_is_taken_for_part_of_a_time(moment: str) -> None:
    """`14/01/2026 00:00;SHOP;645,89` split at its comma is not a date and an amount of 89."""
    lines = [f"{moment};SHOP;-645,89;-32,48\n", f"{moment};FIZZ;-1.000,10;-1.032,58\n"]
    (statement,) = read("x.csv", ("Date;Narrative;Amount;Balance\n" + "".join(lines)).encode()).statements
    assert statement.rows["amount"].to_list() == ["-645.89", "-1000.10"]


def test_a_point_before_three_digits_is_no_decimal_point_without_proof() -> None:
    def file(*amounts: str) -> Contents:
        return read("x.csv", "".join(f"2026-01-13;SHOP;{each}\n" for each in amounts).encode())

    thousands = file("-350.000", "1.500.000", "-20")
    assert thousands.statements[0].rows["amount"].to_list() == ["-350000", "1500000", "-20"]
    open_question = file("-1.500", "20", "-12.000")
    assert open_question.refused.select("line", "code").rows() == [
        (1, "Export.AmbiguousAmount"),
        (3, "Export.AmbiguousAmount"),
    ]
    assert open_question.statements[0].rows["amount"].to_list() == ["20"]
    decimals = file("-1.500", "20.50", "-0.500")
    assert decimals.statements[0].rows["amount"].to_list() == ["-1.500", "20.50", "-0.500"]


def amounts_of(*printed: str) -> tuple[list[str | None], list[tuple[int, str]]]:
    """Return the amounts that are read of a file without balances, and the lines that are refused."""
    contents = read("x.csv", "".join(f"2026-01-13;SHOP;{each}\n" for each in printed).encode())
    amounts = [each for statement in contents.statements for each in statement.rows["amount"]]
    return amounts, contents.refused.select("line", "code").rows()


@pytest.mark.parametrize(
    ("printed", "amounts"),
    [
        (("-13,150", "13,15"), ["-13.150", "13.15"]),
        (("-13,150", "5,5"), ["-13.150", "5.5"]),
        (("-13,150", "0,500"), ["-13.150", "0.500"]),
        (("-13,150", "1234,500"), ["-13.150", "1234.500"]),
        (("-13,150", "1.234,500"), ["-13.150", "1234.500"]),
        (("-13,150", "20.50"), ["-13150", "20.50"]),
        (("-13,150", "1,500,000"), ["-13150", "1500000"]),
        (("-13,150", "20"), ["-13150", "20"]),
    ],
)
def test_whole_file_decides_what_a_comma_before_three_digits_means(
    printed: tuple[str, ...], amounts: Sequence[str]
) -> None:
    assert amounts_of(*printed) == (amounts, [])
    assert amounts_of(*reversed(printed)) == (list(reversed(amounts)), [])
    many = amounts_of(*[printed[0]] * 500, *printed)
    assert many == ([*[amounts[0]] * 500, *amounts], []), "what decides it may come late in the file"


def test_comma_before_three_digits_is_refused_if_the_file_has_both_kinds_of_decimals() -> None:
    cents = [f"{amount}.50" for amount in range(20, 40)]
    amounts, refused = amounts_of("-13,150", "13,15", *cents)
    assert refused == [(1, "Export.AmbiguousAmount")]
    assert amounts == ["13,15", *cents], "`validate` refuses the first"


def test_comma_before_three_digits_is_said_to_separate_thousands_if_nothing_shows_it() -> None:
    def is_said(*amounts: str) -> bool:
        text = "".join(f"2026-01-13;SHOP;{each}\n" for each in amounts)
        return "comma" in notes_of(text)

    assert is_said("-13,150", "2,500")
    assert is_said("-13,150", "20")
    assert not is_said("-13,150", "20.50")
    assert not is_said("-13,150", "1,500,000")
    assert not is_said("-13,150", "20,5")
    assert not is_said("-13", "20")


def test_a_dash_in_place_of_cents_is_no_minus() -> None:
    text = "2026-01-13;SHOP;1.200,-;1.300,-\n2026-01-14;RENT;-1.000,-;300,-\n2026-01-15;TAX;-75,20;224,80\n"
    assert [row[2] for row in rows_of(only_statement(text))] == ["1200", "-1000", "-75.20"]


@pytest.mark.parametrize("printed", ["[{}]", "<{}>", "{} OD", "{} debit", "{}Db"])
@pytest.mark.parametrize("heading", ["", "Date,Text,Moved,Balance\n"])
def test_balances_are_not_taken_for_amounts_that_cannot_be_read(printed: str, heading: str) -> None:
    rows = [(printed.format("5.00"), "95.00"), ("20.00", "115.00"), (printed.format("15.00"), "100.00")]
    lines = [f"2026-01-1{day},SHOP {day},{amount},{balance}\n" for day, (amount, balance) in enumerate(rows, start=3)]
    with pytest.raises(InvalidRequest, match="has amounts in column 3 that can't be read"):
        only_statement(heading + "".join(lines))


def test_only_positive_amounts_without_balances_are_said_to_be_read_as_money_in() -> None:
    text = "Date,Description,Amount\n2026-01-01,A,9.99\n2026-01-02,B,5.00\n"
    assert [row[2] for row in rows_of(only_statement(text))] == ["9.99", "5.00"]
    assert "Signs are assumed: no amount has a minus" in notes_of(text)


def test_a_balance_of_the_amount_owed_is_negated() -> None:
    text = (
        "Date,Description,Amount,Balance\n2026-01-01,SHOP,-10.00,110.00\n2026-01-02,SHOP,-20.00,130.00\n"
        "2026-01-03,PAYMENT,50.00,80.00\n"
    )
    statement = only_statement(text)
    assert statement.rows["balance"].to_list() == ["-110.00", "-130.00", "-80.00"]
    assert statement.account_type == "credit_card"
    assert "the amount owed" in notes_of(text)


def test_a_row_with_both_debit_and_credit_is_refused() -> None:
    contents = read("x.csv", (ST_GEORGE + "03/02/2026,BOTH,5.00,7.00,11229.90\n").encode())
    assert contents.refused.select("line", "code").rows() == [(5, "Export.DebitAndCredit")]
    assert rows_of(contents.statements[0]) == ROWS


def test_a_comma_without_quotes_refuses_only_its_line() -> None:
    contents = read("x.csv", (ST_GEORGE + "03/02/2026,COFFEE, SYDNEY,5.00,,11222.90\n").encode())
    assert contents.refused.select("line", "code").rows() == [(5, "Export.SurplusCells")]
    assert rows_of(contents.statements[0]) == ROWS


def test_a_reversed_debit_is_money_in() -> None:
    text = ST_GEORGE + "03/02/2026,REVERSAL OF EFTPOS,-84.50,,11312.40\n"
    assert rows_of(only_statement(text))[3][2] == "84.50"


def test_a_text_over_several_lines_becomes_one_and_the_next_row_keeps_its_line() -> None:
    text = 'Date,Description,Amount\n2026-01-01,"RENT\nUNIT 4\r\n  SYDNEY",-1.00\n2026-01-02,B,2.00\n'
    statement = only_statement(text)
    assert [row[1] for row in rows_of(statement)] == ["RENT UNIT 4 SYDNEY", "B"]
    assert statement.lines.to_list() == [2, 5]


def test_windows_1252_is_read_if_a_file_is_not_utf_8() -> None:
    assert rows_of(only_statement("Date,Description,Amount\n2026-01-01,Café – Zoë,-1.00\n".encode("cp1252"))) == [
        ("2026-01-01", "Café – Zoë", "-1.00")
    ]


def test_card_numbers_are_masked() -> None:
    text = "Date,Description,Amount\n2026-01-01,PAID 4111 1111 1111 1111,-1.00\n"
    assert rows_of(only_statement(text))[0][1] == "PAID 411111xxxxxx1111"


def test_payee_and_description_are_joined_without_repetition() -> None:
    text = (
        "Date,Payee,Description,Transaction Type,Amount\n2026-01-01,Acme,invoice 7,Transfer,-1.00\n"
        "2026-01-02,Acme,ACME INVOICE 8,Transfer,-1.00\n2026-01-03,,,Fee,-1.00\n"
    )
    assert [row[1] for row in rows_of(only_statement(text))] == ["Acme invoice 7", "ACME INVOICE 8", "Fee"]


def test_pending_status_value_dates_ids_and_currencies_are_read() -> None:
    text = (
        "Date,Value Date,Description,Amount,Currency,Transaction ID,Status\n"
        "01/02/2026,31/01/2026,A,-1.00,aud,t1,Posted\n02/02/2026,,B,-2.00,NZD,t2,PENDING\n"
    )
    rows = only_statement(text).rows.select("valueDate", "currency", "transactionId", "status").rows()
    assert rows == [("2026-01-31", "AUD", "t1", None), (None, "NZD", "t2", "pending")]


def test_repeated_ids_are_dropped() -> None:
    text = "Date,Description,Amount,Transaction ID\n01/02/2026,A,-1.00,t1\n02/02/2026,B,-2.00,t1\n"
    assert only_statement(text).rows["transactionId"].to_list() == [None, None]


def test_rows_without_an_id_leave_the_other_ids() -> None:
    lines = (
        "Date,Description,Amount,Transaction ID",
        "01/02/2026,A,-1.00,t1",
        "02/02/2026,B,-2.00,",
        "03/02/2026,C,-3.00,",
    )
    rows = only_statement("\n".join(lines) + "\n").rows
    assert rows["transactionId"].to_list() == ["t1", None, None]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \r\n\n", "is empty"),
        (b"%PDF-1.7 ...", "is a PDF"),
        (b"PK\x03\x04\x14\x00", "is an Excel workbook"),
        (b"\x00\x01\x02,\x03\n", "is not a text file"),
        (b"hello", "has no line with a date and an amount"),
        (b"Date,Description,Amount\n", "has no line with a date and an amount"),
        (b"2026-01-01\n2026-01-02\n", "has no line with a date and an amount"),
        (b"a,b\n1,2\n3,4\n", "has no line with a date and an amount"),
        (b"," * 500 + b"\n", "has more than 100 columns"),
        (ST_GEORGE.encode() + b'03/02/2026,"OPEN,1.00,,2.00\n04/02/2026,NEXT,1.00,,1.00\n', "has a quote on line 5"),
        (b'2026-01-01,1.00,"' + b"x" * 200_000, "has a quoted text on line 1 that never ends"),
        (b"{", "is not valid JSON: The body is not one valid JSON document."),
        (b"[]", "has no submission"),
        (b'{"transactions": 1}', "has no `transactions`"),
        (b'[{"transactions": [1]}]', "has no `transactions`"),
        (b'{"transactions": [], "bsb": 5}', "has a bsb that is not text"),
        (b'{"transactions": [], "creditLimit": "x"}', "has a creditLimit"),
    ],
)
def test_an_unreadable_file_is_refused_with_one_line(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read("feed.csv", content)
    assert caught.value.detail.startswith("feed.csv")
    assert reason in caught.value.detail
    assert "\n" not in caught.value.detail


def test_doubts_of_statements_extract_are_read_and_its_proofs_are_not() -> None:
    lines = (
        "date,description,amount,balance,proved,verdict",
        "2026-01-30,RENT UNIT 4,-1500.00,8500.00,no,partial",
        "2026-02-02,DIRECT CREDIT TYRO PAYMENTS,2812.40,11312.40,yes,partial",
        "2026-02-03,EFTPOS BUNNINGS ALEXANDRIA,-84.50,11227.90,no,unreconciled",
        "2026-02-04,EFTPOS BUNNINGS ALEXANDRIA,-84.50,11143.40,no,guilty",
    )
    rows = as_submission(read("rows.csv", "\n".join(lines).encode()).statements, datetime(2026, 3, 1, tzinfo=UTC)).rows
    assert rows.select("statement_verdict", "statement_proved").collect().rows() == [
        ("partial", False),
        (None, None),
        ("unreconciled", False),
        (None, None),
    ]


def test_account_numbers_that_a_spreadsheet_has_shortened_are_refused() -> None:
    text = "Account Number,Date,Description,Amount\n7.33E+11,13/01/2026,A,-1.00\n7.33E+11,14/01/2026,B,-2.00\n"
    with pytest.raises(InvalidRequest) as caught:
        read("x.csv", text.encode())
    assert caught.value.code == "Export.ShortenedNumber"


def test_fees_in_a_column_of_their_own_are_noted() -> None:
    text = "Date,Description,Amount,Fee,Balance\n13/01/2026,A,50.00,{},50.00\n14/01/2026,B,-5.00,0.00,45.00\n"
    assert "fees in a column of their own" in notes_of(text.format("2.50"))
    assert "fees" not in notes_of(text.format("0.00"))


@pytest.mark.parametrize(
    ("ids", "read_as"),
    [("12", [None, None]), ("21", [None, None]), ("10", [None, None]), ("23", ["2", "3"]), ("1x", ["1", "x"])],
)
def test_ids_that_only_number_the_rows_are_no_ids(ids: str, read_as: list[str | None]) -> None:
    first, second = ids
    text = f"Transaction ID,Date,Description,Amount\n{first},13/01/2026,A,-1.00\n{second},14/01/2026,B,-2.00\n"
    assert only_statement(text).rows["transactionId"].to_list() == read_as
