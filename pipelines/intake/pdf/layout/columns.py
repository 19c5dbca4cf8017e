"""Where the columns of a table lie, learned from the figures below its heading.

Figures of a column end at one right edge, wherever its heading stands over them. So the edges that many figures share
are the columns, and headings give them their roles: by their own right ends where these agree, else by their order,
else by what stands nearest.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from pipelines.intake.pdf.layout.headings import Column, Heading
from pipelines.intake.pdf.page.amounts import Money, Printed, amounts_of, printed_in
from pipelines.intake.pdf.page.dates import Printed as PrintedDate
from pipelines.intake.pdf.page.dates import leading, year_alone
from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.page.symbols import CODES
from pipelines.intake.pdf.page.wrapped_dates import TIME

_ALIGNED = 3.0  # points between right edges of one column
_NEAR = 6.0
_IN_LINE = 1.0  # where words stand close before it
_FAR = 45.0  # further from every heading than this is no figure of the table
_SAME_WORDS = 0.5  # of the size: an amount that close behind a word is part of its text
_LEAST_DATES = 2  # that show where dates stand
_DATE_SLACK = 30.0  # a heading may stand that much to the right of the dates under it
_BLANKS = {"blank", "nil"}  # what an empty cell may say
_DEBIT, _CREDIT = {"dr", "d", "debit", "-", "−", "–"}, {"cr", "c", "credit", "+"}


@dataclass(frozen=True, slots=True)
class Figures:
    """A column of amounts. Not `is_aligned`: they don't share a right edge, so they are told by where they stand."""

    role: str
    left: float
    edge: float
    is_aligned: bool
    heading: Column


@dataclass(frozen=True)
class Columns:
    """How the lines below a heading are taken apart."""

    heading: Heading
    figures: tuple[Figures, ...]
    date: tuple[float, float] | None  # where a date's first word may begin, and where its column ends
    value_date: tuple[float, float] | None
    sign: tuple[float, float] | None

    @property
    def left_of_figures(self) -> float:
        return min((each.left for each in self.figures), default=float("inf"))

    def may_hold_date(self, word: Word) -> bool:
        """Whether it stands where dates do; where that isn't known, left of where texts do."""
        if self.date is not None:
            return _within(word, self.date)
        texts = self.heading.of("description")
        return texts is None or word.left < texts.left - _ALIGNED

    def is_left_of_texts(self, word: Word) -> bool:
        """Whether it stands where dates do and texts don't: a date that stands alone may be wide."""
        texts = self.heading.of("description")
        return _within(word, self.date) and (texts is None or word.right < texts.left)


@dataclass(frozen=True, slots=True)
class Cells:
    """A line, taken apart by the columns."""

    line: Line
    date: PrintedDate | None = None
    value_date: PrintedDate | None = None
    year: int | None = None  # stands alone where dates do
    words: tuple[Word, ...] = ()
    amounts: Mapping[str, Money] = field(default_factory=dict)  # by role
    strays: tuple[Money, ...] = ()  # amounts in no column, or a second one in a column
    sign: int | None = None  # from a column of DR and CR
    row_year: int | None = None  # of the row of a year alone that it stands under
    is_date_unreadable: bool = False  # something stands where dates do, and it is none

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


def fitted(heading: Heading, lines: Sequence[Line]) -> Columns:
    """The columns below a heading, as the lines down to the next one fill them."""
    amounts = [each for line in lines for each in _candidates(line, heading)]
    clusters = _clusters(amounts)
    return Columns(
        heading=heading,
        figures=tuple(_figures(heading, clusters)),
        date=_date_zone(heading, lines),
        value_date=_zone(heading, "value_date"),
        sign=_zone(heading, "sign"),
    )


def _candidates(line: Line, heading: Heading) -> Iterator[Printed]:
    """Amounts that are not near the left of every figure's heading, nor part of a text."""
    first = min((column.left for column in heading.figures), default=0.0) - 2 * _FAR
    for each in amounts_of(line):
        if each.edge >= first and not _in_text(line.words, each):
            yield each


