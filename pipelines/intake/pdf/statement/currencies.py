"""Find the currency that a statement states.

The account's currency counts most (`Currency: INR`, `USD Account`), then the headings of the columns (`Amount (GBP)`),
then marks at the figures (`£12.00`, `12.00 EUR`), then a sentence anywhere (`All amounts are in US dollars`). A bare
`$` says nothing: more than twenty currencies use it. Texts of rows are ignored, because they name currencies of
purchases abroad.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from pipelines.intake import currencies
from pipelines.intake.currencies import CURRENCY_BY_WORD, UNKNOWN
from pipelines.intake.pdf.page.amounts import Printed, amounts_of
from pipelines.intake.pdf.page.labels import find_label, is_row, row_continuations
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.symbols import CODES, CURRENCY_BY_SYMBOL, NAMES, SYMBOL

_CODE = "|".join(CODES)
_NAME = "|".join(NAMES)
_MENTION = re.compile(rf"(?P<code>\b(?:{_CODE})\b)|(?P<name>(?i:\b(?:{_NAME})\b))|(?P<symbol>{SYMBOL})")
_LABEL = re.compile(
    r"(?:^|\b(?:account|statement|base|reporting) )(?:currency|ccy)(?: code| of (?:the |this )?account)?\b[ :.-]*",
    re.IGNORECASE,
)
# A sentence about the money of the whole statement, which may continue on the next line.
_UNIT = rf"[\s:(]+(?:(?:{_CODE})\b|(?i:(?:{_NAME})\b)|{SYMBOL})".replace(" ", r"\s")
_VERBS = "shown|stated|expressed|displayed|quoted|reported|denominated|held|kept|given|listed|presented|issued"
_SENTENCE = re.compile(
    r"(?<!(?i:foreign)\s)(?<!(?i:overseas)\s)\b"
    r"(?i:amounts?|figures?|balances?|values?|sums|transactions|account|statement)"
    rf"(?i:\s(?:on|in)\sthis\s\w+)?\s(?i:is|are)\s(?i:(?:all\s)?(?:{_VERBS})\s)?in{_UNIT}|\b(?i:denominated)\sin{_UNIT}"
    rf"|\b(?i:amounts|figures|balances|values)\s(?i:(?:{_VERBS})\s)?in{_UNIT}(?=[).,;]|\s+\(|\s+unless\b|\s*$)",
    re.MULTILINE,
)
_ACCOUNT = re.compile(
    rf"\b(?:{_CODE}) (?:[A-Za-z]+ ){{0,3}}(?i:account|card|statement)\b|"
    rf"\b(?i:account|amounts?|figures|balances?)\b[ a-z]{{0,24}}[ (](?:{_CODE})\b|"
    rf"(?i:\b(?:{_NAME}) (?:currency )?account\b)|\b(?i:currency account)\W{{1,4}}(?:{_CODE})\b"
)
# A colon and the name of a currency that is not in `symbols` and not a dollar: `Currency: GHS`, `Currency: Ringgit`.
_NAMED = re.compile(r"\b(?i:currency)(?: (?i:code))? ?: ?(?![^|]*(?i:dollar|austral))([A-Za-z]{3,})")
_OTHER_SIGN = re.compile(r"[B-Zb-z]*[¢£¥₠-₿][B-Zb-z]*|[B-Zb-z]+\$|\$[B-Zb-z]+")  # of a currency that we don't know
_MAX_GAP = 1.6  # between an amount and its mark, in sizes of the mark's characters; CR and DR stand as close
_HEADING = re.compile(
    r"\b(?:amount|balance|debits?|credits?|withdrawals?|deposits?|paid (?:in|out)|money (?:in|out))\b", re.IGNORECASE
)


def currency_of(lines: Sequence[Line], pages: Sequence[Page]) -> str | None:
    """Return the currency (ISO 4217) that an account's lines state, else the pages of its document, else None."""
    return (
        next(_stated_for_account(_before_rows(lines)), None)
        or next(_stated_in_headings(lines), None)
        or _stated_at_figures(lines)
        or _single(_stated_in_sentences(lines))
        or _single(chain.from_iterable(_stated_in_sentences(page.lines) for page in pages))
        or _single(_stated_for_account(_before_rows(pages[0].lines)))
    )


