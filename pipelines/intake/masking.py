"""Card numbers and tax file numbers are masked wherever they would be shown or kept.

A card number is told by its issuer's range, its length and its check digit (ISO/IEC 7812-1), and by standing as a word
of its own: digits that touch an ASCII letter belong to a longer word, a hex number or a reference, and stay. It may be
grouped: by single spaces in any way; by hyphens only as cards print it (4-4-4-4 and the like), and with no further part
before or after, because ids are joined by hyphens, too. What stays is what PCI DSS 3.4.1 allows to be shown: the first
six and the last four digits. A tax file number has no range, so only a labelled one with a valid checksum is masked,
and whole.

What is left is shown and no more: rows and accounts are told apart by what was sent (`intake.as_sent`).
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import polars as pl
from stdnum import luhn
from stdnum.au import tfn

LONGEST = 19  # digits of a card number
_GROUP = r"(?<![\dA-Za-z])\d++(?![A-Za-z])"  # digits that are no part of a longer word
_DIGITS = re.compile(rf"{_GROUP}(?:[ -]{_GROUP})*+")
_PART_BEFORE, _PART_AFTER = re.compile(r"\w-"), re.compile(r"-\w")
_PRINTED = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 3, 3, 3), (4, 4, 4, 4, 3)})  # digits a group, on cards
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # with its quotes and escapes
_TAX_FILE_NUMBER = re.compile(
    r"\b(TFN|tax file (?:number|no\.?|num\.?))([\s:#.-]*)(\d(?:[ -]?\d){7,8})(?!\d)", re.IGNORECASE
)
_CANDIDATE = r"\d(?:[ -]?\d){12}|(?i:tfn|tax file)"  # all that either could be: a cheap look before the exact one

# First digits (as a range of prefixes of one length) and lengths. Issuers' own published ranges, as of 2025.
_ISSUERS: Sequence[tuple[range, frozenset[int]]] = (
    (range(4, 5), frozenset({13, 16, 19})),  # Visa
    (range(51, 56), frozenset({16})),  # Mastercard
    (range(2221, 2721), frozenset({16})),  # Mastercard, 2-series
    (range(34, 35), frozenset({15})),  # American Express
    (range(37, 38), frozenset({15})),
    (range(300, 306), frozenset({14})),  # Diners Club
    (range(36, 37), frozenset({14})),
    (range(38, 40), frozenset({14, 16})),
    (range(3528, 3590), frozenset({16, 17, 18, 19})),  # JCB
    (range(6011, 6012), frozenset({16, 19})),  # Discover
    (range(644, 660), frozenset({16, 19})),
    (range(62, 63), frozenset({16, 17, 18, 19})),  # UnionPay
)


def mask_text(text: str) -> str:
    """`text` with card numbers as first six, x, last four, and labelled tax file numbers as x."""
    return _DIGITS.sub(_mask_cards, _TAX_FILE_NUMBER.sub(_mask_tax_file_number, text))


def mask_json(document: str) -> str:
    """A JSON document with every text in it masked, names of members included."""
    return _JSON_TEXT.sub(lambda match: json.dumps(mask_text(json.loads(match.group())), ensure_ascii=False), document)


def masked_texts(texts: pl.Series, mask: Callable[[str], str] = mask_text) -> dict[str, str]:
    """The texts that masking changes, each with what becomes of it. Only the few that could hold a number are read."""
    candidates: Iterable[str] = texts.filter(texts.str.contains(_CANDIDATE)).unique()
    return {text: found for text in candidates if (found := mask(text)) != text}


def _mask_cards(match: re.Match[str]) -> str:
    """Mask every card number in a run of digit groups; whole groups only, so longer numbers stay."""
    groups = re.split(r"(?<=[ -])", match.group())  # each with the separator after it
    text, start, end = match.string, match.start(), match.end()
    hyphens = [  # before each group, and after the last one
        _PART_BEFORE.fullmatch(text, max(start - 2, 0), start) is not None,
        *(group.endswith("-") for group in groups[:-1]),
        _PART_AFTER.match(text, end) is not None,
    ]
    masked, first = list[str](), 0
    while first < len(groups):
        count = _card_at(groups[first : first + LONGEST], hyphens[first : first + LONGEST + 1])
        taken = "".join(groups[first : first + max(count, 1)])
        masked.append(_masked_card(taken) if count else taken)
        first += max(count, 1)
    return "".join(masked)


def _card_at(groups: Sequence[str], hyphens: Sequence[bool]) -> int:
    """How many of the groups, from the first, make a card number; 0 for none."""
    number = ""
    for count, group in enumerate(groups, start=1):
        number += _digits(group)
        if len(number) > LONGEST:
            return 0
        if _is_card(number) and (not any(hyphens[1:count]) or _is_printed(groups[:count], hyphens)):
            return count
    return 0


def _is_printed(groups: Sequence[str], hyphens: Sequence[bool]) -> bool:
    """Whether the groups are those of a card, and no hyphen leads to another part on either side."""
    return tuple(len(_digits(group)) for group in groups) in _PRINTED and not (hyphens[0] or hyphens[len(groups)])


def _masked_card(groups: str) -> str:
    number, separator = _digits(groups), groups[len(groups.rstrip(" -")) :]
    return number[:6] + "x" * (len(number) - 10) + number[-4:] + separator


def _digits(text: str) -> str:
    """The digits of any script, as 0 to 9: what is compared later is the compatibility form, which makes them so."""
    return "".join(str(unicodedata.decimal(character)) for character in text if character.isdecimal())


def _is_card(number: str) -> bool:
    return 13 <= len(number) <= LONGEST and _issued(number) and bool(luhn.is_valid(number))


def _issued(digits: str) -> bool:
    return any(
        len(digits) in lengths and int(digits[: len(str(prefixes.start))]) in prefixes for prefixes, lengths in _ISSUERS
    )


def _mask_tax_file_number(match: re.Match[str]) -> str:
    label, gap, number = match.groups()
    return label + gap + re.sub(r"\d", "x", number) if tfn.is_valid(_digits(number)) else match.group()
