"""Group a file's pages into documents, each with its pages in order.

People put statements of several banks into one file, scan pages back to front, and mix them up. A page belongs to the
document whose account or head it shares, at the place of its printed number. Pages without a number stay where they
are. If it is unclear to which of several documents a page belongs, nothing is moved, and that is reported.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise

from pipelines.intake.pdf.layout.headings import Vocabulary, heading_at
from pipelines.intake.pdf.layout.layouts import find_hinted_banks, recognise_layout
from pipelines.intake.pdf.page.account_numbers import numbers_on
from pipelines.intake.pdf.page.labels import cells, has_amount, is_row, text_of
from pipelines.intake.pdf.page.page import Line, Page
from pipelines.intake.pdf.page.page_numbers import PageNumber, printed_number
from pipelines.intake.pdf.page.periods import period_of

# Our judgement.
_HEAD = 40  # lines before the first row that identify a page's document
_FOOT = 8  # lines after the last row
_MAX_ACCOUNTS = 8  # of a page; more add no evidence, but cost time, because all pairs are compared


@dataclass(frozen=True)
class Document:
    """Pages in reading order.

    `numbers`: as each page prints it. `is_restored`: the file has them in another order, or with other pages between
    them. `is_mixed`: a page may belong to another document or another place. `repeats`: sheets with a copy of a page
    that has rows, and the sheet of that page; the copies are not among `pages`.
    """

    pages: Sequence[Page]
    numbers: Sequence[PageNumber | None]
    is_restored: bool = False
    is_mixed: bool = False
    repeats: Mapping[int, int] = field(default_factory=dict)


def documents_of(pages: Sequence[Page]) -> Sequence[Document]:
    """Return the documents of a file in the order of their first pages. Pages are numbered in reading order."""
    leaves = [_Leaf(page, number) for page, number in zip(pages, _page_numbers(pages), strict=True)]
    groups = sorted(_group_leaves(leaves), key=lambda group: min(leaf.page.number for leaf in group.leaves))
    before, found = 0, list[Document]()
    for group in groups:
        found.append(group.document(before))
        before += len(group.leaves)
    return found


def _page_numbers(pages: Sequence[Page]) -> Sequence[PageNumber | None]:
    """Return the pages' numbers. A number that is the same on every page is ignored, unless each page is a whole
    document.
    """
    numbers = [printed_number(page.lines) for page in pages]
    distinct = {(found.number, found.total) if found else None for found in numbers}
    is_same = (
        len(numbers) > 1 and len(distinct) == 1 and (numbers[0] is None or numbers[0].total in (None, len(numbers)))
    )
    return [None] * len(pages) if is_same else numbers


@dataclass(eq=False)
class _Leaf:
    """A page of the file, and the evidence for its document, which is computed only if needed."""

    page: Page
    number: PageNumber | None

    @cached_property
    def banks(self) -> frozenset[str]:
        """The banks that the page may name."""
        return find_hinted_banks(self.page)

    @cached_property
    def bank(self) -> str | None:
        layout = recognise_layout([self.page]) if self.banks else None
        return layout.slug if layout else None

    @cached_property
    def head(self) -> Sequence[Line]:
        rows = (place for place, line in enumerate(self.page.lines) if is_row(line))
        return self.page.lines[: min(next(rows, _HEAD), _HEAD)]

    @cached_property
    def outside(self) -> Sequence[Line]:
        """The lines above the rows and below them."""
        lines = self.page.lines
        rows = [place for place, line in enumerate(lines) if is_row(line)]
        return [*self.head, *lines[max(rows[-1] + 1, len(lines) - _FOOT) :]] if rows else self.head

    @cached_property
    def accounts(self) -> frozenset[str]:
        return frozenset(islice((found.number for found in numbers_on(self.outside) if found.number), _MAX_ACCOUNTS))

    @cached_property
    def marks(self) -> frozenset[str]:
        """The texts above the rows (names, numbers of statements, headings), without the page's number."""
        texts = (text_of(cell) for line in self.head for cell in cells(line.words))
        return frozenset(re.sub(r"\(?page.*", "", text, flags=re.IGNORECASE) for text in texts if not has_amount(text))

    @cached_property
    def begins(self) -> bool:
        """Whether it states its period, as the first page of a document does."""
        return all(period_of(self.outside))

    @cached_property
    def has_table(self) -> bool:
        vocabulary, lines = Vocabulary.of(None), self.page.lines
        return any(map(is_row, lines)) or any(heading_at(lines, place, vocabulary) for place in range(len(lines)))

    def shares_account(self, other: "_Leaf") -> bool:
        """Return whether two pages share an account number. Of some numbers only the end is printed."""
        return any(one.endswith(two) or two.endswith(one) for one in self.accounts for two in other.accounts)

    def continues(self, other: "_Leaf") -> bool:
        """Return whether it has the next number of the same account."""
        if self.number is None or other.number is None or not self.number.follows(other.number):
            return False
        return self.shares_account(other)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(line.text for line in self.page.lines)

    def is_twin(self, other: "_Leaf") -> bool:
        return self.texts == other.texts


