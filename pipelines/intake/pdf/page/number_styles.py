"""Rewrite amounts in other number styles (`1.234,56`, `1'234.56`, `1,23,456.00`) as `1,234.56` or `123456.00`.

The style is inferred from the whole document: if more amounts have a comma before their cents than a point, commas are
decimal. Only the texts of words change, not their places.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipelines.intake.pdf.page.page import Line, Page, Word

_THIN = "'’ʼ\u00a0\u202f\u2009"  # apostrophes and narrow spaces within a number
_GROUPS = re.compile(rf"(?<=[0-9])[{_THIN}](?=[0-9]{{3}}(?![0-9]))")
_LAKHS = re.compile(r"(?<![0-9,.])[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?=\.[0-9]{2}(?![0-9]))")
_COMMA = re.compile(r"(?<![0-9,.])[0-9]{1,3}(?:(?:\.[0-9]{3})+|[0-9]*),[0-9]{2}(?![0-9,.])")
_POINT = re.compile(r"[0-9]\.[0-9]{2}(?![0-9,.])")
_SWAPPED = str.maketrans(",.", ".,")


def in_one_style(pages: Sequence[Page]) -> Sequence[Page]:
    """Return the pages with decimal points, and with commas or nothing between thousands."""
    grouped = [_rewrite_page(page, _with_commas) for page in pages]
    texts = [word.text for page in grouped for line in page.lines for word in line.words]
    if sum(map(_has_comma_cents, texts)) <= sum(map(_has_point_cents, texts)):
        return grouped
    return [_rewrite_page(page, _with_point) for page in grouped]


def _has_comma_cents(text: str) -> bool:
    return bool(_COMMA.search(text))


def _has_point_cents(text: str) -> bool:
    return bool(_POINT.search(text))


def _with_commas(text: str) -> str:
    return _LAKHS.sub(lambda match: match[0].replace(",", ""), _GROUPS.sub(",", text))


def _with_point(text: str) -> str:
    return _COMMA.sub(lambda match: match[0].translate(_SWAPPED), text)


def _rewrite_page(page: Page, rewrite: Callable[[str], str]) -> Page:
    """Rewrite the words of a page. Lines that don't change stay the same objects: results are cached by line."""
    lines = [_rewrite_line(line, rewrite) for line in page.lines]
    is_same = all(one is two for one, two in zip(lines, page.lines, strict=True))
    return page if is_same else replace(page, lines=lines)


def _rewrite_line(line: Line, rewrite: Callable[[str], str]) -> Line:
    words = tuple(_rewrite_word(word, rewrite(word.text)) for word in line.words)
    return line if words == line.words else Line(line.page, words)


def _rewrite_word(word: Word, text: str) -> Word:
    return word if text == word.text else replace(word, text=text)
