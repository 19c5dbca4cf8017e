"""Find the columns of a table from the figures below its heading.

Figures in a column share a right edge, wherever their heading is above them. So the edges that many figures share are
the columns. Columns get their roles from the headings: by right ends if these agree, else by order, else by distance.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from pipelines.intake.pdf.layout.headings import Column, Heading
from pipelines.intake.pdf.page.amounts import Money, Printed, amounts_of, printed_in
from pipelines.intake.pdf.page.dates import Printed as PrintedDate
from pipelines.intake.pdf.page.dates import leading_date, year_alone
from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.page.symbols import CODES
from pipelines.intake.pdf.page.wrapped_dates import TIME

# Points, unless stated otherwise; our judgement.
_ALIGNED = 3.0  # between right edges in one column
_NEAR = 6.0  # between the edge of an amount and that of its column
_IN_LINE = 1.0  # likewise if a word is close before the amount
_FAR = 45.0  # a figure further from every heading is not part of the table
_SAME_WORDS = 0.5  # of the characters' size: an amount this close after a word is part of a text
_MAJOR_SHARE = 0.02  # of all figures; a smaller group is no column of its own
_MIN_DATES = 2  # dates that show where dates begin
_DATE_SLACK = 30.0  # how far a heading may be to the right of its dates
_BLANKS = {"blank", "nil"}  # texts of empty cells
_DEBIT, _CREDIT = {"dr", "d", "debit", "-", "−", "–"}, {"cr", "c", "credit", "+"}


@dataclass(frozen=True, slots=True)
class Figures:
    """A column of amounts. `is_aligned`: most share its right edge."""

    role: str
    left: float
    edge: float
    is_aligned: bool
    heading: Column


@dataclass(frozen=True)
class Columns:
    """The columns into which the lines below a heading are split."""

    heading: Heading
    figures: tuple[Figures, ...]
    date: tuple[float, float] | None  # from where a date may begin to where its column ends
    value_date: tuple[float, float] | None
    sign: tuple[float, float] | None

    @property
    def left_of_figures(self) -> float:
        return min((column.left for column in self.figures), default=math.inf)

    def may_hold_date(self, word: Word) -> bool:
        """Return whether a word is in the column of dates; if that is unknown, whether it is left of the texts."""
        if self.date is not None:
            return _within(word, self.date)
        texts = self.heading.of("description")
        return texts is None or word.left < texts.left - _ALIGNED

    def is_left_of_texts(self, word: Word) -> bool:
        """Return whether a word is in the column of dates and ends before the texts.

        A date that is alone on its line may reach further.
        """
        texts = self.heading.of("description")
        return _within(word, self.date) and (texts is None or word.right < texts.left)


@dataclass(frozen=True, slots=True)
class Cells:
    """A line, split by the columns."""

    line: Line
    date: PrintedDate | None = None
    value_date: PrintedDate | None = None
    year: int | None = None  # alone in the column of dates
    words: tuple[Word, ...] = ()
    amounts: Mapping[str, Money] = field(default_factory=dict)  # by role
    strays: tuple[Money, ...] = ()  # further amounts in a column that has one
    sign: int | None = None  # from a column of DR and CR
    row_year: int | None = None  # from a row above with only a year
    is_date_unreadable: bool = False  # the column of dates has a text that isn't a date

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.amounts or self.date or self.value_date or self.year or self.strays)

    @property
    def flows(self) -> dict[str, Money]:
        return {role: money for role, money in self.amounts.items() if role != "balance"}

    @property
    def balance(self) -> Money | None:
        return self.amounts.get("balance")


def fit_columns(heading: Heading, lines: Sequence[Line]) -> Columns:
    """Find the columns below a heading from the lines down to the next one."""
    amounts = [amount for line in lines for amount in _candidates(line, heading)]
    clusters = _clusters(amounts)
    return Columns(
        heading=heading,
        figures=tuple(_figures(heading, clusters)),
        date=_date_zone(heading, lines),
        value_date=_zone(heading, "value_date"),
        sign=_zone(heading, "sign"),
    )


def _candidates(line: Line, heading: Heading) -> Iterator[Printed]:
    """Yield the amounts that are not far left of all headings of figures and not part of a text."""
    first = min((column.left for column in heading.figures), default=0.0) - 2 * _FAR
    for amount in amounts_of(line):
        if amount.edge >= first and not _is_in_text(line.words, amount):
            yield amount


def _is_in_text(words: Sequence[Word], printed: Printed) -> bool:
    if printed.start == 0:
        return False
    before = words[printed.start - 1]
    return words[printed.start].left - before.right < _SAME_WORDS * max(before.size, 1.0) and before.text.isalpha()


@dataclass(frozen=True, eq=False)
class _Cluster:
    amounts: tuple[Printed, ...]

    @property
    def edge(self) -> float:
        return median(amount.edge for amount in self.amounts)

    @property
    def left(self) -> float:
        return min(amount.left for amount in self.amounts)

    def __len__(self) -> int:
        return len(self.amounts)


def _clusters(amounts: Sequence[Printed]) -> list[_Cluster]:
    """Group amounts by right edge, from left to right."""
    groups: list[list[Printed]] = []
    for amount in sorted(amounts, key=lambda amount: amount.edge):
        if groups and amount.edge - groups[-1][-1].edge <= _ALIGNED:
            groups[-1].append(amount)
        else:
            groups.append([amount])
    return [_Cluster(tuple(group)) for group in groups]


def _figures(heading: Heading, clusters: Sequence[_Cluster]) -> Iterator[Figures]:
    """Yield a column for each heading of figures, even if it has no figures."""
    assigned = _assign_headings(heading, clusters)
    for column in heading.figures:
        own = [cluster for cluster, found in assigned if found is column]
        main = max(own, key=len, default=None)
        total = sum(map(len, own))
        if main is None:
            yield Figures(column.role, column.left, column.right, is_aligned=True, heading=column)
        else:
            yield Figures(column.role, main.left, main.edge, 2 * len(main) >= total, column)


def _assign_headings(heading: Heading, clusters: Sequence[_Cluster]) -> list[tuple[_Cluster, Column]]:
    total = sum(map(len, clusters))
    major = [cluster for cluster in clusters if len(cluster) >= max(2, _MAJOR_SHARE * total)]
    columns = heading.numeric
    major = [cluster for cluster in major if not _is_part_of_another(cluster, major)]
    by_order = _by_order(major, columns) or _by_order(major, heading.figures)
    rest = [(cluster, _nearest(cluster, columns)) for cluster in clusters if cluster not in by_order]
    return [*by_order.items(), *((cluster, column) for cluster, column in rest if column is not None)]


def _is_part_of_another(cluster: _Cluster, others: Sequence[_Cluster]) -> bool:
    """Return whether the marks after its digits (CR, OD) end at another column's edge. The amounts then belong to that
    column.
    """
    if any(amount.right <= amount.edge for amount in cluster.amounts):
        return False
    right = median(amount.right for amount in cluster.amounts)
    return any(other is not cluster and abs(other.edge - right) <= _ALIGNED for other in others)


def _by_order(clusters: Sequence[_Cluster], columns: Sequence[Column]) -> dict[_Cluster, Column]:
    """Assign clusters to headings in order, if there are as many of both and none is far from its heading."""
    pairs = list(zip(clusters, columns, strict=False))
    fits = len(clusters) == len(columns) and all(
        _distance(cluster, column) < _FAR and _flush(cluster, columns) in (None, column) for cluster, column in pairs
    )
    return dict(pairs) if fits else {}


def _nearest(cluster: _Cluster, columns: Sequence[Column]) -> Column | None:
    """Return the heading whose right end agrees, else the nearest one."""
    if (flush := _flush(cluster, columns)) is not None:
        return flush
    best = min(columns, key=lambda column: (_distance(cluster, column), abs(column.right - cluster.edge)), default=None)
    return best if best is not None and _distance(cluster, best) < _FAR else None


def _flush(cluster: _Cluster, columns: Sequence[Column]) -> Column | None:
    """Return the heading whose right end agrees with a cluster's, with or without its marks."""
    right = median(amount.right for amount in cluster.amounts)
    best = min(columns, key=lambda column: _deviation(column, cluster.edge, right), default=None)
    return best if best is not None and _deviation(best, cluster.edge, right) <= _NEAR else None


