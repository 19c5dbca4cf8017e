"""Find the heading of a table, by one list of synonyms for all banks.

A heading is one line, or two or three if the headings of its columns wrap. A line is a heading if nearly all of its
words name columns and it has no amount.
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
# Our judgement; "size" is that of the characters.
_WORDS_APART = 0.62  # of the size: a wider gap separates two headings
_WIDE_SPACE = 0.36  # of the size: a space is narrower in most fonts
_WIDER = 1.3  # of the narrowest space of the line
_NEXT_LINE = 2.1  # of the size, at most, from top to top in one heading
_MAX_LINES = 3
_MIN_OF_ANOTHER = 3  # columns of another table
_SAME_END = 6.0  # points
_MIN_NAMED = 0.7  # of the letters in the line, in headings that are known
_MIN_OF_TABLE = 0.5  # likewise if dates, texts and amounts have columns
_LONGEST = 5  # words of a heading
_MIN_STATED = 0.8  # of a cell's letters, in phrases that are headings
_PLUS_MINUS = ("+/-", "-/+", "±")
_CODE = "|".join(sorted(CODES))
_OUTSIDE = re.compile(rf"\(\s*(?:{SYMBOL}|\$|\$?(?:{_CODE}))\s*\)|{SYMBOL}|\$|\b(?:{_CODE})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, with its left and right ends."""

    role: str  # a key of `headings.yaml`; `other` if unknown
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Heading:
    """Columns from left to right. `is_inferred`: no heading is printed; it was inferred from aligned figures."""

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
        """Columns of amounts, and those that may have other numbers, such as rates."""
        return tuple(column for column in self.columns if column.role in (*FIGURES, "other"))


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    left: float
    right: float
    is_stacked: bool = False  # on two lines or more

    def meets(self, other: "_Cell") -> bool:
        shared = min(self.right, other.right) - max(self.left, other.left)
        return shared > 0.3 * min(self.right - self.left, other.right - other.left)


@cache
def synonyms() -> Mapping[str, Sequence[str]]:
    """Return the headings of each role, the preferred ones first."""
    table = yaml.load(files("pipelines.intake.pdf").joinpath("headings.yaml").read_text("utf-8"), yaml.CSafeLoader)
    return {role: tuple(map(str, headings)) for role, headings in table.items()}


@dataclass(frozen=True)
class Vocabulary:
    """Roles by heading, each with its rank; a bank's own headings come first."""

    roles: Mapping[str, Sequence[tuple[str, int]]]
    words: frozenset[str]

    @classmethod
    def of(cls, layout: Layout | None) -> "Vocabulary":
        return _vocabulary(tuple(sorted((layout.headings if layout else {}).items())))

    def roles_of(self, text: str) -> Sequence[tuple[str, int]]:
        """Return the roles that a heading may have, by the list, else by its words."""
        return self.roles.get(text) or _roles_by_words(text)


@cache
def _vocabulary(own: tuple[tuple[str, tuple[str, ...]], ...]) -> Vocabulary:
    roles: dict[str, list[tuple[str, int]]] = {}
    for role, headings in own:
        for heading in headings:
            roles.setdefault(plain(heading), []).append((role, -1))
    for role, known in synonyms().items():
        for rank, heading in enumerate(known):
            if role not in {known_role for known_role, _ in roles.get(heading, ())}:
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
_COMPOSED = 99  # a rank after those of the list


@cache
def _roles_by_words(text: str) -> tuple[tuple[str, int], ...]:
    """Return the role of a heading that names one side or both (`debits charges`, `payments and credits`) or a
    balance.
    """
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
    """Return the heading that begins on a line, and its number of lines: as many as name the most columns."""
    if not _may_begin(lines[index], vocabulary):
        return None
    best = None
    for number in range(1, _MAX_LINES + 1):
        if number > 1 and not _belongs(lines, index, number, vocabulary):
            break
        found = _heading(lines[index : index + number], vocabulary)
        if found is not None and (best is None or found.known > best[0].known):
            best = found, number
    return best


