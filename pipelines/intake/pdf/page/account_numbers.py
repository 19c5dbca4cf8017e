"""Find BSBs and account numbers as statements print them.

A BSB is printed with a hyphen, a space or nothing in it, or split after its second digit and followed by the account's
number (`06 2000 12345678`). Often only the last digits of a card number are printed, the rest as x, * or dots.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.intake.pdf.page import labels
from pipelines.intake.pdf.page.page import Line

SHORTEST, LONGEST = 5, 12  # digits of an account's number
_FIRST_LINES = 150  # of an account: its numbers are printed on its first pages
_DASH = "[-–‑ ]"
_BSB = rf"[0-9]{{3}}{_DASH}?[0-9]{{3}}"
_NUMBER = r"[0-9](?:[ -]?[0-9]){3,15}"
_CARD = r"(?:[0-9xX*•·#.]{4}[ -]?){3}[0-9]{4}|(?:[xX*•·#.]{2,12}[ -]?){1,4}[0-9]{3,4}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{5}"
_NOT_WITHIN = r"(?<![0-9.,/$-])"
_ENDS = r"(?![0-9]|[.,/][0-9])"

_LABEL_GAP = r"(?: *(?:number|numbers|no|num|id|code))*[.:)#]* *"
_BRANCH_LABEL = re.compile(
    rf"\bbsb{_LABEL_GAP}|\bbranch (?:number|no|code)[.:]? *(?:\(bsb\))?{_LABEL_GAP}", re.IGNORECASE
)
_ACCOUNT_LABEL = re.compile(
    r"\b(?:(?:loan|deposit|savings|business|investment) *)?(?:account|acct|a/c|loan|facility|membership|deposit) *"
    r"(?:number|no|num|id|identification)s?[.:#]* *|\baccount(?:[:#] *| +(?=[0-9]))",
    re.IGNORECASE,
)
_CARD_LABEL = re.compile(r"\b(?:credit )?card *(?:account *)?(?:number|no|ending(?: in)?)[.:#]* *", re.IGNORECASE)

_BRANCH_AND_NUMBER = re.compile(rf"{_NOT_WITHIN}({_BSB})(?: +|[ /-]+)({_NUMBER}){_ENDS}")
_CUT_BRANCH_AND_NUMBER = re.compile(rf"{_NOT_WITHIN}([0-9]{{2}} ?[0-9]{{4}})[ -]+([0-9]{{4}} ?[0-9]{{4}}){_ENDS}")
_BRANCH = re.compile(rf"{_NOT_WITHIN}({_BSB}|[0-9]{{2}} [0-9]{{4}}){_ENDS}")
_PLAIN_NUMBER = re.compile(rf"{_NOT_WITHIN}({_NUMBER}){_ENDS}")
_CARD_NUMBER = re.compile(rf"(?<![0-9a-z])({_CARD}){_ENDS}", re.IGNORECASE)
_PRODUCT_LABEL = re.compile(r"\b(?:[a-z]+ ){1,3}number: *(?=[0-9])", re.IGNORECASE)
_OF_SOMETHING_ELSE = re.compile(
    r"\b(?:customer|client|member|statement|phone|telephone|fax|reference|receipt|biller|licence|page|bsb|branch|card|"
    r"business|company|access|registration|policy|file|invoice|contact)\b",
    re.IGNORECASE,
)
_ANY_LABEL = re.compile(r"\b(?:account|acct|a/c|bsb)\b", re.IGNORECASE)
_BOTH_LABEL = re.compile(r"\bbsb(?: *(?:number|no)\.?)?(?: *[/&+|-]+ *| and | )(?:account|acct|a/c)", re.IGNORECASE)


@dataclass(frozen=True)
class AccountNumber:
    """A BSB and an account number, digits only; of a masked number the visible end. One of the two may be None."""

    bsb: str | None
    number: str | None
    is_card: bool = False


def digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def branch_and_number(text: str) -> AccountNumber | None:
    """Return a BSB directly before an account's number, anywhere in a text."""
    return _pair(_BRANCH_AND_NUMBER.search(text) or _CUT_BRANCH_AND_NUMBER.search(text))


def find_labelled(text: str) -> Iterator[AccountNumber]:
    """Yield the account numbers of a line that have a label in front."""
    if _ANY_LABEL.search(text) and (both := branch_and_number(text)):
        yield both
        return
    for label, read in LABELS:
        yield from (found for match in label.finditer(text) if (found := read(text[match.end() :])))


def numbers_on(lines: Sequence[Line]) -> Iterator[AccountNumber]:
    """Yield account numbers, the most certain first: after a label on its line, below a label, after a label of the
    bank's own, and last in a cell that is only a BSB and a number.
    """
    plain = [line for line in lines[:_FIRST_LINES] if not labels.is_row(line)]
    yield from (found for line in plain for found in find_labelled(line.text))
    for label, read in LABELS:
        below = (labels.text_of(cell) for found in labels.find_label(plain, label) for cell in found.below)
        yield from filter(None, map(read, below))
    yield from filter(None, (product_number(line.text) for line in plain))
    texts = (labels.text_of(cell) for line in plain for cell in (line.words, *labels.cells(line.words)))
    yield from filter(None, (branch_and_number(text) for text in texts if not re.search("[A-Za-z]", text)))


def product_number(text: str) -> AccountNumber | None:
    """Return a number after a label of the bank's own, such as `Savings Maximiser number: 12345678`."""
    match = _PRODUCT_LABEL.search(text)
    return _account_number(text[match.end() :]) if match and not _OF_SOMETHING_ELSE.search(match[0]) else None


def names_both(text: str) -> bool:
    return _BOTH_LABEL.search(text) is not None


def _read_after_branch_label(text: str) -> AccountNumber | None:
    if both := _leading_pair(text):
        return both
    found = _BRANCH.match(text)
    return AccountNumber(digits(found[1]), None) if found else None


def _read_after_account_label(text: str) -> AccountNumber | None:
    return _leading_pair(text) or _card_number(text) or _account_number(text)


def _read_after_card_label(text: str) -> AccountNumber | None:
    found = _card_number(text) or _account_number(text)
    return AccountNumber(None, found.number, is_card=True) if found else None


def _leading_pair(text: str) -> AccountNumber | None:
    return _pair(_BRANCH_AND_NUMBER.match(text) or _CUT_BRANCH_AND_NUMBER.match(text))


def _pair(found: re.Match[str] | None) -> AccountNumber | None:
    if found is None or not SHORTEST <= len(digits(found[2])) <= LONGEST:
        return None
    return AccountNumber(digits(found[1]), digits(found[2]))


def _account_number(text: str) -> AccountNumber | None:
    found = _PLAIN_NUMBER.match(text)
    plain = digits(found[1]) if found else ""
    return AccountNumber(None, plain) if SHORTEST <= len(plain) <= LONGEST else None


def _card_number(text: str) -> AccountNumber | None:
    """Return a card's number, or its visible end."""
    found = _CARD_NUMBER.match(text)
    return AccountNumber(None, digits(re.split(r"[^0-9 -]", found[1])[-1]), is_card=True) if found else None


LABELS: Sequence[tuple[re.Pattern[str], Callable[[str], AccountNumber | None]]] = (
    (_BRANCH_LABEL, _read_after_branch_label),
    (_CARD_LABEL, _read_after_card_label),
    (_ACCOUNT_LABEL, _read_after_account_label),
)