def _deviation(column: Column, *edges: float) -> float:
    return min(abs(column.right - edge) for edge in edges)


def _distance(cluster: _Cluster, column: Column) -> float:
    return max(column.left - cluster.edge, cluster.left - column.right, 0.0)


def _date_zone(heading: Heading, lines: Sequence[Line]) -> tuple[float, float] | None:
    """Return the column of dates: below its heading, or where lines begin with dates if it has no heading or most dates
    are elsewhere. The column ends where the texts after dates begin, because their heading may be centred.
    """
    zone = _zone(heading, "date")
    if zone is not None:
        zone = zone[0], min(zone[1], _usual_end_of_dates(lines, zone))
    starts = Counter(round(line.words[0].left) for line in lines if leading_date(line.text))
    beside = sum(number for left, number in starts.items() if zone is None or not zone[0] <= left < zone[1])
    if 2 * beside <= starts.total() or starts.total() < _MIN_DATES or heading.of("value_date"):
        return zone
    left = starts.most_common(1)[0][0]
    dated = [line for line in lines if abs(line.words[0].left - left) <= _ALIGNED and leading_date(line.text)]
    return left - _ALIGNED, min(_end_of_date(line) for line in dated)


def _usual_end_of_dates(lines: Sequence[Line], zone: tuple[float, float]) -> float:
    ends = Counter(
        round(_end_of_date(line)) for line in lines if _within(line.words[0], zone) and leading_date(line.text)
    )
    end, number = ends.most_common(1)[0] if ends else (0, 0)
    return end if number >= _MIN_DATES and 2 * number > ends.total() else math.inf


