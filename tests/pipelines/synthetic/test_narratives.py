"""Synthetic texts are worded as each bank prints each kind of payment."""

from datetime import date
from random import Random

import pytest

from pipelines.synthetic.ledger.narratives import Teller
from pipelines.synthetic.world.model import LedgerEntry, Movement, Party
from pipelines.synthetic.world.styles import BankStyle, bank_styles

POSTED_ON = date(2024, 4, 24).toordinal()
STYLES = bank_styles()
BY_NAME = {style.name: style for style in STYLES}


def print_narrative(bank: str, movement: Movement, other: str = "") -> str:
    return Teller(BY_NAME[bank], Random(1), "NSW", "4417").narrative(LedgerEntry(movement, 0, None, other))


def purchase(name: str) -> Movement:
    return Movement(POSTED_ON, -4_250, "card", Party(name, "ALEXANDRIA"), "", "materials")


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_every_bank_words_every_rail(style: BankStyle) -> None:
    assert set(style.wordings) == {rail for other in STYLES for rail in other.wordings}
    assert all(style.wordings[rail] for rail in style.wordings if rail != "foreign_fee")


@pytest.mark.parametrize(
    ("bank", "line"),
    [
        ("Commonwealth Bank", "BUNNINGS 372000 ALEXANDRIA NSWAU Card xx4417 Value Date: 23/04/2024"),
        ("Westpac", "EFTPOS DEBIT 0220927 BUNNINGS 372000 ALEXANDRIA 23/04"),
        ("NAB", "Eftpos 23/04 BUNNINGS 372000 ALEXANDRIA"),
        ("ANZ", "EFTPOS BUNNINGS 372000 \\ALEXANDRIA NSWAU"),
        ("Bendigo Bank", "RETAIL PURCHASE 23/04, BUNNINGS 372000, ALEXANDRIA AU CARD NO. XXXX4417"),
        ("Macquarie Bank", "BUNNINGS 372000 ALEXANDRIA AUS"),
        ("St.George", "Eftpos Purchase 23Apr09:36 BUNNINGS 372000 ALEXANDRIA"),
        ("Suncorp Bank", "EFTPOS WDL BUNNINGS 372000 ALEXANDRIA NSW"),
        ("ING", "Visa Purchase - Receipt 220927 BUNNINGS 372000 ALEXANDRIA Date 23 APR 2024 Card 462263xxxxxx4417"),
        ("Bankwest", "DEBIT CARD 23APR24 BUNNINGS 372000        ALEXANDRIA N"),
        ("Bank of Queensland", "VISA 23APR BUNNINGS 372000 ALEXANDRIA"),
        ("HSBC", "POS AUD 23/04 BUNNINGS 372000 ALEXANDRIA"),
        ("Great Southern Bank", "EFT-BUNNINGS 372000 ALEXANDRIA"),
        ("Zeller", "BUNNINGS 372000 ALEXANDRIA · Zeller Debit Card 4417"),
        ("Up", "BUNNINGS 372000, ALEXANDRIA"),
    ],
)
def test_a_hardware_shop_reads_as_each_bank_prints_it(bank: str, line: str) -> None:
    assert print_narrative(bank, purchase("BUNNINGS 372000")) == line


def test_direct_entry_cuts_names_at_sixteen_characters() -> None:
    party = Party("Sandstone Developments", code="301500")
    movement = Movement(POSTED_ON, 110_000, "direct_credit", party, "INV-00214", "customer_transfer")
    assert print_narrative("Commonwealth Bank", movement) == "Direct Credit 301500 Sandstone Develo INV-00214"


def test_a_terminal_prints_alike_every_time() -> None:
    lines = {
        Teller(BY_NAME["NAB"], Random(seed), "NSW", "4417").narrative(LedgerEntry(purchase("REPCO"), 0))[:2]
        for seed in range(9)
    }
    assert len(lines) == 1


def test_an_own_transfer_names_the_end_of_the_other_account() -> None:
    movement = Movement(POSTED_ON, -50_000, "own_out", Party("Banksia Cafe"), "", "own_transfer")
    assert print_narrative("Commonwealth Bank", movement, other="10045131").endswith(
        ("xx5131 NetBank", "xx5131 CommBank app")
    )


def test_purchases_abroad_show_us_dollars() -> None:
    movement = Movement(POSTED_ON, -10_000, "card_foreign", Party("KLAVIYO INC", "BOSTON", "US"), "", "software")
    assert "USD 65.00" in print_narrative("Commonwealth Bank", movement)


def test_banks_word_most_rails_each_in_its_own_way() -> None:
    for rail in ("osko_in", "osko_out", "pay_anyone", "bpay", "own_out", "card_foreign"):
        wordings = [style.wordings[rail] for style in STYLES]
        assert len(set(wordings)) >= len(STYLES) - 2, rail


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_what_a_bank_exports_is_cut_at_its_width(style: BankStyle) -> None:
    long = Movement(POSTED_ON, 100, "osko_in", Party("A" * 300), "B" * 300, "customer_transfer")
    line = Teller(style, Random(1), "NSW", "4417").narrative(LedgerEntry(long, 0))
    assert len(line) <= (style.width or 1_000)
    assert line == (line.upper() if style.capitals else line)


def test_at_least_ten_banks_have_a_style_of_their_own() -> None:
    assert len({style.name for style in STYLES}) == len(STYLES) >= 12
