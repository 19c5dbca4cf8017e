"""Divide an account's lines into regions, each a heading with the lines below it, and fit their columns.

A heading applies until the next one, also on pages that don't repeat it. Without a known heading, lines that begin with
dates and end with aligned figures are a table.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.intake.pdf.layout.columns import Columns, fit_columns
from pipelines.intake.pdf.layout.headings import Column, Heading, Vocabulary, begins_another, heading_at
from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.amounts import Printed, amounts_of
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.page import Line
from pipelines.intake.pdf.table.rows import mark_kind, title_of

# Our judgement.
_MIN_ROWS = 2  # dated lines with amounts in a table without a heading
_MAX_LINES = 6  # of a row in a table without a heading
_SAME_COLUMNS = 3.0  # points: tolerance for a repeated heading
_ONE_COLUMN = 8.0  # points between right edges in one column, because some digits have signs after them
_TITLE_STEP = 3.0  # of the size, at most, from a title to the heading below it
_MAX_FIGURES = 3  # columns of amounts that can be inferred without a heading
_MIN_SHARE = 0.08  # of the rows: amounts in a column that is inferred


@dataclass(frozen=True)
class Region:
    """A heading and the lines below it."""

    heading: Heading
    lines: tuple[Line, ...]


def find_regions(lines: Sequence[Line], layout: Layout | None) -> list[Region]:
    """Return the regions that have an account's rows."""
    found = _main_regions(_split_at_headings(lines, Vocabulary.of(layout), layout.section_signs if layout else {}))
    return found if _has_rows(found) else _infer_region(lines) or found


def _split_at_headings(lines: Sequence[Line], vocabulary: Vocabulary, titles: Mapping[str, int]) -> list[Region]:
    regions: list[Region] = []
    heading, start, index = None, 0, 0
    above: tuple[Line, ...] = ()
    while index < len(lines):
        found = heading_at(lines, index, vocabulary)
        if found is None:
            if heading is not None and begins_another(lines[index], heading, vocabulary):
                regions.append(Region(heading, (*above, *lines[start:index])))
                heading = None
            index += 1
            continue
        if heading is not None:
            regions.append(Region(heading, (*above, *lines[start:index])))
        above = _title_above(lines, index, titles)
        heading, start = found[0], index + found[1]
        index = start
    if heading is not None:
        regions.append(Region(heading, (*above, *lines[start:])))
    return regions


def _title_above(lines: Sequence[Line], index: int, titles: Mapping[str, int]) -> tuple[Line, ...]:
    """Return the title close above a heading, if there is one. It applies to the rows below the heading."""
    if not index:
        return ()
    title, heading = lines[index - 1], lines[index]
    is_close = title.page == heading.page and heading.box.top - title.box.top <= _TITLE_STEP * title.words[0].size
    return (title,) if is_close and title_of(title.text, titles) is not None else ()


def _main_regions(regions: Sequence[Region]) -> list[Region]:
    """Return the regions of the kind of table with most rows, not those of others (monthly fees, interest rates)."""
    weights: Counter[frozenset[str]] = Counter()
    for region in regions:
        weights[_kind(region)] += sum(1 for line in region.lines if _is_dated(line) and amounts_of(line))
    best = max(weights, key=lambda kind: (weights[kind], len(kind)), default=None)
    return [region for region in regions if _kind(region) == best]


def _kind(region: Region) -> frozenset[str]:
    return frozenset(column.role for column in region.heading.figures)


def _is_dated(line: Line) -> bool:
    return leading_date(line.text) is not None


def _has_rows(regions: Sequence[Region]) -> bool:
    return any(amounts_of(line) for region in regions for line in region.lines)


def _infer_region(lines: Sequence[Line]) -> list[Region]:
    """Return a region without a printed heading: lines that begin with a date and have aligned figures."""
    segments = [segment for segment in _dated_segments(lines) if any(amounts_of(lines[index]) for index in segment)]
    if len(segments) < _MIN_ROWS:
        return []
    first = segments[0].start
    amounts = [printed for line in lines[first:] for printed in amounts_of(line)]
    heading = _infer_heading(
        _group_by_edge(amounts, len(segments)), [[lines[index] for index in rows] for rows in segments]
    )
    if heading is None:
        return []
    start = next((index for index in range(max(0, first - 4), first) if mark_kind(_without_date(lines[index]))), first)
    return [Region(heading, tuple(lines[start:]))]


