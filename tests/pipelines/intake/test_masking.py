"""Card numbers and tax file numbers are masked in every spelling; other numbers are left alone."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn
from stdnum.au import tfn

from pipelines.intake.masking import card_lengths, mask_json, mask_text, masked_texts, may_need_masking


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("CARD 4111 1111 1111 1111 SYDNEY", "CARD 411111xxxxxx1111 SYDNEY"),
        ("4111-1111-1111-1111", "411111xxxxxx1111"),
        ("5555555555554444 and 378282246310005", "555555xxxxxx4444 and 378282xxxxx0005"),
        ("12 4111111111111111 99", "12 411111xxxxxx1111 99"),
        ("4111111111111111-5555555555554444", "411111xxxxxx1111-555555xxxxxx4444"),
        ("\uff14111 1111 1111 1111", "411111xxxxxx1111"),  # NFKC, later, makes a 4 of a full-width one
        ("CARD-4111111111111111", "CARD-411111xxxxxx1111"),
        ("statement_4111111111111111.pdf", "statement_411111xxxxxx1111.pdf"),
        ("PAID 3782-822463-10005, THANKS", "PAID 378282xxxxx0005, THANKS"),
        ("- 4111-1111-1111-1111 -", "- 411111xxxxxx1111 -"),
        ("卡4111111111111111号", "卡411111xxxxxx1111号"),  # such scripts have no spaces
        ("CARD 4111\u00a01111\u00a01111\u00a01111", "CARD 411111xxxxxx1111"),  # pages and PDFs have such spaces
        ("CARD 4111  1111   1111 1111", "CARD 411111xxxxxx1111"),
        ("CARD 4111\u200b1111\u200b1111\u200b1111", "CARD 411111xxxxxx1111"),  # shown as one number
        ("CARD 4111 \u200b 1111 1111  1111", "CARD 411111xxxxxx1111"),
        ("4111  1111-1111  1111 and 4111  1111 1111 1111 7", "411111xxxxxx1111 and 411111xxxxxx1111 7"),
        ("4111\u20131111\u20131111\u20131111", "411111xxxxxx1111"),
        ("é 41\u00ad1111 1111\u2009 1111 11 é", "é 411111xxxxxx1111 é"),
        ("4111  1111  1111  1111  X", "411111xxxxxx1111  X"),
        ("4111\u2009\u20091111 1111\u30001111", "411111xxxxxx1111"),
        ("41111111\u00ad11111111 7", "411111xxxxxx1111 7"),
        ("TFN 123\u00a0456\u2010782", "TFN xxx\u00a0xxx\u2010xxx"),
        ("TFN 123 456 782", "TFN xxx xxx xxx"),
        ("TFN 123 456 78\uff12", "TFN xxx xxx xxx"),
        ("Tax file number: 123456782", "Tax file number: xxxxxxxxx"),
    ],
)
def test_card_and_tax_file_numbers_are_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # wrong check digit
        "41111111111111111111",  # inside a longer run
        "062000 12345678",  # BSB and account
        "1234 5678 1234 5670",  # no issuer's range
        "TFN 123 456 789",  # wrong checksum
        "123 456 782",  # no label
        "invoice 2026-10-31 4411",
        "a4603940000004085b",  # hex, around a card's digits
        "9f24603940000004085",
        "0b9f61a2-8c1d-4f7e-4603-940000004085",  # a UUID
        "4603-940000004085",  # cards are not grouped like this
        "TXN4111111111111111",
        "4111111111111111AUD",
        "TXN-4111-1111-1111-1111",  # the groups of an id
        "4111-1111-1111-1111-7",
        "4111-1111-1111-1111-X",
        "4111\u20111111\u20111111\u20111111\u2011X",
        "4111 - 1111 - 1111 - 1111",
        "4111\n1111\n1111\n1111",
    ],
)
def test_other_numbers_are_not_masked(text: str) -> None:
    assert mask_text(text) == text


@given(
    st.integers(0, 10**9 - 1), st.sampled_from(["", " ", "-", "  ", "\u00a0", "\u202f", "\u2011", "\u200d", " \u00ad"])
)
def test_visa_numbers_are_masked_in_every_grouping(account: int, separator: str) -> None:
    payload = f"4{account:014d}"
    number = payload + luhn.calc_check_digit(payload)
    grouped = separator.join(number[start : start + 4] for start in range(0, 16, 4))
    masked = f"PAID {number[:6]}xxxxxx{number[-4:]} OK"
    assert mask_text(f"PAID {grouped} OK") == masked
    document = json.dumps({"PAID": f"PAID {grouped} OK"}, ensure_ascii=False)
    assert may_need_masking(document)
    assert json.loads(mask_json(document)) == {"PAID": masked}
    assert masked_texts(pl.Series([f"PAID {grouped} OK"])) == {f"PAID {grouped} OK": masked}


_GROUPS = st.sampled_from(["0", "4", "5", "37", "62", "4111"])
_LONG_GROUPS = st.sampled_from(["4111", "1111", "411111", "2345", "678", "37", "5"])


@given(st.lists(_GROUPS, min_size=12, max_size=40) | st.lists(_LONG_GROUPS, min_size=2, max_size=9))
def test_groups_of_digits_are_masked_as_a_plain_loop_would(groups: list[str]) -> None:
    shown, first = list[str](), 0
    while first < len(groups):
        numbers = ((after, "".join(groups[first:after])) for after in range(first + 1, len(groups) + 1))
        cards = (
            (after, number)
            for after, number in numbers
            if len(number) in card_lengths(number[:4]) and luhn.is_valid(number)
        )
        first, card = next(cards, (first + 1, ""))
        shown.append(f"{card[:6]}{'x' * (len(card) - 10)}{card[-4:]}" if card else groups[first - 1])
    assert mask_text(" ".join(groups)) == " ".join(shown)


@given(st.from_regex(r"[0-9]{8,9}", fullmatch=True))
def test_tax_file_numbers_are_masked_if_their_checksum_is_valid(number: str) -> None:
    masked = "x" * len(number) if tfn.checksum(number) == 0 else number
    assert mask_text(f"TFN {number}") == f"TFN {masked}"


@pytest.mark.parametrize("group", ["1", "4111 1111 1111 1111", "TFN 123456782", "1" + 100 * " ", "1" + 100 * "\u200b"])
def test_a_text_as_long_as_a_body_may_be_is_masked_in_one_pass(group: str) -> None:
    many = " ".join([group] * 20_000)
    assert mask_text(many) == " ".join([mask_text(group)] * 20_000)


def test_a_number_next_to_an_escaped_character_is_masked_in_json() -> None:
    document = {"4111111111111111": ["\n4111111111111111", "\x014111111111111111", None, True, '"\\'], "é": "4111"}
    masked = json.dumps(document, ensure_ascii=False).replace("4111111111111111", "411111xxxxxx1111")
    assert mask_json(json.dumps(document, ensure_ascii=False)) == masked


@pytest.mark.parametrize(
    "label",
    [
        "TFN",
        "tfn:",
        "T\u200bFN",
        "Tax\u00a0file\u00a0number",
        "Tax  file  number",
        "tax fi\u00adle no.",
        "TAX FILE NUM",
    ],
)
def test_a_label_is_known_wherever_it_is_looked_for(label: str) -> None:
    text, masked = f"{label} 123 456 782", f"{label} xxx xxx xxx"
    assert mask_text(text) == masked
    assert may_need_masking(text)
    assert masked_texts(pl.Series([text])) == {text: masked}


def test_only_the_texts_that_change_are_returned() -> None:
    texts = ["4111111111111111", None, "RENT", "0000000000000", "4111\u00a01111  1111\u20111111", "4111  11111111 1111"]
    assert masked_texts(pl.Series(texts)) == dict.fromkeys([texts[0], *texts[-2:]], "411111xxxxxx1111")
