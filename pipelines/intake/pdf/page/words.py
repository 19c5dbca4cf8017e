"""Assemble characters into words and lines by their places on the page, not by their order in the file.

Spaces in a file are only a hint: banks place each word, each letter or half an amount separately. In letter-spaced
text, the gap between words is wider than that between letters.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.intake.pdf.page.characters import Characters
from pipelines.intake.pdf.page.page import Line, Turn, Word

# Shares of the characters' size, unless stated otherwise; our judgement.
_GAP = 0.19  # a wider gap separates words
_GAP_AT_SPACE = 0.05  # the same where the file has a space
_CELL = 1.1  # a wider gap separates columns; it is more than any letter spacing
_SAME_LINE = 0.32  # between the middles of neighbours
_TALLEST_LINE = 0.62  # between the middles of the first and the last
_DOUBLED = 0.35  # of a character's width: the same character drawn again this close is bold
_ASKEW = 20.0  # degrees: text turned further is not part of the page's text
_LEADER = 3  # this many full stops in a row, or more, only guide the eye


@dataclass(frozen=True)
class Upright:
    """A page's characters, turned so that its lines are level."""

    characters: Characters
    turn: Turn


def upright(characters: Characters, width: float, height: float) -> Upright:
    """Turn a page's text level. Text in another direction than most (codes in a margin) is left out."""
    if not len(characters):
        return Upright(characters, Turn())
    quarter = _main_direction(characters.angle)
    off = _signed_angle(characters.angle - quarter)
    along = characters.only(np.abs(off) < _ASKEW)
    if not len(along):
        return Upright(along, Turn())
    slope = float(np.median(_signed_angle(along.angle - quarter)))
    turn = Turn.of(quarter + (slope if abs(slope) > 0.05 else 0.0), width, height)
    return Upright(along if turn.is_none else _turn_boxes(along, turn, quarter, slope), turn)


