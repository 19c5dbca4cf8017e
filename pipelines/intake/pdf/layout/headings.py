"""The line above a table that says what its columns hold: found by one list of synonyms for all banks.

A heading stands in one line, or in two or three with parts of one heading below each other. What makes a line a
heading is that nearly all of its words name columns, and that no amount stands in it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

import yaml

from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.page.amounts import amounts_of
from pipelines.intake.pdf.page.page import Line, Word
from pipelines.intake.pdf.page.symbols import CODES, SYMBOL

FLOWS = ("debit", "credit", "amount")
FIGURES = (*FLOWS, "balance")
_WORDS_APART = 0.62  # of the size: further apart are two headings
_WIDE_BLANK = 0.36  # of the size: a blank is narrower in most fonts
_WIDER = 1.3  # of the narrowest blank of the line
_NEXT_LINE = 2.1  # of the size, from top to top: lines of one heading
_MOST_LINES = 3
_LEAST_OF_ANOTHER = 3  # columns of a table that isn't this one
_SAME_END = 6.0  # points
_LEAST_NAMED = 0.7  # of the letters in the line
_LEAST_OF_TABLE = 0.5  # where dates, texts and amounts have their columns
_LONGEST = 5  # words of a heading
_LEAST_STATED = 0.8  # of a cell's letters, in phrases that are headings
_PLUS_MINUS = ("+/-", "-/+", "±")
_CODE = "|".join(sorted(CODES))
_OUTSIDE = re.compile(rf"\(\s*(?:{SYMBOL}|\$|\$?(?:{_CODE}))\s*\)|{SYMBOL}|\$|\b(?:{_CODE})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading over a column, from its left to its right end."""

    role: str  # a key of `headings.yaml`; `other` where nobody knows what it holds
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Heading:
    """Columns from left to right. `is_inferred`: nobody printed it; figures in line are all there is."""

    columns: tuple[Column, ...]
    page: int
    bottom: float
    is_inferred: bool = False

    def of(self, role: str) -> Column | None:
        return next((column for column in self.columns if column.role == role), None)

    @property
    def roles(self) -> frozenset[str]:
        return frozenset(column.role for column in self.columns)

    @property
    def known(self) -> int:
        return sum(column.role != "other" for column in self.columns)

    @property
    def figures(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.role in FIGURES)

    @property
    def numeric(self) -> tuple[Column, ...]:
        """Columns of amounts, and those that may hold others, such as rates."""
        return tuple(column for column in self.columns if column.role in (*FIGURES, "other"))


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    left: float
    right: float
    is_stacked: bool = False  # of two lines or more

    def meets(self, other: "_Cell") -> bool:
        shared = min(self.right, other.right) - max(self.left, other.left)
        return shared > 0.3 * min(self.right - self.left, other.right - other.left)


@cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """The headings of each role, the preferred ones first."""
    table = yaml.load(files("pipelines.intake.pdf").joinpath("headings.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return {role: tuple(str(each) for each in headings) for role, headings in table.items()}


@dataclass(frozen=True)
class Vocabulary:
    """Roles of headings, each with its rank: a bank's own words first."""

    roles: Mapping[str, Sequence[tuple[str, int]]]
    words: frozenset[str]

    @classmethod
    def of(cls, layout: Layout | None) -> "Vocabulary":
        return _vocabulary(tuple(sorted((layout.headings if layout else {}).items())))

    def of_text(self, text: str) -> Sequence[tuple[str, int]]:
        """The roles that a heading may have, the list's first, else what its words come to."""
        return self.roles.get(text) or _composed(text)


@cache
def _vocabulary(own: tuple[tuple[str, tuple[str, ...]], ...]) -> Vocabulary:
    roles: dict[str, list[tuple[str, int]]] = {}
    for role, headings in own:
        for heading in headings:
            roles.setdefault(plain(heading), []).append((role, -1))
    for role, known in synonyms().items():
        for rank, heading in enumerate(known):
            if role not in {each for each, _ in roles.get(heading, ())}:
                roles.setdefault(heading, []).append((role, rank))
    return Vocabulary(roles, frozenset(word for heading in roles for word in heading.split()) | _OUT | _IN)


_OUT = frozenset(
    ["debit", "debits", "withdrawal", "withdrawals", "charges", "purchases", "drawings", "dr", "outgoings"]
)
_IN = frozenset(["credit", "credits", "deposit", "deposits", "repayments", "receipts", "cr", "incomings", "refunds"])
_WITH = frozenset(
    ["money", "amount", "amounts", "and", "or", "of", "your", "the", "payments", "funds", "advances", "cash", "s"]
)
_OF_SUMMARIES = frozenset(["opening", "closing", "previous", "starting", "ending", "new", "minimum", "total"])
_COMPOSED = 99  # a rank behind those of the list


@cache
def _composed(text: str) -> tuple[tuple[str, int], ...]:
    """`debits charges`, `payments and credits`: headings that name one side, or both; and balances of any kind."""
    words = set(text.split())
    is_out, is_in = bool(words & _OUT), bool(words & _IN)
    if "balance" in words and len(words) <= 3 and not (is_out or is_in or words & _OF_SUMMARIES):
        return (("balance", _COMPOSED),)
    if words - _OUT - _IN - _WITH or not (is_out or is_in):
        return ()
    return (("amount" if is_out and is_in else "debit" if is_out else "credit", _COMPOSED),)


@lru_cache(maxsize=8_192)
def plain(heading: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9]+", " ", _OUTSIDE.sub(" ", heading).lower()).split())


def heading_at(lines: Sequence[Line], index: int, vocabulary: Vocabulary) -> tuple[Heading, int] | None:
    """The heading that begins with a line, and how many lines it takes; the reading that names most columns."""
    if not _may_begin(lines[index], vocabulary):
        return None
    best = None
    for number in range(1, _MOST_LINES + 1):
        if number > 1 and not _belongs(lines, index, number, vocabulary):
            break
        found = _heading(lines[index : index + number], vocabulary)
        if found is not None and (best is None or found.known > best[0].known):
            best = found, number
    return best


def _may_begin(line: Line, vocabulary: Vocabulary) -> bool:
    """At least one word of a heading, and no long sentence: what is cheap to see."""
    if len(line.words) > 24:
        return False
    return any(plain(word.text) in vocabulary.words for word in line.words) and not amounts_of(line)


def _belongs(lines: Sequence[Line], index: int, number: int, vocabulary: Vocabulary) -> bool:
    """Whether the next line can be a part of the heading: close below, and no figures in it."""
    below = index + number - 1
    if below >= len(lines) or lines[below].page != lines[index].page:
        return False
    step = lines[below].box.top - lines[below - 1].box.top
    return step <= _NEXT_LINE * lines[index].words[0].size and _may_begin(lines[below], vocabulary)


def _heading(lines: Sequence[Line], vocabulary: Vocabulary) -> Heading | None:
    cells = _stacked([_cells(line.words, vocabulary) for line in lines])
    named = [each for cell in cells for each in _named(cell, vocabulary)]
    if any(_OF_SUMMARIES & set(plain(cell.text).split()) for cell in cells):
        return None
    columns = _chosen(named)
    roles = {column.role for column in columns}
    letters = sum(len(cell.text) for cell in cells)
    known = sum(len(cell.text) for cell, roles_of in named if roles_of or not plain(cell.text))
    is_table = bool(roles & {"date", "description"}) and bool(roles & set(FLOWS)) and len(roles) >= 3
    is_short = {"date", "amount"} <= roles or (all(each for _, each in named) and _is_short_table(roles))
    if not (is_table or is_short) or not roles & set(FLOWS):
        return None
    if known < (_LEAST_OF_TABLE if {"date", "description"} <= roles else _LEAST_NAMED) * letters:
        return None
    columns += [Column("other", cell.left, cell.right) for cell in _unknown(cells, columns)]
    return Heading(tuple(sorted(columns, key=lambda each: each.left)), lines[0].page, lines[-1].box.bottom)


def _is_short_table(roles: AbstractSet[str]) -> bool:
    return {"debit", "credit", "balance"} <= roles or {"date", "balance"} <= roles


def _unknown(cells: Sequence[_Cell], columns: Sequence[Column]) -> Iterator[_Cell]:
    """Cells that name no column that is known."""
    for cell in cells:
        if not any(column.left < cell.right and cell.left < column.right for column in columns):
            yield cell


def _cells(words: Sequence[Word], vocabulary: Vocabulary) -> list[_Cell]:
    """Words that stand together, and are not two headings that stand nearly so."""
    groups: list[list[Word]] = []
    for word in words:
        if groups and _gap(groups[-1][-1], word) < _WORDS_APART:
            groups[-1].append(word)
        else:
            groups.append([word])
    blank = min((_gap(one, two) for group in groups for one, two in pairwise(group)), default=0.0)
    return [_cell(part) for group in groups for part in _parted(group, blank, vocabulary)]


def _gap(one: Word, other: Word) -> float:
    """Between two words, of their size."""
    return (other.left - one.right) / max(other.size, 1.0)


def _cell(words: Sequence[Word]) -> _Cell:
    return _Cell(_closed_up(" ".join(word.text for word in words)), words[0].left, words[-1].right)


def _parted(group: Sequence[Word], blank: float, vocabulary: Vocabulary) -> Sequence[Sequence[Word]]:
    """Words in a row cut where more than a blank parts them: columns of figures that stand close, and one beside a
    column that nobody knows."""
    cuts = [place for place, (one, two) in enumerate(pairwise(group), start=1) if _gap(one, two) > _WIDE_BLANK]
    parts = [group[start:stop] for start, stop in pairwise([0, *cuts, len(group)])]
    roles = [{role for role, _ in vocabulary.of_text(plain(_cell(part).text))} for part in parts]
    if all(each & set(FIGURES) for each in roles):
        return parts
    is_wider = all(_gap(group[cut - 1], group[cut]) > _WIDER * blank for cut in cuts)
    is_known = bool(vocabulary.of_text(plain(_cell(group).text)))
    return parts if is_wider and not is_known and any(each & set(FIGURES) for each in roles) else [group]


def begins_another(line: Line, heading: Heading, vocabulary: Vocabulary) -> bool:
    """Whether a line is the heading of a table of another kind: it begins with dates and has amounts, and they stand
    elsewhere than below this heading."""
    if not _may_begin(line, vocabulary):
        return False
    cells = _cells(line.words, vocabulary)
    roles = [{role for role, _ in vocabulary.of_text(plain(cell.text))} for cell in cells]
    if len(cells) < _LEAST_OF_ANOTHER or "date" not in roles[0] or not any(each & set(FIGURES) for each in roles):
        return False
    ends = [column.right for column in heading.figures]
    return sum(any(abs(cell.right - end) <= _SAME_END for end in ends) for cell in cells[1:]) < len(ends)


def _closed_up(text: str) -> str:
    """`o u t` as `out`: words of few letters, set apart."""
    return text.replace(" ", "") if all(len(word) == 1 for word in text.split()) else text


def _stacked(lines: Sequence[Sequence[_Cell]]) -> list[_Cell]:
    """Cells below each other as one."""
    stacks: list[_Cell] = []
    for cells in lines:
        for cell in cells:
            above = next((each for each in stacks if each.meets(cell)), None)
            if above is None:
                stacks.append(cell)
            else:
                left, right = min(above.left, cell.left), max(above.right, cell.right)
                stacks[stacks.index(above)] = _Cell(f"{above.text} {cell.text}", left, right, is_stacked=True)
    return sorted(stacks, key=lambda each: each.left)


def _named(cell: _Cell, vocabulary: Vocabulary) -> Iterator[tuple[_Cell, Sequence[tuple[str, int]]]]:
    """The columns that a cell names: itself, or phrases in it where headings stand as close as words."""
    text = plain(cell.text)
    if cell.text in _PLUS_MINUS:
        yield cell, (("sign", 0),)
    elif not text:
        yield cell, ()
    elif roles := vocabulary.of_text(text):
        yield cell, roles
    elif cell.is_stacked:
        yield cell, ()
    else:
        phrases = list(_phrases(cell, vocabulary))
        is_stated = sum(len(part.text) for part, _ in phrases) >= _LEAST_STATED * len(cell.text)
        yield from phrases if is_stated else [(cell, ())]


def _phrases(cell: _Cell, vocabulary: Vocabulary) -> Iterator[tuple[_Cell, Sequence[tuple[str, int]]]]:
    words, start = cell.text.split(), 0
    while start < len(words):
        stops = range(min(len(words), start + _LONGEST), start, -1)
        stop = next((each for each in stops if vocabulary.of_text(plain(" ".join(words[start:each])))), None)
        if stop is not None:
            part = _part(cell, words, start, stop)
            yield part, vocabulary.of_text(plain(part.text))
        start = stop or start + 1


def _part(cell: _Cell, words: Sequence[str], start: int, stop: int) -> _Cell:
    """Where words of a cell stand, letters being about as wide as each other."""
    a_letter = (cell.right - cell.left) / max(len(cell.text), 1)
    before = len(" ".join(words[:start])) + (1 if start else 0)
    text = " ".join(words[start:stop])
    left = cell.left + before * a_letter
    return _Cell(text, left, left + len(text) * a_letter)


def _chosen(named: Sequence[tuple[_Cell, Sequence[tuple[str, int]]]]) -> list[Column]:
    """A role for each cell: of cells that can have the same one, the preferred has it, and others their next."""
    columns: list[Column] = []
    wishes = sorted((rank, role, index) for index, (_, roles) in enumerate(named) for role, rank in roles)
    order = {role: place for place, role in enumerate(synonyms())}
    taken: set[int] = set()
    for _, role, index in sorted(wishes, key=lambda wish: (order.get(wish[1], 99), wish[0], wish[2])):
        if index in taken or (role in {column.role for column in columns} and role not in ("reference", "description")):
            continue
        cell = named[index][0]
        columns.append(Column(role, cell.left, cell.right))
        taken.add(index)
    return columns
