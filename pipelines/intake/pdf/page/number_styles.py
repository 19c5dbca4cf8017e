"""Amounts of all styles of numbers, rewritten as Australians write them: `1.234,56`, `1'234.56`, `1,23,456.00`.

The style is told by the whole file: where more amounts have a comma before their cents than a point, commas are
decimal. Only the texts of words change, not their places.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pipelines.intake.pdf.page.page import Line, Page, Word

_THIN = "'’ʼ\u00a0\u202f\u2009"  # apostrophes and narrow blanks within a number
_GROUPS = re.compile(rf"(?<=[0-9])[{_THIN}](?=[0-9]{{3}}(?![0-9]))")
_LAKHS = re.compile(r"(?<![0-9,.])[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?=\.[0-9]{2}(?![0-9]))")
_COMMA = re.compile(r"(?<![0-9,.])[0-9]{1,3}(?:(?:\.[0-9]{3})+|[0-9]*),[0-9]{2}(?![0-9,.])")
_POINT = re.compile(r"[0-9]\.[0-9]{2}(?![0-9,.])")
_SWAPPED = str.maketrans(",.", ".,")


def in_one_style(pages: Sequence[Page]) -> Sequence[Page]:
    """The pages with points for decimals and commas for thousands."""
    grouped = [_each_word(page, _with_commas) for page in pages]
    texts = [word.text for page in grouped for line in page.lines for word in line.words]
    if sum(map(_is_comma, texts)) <= sum(map(_is_point, texts)):
        return grouped
    return [_each_word(page, _with_point) for page in grouped]


def _is_comma(text: str) -> bool:
    return bool(_COMMA.search(text))


def _is_point(text: str) -> bool:
    return bool(_POINT.search(text))


def _with_commas(text: str) -> str:
    return _LAKHS.sub(lambda match: match[0].replace(",", ""), _GROUPS.sub(",", text))


def _with_point(text: str) -> str:
    return _COMMA.sub(lambda match: match[0].translate(_SWAPPED), text)


def _each_word(page: Page, rewritten: Callable[[str], str]) -> Page:
    """The same page where no word changes: what is known of its lines is kept."""
    lines = [_line(line, rewritten) for line in page.lines]
    is_same = all(one is two for one, two in zip(lines, page.lines, strict=True))
    return page if is_same else replace(page, lines=lines)


def _line(line: Line, rewritten: Callable[[str], str]) -> Line:
    words = tuple(_word(word, rewritten(word.text)) for word in line.words)
    return line if words == line.words else Line(line.page, words)


def _word(word: Word, text: str) -> Word:
    return word if text == word.text else replace(word, text=text)