def _before_rows(lines: Sequence[Line]) -> Sequence[Line]:
    return lines[: next((position for position, line in enumerate(lines) if is_row(line)), len(lines))]


def _stated_for_account(lines: Sequence[Line]) -> Iterator[str]:
    for found in find_label(lines, _LABEL):
        texts = (
            found.first_cell or found.text_after,
            *(" ".join(word.text for word in cell) for cell in found.below[:1]),
        )
        yield from (_code(match) for text in texts if (match := _MENTION.match(text)))
    for line in lines:
        if match := _ACCOUNT.search(line.text):
            yield from map(_code, _MENTION.finditer(match[0]))
        elif (match := _NAMED.search(line.text)) and not _MENTION.search(match[0]):
            yield match[1] if match[1] in currencies.CODES else UNKNOWN


def _stated_in_sentences(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the currencies in sentences and labels above, between and below the rows, but not in the rows."""
    continuations = row_continuations(lines)
    others = [line for position, line in enumerate(lines) if not is_row(line) and position not in continuations]
    for found in _SENTENCE.finditer("\n".join(line.text for line in others)):
        yield from map(_code, islice(_MENTION.finditer(" ".join(found[0].split())), 1))
    for label in find_label(others, _LABEL):
        if match := _MENTION.match(label.first_cell or label.text_after):
            yield _code(match)


def _stated_in_headings(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if len(_HEADING.findall(line.text)) > 1 and not amounts_of(line):
            yield from map(_code, _MENTION.finditer(line.text))


def _stated_at_figures(lines: Sequence[Line]) -> str | None:
    """Return the currency at the last figure of most rows; if no row has one, that of most other amounts."""
    rows = [currency_at(line, amounts_of(line)[-1]) for line in lines if is_row(line) and amounts_of(line)]
    others = [currency_at(line, amount) for line in lines if not is_row(line) for amount in amounts_of(line)]
    return _majority(rows) if any(rows) else _majority(others)


def _majority(found: Sequence[str | None]) -> str | None:
    code, number = Counter(found).most_common(1)[0] if found else (None, 0)
    return code if 2 * number > len(found) else None


def currency_at(line: Line, printed: Printed) -> str | None:
    """Return the currency at an amount: in it, or the word before or after it."""
    if printed.money.currency:
        return printed.money.currency
    first, last = line.words[printed.start], line.words[printed.stop - 1]
    before = [(word, first.left - word.right) for word in line.words[max(printed.start - 1, 0) : printed.start]]
    after = [(word, word.left - last.right) for word in line.words[printed.stop : printed.stop + 1]]
    marks = (_mark(word.text, is_close=gap < _MAX_GAP * max(word.size, 1.0)) for word, gap in (*before, *after))
    return next(filter(None, marks), None)


def _mark(text: str, *, is_close: bool) -> str | None:
    """Return the currency that a word beside an amount names.

    Only a word close to the amount can be a mark, because a description may end in `FR`, too.
    """
    if text in CODES:
        return text
    if not is_close:
        return None
    known = CURRENCY_BY_SYMBOL.get(text) or CURRENCY_BY_WORD.get(text) or (text if text in currencies.CODES else None)
    return known or (UNKNOWN if _OTHER_SIGN.fullmatch(text) else None)


def _single(found: Iterator[str]) -> str | None:
    codes = set(found)
    return codes.pop() if len(codes) == 1 else None


def _code(match: re.Match[str]) -> str:
    if match["name"]:
        return next(code for name, code in NAMES.items() if re.fullmatch(name, match["name"], re.IGNORECASE))
    return match["code"] or CURRENCY_BY_SYMBOL[match["symbol"]]