def _may_begin(line: Line, vocabulary: Vocabulary) -> bool:
    """Return whether a line has a word of a heading and is not a long sentence. A cheap check before the exact one."""
    if len(line.words) > 24:
        return False
    return any(plain(word.text) in vocabulary.words for word in line.words) and not amounts_of(line)


def _belongs(lines: Sequence[Line], index: int, number: int, vocabulary: Vocabulary) -> bool:
    """Return whether the next line may be part of the heading: it is close below and has no figures."""
    below = index + number - 1
    if below >= len(lines) or lines[below].page != lines[index].page:
        return False
    step = lines[below].box.top - lines[below - 1].box.top
    return step <= _NEXT_LINE * lines[index].words[0].size and _may_begin(lines[below], vocabulary)


def _heading(lines: Sequence[Line], vocabulary: Vocabulary) -> Heading | None:
    cells = _stack_cells([_cells(line.words, vocabulary) for line in lines])
    named = [part for cell in cells for part in _named_parts(cell, vocabulary)]
    if any(_OF_SUMMARIES & set(plain(cell.text).split()) for cell in cells):
        return None
    columns = _assign_roles(named)
    roles = {column.role for column in columns}
    letters = sum(len(cell.text) for cell in cells)
    known = sum(len(cell.text) for cell, roles_of in named if roles_of or not plain(cell.text))
    is_table = bool(roles & {"date", "description"}) and bool(roles & set(FLOWS)) and len(roles) >= 3
    is_short = {"date", "amount"} <= roles or (all(roles_of for _, roles_of in named) and _is_short_table(roles))
    if not (is_table or is_short) or not roles & set(FLOWS):
        return None
    if known < (_MIN_OF_TABLE if {"date", "description"} <= roles else _MIN_NAMED) * letters:
        return None
    columns += [Column("other", cell.left, cell.right) for cell in _unnamed_cells(cells, columns)]
    return Heading(tuple(sorted(columns, key=lambda column: column.left)), lines[0].page, lines[-1].box.bottom)


def _is_short_table(roles: AbstractSet[str]) -> bool:
    return {"debit", "credit", "balance"} <= roles or {"date", "balance"} <= roles


def _unnamed_cells(cells: Sequence[_Cell], columns: Sequence[Column]) -> Iterator[_Cell]:
    """Yield the cells that don't name a known column."""
    for cell in cells:
        if not any(column.left < cell.right and cell.left < column.right for column in columns):
            yield cell


def _cells(words: Sequence[Word], vocabulary: Vocabulary) -> list[_Cell]:
    """Group adjacent words into cells, and split headings that are nearly adjacent."""
    groups: list[list[Word]] = []
    for word in words:
        if groups and _gap(groups[-1][-1], word) < _WORDS_APART:
            groups[-1].append(word)
        else:
            groups.append([word])
    space = min((_gap(one, two) for group in groups for one, two in pairwise(group)), default=0.0)
    return [_cell(part) for group in groups for part in _split_group(group, space, vocabulary)]


def _gap(one: Word, other: Word) -> float:
    """Return the gap between two words as a share of their size."""
    return (other.left - one.right) / max(other.size, 1.0)


def _cell(words: Sequence[Word]) -> _Cell:
    return _Cell(_close_up(" ".join(word.text for word in words)), words[0].left, words[-1].right)


def _split_group(group: Sequence[Word], space: float, vocabulary: Vocabulary) -> Sequence[Sequence[Word]]:
    """Split a group of words where the gap is wider than a space: between close columns of figures, and between a
    column of figures and an unknown one.
    """
    cuts = [place for place, (one, two) in enumerate(pairwise(group), start=1) if _gap(one, two) > _WIDE_SPACE]
    parts = [group[start:stop] for start, stop in pairwise([0, *cuts, len(group)])]
    roles = [{role for role, _ in vocabulary.roles_of(plain(_cell(part).text))} for part in parts]
    if all(own & set(FIGURES) for own in roles):
        return parts
    is_wider = all(_gap(group[cut - 1], group[cut]) > _WIDER * space for cut in cuts)
    is_known = bool(vocabulary.roles_of(plain(_cell(group).text)))
    return parts if is_wider and not is_known and any(own & set(FIGURES) for own in roles) else [group]