def _in_text(words: Sequence[Word], printed: Printed) -> bool:
    if printed.start == 0:
        return False
    before = words[printed.start - 1]
    return words[printed.start].left - before.right < _SAME_WORDS * max(before.size, 1.0) and before.text.isalpha()


@dataclass(frozen=True, eq=False)
class _Cluster:
    amounts: tuple[Printed, ...]

    @property
    def edge(self) -> float:
        return median(each.edge for each in self.amounts)

    @property
    def left(self) -> float:
        return min(each.left for each in self.amounts)

    def __len__(self) -> int:
        return len(self.amounts)


def _clusters(amounts: Sequence[Printed]) -> list[_Cluster]:
    """Amounts with one right edge, from left to right."""
    groups: list[list[Printed]] = []
    for each in sorted(amounts, key=lambda one: one.edge):
        if groups and each.edge - groups[-1][-1].edge <= _ALIGNED:
            groups[-1].append(each)
        else:
            groups.append([each])
    return [_Cluster(tuple(group)) for group in groups]


def _figures(heading: Heading, clusters: Sequence[_Cluster]) -> Iterator[Figures]:
    """A column for each heading of figures, also for one that nothing stands under."""
    assigned = _assigned(heading, clusters)
    for column in heading.figures:
        own = [cluster for cluster, found in assigned if found is column]
        main = max(own, key=len, default=None)
        total = sum(len(each) for each in own)
        if main is None:
            yield Figures(column.role, column.left, column.right, is_aligned=True, heading=column)
        else:
            yield Figures(column.role, main.left, main.edge, 2 * len(main) >= total, column)


def _assigned(heading: Heading, clusters: Sequence[_Cluster]) -> list[tuple[_Cluster, Column]]:
    total = sum(len(each) for each in clusters)
    major = [each for each in clusters if len(each) >= max(2, 0.02 * total)]
    columns = heading.numeric
    major = [each for each in major if not _is_marked_of(each, major)]
    by_order = _by_order(major, columns) or _by_order(major, heading.figures)
    rest = [(each, _nearest(each, columns)) for each in clusters if each not in by_order]
    return [*by_order.items(), *((cluster, column) for cluster, column in rest if column is not None)]


def _is_marked_of(cluster: _Cluster, others: Sequence[_Cluster]) -> bool:
    """Whether what stands behind its digits (CR, OD) ends where the digits of another column do: it is of that one."""
    if any(each.right <= each.edge for each in cluster.amounts):
        return False
    right = median(each.right for each in cluster.amounts)
    return any(other is not cluster and abs(other.edge - right) <= _ALIGNED for other in others)


def _by_order(clusters: Sequence[_Cluster], columns: Sequence[Column]) -> dict[_Cluster, Column]:
    """As many columns of figures as headings: the first for the first, unless one stands far from its own."""
    pairs = list(zip(clusters, columns, strict=False))
    is_each = len(clusters) == len(columns) and all(
        _distance(cluster, column) < _FAR and _flush(cluster, columns) in (None, column) for cluster, column in pairs
    )
    return dict(pairs) if is_each else {}


def _nearest(cluster: _Cluster, columns: Sequence[Column]) -> Column | None:
    """The heading whose right end agrees, else the one that stands nearest."""
    if (flush := _flush(cluster, columns)) is not None:
        return flush
    best = min(columns, key=lambda column: (_distance(cluster, column), abs(column.right - cluster.edge)), default=None)
    return best if best is not None and _distance(cluster, best) < _FAR else None


def _flush(cluster: _Cluster, columns: Sequence[Column]) -> Column | None:
    """The heading whose right end agrees with a column of figures, with their marks or without."""
    right = median(each.right for each in cluster.amounts)
    best = min(columns, key=lambda column: _off(column, cluster.edge, right), default=None)
    return best if best is not None and _off(best, cluster.edge, right) <= _NEAR else None


