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
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

SHORTEST, LONGEST, PREFIX = 13, 19, 4  # digits of a card number, and those that identify its issuer
_SINGLE = bytes(byte - ord("0") if byte >= ord("0") else 0 for byte in range(256))
_DOUBLE = bytes(sum(divmod(2 * single, 10)) for single in _SINGLE)
_STARTS, _ENDS = r"(?<![\dA-Za-z])", r"(?![\dA-Za-z])"  # digits that are not part of a longer word
_GROUPS = re.compile(rf"{_STARTS}\d++(?![A-Za-z])(?: \d++(?![A-Za-z]))*+")
_ON_CARDS = "|".join(  # sizes of groups on cards
    "[ -]".join(rf"\d{{{size}}}" for size in sizes) for sizes in ("4444", "465", "464", "4333", "44443")
)
# Two cheap lookaheads come before the groups, because they reject most texts at once.
_PRINTED = re.compile(rf"{_STARTS}(?<!\w-)(?=\d{{4}}[ -])(?=[\d ]{{4,19}}+-)(?=({_ON_CARDS}){_ENDS}(?!-\w))")
_SPACES = "\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)  # other than the plain space
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # not displayed: the text before and after looks joined
_MANY_DIGITS = rf"\d(?:[ {_SPACES}{_HYPHENS}{_UNSEEN}-]*\d){{12}}"
_CANDIDATE = rf"{_MANY_DIGITS}|(?i:tfn|tax file)"  # a cheap check for either kind of number, before the exact one
_DIGITS_OF_A_CARD = re.compile(_MANY_DIGITS)
_MONEY = re.compile(r"-?[0-9]{1,13}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"')  # with its quotes and escapes
_TAX_WEIGHTS = (1, 4, 3, 7, 5, 8, 6, 9, 10)  # of the digits in the check of a tax file number, as in `stdnum.au.tfn`
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
_IS_ZERO = bytes([1]) + bytes(255)
_ANY = re.compile(rb"[^\0]")


def mask_text(text: str) -> str:
    """Mask card numbers (all but the first six and last four digits) and labelled tax file numbers (all digits)."""
    plain, places = _normalise(text)
    untaxed = _TAX_FILE_NUMBER.sub(_mask_tax_file_number, plain)
    edits = [(at, at + 1, "x") for at, sent in enumerate(plain) if sent != untaxed[at]] if untaxed != plain else []
    free = 0
    for start, end in sorted([*_hyphenated_numbers(untaxed), *_spaced_numbers(untaxed)]):
        if start >= free:
            edits.append((start, end, _mask_digits(untaxed[start:end])))
            free = end
    masked, rest = list[str](), 0
    for start, end, shown in sorted(edits):
        masked += [text[rest : places[start]], shown]
        rest = places[end - 1] + 1
    return "".join([*masked, text[rest:]])


def mask_json(document: str) -> str:
    """Mask every text in a JSON document, names of members included."""
    return _JSON_TEXT.sub(lambda match: json.dumps(mask_text(json.loads(match.group())), ensure_ascii=False), document)


def is_money(text: str) -> bool:
    """Return whether a text is a valid amount of a row."""
    return _MONEY.fullmatch(text) is not None


def may_need_masking(text: str) -> bool:
    """Return whether `mask_text` might change a text. Cheap, to avoid calling it for most texts."""
    lower = text.lower()
    return _DIGITS_OF_A_CARD.search(text) is not None or "tfn" in lower or "tax file" in lower


def masked_texts(texts: "pl.Series", mask: Callable[[str], str] = mask_text) -> dict[str, str]:
    """Map each text that masking changes to its masked form. Only the few that may hold a number are examined."""
    candidates: Iterable[str] = texts.filter(texts.str.contains(_CANDIDATE)).unique()
    return {text: masked for text in candidates if (masked := mask(text)) != text}


def _hyphenated_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of card numbers with hyphens, grouped as on cards."""
    for match in _PRINTED.finditer(text) if "-" in text else ():
        if _is_valid(re.sub("[ -]", "", match.group(1))):
            yield match.span(1)


def _spaced_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of card numbers with spaces between groups of any sizes. A number is made of whole groups
    only, so longer ones are not masked.
    """
    for match in _GROUPS.finditer(text):
        run = match.group()
        if len(run) < SHORTEST:
            continue
        if run.isdecimal():
            if _is_valid(run):
                yield match.span()
            continue
        starts = list(accumulate(map(len, run.split(" ")), initial=0))
        for start, end in _valid_numbers(run.replace(" ", ""), starts):
            spaces_before, spaces = bisect_left(starts, start), bisect_left(starts, end) - 1
            yield match.start() + start + spaces_before, match.start() + end + spaces


def _is_valid(number: str) -> bool:
    """Return whether digits have the length, issuer and check digit of a card number."""
    digits = number.encode()
    checked = sum(digits[-1::-2].translate(_SINGLE)) + sum(digits[-2::-2].translate(_DOUBLE))
    return checked % 10 == 0 and len(digits) in card_lengths(number[:PREFIX])


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
    digits start there with a valid check digit and an issuer's first digit.

    A number's Luhn sum is the running sum at its end less that at its start, with every second digit doubled and the
    last one not. So the check digit is valid where both are equal modulo 10. All places are compared in one step, as
    bytes of long integers. Where no number may start or end, a high bit is set, a different one for each, so that the
    bytes differ.
    """
    size = len(digits) + 1
    inner = bytearray(b"\x20") * size
    for place in groups:
        inner[place] = 0
    no_end = int.from_bytes(inner, "little")
    sums = [int.from_bytes(running, "little") for running in _luhn_sums(digits)]
    starts, ends = [total | no_end << 1 for total in sums], sums[0] | no_end
    found = 0
    for bit, length in enumerate(range(SHORTEST, min(LONGEST, len(digits)) + 1)):
        differences = (starts[length % 2] ^ ends >> 8 * length).to_bytes(size, "little")
        found |= int.from_bytes(differences[: size - length].translate(_IS_ZERO), "little") << bit
    return (found & int.from_bytes(digits.encode().translate(_BY_FIRST_DIGIT), "little")).to_bytes(size, "little")


def _mask_digits(text: str) -> str:
    number = text.replace(" ", "").replace("-", "")
    return f"{number[:6]}{'x' * (len(number) - 10)}{number[-4:]}"


def _luhn_sums(digits: str) -> tuple[bytes, bytes]:
    """Return running sums modulo 10 with every second digit doubled. A sum is compared with one an even number of
    digits later in the first result, and with one an odd number of digits later in the second.
    """
    single, twice = (digits.encode().translate(table) for table in (_SINGLE, _DOUBLE))
    even, odd = bytearray(single), bytearray(single)
    even[::2], odd[1::2] = twice[::2], twice[1::2]  # digits at even places doubled, and at odd ones
    sums = [bytearray([total % 10 for total in accumulate(counted, initial=0)]) for counted in (even, odd)]
    sums[0][1::2], sums[1][1::2] = sums[1][1::2], sums[0][1::2]
    return bytes(sums[0]), bytes(sums[1])


@cache
def card_lengths(prefix: str) -> Sequence[int]:
    """Return the possible lengths, in digits and ascending, of a card number with this prefix."""
    if len(prefix) < PREFIX:
        return ()
    issuers = (lengths for prefixes, lengths in _ISSUERS if int(prefix[: len(str(prefixes.start))]) in prefixes)
    return sorted(frozenset().union(*issuers))


def _normalise(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in the form that is searched, and the place in `text` of each of its characters.

    Digits of any script become 0 to 9 (the compatibility form, which is compared later, does the same), all spaces and
    hyphens become plain ones, several spaces become one, and invisible characters are removed.
    """
    if text.isascii() and "  " not in text:
        return text, range(len(text))
    replaced = text.translate(_replacements())
    places = [
        at
        for at, character in enumerate(replaced)
        if character not in _UNSEEN and not (character == " " == replaced[at - 1 : at])
    ]
    return "".join(map(replaced.__getitem__, places)), places


@cache
def _replacements() -> Mapping[int, str]:
    """Map code points to their replacements. All decimal digits have code points below 0x20000."""
    decimals = {code: str(unicodedata.decimal(chr(code))) for code in range(0x20000) if chr(code).isdecimal()}
    return {**decimals, **dict.fromkeys(map(ord, _SPACES), " "), **dict.fromkeys(map(ord, _HYPHENS), "-")}


def _mask_tax_file_number(match: re.Match[str]) -> str:
    """Replace the digits of a matched number by x if its checksum is valid. The length does not change."""
    number, text = match.group(1), match.group()
    digits = number.replace(" ", "").replace("-", "").encode().translate(_SINGLE)
    is_valid = sum(map(mul, _TAX_WEIGHTS, digits)) % 11 == 0
    return text[: -len(number)] + re.sub(r"\d", "x", number) if is_valid else text