def begins_another(line: Line, heading: Heading, vocabulary: Vocabulary) -> bool:
    """Return whether a line is the heading of a different table: it names dates first and amounts, at other places than
    this heading.
    """
    if not _may_begin(line, vocabulary):
        return False
    cells = _cells(line.words, vocabulary)
    roles = [{role for role, _ in vocabulary.roles_of(plain(cell.text))} for cell in cells]
    if len(cells) < _MIN_OF_ANOTHER or "date" not in roles[0] or not any(own & set(FIGURES) for own in roles):
        return False
    ends = [column.right for column in heading.figures]
    return sum(any(abs(cell.right - end) <= _SAME_END for end in ends) for cell in cells[1:]) < len(ends)


def _close_up(text: str) -> str:
    """Join a letter-spaced word: `o u t` becomes `out`."""
    return text.replace(" ", "") if all(len(word) == 1 for word in text.split()) else text


def _stack_cells(lines: Sequence[Sequence[_Cell]]) -> list[_Cell]:
    """Join cells below each other."""
    stacks: list[_Cell] = []
    for cells in lines:
        for cell in cells:
            above = next((stack for stack in stacks if stack.meets(cell)), None)
            if above is None:
                stacks.append(cell)
            else:
                left, right = min(above.left, cell.left), max(above.right, cell.right)
                stacks[stacks.index(above)] = _Cell(f"{above.text} {cell.text}", left, right, is_stacked=True)
    return sorted(stacks, key=lambda stack: stack.left)


def _named_parts(cell: _Cell, vocabulary: Vocabulary) -> Iterator[tuple[_Cell, Sequence[tuple[str, int]]]]:
    """Yield the headings in a cell with their roles: the cell itself, or phrases in it if headings are no further
    apart than words.
    """
    text = plain(cell.text)
    if cell.text in _PLUS_MINUS:
        yield cell, (("sign", 0),)
    elif not text:
        yield cell, ()
    elif roles := vocabulary.roles_of(text):
        yield cell, roles
    elif cell.is_stacked:
        yield cell, ()
    else:
        phrases = list(_phrases(cell, vocabulary))
        is_stated = sum(len(part.text) for part, _ in phrases) >= _MIN_STATED * len(cell.text)
        yield from phrases if is_stated else [(cell, ())]


def _phrases(cell: _Cell, vocabulary: Vocabulary) -> Iterator[tuple[_Cell, Sequence[tuple[str, int]]]]:
    words, start = cell.text.split(), 0
    while start < len(words):
        stops = range(min(len(words), start + _LONGEST), start, -1)
        stop = next((end for end in stops if vocabulary.roles_of(plain(" ".join(words[start:end])))), None)
        if stop is not None:
            part = _part(cell, words, start, stop)
            yield part, vocabulary.roles_of(plain(part.text))
        start = stop or start + 1


def _part(cell: _Cell, words: Sequence[str], start: int, stop: int) -> _Cell:
    """Return some words of a cell as a cell, placed as if all letters had the same width."""
    letter_width = (cell.right - cell.left) / max(len(cell.text), 1)
    before = len(" ".join(words[:start])) + (1 if start else 0)
    text = " ".join(words[start:stop])
    left = cell.left + before * letter_width
    return _Cell(text, left, left + len(text) * letter_width)


def _assign_roles(named: Sequence[tuple[_Cell, Sequence[tuple[str, int]]]]) -> list[Column]:
    """Assign a role to each cell. If several cells fit a role, the preferred one gets it; the others get their next."""
    columns: list[Column] = []
    options = sorted((rank, role, index) for index, (_, roles) in enumerate(named) for role, rank in roles)
    order = {role: place for place, role in enumerate(synonyms())}
    taken: set[int] = set()
    for _, role, index in sorted(options, key=lambda option: (order.get(option[1], 99), option[0], option[2])):
        if index in taken or (role in {column.role for column in columns} and role not in ("reference", "description")):
            continue
        cell = named[index][0]
        columns.append(Column(role, cell.left, cell.right))
        taken.add(index)
    return columns
