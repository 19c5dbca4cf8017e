"""The documents that a file's pages are of, each with its pages in order.

People put statements of several banks into one file, scan pages back to front, and mix them up. A page belongs to the
document whose account or head it shares, and stands in it where its printed number says. Pages that print none stay
where they are. Where nothing tells to which of several documents a page belongs, nothing is moved, and that is told.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise

from pipelines.intake.pdf.layout.headings import Vocabulary, heading_at
from pipelines.intake.pdf.layout.layouts import banks_hinted, recognised
from pipelines.intake.pdf.page.account_numbers import numbers_on
from pipelines.intake.pdf.page.labels import cells, has_amount, is_row, text_of
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.page_numbers import PageNumber, printed_number
from pipelines.intake.pdf.page.periods import period_of

_HEAD = 40  # lines before the first row that say of what document a page is
_FOOT = 8  # lines behind the last row
_MOST_ACCOUNTS = 8  # of a page: more tell nothing, and each is held against each


@dataclass(frozen=True)
class Document:
    """Pages in reading order. `numbers`: what each prints. `is_restored`: they stand in another order in the file, or
    others' between them. `is_mixed`: a page of it may be of another document, or stand elsewhere.
    """

    pages: Sequence[Page]
    numbers: Sequence[PageNumber | None]
    is_restored: bool = False
    is_mixed: bool = False


def documents_of(pages: Sequence[Page]) -> Sequence[Document]:
    """The documents of a file in the order of their first pages; pages are numbered as they are read."""
    leaves = [_Leaf(page, number) for page, number in zip(pages, _counting(pages), strict=True)]
    groups = sorted(_grouped(leaves), key=lambda group: min(leaf.page.number for leaf in group.leaves))
    before, found = 0, list[Document]()
    for group in groups:
        found.append(group.document(before))
        before += len(group.leaves)
    return found


def _counting(pages: Sequence[Page]) -> Sequence[PageNumber | None]:
    """The pages' numbers. What is printed alike on every page counts nothing, unless each page is a whole document."""
    numbers = [printed_number(page.lines) for page in pages]
    said = {(found.number, found.of) if found else None for found in numbers}
    is_furniture = len(numbers) > 1 and len(said) == 1 and (numbers[0] is None or numbers[0].of in (None, len(numbers)))
    return [None] * len(pages) if is_furniture else numbers


@dataclass(eq=False)
class _Leaf:
    """A page of the file, and what tells of which document it is; looked for only where it is needed."""

    page: Page
    number: PageNumber | None

    @cached_property
    def banks(self) -> frozenset[str]:
        """All that may be named."""
        return banks_hinted(self.page)

    @cached_property
    def bank(self) -> str | None:
        layout = recognised([self.page]) if self.banks else None
        return layout.slug if layout else None

    @cached_property
    def head(self) -> Sequence[Line]:
        rows = (place for place, line in enumerate(self.page.lines) if is_row(line))
        return self.page.lines[: min(next(rows, _HEAD), _HEAD)]

    @cached_property
    def outside(self) -> Sequence[Line]:
        """What stands above the rows and below them."""
        lines = self.page.lines
        rows = [place for place, line in enumerate(lines) if is_row(line)]
        return [*self.head, *lines[max(rows[-1] + 1, len(lines) - _FOOT) :]] if rows else self.head

    @cached_property
    def accounts(self) -> frozenset[str]:
        return frozenset(islice((found.number for found in numbers_on(self.outside) if found.number), _MOST_ACCOUNTS))

    @cached_property
    def marks(self) -> frozenset[str]:
        """The texts that stand above rows: names, numbers of statements, headings; without the page's own number."""
        texts = (text_of(cell) for line in self.head for cell in cells(line.words))
        return frozenset(re.sub(r"\(?page.*", "", text, flags=re.IGNORECASE) for text in texts if not has_amount(text))

    @cached_property
    def begins(self) -> bool:
        """Whether it says of which period it is, as the first page of a document does."""
        return all(period_of(self.outside))

    @cached_property
    def has_table(self) -> bool:
        vocabulary, lines = Vocabulary.of(None), self.page.lines
        return any(map(is_row, lines)) or any(heading_at(lines, place, vocabulary) for place in range(len(lines)))

    def shares_account(self, other: "_Leaf") -> bool:
        """Numbers may be shown by their ends alone."""
        return any(one.endswith(two) or two.endswith(one) for one in self.accounts for two in other.accounts)

    def is_twin(self, other: "_Leaf") -> bool:
        return [line.text for line in self.page.lines] == [line.text for line in other.page.lines]


