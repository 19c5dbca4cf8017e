"""The currency of a statement's money, from the file to the row."""

from decimal import Decimal
from itertools import cycle

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Statement, Verdict
from tests.pipelines.intake.pdf.drawing import HEADING, Drawing, four_rows, statement

Lines = tuple[tuple[float, str], ...]
AMOUNTS = ["-5.00", "1000.00", "-50.00", "-5.00"]


def read_drawing(drawing: Drawing) -> Statement:
    (found,) = extract(drawing.finish()).statements
    return found


def amounts(found: Statement) -> list[str]:
    return [str(entry.amount) for entry in found.entries]


def draw_rows(drawing: Drawing, as_printed: dict[str, str]) -> Drawing:
    """Draw rows from 1,234.50 to 2,229.50 with each figure as another country's bank prints it."""
    figures = {text: as_printed.get(text, text) for text in ("1,234.50", "5.00", "1,229.50", "1,000.00", "2,229.50")}
    return drawing.line(*HEADING).lines(
        ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, figures["1,234.50"])),
        ((45, "02 Mar"), (110, "COFFEE"), (-400, figures["5.00"]), (-550, figures["1,229.50"])),
        ((45, "03 Mar"), (110, "SALARY ACME"), (-470, figures["1,000.00"]), (-550, figures["2,229.50"])),
        ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, figures["2,229.50"])),
    )


FIGURES = ("1,234.50", "5.00", "1,229.50", "1,000.00", "2,229.50")


def test_the_currency_is_read_from_the_details_of_the_account(subtests: pytest.Subtests) -> None:
    currencies: list[tuple[str, str | None]] = [
        ("Currency: INR", "INR"),
        ("Account currency USD", "USD"),
        ("USD Account", "USD"),
        ("GBP Business Current Account", "GBP"),
        ("Account in EUR", "EUR"),
        ("All amounts in EUR", "EUR"),
        ("US Dollar Account", "USD"),
        ("Euro Currency Account", "EUR"),
        ("Foreign Currency Account - USD", "USD"),
        ("Currency: Australian dollars", "AUD"),
        ("AUD Everyday Account", "AUD"),
        ("Everyday Account", None),
        ("Foreign currency fee 3 %", None),
    ]
    for line, currency in currencies:
        with subtests.test(line):
            found = read_drawing(four_rows(statement().line((45, line)).line(*HEADING)))
            assert (found.currency, amounts(found), found.verdict) == (currency, AMOUNTS, Verdict.RECONCILED)


STATED_IN_A_SENTENCE = {
    "All amounts are in GBP.": "GBP",
    "All amounts on this statement are shown in US dollars": "USD",
    "Amounts in EUR unless stated otherwise": "EUR",
    "All figures in New Zealand dollars (NZD)": "NZD",
    "Balances are stated in pounds sterling.": "GBP",
    "This account is held in US dollars.": "USD",
    "Denominated in GBP": "GBP",
    "Transactions are shown in US$": "USD",
    "All amounts in £": "GBP",
    "All amounts shown in Canadian dollars": "CAD",
    "Account currency GBP": "GBP",
    "Currency of account: CAD": "CAD",
    "Ccy: GBP": "GBP",
    "All amounts are in AUD.": "AUD",
}
# They mention a currency that is not the account's.
STATED_OF_SOMETHING_ELSE = (
    "Transactions in USD are converted on the day of processing.",
    "Foreign transactions are shown in USD as well.",
    "Open a USD account today and save on fees.",
    "A fee of 3 % applies to amounts withdrawn overseas in EUR.",
    "Balances in USD earn no interest.",
    "Ask us about accounts in GBP",
)


def below_rows(*texts: str) -> Drawing:
    return four_rows(statement().line(*HEADING)).line((45, "")).lines(*(((45, text),) for text in texts))


def at_the_foot(text: str) -> Drawing:
    drawing = four_rows(statement().line(*HEADING))
    drawing.y = 800.0
    return drawing.line((220, text))


def on_the_last_page(text: str) -> Drawing:
    return four_rows(statement().line(*HEADING)).next_page().line((45, "Notes")).line((45, text))


def above_rows(text: str) -> Drawing:
    return four_rows(statement().line((45, text)).line(*HEADING))


def test_the_currency_is_read_from_a_sentence_wherever_it_stands(subtests: pytest.Subtests) -> None:
    places = cycle((above_rows, below_rows, at_the_foot, on_the_last_page))
    drawings = [(text, code, next(places)(text)) for text, code in STATED_IN_A_SENTENCE.items()]
    wrapped = ("All amounts on this statement are", "shown in US", "dollars, rounded to cents.")
    for text, currency, drawing in (*drawings, (" ".join(wrapped), "USD", below_rows(*wrapped))):
        with subtests.test(text):
            found = read_drawing(drawing)
            assert (found.currency, amounts(found), found.verdict) == (currency, AMOUNTS, Verdict.RECONCILED)
    for text in STATED_OF_SOMETHING_ELSE:
        with subtests.test(text):
            assert read_drawing(below_rows(text)).currency is None


def test_a_sentence_at_the_end_of_a_file_counts_for_its_accounts_that_state_none() -> None:
    drawing = draw_rows(statement().line((45, "AUD Everyday Account")), {})
    for number in ("87654321", "11223344"):
        drawing = draw_rows(drawing.next_page().line((45, f"BSB 123-456 Account number {number}")), {})
    found = extract(drawing.line((45, "")).line((45, "All amounts are in US dollars.")).finish()).statements
    assert [each.currency for each in found] == ["AUD", "USD", "USD"]