def _end_of_date(line: Line) -> float:
    """Return where the text after a line's date begins, or the line's right end."""
    found = leading_date(line.text)
    taken, used = (found[1] if found else 0), -1
    for word in line.words:
        if used + 1 >= taken:
            return word.left - 1
        used += 1 + len(word.text)
    return line.words[-1].right + 1


def _zone(heading: Heading, role: str) -> tuple[float, float] | None:
    """Return the range from where a text of this column may begin to where the next column begins."""
    column = heading.of(role)
    if column is None:
        return None
    before = [other.right for other in heading.columns if other.right <= column.left]
    after = [other.left for other in heading.columns if other.left >= column.right]
    start = max(*before, column.left - _DATE_SLACK) if before else -math.inf
    return start, min(after, default=math.inf) - 1


def split_line(line: Line, columns: Columns) -> Cells:
    """Split a line by the columns."""
    words = line.words
    amounts, strays, taken = _take_amounts(words, columns)
    rest = [(index, word) for index, word in enumerate(words) if index not in taken]
    date, rest = _take_date(rest, columns.date)
    value_date, rest = _take_date(rest, columns.value_date)
    year = None
    if date is None:
        year, rest = _take_year(rest, columns.date)
    sign, rest = _take_sign(rest, columns.sign)
    left_of_figures = columns.left_of_figures
    texts = tuple(
        word
        for _, word in rest
        if not (_is_blank(word) and (_within(word, columns.date) or word.right > left_of_figures))
        and not (_within(word, columns.date) and TIME.fullmatch(word.text))
    )
    unreadable = date is None and any(columns.is_left_of_texts(word) and word.text[0].isdigit() for word in texts)
    return Cells(line, date, value_date, year, texts, amounts, strays, sign, is_date_unreadable=unreadable)


def _take_amounts(words: Sequence[Word], columns: Columns) -> tuple[dict[str, Money], tuple[Money, ...], set[int]]:
    """Return the amounts by role, the stray ones, and the indices of their words."""
    placed: dict[str, Printed] = {}
    strays: list[Money] = []
    for amount in printed_in(words):
        column = _column_of(words, amount, columns)
        if column is None:
            continue
        other = placed.get(column.role)
        if other is None or abs(amount.edge - column.edge) < abs(other.edge - column.edge):
            placed[column.role] = amount
        if other is not None:
            strays.append((other if placed[column.role] is amount else amount).money)
    taken = {index for amount in placed.values() for index in range(amount.start, amount.stop)}
    taken |= {
        amount.stop for amount in placed.values() if amount.stop < len(words) and words[amount.stop].text in CODES
    }
    return {role: amount.money for role, amount in placed.items()}, tuple(strays), taken


