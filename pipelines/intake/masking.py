"""Mask card numbers and tax file numbers before they are shown or stored.

A card number is recognised by its issuer's range, its length and its check digit (ISO/IEC 7812-1), and it must be a
word of its own: digits that touch an ASCII letter belong to a hex number or a reference, and are not masked. Spaces may
group its digits in any way. Hyphens may group them only as cards do (4-4-4-4 and the like), with no further part before
or after, because ids are joined by hyphens, too. The first six and last four digits remain, which PCI DSS 3.4.1 allows
to be shown. A tax file number has no range of its own, so only a labelled one with a valid checksum is masked, and all
of its digits are.

Masked texts are only for display: rows and accounts are distinguished by the texts as sent (`intake.as_sent`).
"""

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import mul
from typing import TYPE_CHECKING

from pipelines.intake.minus_signs import HYPHENS, SOFT_HYPHEN

if TYPE_CHECKING:
    import polars as pl

SHORTEST, LONGEST, PREFIX = 13, 19, 4  # digits of a card number, and those that identify its issuer
# The value of an ASCII digit, and the sum of the digits of its double (Luhn); other bytes count as 0.
_SINGLE = bytes(byte - ord("0") if byte >= ord("0") else 0 for byte in range(256))
_DOUBLE = bytes(sum(divmod(2 * single, 10)) for single in _SINGLE)
_STARTS, _ENDS = r"(?<![\dA-Za-z])", r"(?![\dA-Za-z])"  # digits that are not part of a longer word
_GROUPS = re.compile(rf"{_STARTS}(?=\d[\d ]{{{SHORTEST - 1}}})\d++(?![A-Za-z])(?: ++\d++(?![A-Za-z]))*+")
_ON_CARDS = "|".join(  # sizes of groups on cards
    "(?: +|-)".join(rf"\d{{{size}}}" for size in sizes) for sizes in ("4444", "465", "464", "4333", "44443")
)
# Two cheap lookaheads come before the groups, because they reject most texts at once.
_PRINTED = re.compile(rf"{_STARTS}(?<!\w-)(?=\d{{4}}[ -])(?=(?:\d| ++){{4,19}}+-)(?=({_ON_CARDS}){_ENDS}(?!-\w))")
_SPACES = "\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)  # other than the plain space
_UNSEEN = f"{SOFT_HYPHEN}\u200b\u200c\u200d\u2060\ufeff"  # invisible: the characters on both sides look adjacent
_DROPPED = re.compile(rf"[{_UNSEEN}]+")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_MANY_DIGITS = rf"\d(?:[ {_SPACES}{HYPHENS}{_UNSEEN}-]*\d){{12}}"
# All that could be a card or tax file number: a cheap check before the exact one.
_CANDIDATE = rf"{_MANY_DIGITS}|(?i:tfn|tax[ {_SPACES}]+file)|[{_UNSEEN}]"
_DIGITS_OF_A_CARD = re.compile(_MANY_DIGITS)
_MONEY = re.compile(r"-?[0-9]{1,13}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # with its quotes and escapes
_written = json.JSONEncoder(ensure_ascii=False).encode
_DIGIT = re.compile(r"\d")
_HIDDEN = str.maketrans("0123456789", "xxxxxxxxxx")
_Edit = tuple[int, int, str]  # from, up to, what is shown instead
_TAX_WEIGHTS = (1, 4, 3, 7, 5, 8, 6, 9, 10)  # of the digits in the check of a tax file number, as in `stdnum.au.tfn`
_TAX_FILE_NUMBER = re.compile(
    r"\b(?:TFN|tax +file +(?:number|no\.?|num\.?))[\s:#.-]*(\d(?:(?: +|-)?\d){7,8})(?!\d)", re.IGNORECASE
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
_BY_FIRST_DIGIT = bytes(
    sum(
        {
            1 << length - SHORTEST
            for prefixes, lengths in _ISSUERS
            if str(prefixes.start)[0] == chr(byte)
            for length in lengths
        }
    )
    for byte in range(256)
)  # by first digit, a bit for each length that its issuers use
_DIVISIBLE_BY_10 = bytes(0 if byte % 10 else 0xFF for byte in range(256))
_ANY = re.compile(rb"[^\0]")
_FEW_GROUPS = 7  # bounds of six groups


def mask_text(text: str) -> str:
    """Mask card numbers (all but the first six and last four digits) and labelled tax file numbers (all digits)."""
    if not _DIGIT.search(text):
        return text
    plain, places = _normalise(text)
    taxed = [*_tax_file_numbers(plain)]
    untaxed = _apply_edits(plain, [(start, end, plain[start:end].translate(_HIDDEN)) for start, end in taxed])
    cards = _apart([*_spaced_numbers(untaxed)], [*_hyphenated_numbers(untaxed)])
    if plain is text:
        return _apply_edits(untaxed, cards)
    as_sent = [(places[start], places[end - 1] + 1) for start, end in taxed]
    tax_file_numbers = [(start, end, _DIGIT.sub("x", text[start:end])) for start, end in as_sent]
    return _apply_edits(
        text, sorted(tax_file_numbers + [(places[i], places[j - 1] + 1, shown) for i, j, shown in cards])
    )


def _apart(spaced: list[_Edit], printed: list[_Edit]) -> list[_Edit]:
    """Return the edits in order, but of overlapping ones only the first. Edits of one kind never overlap."""
    if not printed:
        return spaced
    edits, free = list[_Edit](), 0
    for start, end, shown in sorted([*spaced, *printed]):
        if start >= free:
            edits.append((start, end, shown))
            free = end
    return edits


def _apply_edits(text: str, edits: Iterable[_Edit]) -> str:
    """Return a text with the edits made. They must be in order."""
    edited, rest = list[str](), 0
    for start, end, shown in edits:
        edited += text[rest:start], shown
        rest = end
    return "".join([*edited, text[rest:]]) if edited else text


def mask_json(document: str) -> str:
    """Mask every text of a JSON document, names of members included."""
    return _JSON_TEXT.sub(_mask_json_text, document)


def _mask_json_text(match: re.Match[str]) -> str:
    written = match[0]
    text = json.loads(written) if "\\" in written else written[1:-1]
    masked = mask_text(text)
    return written if masked == text else _written(masked)


def is_money(text: str) -> bool:
    """Return whether a text is a valid amount of a row."""
    return _MONEY.fullmatch(text) is not None


def may_need_masking(text: str) -> bool:
    """Return whether `mask_text` might change a text. Cheap, to avoid calling it for most texts."""
    lower = text.lower()
    names_tax_file = "tfn" in lower or ("tax" in lower and "file" in lower)  # whatever stands between them
    return names_tax_file or _DROPPED.search(text) is not None or _DIGITS_OF_A_CARD.search(text) is not None


def masked_texts(texts: "pl.Series", mask: Callable[[str], str] = mask_text) -> dict[str, str]:
    """Map each text that masking changes to its masked form. Only the few that may hold a number are examined."""
    candidates: Iterable[str] = texts.filter(texts.str.contains(_CANDIDATE)).unique()
    return {text: masked for text in candidates if (masked := mask(text)) != text}


def _hyphenated_numbers(text: str) -> Iterator[_Edit]:
    """Yield card numbers with hyphens, grouped as on cards."""
    for match in _PRINTED.finditer(text) if "-" in text else ():
        number = re.sub("[ -]", "", match[1])
        if _is_valid(number):
            yield *match.span(1), _mask_digits(number)


def _spaced_numbers(text: str) -> Iterator[_Edit]:
    """Yield card numbers that are whole groups of digits with spaces between them. A longer group is not masked."""
    for match in _GROUPS.finditer(text):
        run = match[0]
        if len(run) < SHORTEST:
            continue
        digits, first = run.replace(" ", ""), match.start()
        last_group = len(run) - 1 - run.rfind(" ")
        if len(digits) - last_group < SHORTEST and _is_valid(digits):  # without its last group it is too short
            yield *match.span(), _mask_digits(digits)
            continue
        if digits == run:  # of one group
            continue
        starts = list(accumulate(map(len, run.split(" ")), initial=0))
        find = _valid_of_few if len(starts) <= _FEW_GROUPS else _valid_numbers
        for start, end in find(digits, starts):
            before, last = bisect_right(starts, start) - 1, bisect_left(starts, end) - 1  # spaces
            yield first + start + before, first + end + last, _mask_digits(digits[start:end])


def _is_valid(number: str) -> bool:
    """Return whether digits have the length, issuer and check digit of a card number."""
    return len(number) in card_lengths(number[:PREFIX]) and _has_check_digit(number)


def _has_check_digit(number: str) -> bool:
    digits = number.encode()
    return not (sum(digits[-1::-2].translate(_SINGLE)) + sum(digits[-2::-2].translate(_DOUBLE))) % 10


def _valid_of_few(digits: str, groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the same as `_valid_numbers`, one number at a time, which is faster for few groups."""
    free = 0
    for start in groups:
        if groups[-1] - start < SHORTEST:
            return
        if start < free:
            continue
        for length in card_lengths(digits[start : start + PREFIX]):
            if start + length in groups and _has_check_digit(digits[start : start + length]):
                free = start + length
                yield start, free
                break


def _valid_numbers(digits: str, groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end of card numbers that are whole groups and don't overlap.

    Args:
        digits: of all groups, without the spaces.
        groups: where each group starts, and where the last one ends.
    """
    found, free = _valid_lengths(digits, groups), 0
    while place := _ANY.search(found, free):
        start = place.start()
        free = start + 1
        for length in card_lengths(digits[start : start + PREFIX]):
            if found[start] & 1 << length - SHORTEST:
                free = start + length
                yield start, free
                break


def _valid_lengths(digits: str, groups: Sequence[int]) -> bytes:
    """Return one byte for each digit, with a bit for each length from the shortest: whether whole groups of that many
    digits in all start there, with a valid check digit and an issuer's first digit.

    All places are examined in one step, as bytes of long integers, in which a shift by 8 leads to the next digit.
    """
    size = len(digits) + 1
    bounds, every = bytearray(size), int.from_bytes(b"\1" * size, "little")
    for place in groups:
        bounds[place] = 0xFF
    bound = int.from_bytes(bounds, "little")
    issued = bound & int.from_bytes(digits.encode().translate(_BY_FIRST_DIGIT), "little")
    sum_of, found = _luhn_sums(digits), 0
    for bit, length in enumerate(range(SHORTEST, min(LONGEST, len(digits)) + 1)):
        if possible := issued & every << bit & bound >> 8 * length:
            divisible = sum_of(length).to_bytes(size, "little").translate(_DIVISIBLE_BY_10)
            found |= possible & int.from_bytes(divisible, "little")
    return found.to_bytes(size, "little")


def _mask_digits(number: str) -> str:
    return f"{number[:6]}{'x' * (len(number) - 10)}{number[-4:]}"


def _luhn_sums(digits: str) -> Callable[[int], int]:
    """Return a function that returns, for a length, the Luhn sum of the number of that length at each place.

    A sum adds up pairs of digits, the first of each pair doubled. A number of odd length begins with a single digit,
    which is not doubled. The sum fits into a byte.
    """
    single, double = (int.from_bytes(digits.encode().translate(table), "little") for table in (_SINGLE, _DOUBLE))
    pair = double + (single >> 8)
    pairs = list(accumulate(pair >> 16 * earlier for earlier in range(LONGEST // 2)))
    return lambda length: single + (pairs[length // 2 - 1] >> 8) if length % 2 else pairs[length // 2 - 1]


@cache
def card_lengths(prefix: str) -> Sequence[int]:
    """Return the possible lengths, in digits and ascending, of a card number with this prefix."""
    if len(prefix) < PREFIX:
        return ()
    issuers = (lengths for prefixes, lengths in _ISSUERS if int(prefix[: len(str(prefixes.start))]) in prefixes)
    return sorted(frozenset().union(*issuers))


def _normalise(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in the form that is searched, and the place in `text` of each of its characters.

    Digits of any script become 0 to 9, as in the compatibility form in which texts are matched later. All spaces and
    hyphens become plain ones, and invisible characters are removed.
    """
    if text.isascii():
        return text, range(len(text))
    alike = _with_plain_characters(text)
    if not _DROPPED.search(alike):
        return alike, range(len(alike))
    dropped = [found.span() for found in _DROPPED.finditer(alike)]
    starts, ends = [0, *(end for _, end in dropped)], [*(start for start, _ in dropped), len(alike)]
    plain = "".join(alike[start:end] for start, end in zip(starts, ends, strict=True))
    return plain, list(chain.from_iterable(map(range, starts, ends)))


def _with_plain_characters(text: str) -> str:
    """Return a text of the same length. Characters are replaced one by one: a table would take ten times as long."""
    for space in _SPACES:
        text = text.replace(space, " ")
    for hyphen in HYPHENS:
        text = text.replace(hyphen, "-")
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)


def _tax_file_numbers(plain: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of labelled tax file numbers with a valid checksum."""
    lower = plain.lower()
    if "tfn" not in lower and "tax" not in lower:  # saves a sixth of the time of a text with a card number
        return
    for match in _TAX_FILE_NUMBER.finditer(plain):
        digits = match[1].encode().translate(_SINGLE, b" -")
        if sum(map(mul, _TAX_WEIGHTS, digits)) % 11 == 0:
            yield match.span(1)