def test_the_currency_is_read_from_headings_and_figures(subtests: pytest.Subtests) -> None:
    def heading_in(currency: str) -> Lines:
        debit, balance = f"Debit ({currency})", f"Balance ({currency})"
        return (45, "Date"), (110, "Details"), (-400, debit), (-470, "Credit"), (-550, balance)

    for currency in ("GBP", "£"):
        with subtests.test(f"heading {currency}"):
            assert read_drawing(four_rows(statement().line(*heading_in(currency)))).currency == "GBP"
    stands: list[tuple[str, str, str | None]] = [
        *(("£", "", "GBP"), ("€", "", "EUR"), ("", " €", "EUR"), ("US$", "", "USD")),
        *(("EUR ", "", "EUR"), ("", " CHF", "CHF"), ("$", "", None), ("A$", "", "AUD")),
    ]
    for before, behind, currency in stands:
        with subtests.test(f"{before}1.00{behind}"):
            found = read_drawing(draw_rows(statement(), {each: f"{before}{each}{behind}" for each in FIGURES}))
            assert (found.currency, amounts(found)) == (currency, ["-5.00", "1000.00"])
            assert found.verdict is Verdict.RECONCILED


def test_a_mark_that_is_not_ours_is_never_taken_for_ours(subtests: pytest.Subtests) -> None:
    marks = {
        "R": "ZAR",
        "RM": "MYR",
        "Rp": "IDR",
        "KSh": "KES",
        "Ft": "HUF",
        "NZ$": "NZD",
        "GHS": "GHS",
        "TRY": "TRY",
        **dict.fromkeys(("Rs", "Rs.", "kr", "kr.", "Fr.", "¢", "Mex$", "$U"), "XXX"),
        "$": None,
        "A$": "AUD",
        "AU$": "AUD",
    }
    for mark, currency in marks.items():
        for figures in ({each: f"{mark} {each}" for each in FIGURES}, {each: f"{each} {mark}" for each in FIGURES}):
            with subtests.test(figures["5.00"]):
                assert read_drawing(draw_rows(statement(), figures)).currency == currency
    for name, currency in {"Ringgit": "XXX", "GHS": "GHS", "Australian Dollar": "AUD", "Dollars": None}.items():
        with subtests.test(name):
            assert (
                read_drawing(four_rows(statement().line((45, f"Currency: {name}")).line(*HEADING))).currency == currency
            )


def test_a_word_that_ends_a_description_is_no_mark() -> None:
    drawing = statement().line((45, "Date"), (110, "Details"), (-550, "Amount")).line((45, "Currency conversion: none"))
    for day in ("02", "03", "04"):
        drawing.line((45, f"{day} Mar"), (110, "CAFE PARIS FR"), (-550, "5.00"))
    assert read_drawing(drawing).currency is None


def test_numbers_of_other_styles_are_read_exactly(subtests: pytest.Subtests) -> None:
    swapped = str.maketrans(",.", ".,")
    styles: dict[str, dict[str, str]] = {
        "comma": {each: each.translate(swapped) for each in FIGURES},
        "comma and blanks": {each: each.replace(",", " ").replace(".", ",") for each in FIGURES},
        "comma and euros": {each: f"{each.translate(swapped)} €" for each in FIGURES},
        "apostrophes": {each: each.replace(",", "'") for each in FIGURES},
        "blanks": {each: each.replace(",", " ") for each in FIGURES},
        "lakhs": {each: f"11,00,0{each}" for each in ("1,234.50", "1,229.50", "2,229.50")},
    }
    for style, figures in styles.items():
        with subtests.test(style):
            found = read_drawing(draw_rows(statement(), figures))
            assert (amounts(found), found.verdict) == (["-5.00", "1000.00"], Verdict.RECONCILED)
            expected = "110002229.50" if style == "lakhs" else "2229.50"
            assert found.closing_balance == Decimal(expected)


def test_a_purchase_abroad_does_not_change_the_currency_of_an_account() -> None:
    found = read_drawing(
        statement().line(*HEADING).lines(
            ((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00")),
            ((45, "02 Mar"), (110, "AMAZON USD 25.00"), (-400, "38.90"), (-550, "61.10")),
            ((110, "Foreign currency: USD"),),
            ((45, "03 Mar"), (110, "TRANSFER to USD Account"), (-400, "1.10"), (-550, "60.00")),
            ((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "60.00")),
        )
    )  # fmt: skip
    assert (found.currency, amounts(found), found.verdict) == (None, ["-38.90", "-1.10"], Verdict.RECONCILED)


def test_an_amount_in_another_currency_is_reported_and_nothing_is_proved() -> None:
    found = read_drawing(draw_rows(statement(), {"5.00": "€5.00"}))
    assert [entry.currency for entry in found.entries] == ["EUR", None]
    assert (found.currency, found.verdict) == (None, Verdict.PARTIAL)
    assert "OtherCurrency" in {reason.code for reason in found.reasons}
    assert not any(entry.proved for entry in found.entries)


def test_each_section_of_a_file_has_its_own_currency() -> None:
    first = draw_rows(statement().line((45, "AUD Everyday Account")), {})
    second = first.next_page().lines(
        ((45, "USD Account"),), ((45, "BSB 123-456 Account number 87654321"),),
        ((45, "Statement period 1 Mar 2024 - 31 Mar 2024"),),
    )  # fmt: skip
    found = extract(draw_rows(second, {}).finish()).statements
    assert [(each.account_number, each.currency) for each in found] == [("12345678", "AUD"), ("87654321", "USD")]