@dataclass(eq=False)
class _Group:
    """The pages of one document, in the order of the file."""

    leaves: list[_Leaf] = field(default_factory=list)
    is_mixed: bool = False

    @property
    def last(self) -> PageNumber | None:
        return next((leaf.number for leaf in reversed(self.leaves) if leaf.number), None)

    @property
    def has_account(self) -> bool:
        return any(leaf.accounts for leaf in self.leaves)

    @property
    def bank(self) -> str | None:
        return next((leaf.bank for leaf in self.leaves if leaf.bank), None)

    def has(self, number: int) -> bool:
        return any(leaf.number is not None and leaf.number.number == number for leaf in self.leaves)

    def likeness(self, leaf: _Leaf) -> tuple[bool, int]:
        """Return what a page shares with this group: whether an account, and how many texts of its head."""
        shared = any(leaf.shares_account(other) for other in self.leaves)
        return shared, max((len(leaf.marks & other.marks) for other in self.leaves), default=0)

    def may_count(self, leaf: _Leaf) -> bool:
        """Return whether a page's number is still free here, and names the same total of pages."""
        number, last = leaf.number, self.last
        return number is None or (not self.has(number.number) and (last is None or last.total == number.total))

    @property
    def is_in_order(self) -> bool:
        """Whether its numbers rise, from 1 if the first pages print none."""
        numbered = [(place, leaf.number.number) for place, leaf in enumerate(self.leaves, start=1) if leaf.number]
        begins = not numbered or numbered[0][1] <= numbered[0][0]
        return begins and all(one < two for (_, one), (_, two) in pairwise(numbered))

    def is_next(self, leaf: _Leaf) -> bool:
        return leaf.number is not None and self.last is not None and leaf.number.follows(self.last)

    def has_twin(self, leaf: _Leaf) -> bool:
        """Return whether a page repeats one of this document's."""
        number = leaf.number.number if leaf.number else 1
        return number > 1 and any(other.number == leaf.number and leaf.is_twin(other) for other in self.leaves)

    @property
    def lacks_first(self) -> bool:
        return not self.has(1) and all(leaf.number for leaf in self.leaves)

    def may_hold(self, rest: "_Group") -> bool:
        """Return whether pages of the same bank may continue this document."""
        is_same_bank = self.bank is not None and self.bank == rest.bank
        return is_same_bank and not self.lacks_first and all(map(self.may_count, rest.leaves))

    def is_of_other_account(self, leaf: _Leaf) -> bool:
        """Return whether a page names only accounts that this document lacks, or no account but another bank."""
        if self.has_account and leaf.accounts:
            return not any(leaf.shares_account(other) for other in self.leaves)
        return self._is_other_bank(leaf)

    def is_foreign(self, leaf: _Leaf) -> bool:
        """Return whether a page belongs to another document, by its bank or by an account with its own period. A page
        with the next number does so only if both its bank and its account differ.
        """
        is_other_bank = self._is_other_bank(leaf)
        if self.is_next(leaf) and not is_other_bank:
            return False
        if self.has_account and leaf.accounts:
            if any(leaf.shares_account(other) for other in self.leaves):
                return False
            return is_other_bank or leaf.begins
        return is_other_bank and not self.is_next(leaf) and leaf.has_table

    def _is_other_bank(self, leaf: _Leaf) -> bool:
        if leaf.banks <= self.leaves[0].banks:
            return False
        return leaf.bank is not None and self.bank is not None and self.bank not in leaf.banks

    def document(self, before: int) -> Document:
        """Return the document, with its pages numbered after `before` others."""
        leaves = self.leaves if self.is_mixed else self._in_order()
        places = [leaf.page.number for leaf in leaves]
        # A page may be scanned or copied twice: its rows must not count twice.
        firsts: dict[tuple[str, ...], _Leaf] = {}
        for leaf in leaves:
            firsts.setdefault(leaf.texts, leaf)
        copies = [leaf for leaf in leaves if leaf is not firsts[leaf.texts] and any(map(is_row, leaf.page.lines))]
        distinct = [leaf for leaf in leaves if leaf not in copies]
        return Document(
            [leaf.page.with_number(before + place) for place, leaf in enumerate(distinct, start=1)],
            [leaf.number for leaf in distinct],
            is_restored=any(two != one + 1 for one, two in pairwise(places)),
            is_mixed=self.is_mixed,
            repeats={leaf.page.sheet: firsts[leaf.texts].page.sheet for leaf in copies},
        )

    def _in_order(self) -> Sequence[_Leaf]:
        """Return the pages by number. Those without one stay where they are, except the first page, which often has
        none.
        """
        front = self._front()
        numbered = [leaf for leaf in self.leaves if leaf.number]
        ordered = iter(sorted(numbered, key=lambda leaf: leaf.number.number if leaf.number else 0))
        rest = [next(ordered) if leaf.number else leaf for leaf in self.leaves if leaf is not front]
        return [front, *rest] if front else rest

    def _front(self) -> _Leaf | None:
        """Return the page that must be page 1 although it has no number: the only one that begins a document with a
        page 2.
        """
        begins = [leaf for leaf in self.leaves if leaf.number is None and leaf.begins]
        return begins[0] if len(begins) == 1 and self.has(2) and not self.has(1) else None


