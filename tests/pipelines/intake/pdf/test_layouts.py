"""Recognition of banks, and checks of layout files."""

import pytest

from pipelines.intake.pdf.layout.layout_files import DATE_FORMATS, DATE_SHAPES
from pipelines.intake.pdf.layout.layouts import LayoutError, check_layouts, layouts, recognise_layout
from pipelines.intake.pdf.page.result import Kind
from pipelines.vocabulary.schemas import ACCOUNT_TYPES
from tests.pipelines.intake.pdf.pages import page

BANKS = {"06": "Commonwealth Bank"}
SOUND = """
name: Example Bank
names: [Example Bank]
abn: ["48 123 123 124"]
bsb_of: [Commonwealth Bank]
dates: [DD Mon]
documents:
  statement:
    kind: statement
  card:
    kind: statement
    account_type: credit_card
    balance_owing: true
    dates: [DD/MM/YY]
    section_signs: {Payments received: in, Purchases: out}
    headings: {debit: [spent]}
    ignored_lines: ["^page total"]
"""


def bank_of(*texts: str) -> tuple[str, str] | None:
    found = recognise_layout([page(1, *texts)])
    return (found.slug, found.document) if found else None


def test_the_layout_files_are_valid_and_cover_the_promised_banks() -> None:
    slugs = {layout.slug for layout in layouts()}
    assert slugs >= {"cba", "westpac", "nab", "anz", "macquarie", "bendigo", "suncorp", "ing", "bankwest", "boq", "me"}
    assert slugs >= {"st_george", "banksa", "bank_of_melbourne", "up"}
    assert {layout.account_type for layout in layouts()} <= {None, *ACCOUNT_TYPES}


def test_a_bank_is_recognised_by_its_name_at_the_head_and_its_legal_line() -> None:
    head = "Westpac Banking Corporation ABN 33 007 457 141 AFSL and Australian credit licence 233714"
    assert bank_of("Westpac Choice", "Electronic Statement", "", head) == ("westpac", "statement")


def test_a_brand_is_not_confused_with_the_bank_that_owns_it() -> None:
    owner = "St.George Bank - a division of Westpac Banking Corporation ABN 33 007 457 141 AFSL 233714"
    assert bank_of("St.George", "Statement of Account", owner) == ("st_george", "statement")
    up = "Up is a brand of Bendigo and Adelaide Bank Limited, ABN 11 068 049 178 AFSL 237879"
    assert bank_of("Up", "Statement", "BSB 633-123", up) == ("up", "statement")


def test_a_bank_that_only_rows_name_is_not_recognised() -> None:
    rows = [f"{day:02} Jan Transfer to Westpac | 10.00" for day in range(1, 20)]
    continued = ["to Westpac Banking", "from WESTPAC"]
    assert bank_of("Riverina Mutual", "Account statement", "", *rows, *continued) is None


def test_a_bank_whose_name_is_a_picture_is_recognised_by_its_branch() -> None:
    assert bank_of("NetBank", "BSB 062-000 Account number 1234 5678", "Smart Access") == ("cba", "statement")
    assert bank_of("BSB 062-000") is None


def test_documents_of_one_bank_are_distinguished_by_their_marks() -> None:
    card = ["CommBank Mastercard", "Credit limit $5,000", "Minimum payment", "Payment due date"]
    assert bank_of(*card) == ("cba", "card")
    assert bank_of("CommBank", "Transaction Summary", "Date opened 1 July 2019") == ("cba", "listing")
    assert bank_of("CommBank", "Your Statement", "Statement Period") == ("cba", "statement")


def test_documents_with_the_same_marks_are_distinguished_by_their_dates() -> None:
    head = ("Westpac Banking Corporation ABN 33 007 457 141", "")
    assert bank_of(*head, "01/07/24 Shop | 1.00", "02/07/24 Shop | 1.00") == ("westpac", "statement")
    assert bank_of(*head, "1 Jul 2024 Shop | 1.00", "2 Jul 2024 Shop | 1.00") == ("westpac", "listing")


def test_every_date_form_is_distinguished_from_all_others() -> None:
    month, weekday = "Jul", "Friday"
    for form in DATE_FORMATS:
        written = form.replace("YYYY", "2024").replace("YY", "24").replace("DD", "31").replace("MM", "07")
        text = f"{written.replace('Weekday', weekday).replace('Mon', month)} Shop 12 1.00"
        assert [each for each, shape in DATE_SHAPES.items() if shape.match(text)] == [form]


def test_nothing_is_recognised_on_pages_without_text() -> None:
    assert recognise_layout([]) is None
    assert recognise_layout([page(1)]) is None


def test_fields_of_the_bank_apply_to_documents_that_do_not_override_them() -> None:
    statement, card = check_layouts({"example.yaml": SOUND}, BANKS)
    assert (statement.slug, statement.document, statement.kind) == ("example", "statement", Kind.STATEMENT)
    assert (statement.bsb_prefixes, statement.dates, statement.balance_owing) == (("06",), ("DD Mon",), False)
    assert (card.dates, card.balance_owing, card.headings["debit"]) == (("DD/MM/YY",), True, ("spent",))
    assert card.section_signs == {"payments received": 1, "purchases": -1}
    assert card.ignores("Page total 12.00")
    assert not statement.ignores("Page total 12.00")


def test_all_mistakes_of_all_files_are_reported_at_once_with_their_places() -> None:
    faulty = """
names: [Example, ""]
abn: ["48 123 123 125"]
licences: [234945]
bsb_of: [Nobody's Bank]
dates: [DD/MM/YYYY, tomorrow]
colour: green
documents:
  statement:
    kind: letter
    headings: {amounts: [paid]}
    ignored_lines: ["("]
    balance_owing: sometimes
"""
    with pytest.raises(LayoutError) as error:
        check_layouts({"faulty.yaml": faulty, "twice.yaml": "name: A\nname: B\n", "broken.yaml": "name: [\n"}, BANKS)
    places = [mistake.partition(":")[0] for mistake in str(error.value).splitlines()]
    assert places == [
        "faulty.yaml, /name",
        "faulty.yaml, /names/1",
        "faulty.yaml, /abn/0",
        "faulty.yaml, /licences/0",
        "faulty.yaml, /dates/1",
        "faulty.yaml, /colour",
        "faulty.yaml, /documents/statement/kind",
        "faulty.yaml, /documents/statement/headings/amounts",
        "faulty.yaml, /documents/statement/ignored_lines/0",
        "faulty.yaml, /documents/statement/balance_owing",
        "faulty.yaml, /bsb_of/0",
        "twice.yaml, line 2",
        "broken.yaml, line 2",
    ]


@pytest.mark.parametrize("text", ["", "[]", "name: A\nnames: [A]\ndocuments: []\n"])
def test_a_file_of_another_shape_is_refused_as_such(text: str) -> None:
    with pytest.raises(LayoutError, match=r"shape\.yaml, /"):
        check_layouts({"shape.yaml": text}, BANKS)