@dataclass(eq=False)
class _Group:
    """Pages of one document, in the order of the file."""

    leaves: list[_Leaf] = field(default_factory=list)
    is_mixed: bool = False

    @property
    def last(self) -> PageNumber | None:
        return next((leaf.number for leaf in reversed(self.leaves) if leaf.number), None)

    @property
    def accounts(self) -> bool:
        return any(leaf.accounts for leaf in self.leaves)

    @property
    def bank(self) -> str | None:
        return next((leaf.bank for leaf in self.leaves if leaf.bank), None)

    def has(self, number: int) -> bool:
        return any(leaf.number is not None and leaf.number.number == number for leaf in self.leaves)

    def knows(self, leaf: _Leaf) -> tuple[bool, int]:
        """How much a page shares with the group's: an account, and texts of its head."""
        shared = any(leaf.shares_account(each) for each in self.leaves)
        return shared, max((len(leaf.marks & each.marks) for each in self.leaves), default=0)

    def may_count(self, leaf: _Leaf) -> bool:
        """Whether its number is still free here, and is one of as many."""
        number, last = leaf.number, self.last
        return number is None or (not self.has(number.number) and (last is None or last.of == number.of))

    @property
    def is_in_order(self) -> bool:
        """Whether its numbers rise, from 1 on where the first pages print none."""
        numbered = [(place, leaf.number.number) for place, leaf in enumerate(self.leaves, start=1) if leaf.number]
        begins = not numbered or numbered[0][1] <= numbered[0][0]
        return begins and all(one < two for (_, one), (_, two) in pairwise(numbered))

    def is_next(self, leaf: _Leaf) -> bool:
        return leaf.number is not None and self.last is not None and leaf.number.follows(self.last)

    def has_twin(self, leaf: _Leaf) -> bool:
        """Whether it is a page of these that was copied twice."""
        number = leaf.number.number if leaf.number else 1
        return number > 1 and any(each.number == leaf.number and leaf.is_twin(each) for each in self.leaves)

    @property
    def lacks_first(self) -> bool:
        return not self.has(1) and all(leaf.number for leaf in self.leaves)

    def may_hold(self, rest: "_Group") -> bool:
        """Whether pages of the same bank count on here."""
        is_same_bank = self.bank is not None and self.bank == rest.bank
        return is_same_bank and not self.lacks_first and all(map(self.may_count, rest.leaves))

    def is_of_other_account(self, leaf: _Leaf) -> bool:
        """Whether it names accounts, and none of these; or names none, and another bank."""
        if self.accounts and leaf.accounts:
            return not any(leaf.shares_account(each) for each in self.leaves)
        return self._is_other_bank(leaf)

    def is_foreign(self, leaf: _Leaf) -> bool:
        """Whether a page says that it is of another document: by its bank, or by an account with a period of its own.
        A page that counts on is of another only if both its bank and its account are others'.
        """
        is_other_bank = self._is_other_bank(leaf)
        if self.is_next(leaf) and not is_other_bank:
            return False
        if self.accounts and leaf.accounts:
            if any(leaf.shares_account(each) for each in self.leaves):
                return False
            return is_other_bank or leaf.begins
        return is_other_bank and not self.is_next(leaf) and leaf.has_table

    def _is_other_bank(self, leaf: _Leaf) -> bool:
        if leaf.banks <= self.leaves[0].banks:
            return False
        return leaf.bank is not None and self.bank is not None and self.bank not in leaf.banks

    def document(self, before: int) -> Document:
        """With its pages numbered behind others'."""
        leaves = self.leaves if self.is_mixed else self._in_order()
        places = [leaf.page.number for leaf in leaves]
        return Document(
            [leaf.page.numbered(before + place) for place, leaf in enumerate(leaves, start=1)],
            [leaf.number for leaf in leaves],
            is_restored=any(two != one + 1 for one, two in pairwise(places)),
            is_mixed=self.is_mixed,
        )

    def _in_order(self) -> Sequence[_Leaf]:
        """By number. Those without one keep their places, but for the first page, which often prints none."""
        front = self._front()
        numbered = [leaf for leaf in self.leaves if leaf.number]
        ordered = iter(sorted(numbered, key=lambda leaf: leaf.number.number if leaf.number else 0))
        rest = [next(ordered) if leaf.number else leaf for leaf in self.leaves if leaf is not front]
        return [front, *rest] if front else rest

    def _front(self) -> _Leaf | None:
        """The page that must be page 1 though it doesn't say so: 2 is there, and it alone begins a document."""
        begins = [leaf for leaf in self.leaves if leaf.number is None and leaf.begins]
        return begins[0] if len(begins) == 1 and self.has(2) and not self.has(1) else None