def _column_of(words: Sequence[Word], printed: Printed, columns: Columns) -> Figures | None:
    """Return the column at whose edge an amount ends, else (unless it is in a text) the one with its heading above."""
    nearest = min(columns.figures, key=lambda column: abs(column.edge - printed.edge), default=None)
    if nearest is None:
        return None
    in_text = _is_in_text(words, printed)
    if abs(nearest.edge - printed.edge) <= (_IN_LINE if in_text else _NEAR):
        return nearest
    flush = next((column for column in columns.figures if abs(column.edge - printed.right) <= _ALIGNED), None)
    if flush is not None and printed.right > printed.edge:  # the mark after the digits is aligned with other digits
        return flush
    if in_text:
        return None
    for column in columns.figures:
        head = column.heading
        reach = (min(head.left, column.left), max(head.right, column.edge))
        if printed.left < reach[1] + 1 and printed.right > reach[0] - 1:
            return column
    return None


def _is_blank(word: Word) -> bool:
    return word.text.lower() in _BLANKS or not any(character.isalnum() for character in word.text)


def _within(word: Word, zone: tuple[float, float] | None) -> bool:
    return zone is not None and zone[0] <= word.left < zone[1]


def _take_date(
    words: list[tuple[int, Word]], zone: tuple[float, float] | None
) -> tuple[PrintedDate | None, list[tuple[int, Word]]]:
    """Return the date that begins in its column, and the remaining words."""
    first = next((place for place, (_, word) in enumerate(words) if _within(word, zone)), None)
    if zone is None or first is None:
        return None, words
    text = " ".join(word.text for _, word in words[first : first + 5])
    found = leading_date(text)
    if found is None:
        return None, words
    date, length = found
    stop, used = first, -1
    while stop < len(words) and used + 1 < length:
        used += 1 + len(words[stop][1].text)
        stop += 1
    inside = all(word.left < zone[1] for _, word in words[first:stop])
    if not inside:  # a text beside the date was read as its year
        return _take_date_inside(words, first, zone)
    return date, words[:first] + words[stop:]


def _take_date_inside(
    words: list[tuple[int, Word]], first: int, zone: tuple[float, float]
) -> tuple[PrintedDate | None, list[tuple[int, Word]]]:
    stop = next((place for place in range(first, len(words)) if words[place][1].left >= zone[1]), len(words))
    found = leading_date(" ".join(word.text for _, word in words[first:stop]))
    return (found[0], words[:first] + words[stop:]) if found else (None, words)


def _take_year(
    words: list[tuple[int, Word]], zone: tuple[float, float] | None
) -> tuple[int | None, list[tuple[int, Word]]]:
    """Return a year that is alone in the column of dates and on its line, and the remaining words."""
    solid = [(index, word) for index, word in words if not _is_blank(word)]
    if len(solid) != 1 or not _within(solid[0][1], zone):
        return None, words
    year = year_alone(solid[0][1].text)
    return (year, []) if year else (None, words)


def _take_sign(
    words: list[tuple[int, Word]], zone: tuple[float, float] | None
) -> tuple[int | None, list[tuple[int, Word]]]:
    for place, (_, word) in enumerate(words):
        mark = word.text.lower().strip(".()")
        if _within(word, zone) and mark in _DEBIT | _CREDIT:
            return (-1 if mark in _DEBIT else 1), words[:place] + words[place + 1 :]
    return None, words


def usual_left(cells: Sequence[Cells]) -> float | None:
    """Return where most texts beside dates begin, in points."""
    lefts = Counter(round(line.words[0].left) for line in cells if line.date and line.words)
    return float(lefts.most_common(1)[0][0]) if lefts else None