def _off(column: Column, *edges: float) -> float:
    return min(abs(column.right - edge) for edge in edges)


def _distance(cluster: _Cluster, column: Column) -> float:
    return max(column.left - cluster.edge, cluster.left - column.right, 0.0)


def _date_zone(heading: Heading, lines: Sequence[Line]) -> tuple[float, float] | None:
    """Below the heading of dates; where it has none, or no date stands there, where lines begin with dates. It ends
    where texts begin behind dates: a heading may stand over the middle of its texts."""
    zone = _zone(heading, "date")
    if zone is not None:
        zone = zone[0], min(zone[1], _usual_end_of_dates(lines, zone))
    starts = Counter(round(line.words[0].left) for line in lines if leading(line.text))
    beside = sum(number for left, number in starts.items() if zone is None or not zone[0] <= left < zone[1])
    if 2 * beside <= starts.total() or starts.total() < _LEAST_DATES or heading.of("value_date"):
        return zone
    left = starts.most_common(1)[0][0]
    dated = [line for line in lines if abs(line.words[0].left - left) <= _ALIGNED and leading(line.text)]
    return left - _ALIGNED, min(_end_of_date(line) for line in dated)


def _usual_end_of_dates(lines: Sequence[Line], zone: tuple[float, float]) -> float:
    ends = Counter(round(_end_of_date(line)) for line in lines if _within(line.words[0], zone) and leading(line.text))
    end, number = ends.most_common(1)[0] if ends else (0, 0)
    return end if number >= _LEAST_DATES and 2 * number > ends.total() else float("inf")


def _end_of_date(line: Line) -> float:
    """Where what follows a line's date begins, or its right end."""
    found = leading(line.text)
    taken, used = (found[1] if found else 0), -1
    for word in line.words:
        if used + 1 >= taken:
            return word.left - 1
        used += 1 + len(word.text)
    return line.words[-1].right + 1


def _zone(heading: Heading, role: str) -> tuple[float, float] | None:
    """From where a date's first word may begin to where the next column does."""
    column = heading.of(role)
    if column is None:
        return None
    before = [each.right for each in heading.columns if each.right <= column.left]
    after = [each.left for each in heading.columns if each.left >= column.right]
    start = max(max(before, default=-_DATE_SLACK), column.left - _DATE_SLACK) if before else -1e9
    return start, min(after, default=1e9) - 1


def cells_of(line: Line, columns: Columns) -> Cells:
    """A line taken apart."""
    words = line.words
    amounts, strays, taken = _placed_amounts(words, columns)
    rest = [(index, word) for index, word in enumerate(words) if index not in taken]
    date, rest = _date(rest, columns.date)
    value_date, rest = _date(rest, columns.value_date)
    year = None
    if date is None:
        year, rest = _year(rest, columns.date)
    sign, rest = _sign(rest, columns.sign)
    left_of_figures = columns.left_of_figures
    texts = tuple(
        word
        for _, word in rest
        if not (_is_blank(word) and (_within(word, columns.date) or word.right > left_of_figures))
        and not (_within(word, columns.date) and TIME.fullmatch(word.text))
    )
    unreadable = date is None and any(columns.is_left_of_texts(word) and word.text[0].isdigit() for word in texts)
    return Cells(line, date, value_date, year, texts, amounts, strays, sign, is_date_unreadable=unreadable)


def _placed_amounts(words: Sequence[Word], columns: Columns) -> tuple[dict[str, Money], tuple[Money, ...], set[int]]:
    """Amounts by role, those in no column, and the words that they take."""
    placed: dict[str, Printed] = {}
    strays: list[Money] = []
    for each in printed_in(words):
        column = _column_of(words, each, columns)
        if column is None:
            continue
        other = placed.get(column.role)
        if other is None or abs(each.edge - column.edge) < abs(other.edge - column.edge):
            placed[column.role] = each
        if other is not None:
            strays.append((other if placed[column.role] is each else each).money)
    taken = {index for each in placed.values() for index in range(each.start, each.stop)}
    taken |= {each.stop for each in placed.values() if each.stop < len(words) and words[each.stop].text in CODES}
    return {role: each.money for role, each in placed.items()}, tuple(strays), taken


