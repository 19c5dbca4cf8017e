"""Card numbers and tax file numbers are masked wherever they would be shown or kept.

A card number is told by its issuer's range, its length and its check digit (ISO/IEC 7812-1), and by standing as a word
of its own: digits that touch an ASCII letter belong to a longer word, a hex number or a reference, and stay. It may be
grouped: by spaces in any way; by hyphens only as cards print it (4-4-4-4 and the like), and with no further part
before or after, because ids are joined by hyphens, too. What stays is what PCI DSS 3.4.1 allows to be shown: the first
six and the last four digits. A tax file number has no range, so only a labelled one with a valid checksum is masked,
and whole.

What is left is shown and no more: rows and accounts are told apart by what was sent (`intake.as_sent`).
"""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
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
_SPACES = "\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)  # beside the plain one
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # what stands before and after is shown as one
_MANY_DIGITS = rf"\d(?:[ {_SPACES}{_HYPHENS}{_UNSEEN}-]*\d){{12}}"
_CANDIDATE = rf"{_MANY_DIGITS}|(?i:tfn|tax file)"  # all that either could be: a cheap look before the exact one
_DIGITS_OF_A_CARD = re.compile(_MANY_DIGITS)
_MONEY = re.compile(r"-?[0-9]{1,13}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # with its quotes and escapes
_TAX_FILE_NUMBER = re.compile(
    r"\b(?:TFN|tax file (?:number|no\.?|num\.?))[\s:#.-]*(\d(?:[ -]?\d){7,8})(?!\d)", re.IGNORECASE
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
_FIRST_DIGITS = frozenset(str(prefixes.start)[0] for prefixes, _ in _ISSUERS)


def mask_text(text: str) -> str:
    """`text` with card numbers as first six, x, last four, and the digits of labelled tax file numbers as x."""
    plain, places = _plain(text)
    untaxed = _TAX_FILE_NUMBER.sub(_mask_tax_file_number, plain)
    edits = [(at, at + 1, "x") for at, sent in enumerate(plain) if sent != untaxed[at]] if untaxed != plain else []
    for match in _DIGITS.finditer(untaxed):
        if len(match.group()) >= SHORTEST:
            edits += _by_itself(match) if match.group().isdecimal() else _Run(match).cards()
    masked, kept = list[str](), 0
    for start, end, shown in sorted(edits):
        masked += [text[kept : places[start]], shown]
        kept = places[end - 1] + 1
    return "".join([*masked, text[kept:]])


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


def _by_itself(match: re.Match[str]) -> Iterator[tuple[int, int, str]]:
    """One group of digits, which most numbers are."""
    digits = match.group().encode()
    checked = sum(digits[-1::-2].translate(_ONCE)) + sum(digits[-2::-2].translate(_TWICE))
    if checked % 10 == 0 and len(digits) in _lengths(match.group()[:PREFIX]):
        yield match.start(), match.end(), _shown(match.group())


class _Run:
    """A run of digit groups. Each is looked at in a few steps, whatever stands there: a body may hold millions."""

    def __init__(self, match: re.Match[str]) -> None:
        plain, text = match.group(), match.string
        self._at = match.start()
        groups = plain.replace("-", " ").split(" ")
        self._sizes = list(map(len, groups))
        self._starts = list(accumulate(self._sizes, initial=0))  # in the digits, and where the last group ends
        self._group_at = {start: group for group, start in enumerate(self._starts)}
        self._digits = "".join(groups)
        self._separators = plain.encode().translate(None, b"0123456789")  # after each group but the last
        self._sums = _luhn_sums(self._digits)
        self._part_before = _PART_BEFORE.fullmatch(text, max(match.start() - 2, 0), match.start())
        self._part_after = _PART_AFTER.match(text, match.end())

    def cards(self) -> Iterator[tuple[int, int, str]]:
        """Where in the text a card number begins and ends, and what is shown of it. Whole groups only, so longer ones
        stay. For the check digit every second digit counts twice, the last one once.
        """
        group_at, sums, next_group = self._group_at, self._sums, 0
        digits, starts = self._digits, self._starts
        for group in range(bisect_right(starts, len(digits) - SHORTEST)):
            start = starts[group]
            if group < next_group or digits[start] not in _FIRST_DIGITS:
                continue
            for length in _lengths(digits[start : start + PREFIX]):
                end = start + length
                if end in group_at:
                    doubled = sums[end % 2]
                    if (doubled[end] - doubled[start]) % 10 == 0 and self._is_joined(group, group_at[end]):
                        next_group = group_at[end]
                        yield self._at + start + group, self._at + end + next_group - 1, _shown(digits[start:end])
                        break

    def _is_joined(self, first: int, after: int) -> bool:
        """By spaces; or by hyphens as on cards, and no hyphen leads to another part on either side."""
        if b"-" not in self._separators[first : after - 1]:
            return True
        printed = tuple(self._sizes[first:after]) in _PRINTED
        return printed and not (self._hyphen_before(first) or self._hyphen_after(after))

    def _hyphen_before(self, group: int) -> bool:
        return self._separators[group - 1 : group] == b"-" if group else self._part_before is not None

    def _hyphen_after(self, group: int) -> bool:
        last = len(self._starts) - 1
        return self._separators[group - 1 : group] == b"-" if group < last else self._part_after is not None


def _shown(number: str) -> str:
    return f"{number[:6]}{'x' * (len(number) - 10)}{number[-4:]}"


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


def _plain(text: str) -> tuple[str, Sequence[int]]:
    """A text as it is looked through, and where in `text` each of its characters stands: digits of any script as 0 to 9
    (what is compared later is the compatibility form, which makes them so), each space a plain one and one of several,
    each hyphen a plain one, and nothing that is not seen.
    """
    if text.isascii() and "  " not in text:
        return text, range(len(text))
    alike = text.translate(_alike())
    places = [at for at, each in enumerate(alike) if each not in _UNSEEN and not (each == " " == alike[at - 1 : at])]
    return "".join(map(alike.__getitem__, places)), places


@cache
def _alike() -> Mapping[int, str]:
    """What stands for a character; all decimal digits have code points below 0x20000."""
    decimals = {code: str(unicodedata.decimal(chr(code))) for code in range(0x20000) if chr(code).isdecimal()}
    return {**decimals, **dict.fromkeys(map(ord, _SPACES), " "), **dict.fromkeys(map(ord, _HYPHENS), "-")}


def _mask_tax_file_number(match: re.Match[str]) -> str:
    """The match with its number's digits as x, in the same length."""
    number, text = match.group(1), match.group()
    is_valid = tfn.checksum(number.replace(" ", "").replace("-", "")) == 0
    return text[: -len(number)] + re.sub(r"\d", "x", number) if is_valid else text
