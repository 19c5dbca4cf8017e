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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from stdnum.au import tfn

if TYPE_CHECKING:
    import polars as pl

SHORTEST, PREFIX = 13, 4  # digits of a card number, and those that tell its issuer
_ONCE = bytes(byte - ord("0") if byte >= ord("0") else 0 for byte in range(256))
_TWICE = bytes(sum(divmod(2 * once, 10)) for once in _ONCE)
_GROUP = r"(?<![\dA-Za-z])\d++(?![A-Za-z])"  # digits that are no part of a longer word
_DIGITS = re.compile(rf"{_GROUP}(?:[ -]{_GROUP})*+")
_PART_BEFORE, _PART_AFTER = re.compile(r"\w-"), re.compile(r"-\w")
_PRINTED = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 3, 3, 3), (4, 4, 4, 4, 3)})  # digits a group, on cards
_MANY_DIGITS = r"\d(?:[ -]?\d){12}"
_CANDIDATE = rf"{_MANY_DIGITS}|(?i:tfn|tax file)"  # all that either could be: a cheap look before the exact one
_DIGITS_OF_A_CARD = re.compile(_MANY_DIGITS)
_MONEY = re.compile(r"-?[0-9]{1,13}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # with its quotes and escapes
_TAX_FILE_NUMBER = re.compile(
    r"\b(TFN|tax file (?:number|no\.?|num\.?))([\s:#.-]*)(\d(?:[ -]?\d){7,8})(?!\d)", re.IGNORECASE
)

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


def is_money(text: str) -> bool:
    """Whether it is an amount that a row may have, whatever its digits look like."""
    return _MONEY.fullmatch(text) is not None


def may_need_masking(text: str) -> bool:
    """A cheap look before the exact one."""
    lower = text.lower()
    return _DIGITS_OF_A_CARD.search(text) is not None or "tfn" in lower or "tax file" in lower


def masked_texts(texts: "pl.Series", mask: Callable[[str], str] = mask_text) -> dict[str, str]:
    """The texts that masking changes, each with what becomes of it. Only the few that could hold a number are read."""
    candidates: Iterable[str] = texts.filter(texts.str.contains(_CANDIDATE)).unique()
    return {text: found for text in candidates if (found := mask(text)) != text}


def _mask_cards(match: re.Match[str]) -> str:
    """Mask every card number in a run of digit groups; whole groups only, so longer numbers stay."""
    text = match.group()
    if len(text) < SHORTEST:
        return text
    masked, kept = list[str](), 0
    for start, end, number in _Run(match).cards():
        masked += [text[kept:start], number[:6], "x" * (len(number) - 10), number[-4:]]
        kept = end
    return "".join([*masked, text[kept:]])


class _Run:
    """A run of digit groups. Each is looked at in a few steps, whatever stands there: a body may hold millions."""

    def __init__(self, match: re.Match[str]) -> None:
        plain, text = _plain(match.group()), match.string
        groups = plain.replace("-", " ").split(" ")
        self._starts = list(accumulate(map(len, groups), initial=0))  # in the digits, and where the last group ends
        self._group_at = {start: group for group, start in enumerate(self._starts)}
        self._digits = "".join(groups)
        self._separators = plain.encode().translate(None, b"0123456789")  # after each group but the last
        self._sums = _luhn_sums(self._digits)
        self._part_before = _PART_BEFORE.fullmatch(text, max(match.start() - 2, 0), match.start())
        self._part_after = _PART_AFTER.match(text, match.end())

    def cards(self) -> Iterator[tuple[int, int, str]]:
        """Where in the run a card number begins and ends, and its digits. For the check digit every second digit counts
        twice, the last one once.
        """
        group_at, sums, next_group = self._group_at, self._sums, 0
        for group, start in enumerate(self._starts):
            if group < next_group:
                continue
            for length in _lengths(self._digits[start : start + PREFIX]):
                end = start + length
                if (
                    end in group_at
                    and (sums[end % 2][end] - sums[end % 2][start]) % 10 == 0
                    and self._is_joined(group, group_at[end])
                ):
                    next_group = group_at[end]
                    yield start + group, end + next_group - 1, self._digits[start:end]
                    break

    def _is_joined(self, first: int, after: int) -> bool:
        """By spaces; or by hyphens as on cards, and no hyphen leads to another part on either side."""
        if b"-" not in self._separators[first : after - 1]:
            return True
        sizes = tuple(end - start for start, end in pairwise(self._starts[first : after + 1]))
        return sizes in _PRINTED and not (self._hyphen_before(first) or self._hyphen_after(after))

    def _hyphen_before(self, group: int) -> bool:
        return self._separators[group - 1 : group] == b"-" if group else self._part_before is not None

    def _hyphen_after(self, group: int) -> bool:
        last = len(self._starts) - 1
        return self._separators[group - 1 : group] == b"-" if group < last else self._part_after is not None


def _luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """Running sums with every second digit counted twice: from the first digit on, and from the second."""
    once = digits.encode()
    twice = once.translate(_TWICE)
    even, odd = bytearray(once.translate(_ONCE)), bytearray(once.translate(_ONCE))
    even[::2], odd[1::2] = twice[::2], twice[1::2]
    return list(accumulate(even, initial=0)), list(accumulate(odd, initial=0))


@cache
def _lengths(prefix: str) -> Sequence[int]:
    """How many digits a card number may have that begins so, in ascending order."""
    if len(prefix) < PREFIX:
        return ()
    issuers = (lengths for prefixes, lengths in _ISSUERS if int(prefix[: len(str(prefixes.start))]) in prefixes)
    return sorted(frozenset().union(*issuers))


def _plain(text: str) -> str:
    """The digits of any script as 0 to 9: what is compared later is the compatibility form, which makes them so."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in text)


def _mask_tax_file_number(match: re.Match[str]) -> str:
    label, gap, number = match.groups()
    digits = _plain(number).replace(" ", "").replace("-", "")
    return label + gap + re.sub(r"\d", "x", number) if tfn.is_valid(digits) else match.group()