def _column_of(words: Sequence[Word], printed: Printed, columns: Columns) -> Figures | None:
    """The column at whose edge an amount ends; else the one under whose heading it stands, outside of texts."""
    nearest = min(columns.figures, key=lambda each: abs(each.edge - printed.edge), default=None)
    if nearest is None:
        return None
    in_text = _in_text(words, printed)
    if abs(nearest.edge - printed.edge) <= (_IN_LINE if in_text else _NEAR):
        return nearest
    flush = next((each for each in columns.figures if abs(each.edge - printed.right) <= _ALIGNED), None)
    if flush is not None and printed.right > printed.edge:  # a mark behind the digits is in line with them
        return flush
    if in_text:
        return None
    for each in columns.figures:
        head = each.heading
        reach = (min(head.left, each.left), max(head.right, each.edge))
        if printed.left < reach[1] + 1 and printed.right > reach[0] - 1:
            return each
    return None


def _is_blank(word: Word) -> bool:
    return word.text.lower() in _BLANKS or not any(character.isalnum() for character in word.text)


def _within(word: Word, zone: tuple[float, float] | None) -> bool:
    return zone is not None and zone[0] <= word.left < zone[1]


def _date(
    words: list[tuple[int, Word]], zone: tuple[float, float] | None
) -> tuple[PrintedDate | None, list[tuple[int, Word]]]:
    """The date that begins in its column, and the other words."""
    first = next((place for place, (_, word) in enumerate(words) if _within(word, zone)), None)
    if zone is None or first is None:
        return None, words
    text = " ".join(word.text for _, word in words[first : first + 5])
    found = leading(text)
    if found is None:
        return None, words
    date, length = found
    stop, used = first, -1
    while stop < len(words) and used + 1 < length:
        used += 1 + len(words[stop][1].text)
        stop += 1
    inside = all(word.left < zone[1] for _, word in words[first:stop])
    if not inside:  # a text beside the date was taken for its year
        return _date_inside(words, first, zone)
    return date, words[:first] + words[stop:]


def _date_inside(
    words: list[tuple[int, Word]], first: int, zone: tuple[float, float]
) -> tuple[PrintedDate | None, list[tuple[int, Word]]]:
    stop = next((place for place in range(first, len(words)) if words[place][1].left >= zone[1]), len(words))
    found = leading(" ".join(word.text for _, word in words[first:stop]))
    return (found[0], words[:first] + words[stop:]) if found else (None, words)


def _year(words: list[tuple[int, Word]], zone: tuple[float, float] | None) -> tuple[int | None, list[tuple[int, Word]]]:
    """A year alone where dates stand, and no text beside it."""
    solid = [(index, word) for index, word in words if not _is_blank(word)]
    if len(solid) != 1 or not _within(solid[0][1], zone):
        return None, words
    year = year_alone(solid[0][1].text)
    return (year, []) if year else (None, words)


def _sign(words: list[tuple[int, Word]], zone: tuple[float, float] | None) -> tuple[int | None, list[tuple[int, Word]]]:
    for place, (_, word) in enumerate(words):
        said = word.text.lower().strip(".()")
        if _within(word, zone) and said in _DEBIT | _CREDIT:
            return (-1 if said in _DEBIT else 1), words[:place] + words[place + 1 :]
    return None, words


def usual_left(cells: Sequence[Cells]) -> float | None:
    """Where texts begin beside dates."""
    lefts = Counter(round(each.words[0].left) for each in cells if each.date and each.words)
    return float(lefts.most_common(1)[0][0]) if lefts else None