def _dated_segments(lines: Sequence[Line]) -> Iterator[range]:
    """Yield the lines from each date up to the next one, at most _MAX_LINES."""
    dated = [index for index, line in enumerate(lines) if _is_dated(line)]
    for index, following in pairwise([*dated, len(lines)]):
        yield range(index, min(following, index + _MAX_LINES))


def _without_date(line: Line) -> str:
    found = leading_date(line.text)
    return line.text[found[1] :].strip() if found else line.text


def _group_by_edge(amounts: Sequence[Printed], rows: int) -> list[list[Printed]]:
    """Group amounts by the right edges that many rows share, from left to right."""
    groups: list[list[Printed]] = []
    for amount in sorted(amounts, key=lambda amount: amount.edge):
        if groups and amount.edge - groups[-1][-1].edge <= _ONE_COLUMN:
            groups[-1].append(amount)
        else:
            groups.append([amount])
    common = sorted((group for group in groups if len(group) >= _MIN_SHARE * rows), key=len, reverse=True)
    return sorted(common[:_MAX_FIGURES], key=lambda group: group[0].edge)


def _infer_heading(edges: Sequence[Sequence[Printed]], segments: Sequence[Sequence[Line]]) -> Heading | None:
    """Infer a heading with the usual columns: amount; amount and balance; or money out and in, perhaps with a balance.

    It is assumed that money out is left of money in.
    """
    if not edges:
        return None
    dated = [segment[0] for segment in segments]
    roles = _usual_roles(edges, segments)
    figures = [
        Column(role, min(amount.left for amount in group), max(amount.edge for amount in group))
        for role, group in zip(roles, edges[-len(roles) :], strict=True)
    ]
    left = min(line.words[0].left for line in dated)
    texts = Counter(round(_left_of_text(line)) for line in dated)
    text = float(texts.most_common(1)[0][0])
    columns = (Column("date", left, max(left + 1, text - 3)), Column("description", text, text + 20), *figures)
    return Heading(columns, dated[0].page, dated[0].box.top, is_inferred=True)


def _left_of_text(line: Line) -> float:
    """Return where the text after a line's date begins."""
    found = leading_date(line.text)
    taken, used = (found[1] if found else 0), -1
    for word in line.words:
        if used + 1 >= taken:
            return word.left
        used += 1 + len(word.text)
    return line.words[-1].right


def _usual_roles(edges: Sequence[Sequence[Printed]], segments: Sequence[Sequence[Line]]) -> tuple[str, ...]:
    if len(edges) == 1:
        return ("amount",)
    if len(edges) >= 3:
        return ("debit", "credit", "balance")
    both = sum(sum(len(amounts_of(line)) for line in segment) >= 2 for segment in segments)
    return ("amount", "balance") if both * 4 >= len(segments) else ("debit", "credit")


def fit_regions(regions: Sequence[Region]) -> Iterator[tuple[Columns, Region]]:
    """Yield each region with its columns. Regions with the same heading are fitted together: a page with few rows
    doesn't show where its columns end.
    """
    groups: list[list[Region]] = []
    group_of: list[int] = []
    for region in regions:
        same = (nth for nth, group in enumerate(groups) if _is_repeated(group[0].heading, region.heading))
        group_of.append(next(same, len(groups)))
        if group_of[-1] == len(groups):
            groups.append([])
        groups[group_of[-1]].append(region)
    fits = [fit_columns(group[0].heading, [line for region in group for line in region.lines]) for group in groups]
    for nth, region in zip(group_of, regions, strict=True):
        yield fits[nth], region


def _is_repeated(one: Heading, other: Heading) -> bool:
    return len(one.columns) == len(other.columns) and all(
        first.role == second.role and abs(first.left - second.left) <= _SAME_COLUMNS
        for first, second in zip(one.columns, other.columns, strict=True)
    )