def _group_leaves(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """Group pages in the order of the file, or in reverse. Only if their numbers or accounts contradict both,
    group them by content.
    """
    for direction in (1, -1):
        runs = _runs(leaves[::direction])
        if all(run.is_in_order for run in runs) and not _splits_an_account(runs):
            return runs
    return _group_by_content(leaves)


def _splits_an_account(runs: Sequence[_Group]) -> bool:
    """Return whether a page follows one of another account, and the page of its own account that it continues is in
    another run.
    """
    for run in runs if len(runs) > 1 else ():
        others = [leaf for other in runs if other is not run for leaf in other.leaves]
        for before, leaf in pairwise(run.leaves):
            if before.accounts and not leaf.shares_account(before) and any(map(leaf.continues, others)):
                return True
    return False


def _runs(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """Begin a new document at a page whose numbers start again, or that is of another bank or account."""
    runs: list[_Group] = []
    for leaf in leaves:
        if not runs or not runs[-1].may_count(leaf) or runs[-1].is_foreign(leaf):
            runs.append(_Group(_take_front_of(leaf, runs[-1]) if runs else []))
        runs[-1].leaves.append(leaf)
    return runs


def _take_front_of(leaf: _Leaf, before: _Group) -> list[_Leaf]:
    """Remove and return the page before a page 2 that begins a document: its first page, which has no number."""
    is_second = leaf.number is not None and leaf.number.number == 2
    if not is_second or len(before.leaves) < 2 or before.leaves[-1].number or not before.leaves[-1].page.lines:
        return []
    return [before.leaves.pop()]


def _group_by_content(leaves: Sequence[_Leaf]) -> Sequence[_Group]:
    """Group pages in any order into documents: first the pages that name an account, then the others."""
    groups: list[_Group] = []
    homes: dict[int, _Group] = {}
    for leaf in sorted(leaves, key=lambda leaf: not leaf.accounts):
        home = _find_group(leaf, groups, homes.get(leaf.page.number - 1))
        if home is None:
            groups.append(home := _Group())
        home.leaves.append(leaf)
        homes[leaf.page.number] = home
    _join_parts(groups)
    for group in groups:
        group.leaves.sort(key=lambda leaf: leaf.page.number)
    return groups


def _join_parts(groups: list[_Group]) -> None:
    """Join pages of a further account to their bank's document, if exactly one document can hold them."""
    for rest in [group for group in groups if group.lacks_first]:
        wholes = [group for group in groups if group is not rest and group.may_hold(rest)]
        if len(wholes) == 1:
            wholes[0].leaves.extend(rest.leaves)
            groups.remove(rest)


def _find_group(leaf: _Leaf, groups: Sequence[_Group], before: _Group | None) -> _Group | None:
    """Return the document that a page shares most with, or None if the page begins one.

    Args:
        leaf: the page.
        groups: the documents so far.
        before: the document of the previous page in the file, if known.
    """
    if twin := next((group for group in groups if group.has_twin(leaf)), None):
        return twin
    fits = [group for group in groups if group.may_count(leaf) and not group.is_of_other_account(leaf)]
    likenesses = [group.likeness(leaf) for group in fits]
    best = [group for group, likeness in zip(fits, likenesses, strict=True) if likeness == max(likenesses)]
    if len(best) < 2:
        return best[0] if best else None
    home = before if before in best else best[0]
    home.is_mixed |= leaf.number is not None
    return home