def _signed_angle(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    return (angle + 180) % 360 - 180


def _main_direction(angle: NDArray[np.float64]) -> int:
    quarters = (np.round(angle / 90).astype(int) % 4) * 90
    values, counts = np.unique(quarters, return_counts=True)
    return int(values[counts.argmax()])


def _turn_boxes(characters: Characters, turn: Turn, quarter: int, slope: float) -> Characters:
    """Turn boxes about their middles. Boxes of skewed text are larger than the characters and are reduced."""
    across, down = characters.right - characters.left, characters.bottom - characters.top
    if quarter in (90, 270):
        across, down = down, across
    sine, cosine = np.sin(np.radians(abs(slope))), np.cos(np.radians(abs(slope)))
    scale = cosine**2 - sine**2
    wide, tall = (across * cosine - down * sine) / scale, (down * cosine - across * sine) / scale
    x, y = turn.to_level((characters.left + characters.right) / 2, (characters.top + characters.bottom) / 2)
    half, half_height = np.maximum(wide, 0.1) / 2, np.maximum(tall, 0.1) / 2
    return Characters(
        code=characters.code,
        left=x - half,
        top=y - half_height,
        right=x + half,
        bottom=y + half_height,
        size=characters.size,
        angle=characters.angle,
        run=characters.run,
        after_space=characters.after_space,
        fonts=characters.fonts,
        invisible=characters.invisible,
    )


def lines_of(characters: Characters, page: int) -> list[Line]:
    """Return the lines of a page from top to bottom."""
    if not len(characters):
        return []
    line = _assign_lines(characters)
    order = np.lexsort((characters.left, line))
    placed, line = characters.only(order), line[order]
    retained = ~_is_doubled(placed, line)
    placed, line, order = placed.only(retained), line[retained], order[retained]
    leaders = _is_leader(placed, line)
    breaks = _breaks(placed, line, order, leaders)
    words = _words(placed, breaks, leaders)
    return [
        Line(page, tuple(word for _, word in group)) for group in _by_line(words, line[np.flatnonzero(breaks)]) if group
    ]


def _assign_lines(characters: Characters) -> NDArray[np.int64]:
    """Return the line of each character. Characters with level middles share a line, in any order in the file."""
    middle = (characters.top + characters.bottom) / 2
    steps = np.round(middle * 10).astype(np.int64)
    levels, which = np.unique(steps, return_inverse=True)
    size = np.full(len(levels), np.inf)
    np.minimum.at(size, which, characters.size)
    return np.array(list(_number_levels(levels / 10, size)), np.int64)[which]


def _number_levels(levels: NDArray[np.float64], sizes: NDArray[np.float64]) -> Iterator[int]:
    number, first, last, last_size = -1, -np.inf, -np.inf, 0.0
    for level, size in zip(levels.tolist(), sizes.tolist(), strict=True):
        least = min(size, last_size)
        if level - last > _SAME_LINE * least or level - first > _TALLEST_LINE * least:
            number, first = number + 1, level
        last, last_size = level, size
        yield number


def _is_doubled(placed: Characters, line: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each character repeats one drawn just before it, slightly displaced to look bold."""
    doubled = np.zeros(len(placed), bool)
    width = placed.right - placed.left
    for back in (1, 2):
        same = (placed.code[back:] == placed.code[:-back]) & (line[back:] == line[:-back])
        near = np.abs(placed.left[back:] - placed.left[:-back]) < _DOUBLED * width[back:]
        other = placed.run[back:] != placed.run[:-back]
        doubled[back:] |= same & near & other
    return doubled


def _is_leader(placed: Characters, line: NDArray[np.int64]) -> NDArray[np.bool_]:
    is_dot = (placed.code == ord(".")) | (placed.code == ord("_")) | (placed.code == 0x2026)
    starts = np.ones(len(placed), bool)
    starts[1:] = (is_dot[1:] != is_dot[:-1]) | (line[1:] != line[:-1])
    group = np.cumsum(starts) - 1
    lengths = np.bincount(group)
    is_leader: NDArray[np.bool_] = is_dot & (lengths[group] >= _LEADER)
    return is_leader


def _breaks(
    placed: Characters, line: NDArray[np.int64], order: NDArray[np.int64], leaders: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether a word begins with each character."""
    size = np.minimum(placed.size[1:], placed.size[:-1])
    gap = (placed.left[1:] - placed.right[:-1]) / size
    new_line = line[1:] != line[:-1]
    follows = order[1:] == order[:-1] + 1
    at_space = follows & placed.after_space[1:]
    apart = new_line | (gap > _GAP) | (at_space & (gap > _GAP_AT_SPACE)) | (leaders[1:] != leaders[:-1])
    apart |= gap < -1.5  # text over other text
    cells = new_line | (gap > _CELL) | (leaders[1:] != leaders[:-1])
    breaks = np.ones(len(placed), bool)
    breaks[1:] = apart
    for start, stop in _find_letter_spaced(breaks, np.concatenate(([True], cells))):
        inner = gap[start : stop - 1]
        breaks[start + 1 : stop] = _between_words(inner)
    return breaks


def _find_letter_spaced(breaks: NDArray[np.bool_], cells: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of cells in which nearly every character would be a word."""
    starts = np.flatnonzero(cells)
    stops = np.append(starts[1:], len(cells))
    words = np.add.reduceat(breaks.astype(np.int64), starts)
    length = stops - starts
    for index in np.flatnonzero((length >= 4) & (words >= 0.8 * length)).tolist():
        yield int(starts[index]), int(stops[index])


def _between_words(gap: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which gaps separate words: those clearly wider than the median, because most gaps are between letters."""
    usual = float(np.median(gap))
    return gap > max(1.5 * usual, usual + 0.12)


def _words(placed: Characters, breaks: NDArray[np.bool_], leaders: NDArray[np.bool_]) -> list[Word | None]:
    """Return a word for each break, or None for leaders."""
    starts = np.flatnonzero(breaks)
    stops = np.append(starts[1:], len(breaks))
    text = placed.code.astype("<u4").tobytes().decode("utf-32-le", "replace")
    columns = (
        starts,
        stops,
        np.minimum.reduceat(placed.left, starts).round(2),
        np.minimum.reduceat(placed.top, starts).round(2),
        np.maximum.reduceat(placed.right, starts).round(2),
        np.maximum.reduceat(placed.bottom, starts).round(2),
        placed.run[starts],
        placed.size[starts].round(2),
        leaders[starts],
    )
    return [
        None if leader else Word(_normalise(text[start:stop]), left, top, right, bottom, placed.fonts[run], size)
        for start, stop, left, top, right, bottom, run, size, leader in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def _normalise(text: str) -> str:
    """Replace ligatures and full-width digits by plain characters. Minus signs are not changed."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _by_line(words: list[Word | None], lines: NDArray[np.int64]) -> Iterator[list[tuple[int, Word]]]:
    group: list[tuple[int, Word]] = []
    for line, word in zip(lines.tolist(), words, strict=True):
        if group and group[0][0] != line:
            yield group
            group = []
        if word is not None:
            group.append((line, word))
    yield group
