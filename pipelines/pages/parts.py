"""The parts of a page, as values: text that is already worded, and charts that are already measured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias, TypeVar

from pipelines.pages.charts import Chart
from pipelines.pages.wording import quantity

T = TypeVar("T")
# Widths in points, as the style sheet has them: of a printed portrait page, of a character (as in wide fonts), and of a
# cell's padding.
PORTRAIT_WIDTH, CHARACTER_WIDTH, PADDING = 521, 4.8, 6
LEAST_WIDTHS: Mapping[str, float] = {"number": 0, "short": 0, "text": 46, "prose": 80}  # points, by kind of column
MAX_ROWS = 400  # of one table: our judgement of what a browser still lays out at once


def drop_none(*items: T | None) -> tuple[T, ...]:
    """Return the items that are not None: a page leaves out parts that it has no data for."""
    return tuple(item for item in items if item is not None)


@dataclass(frozen=True)
class Card:
    """A figure that is seen first, with lines below it. `mark` says what to know about it, such as `Indicative`.

    `place` is that of the figure, as in Grid.
    """

    title: str
    figure: str
    lines: tuple[str, ...] = ()
    mark: str | None = None
    place: str | None = None


@dataclass(frozen=True)
class Cards:
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Column:
    """`kind` says how cells are formatted: `number`, `short` (on one line), `text`, or `prose` for sentences."""

    heading: str
    kind: str = "text"


def number_columns(*headings: str) -> tuple[Column, ...]:
    """Return a column of numbers for each heading."""
    return tuple(Column(heading, "number") for heading in headings)


def _least_width(column: Column, cells: Iterable[str]) -> float:
    """Return the least printed width of a column, in points. Headings and texts wrap; other cells don't."""
    words = [*column.heading.split(), *(cells if column.kind in ("number", "short") else " ".join(cells).split())]
    return max(LEAST_WIDTHS[column.kind], CHARACTER_WIDTH * max(map(len, words), default=0)) + PADDING


@dataclass(frozen=True)
class Grid:
    """A table. `left_out` counts the rows beyond MAX_ROWS. `places` has the place of each cell that can be explained: a
    report and a JSON Pointer in it, such as `risk/value`. Pages that have explanations link to them.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0
    places: tuple[tuple[str | None, ...], ...] = ()

    @classmethod
    def of(
        cls,
        caption: str,
        columns: Iterable[Column | str],
        rows: Sequence[Sequence[str]],
        *,
        newest: bool = False,
        places: Sequence[Sequence[str | None]] = (),
    ) -> Self:
        """Return a table of at most MAX_ROWS rows: the first, or with `newest` the last. A plain heading is a text
        column.
        """
        shown = slice(-MAX_ROWS, None) if newest else slice(MAX_ROWS)
        typed = tuple(Column(each) if isinstance(each, str) else each for each in columns)
        left_out = len(rows) - len(rows[shown])
        return cls(caption, typed, tuple(map(tuple, rows[shown])), left_out, tuple(map(tuple, places[shown])))

    @property
    def is_wide(self) -> bool:
        """Whether the table is printed on a landscape page, because a portrait one would cut it off."""
        columns = zip(self.columns, zip(*self.rows, strict=True), strict=True) if self.rows else ()
        return sum(_least_width(column, cells) for column, cells in columns) > PORTRAIT_WIDTH

    @property
    def size(self) -> str:
        """Say how many rows are shown and, if any are left out, how many."""
        shown = quantity(len(self.rows), "row")
        return f"{shown} shown; {self.left_out:,} more are in the JSON" if self.left_out else shown

    @property
    def lines(self) -> Iterator[Iterator[tuple[Column, str, str | None]]]:
        """Yield each row's cells with their columns and places."""
        nothing = (None,) * len(self.columns)
        places = self.places or (nothing,) * len(self.rows)
        return (zip(self.columns, row, of_row, strict=True) for row, of_row in zip(self.rows, places, strict=True))


@dataclass(frozen=True)
class Cell:
    """A cell of a matrix. `shade` is 0 to SHADES; `mark` is a class of the style sheet; `says` is read aloud."""

    figure: str
    below: str
    shade: int
    mark: str
    says: str


@dataclass(frozen=True)
class Matrix:
    """A cross table of counts. Each row is its heading, its cells and its total."""

    caption: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...], str], ...]
    totals: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A chart with a title and what it shows in a sentence. `key` explains kinds of bars; `table` holds the figures
    when no table beside the chart does.
    """

    id: str
    title: str
    says: str
    chart: Chart
    table: Grid | None = None
    key: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Point:
    """A sentence of a list, with its code, what would resolve it, and the address of a page about it.

    `place` is that of the figure that it is about, as in Grid.
    """

    says: str
    code: str = ""
    remedy: str | None = None
    link: str = ""
    place: str | None = None


@dataclass(frozen=True)
class Points:
    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Figures:
    """Charts side by side where there is room, and lists among them."""

    figures: tuple[Figure | Points, ...]


@dataclass(frozen=True)
class Note:
    """A remark in small print, such as why a section is empty."""

    says: str


@dataclass(frozen=True)
class Paragraph:
    """Text to be read, as in a letter."""

    says: str


@dataclass(frozen=True)
class Folded:
    """Tables that a reader opens one by one; a closed one is not printed."""

    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class Code:
    """Text of a program, shown as it is."""

    caption: str
    text: str


@dataclass(frozen=True)
class Opening:
    """Parts that a reader opens by a title; `says` is shown beside it."""

    title: str
    says: str
    parts: tuple["Part", ...]


Part: TypeAlias = Cards | Code | Figures | Folded | Grid | Matrix | Note | Opening | Paragraph | Points


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    """`kind` names the type of page, `title` its subject. `notices` must be read before anything else."""

    kind: str
    title: str
    facts: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: str