def _grouped(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """Pages as they follow each other, or from the last to the first; only where their numbers contradict both, as they
    belong together."""
    for way in (1, -1):
        runs = _runs(leaves[::way])
        if all(run.is_in_order for run in runs):
            return runs
    return _sorted_out(leaves)


def _runs(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """A page that counts anew begins a document, and so does one of another bank or account."""
    runs: list[_Group] = []
    for leaf in leaves:
        if not runs or not runs[-1].may_count(leaf) or runs[-1].is_foreign(leaf):
            runs.append(_Group(_front_of(leaf, runs[-1]) if runs else []))
        runs[-1].leaves.append(leaf)
    return runs


def _front_of(leaf: _Leaf, before: _Group) -> list[_Leaf]:
    """What stands before a page 2 that is of no document yet: its first page, which prints no number."""
    is_second = leaf.number is not None and leaf.number.number == 2
    if not is_second or len(before.leaves) < 2 or before.leaves[-1].number or not before.leaves[-1].page.lines:
        return []
    return [before.leaves.pop()]


def _sorted_out(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """Documents from pages in any order: first those that name an account, then those that must be of one of these."""
    groups: list[_Group] = []
    homes: dict[int, _Group] = {}
    for leaf in sorted(leaves, key=lambda leaf: not leaf.accounts):
        home = _home(leaf, groups, homes.get(leaf.page.number - 1))
        if home is None:
            groups.append(home := _Group())
        home.leaves.append(leaf)
        homes[leaf.page.number] = home
    _join(groups)
    for group in groups:
        group.leaves.sort(key=lambda leaf: leaf.page.number)
    return groups


def _join(groups: list[_Group]) -> None:
    """Pages of a further account with those before them, where one document alone of their bank lacks them."""
    for rest in [group for group in groups if group.lacks_first]:
        wholes = [group for group in groups if group is not rest and group.may_hold(rest)]
        if len(wholes) == 1:
            wholes[0].leaves.extend(rest.leaves)
            groups.remove(rest)


def _home(leaf: _Leaf, groups: Sequence[_Group], before: _Group | None) -> _Group | None:
    """The document that a page shares most with; None for one that it begins.

    Args:
        leaf: the page.
        groups: the documents so far.
        before: that of the page before it in the file, if that is known.
    """
    if twin := next((group for group in groups if group.has_twin(leaf)), None):
        return twin
    fits = [group for group in groups if group.may_count(leaf) and not group.is_of_other_account(leaf)]
    known = [group.knows(leaf) for group in fits]
    best = [group for group, each in zip(fits, known, strict=True) if each == max(known)]
    if len(best) < 2:
        return best[0] if best else None
    home = before if before in best else best[0]
    home.is_mixed |= leaf.number is not None
    return home
