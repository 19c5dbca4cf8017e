"""Load the layouts of banks' statements, and recognise the bank of a document.

Pages are read by their contents, no matter which bank printed them. A layout adds the bank's name and the few
conventions that a page doesn't show. There is one file per bank in `pipelines/intake/layouts`, with the documents that
the bank issues. It is checked when loaded, and all mistakes are reported at once. To add a bank, add a file: no code
names a bank.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from types import MappingProxyType
from typing import Any

import yaml

from pipelines.intake.pdf.layout.layout_files import DATE_SHAPES, find_mistakes, parse_yaml
from pipelines.intake.pdf.page.account_numbers import find_labelled
from pipelines.intake.pdf.page.labels import has_amount, is_row
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.result import Kind

# Weights of evidence; our judgement.
_ENOUGH = 4  # a lower total may come from a payee's bank
_LEGAL, _LOGO, _IN_HEAD, _OF_BRANCH = 3, 4, 3, 3
_MAX_NAMED, _MAX_WORDS = 3, 2  # most weight of names and of words
_HEAD = 14  # lines of the first page
_PAGES_READ = 3  # the first ones; the last page is read, too
_NOT_COMPACT = re.compile(r"[^a-z0-9.\n]")
_LONG_NAME = 5  # letters: a shorter name may be an ordinary word, so its case must match
_OF_ANOTHER = r"(?<!division of )(?<!brand of )(?<!subsidiary of )(?<!part of )(?<!business of )(?<!to )(?<!from )"


class LayoutError(Exception):
    """Layout files have mistakes; the message lists each with its file and place."""


@dataclass(frozen=True)
class Layout:
    """One kind of document of one bank. `slug` and `name` are those of the bank."""

    slug: str
    name: str
    document: str  # `statement`, `listing`, `card`, …
    kind: Kind
    account_type: str | None  # if the document is always of this type
    # how it is recognised
    names: tuple[str, ...]
    logos: tuple[str, ...]  # names that are also ordinary words, and count only as a whole line
    web: tuple[str, ...]
    abn: tuple[str, ...]  # digits
    licences: tuple[str, ...]  # digits
    bsb_prefixes: tuple[str, ...]  # digits
    words: tuple[str, ...]  # used in this bank's documents and rarely in others'
    marks: tuple[str, ...]  # that distinguish this document from the bank's others
    dates: tuple[str, ...]  # formats in its rows, the usual one first; they also distinguish documents
    products: Mapping[str, tuple[str, ...]]  # by account type: names of accounts that don't state it
    # how it is read
    headings: Mapping[str, tuple[str, ...]]  # by role: additional headings
    section_signs: Mapping[str, int]  # by title in lower case: 1 money in, -1 money out
    balance_owing: bool  # whether a balance without a sign is owed
    ignored_lines: tuple[re.Pattern[str], ...]  # between rows, and not part of one
    producers: tuple[str, ...]  # programs named in the bank's genuine files; empty if unknown

    def ignores(self, line: str) -> bool:
        return any(pattern.search(line) for pattern in self.ignored_lines)


def recognise_layout(pages: Sequence[Page]) -> Layout | None:
    """Return the layout with the most evidence on the pages; None if it is too little, or equal for two banks."""
    evidence = _Evidence.on(pages)
    weights = {slug: _weight(documents[0], evidence) for slug, documents in _layouts_by_bank().items()}
    best, next_best = sorted(weights.values(), reverse=True)[:2]
    if best < _ENOUGH or best == next_best:
        return None
    bank = next(slug for slug, weight in weights.items() if weight == best)
    return max(_layouts_by_bank()[bank], key=lambda document: _likeness(document, evidence))


def find_hinted_banks(page: Page) -> frozenset[str]:
    """Return the banks that a page may be of: named at its head, or by a legal mark anywhere. This is cheap, but
    not evidence.
    """
    head = [line for line in page.lines[:_HEAD] if not is_row(line)]
    named = "\n".join(line.text for line in head)
    folded = named.lower()
    compact = "".join(_NOT_COMPACT.sub("", line.text.lower()) for line in page.lines)
    return frozenset(
        slug
        for slug, (bank, *_) in _layouts_by_bank().items()
        if any(mark in compact for mark in (*bank.web, *bank.abn, *bank.licences))
        or (any(name.lower() in folded for name in bank.names) and any(_names_bank(bank, line.text) for line in head))
        or any(line.text in bank.logos for line in head)
    )


@dataclass(frozen=True)
class _Evidence:
    """The texts of pages outside of rows, because rows also name payees' banks."""

    lines: tuple[str, ...]  # without an amount
    head: tuple[str, ...]
    everything: str  # in lower case
    compact: str  # without spaces
    branches: tuple[str, ...]
    date_form: str | None  # of the rows

    @classmethod
    def on(cls, pages: Sequence[Page]) -> "_Evidence":
        read = [*pages[:_PAGES_READ], *pages[_PAGES_READ:][-1:]]
        every = [line for page in read for line in page.lines]
        outside = [line.text for line in every if not is_row(line)]
        lines = tuple(text for text in outside if not has_amount(text))
        head = tuple(line.text for page in pages[:1] for line in list(page.lines)[:_HEAD] if not is_row(line))
        branches = tuple(found.bsb for text in chain(head, lines) for found in find_labelled(text) if found.bsb)
        everything = "\n".join(outside).lower()
        compact = _NOT_COMPACT.sub("", everything)
        return cls(lines, head, everything, compact, branches[:4], _date_form([line.text for line in every]))


def _weight(layout: Layout, evidence: _Evidence) -> int:
    """Return the weight of the evidence for a bank: legal marks, names (most at the head), branch, its own words."""
    legal = sum(_LEGAL for marks in (layout.web, layout.abn, layout.licences) if _any_in(marks, evidence.compact))
    named = min(sum(_names_bank(layout, line) for line in evidence.lines), _MAX_NAMED)
    at_head = any(_names_bank(layout, line) for line in evidence.head)
    of_branch = any(branch.startswith(layout.bsb_prefixes) for branch in evidence.branches)
    words = sum(word.lower() in evidence.everything for word in layout.words)
    is_logo = any(line in (*layout.names, *layout.logos) for line in evidence.head)
    shown = _LOGO if is_logo else _IN_HEAD * at_head
    return legal + named + shown + _OF_BRANCH * of_branch + min(words, _MAX_WORDS)


def _any_in(marks: Sequence[str], compact: str) -> bool:
    """Return whether a text without spaces has one of the marks. Letters may touch a mark, but digits may not."""
    return any(re.search(rf"(?<![0-9]){re.escape(mark)}(?![0-9])", compact) for mark in marks)


def _names_bank(layout: Layout, line: str) -> bool:
    return any(pattern.search(line) for pattern in _name_patterns(layout.names))


@cache
def _name_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Match names as whole words, except as the owner of a brand or a party to a payment. The case of short names must
    match.
    """
    return tuple(
        re.compile(
            rf"(?i:{_OF_ANOTHER})(?<![A-Za-z0-9])" + r"\s*".join(map(re.escape, name.split())) + r"(?![A-Za-z0-9])",
            re.IGNORECASE if len(name) >= _LONG_NAME else re.NOFLAG,
        )
        for name in names
    )


def _likeness(document: Layout, evidence: _Evidence) -> tuple[int, int]:
    """Return the number of a document's marks, then the rank of its date format, for comparison."""
    marks = sum(mark.lower() in evidence.everything for mark in document.marks)
    place = document.dates.index(evidence.date_form) if evidence.date_form in document.dates else len(DATE_SHAPES)
    return marks, -place


def _date_form(texts: Sequence[str]) -> str | None:
    """Return the format of most dates."""
    forms = Counter(form for text in texts for form, shape in DATE_SHAPES.items() if shape.match(text))
    return max(forms, key=lambda form: forms[form], default=None)


@cache
def _layouts_by_bank() -> Mapping[str, tuple[Layout, ...]]:
    slugs = dict.fromkeys(layout.slug for layout in layouts())
    return {slug: tuple(layout for layout in layouts() if layout.slug == slug) for slug in slugs}


@cache
def layouts() -> tuple[Layout, ...]:
    """Return every layout, read once.

    Raises:
        LayoutError: the files have mistakes.
    """
    folder = files("pipelines.intake").joinpath("layouts")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".yaml")}
    return check_layouts(dict(sorted(texts.items())), _banks_by_prefix())


def _banks_by_prefix() -> Mapping[str, str]:
    """Return banks by the first digits of a BSB, from enrichment's list, read without importing enrichment."""
    text = files("pipelines.enrichment").joinpath("rules", "bsb.yaml").read_text("utf-8")
    return {str(prefix): name for prefix, name in yaml.load(text, yaml.CSafeLoader).items()}


def check_layouts(texts: Mapping[str, str], banks: Mapping[str, str]) -> tuple[Layout, ...]:
    """Return the layouts of files given by name.

    Raises:
        LayoutError: with every mistake of every file.
    """
    documents = {name: parse_yaml(text) for name, text in texts.items()}
    known = frozenset(banks.values())
    found = [
        f"{name}, {mistake}"
        for name, (bank, faults) in documents.items()
        for mistake in (faults or find_mistakes(bank, known))
    ]
    if found:
        raise LayoutError("\n".join(found))
    return tuple(
        layout
        for name, (bank, _) in documents.items()
        for layout in _layouts_of_bank(name.removesuffix(".yaml"), bank, banks)
    )


def _layouts_of_bank(slug: str, bank: Mapping[str, Any], banks: Mapping[str, str]) -> Iterator[Layout]:
    """Yield the documents of a bank. Fields of the bank apply to each document that doesn't override them."""
    prefixes = [prefix for prefix, name in banks.items() if name in bank.get("bsb_of", ())]
    for document, own in bank["documents"].items():
        yield _layout(slug, document, {**bank, **own}, (*prefixes, *bank.get("bsb", ())))


def _layout(slug: str, document: str, given: Mapping[str, Any], prefixes: tuple[str, ...]) -> Layout:
    names = ("names", "logos", "web", "licences", "words", "marks", "dates", "producers")
    texts: dict[str, Any] = {name: tuple(given.get(name, ())) for name in names}
    return Layout(
        slug=slug,
        name=given["name"],
        document=document,
        kind=Kind(given["kind"]),
        account_type=given.get("account_type"),
        abn=tuple(abn.replace(" ", "") for abn in given.get("abn", ())),
        bsb_prefixes=prefixes,
        products=_texts_by_key(given.get("products", {})),
        headings=_texts_by_key(given.get("headings", {})),
        section_signs=MappingProxyType({
            title.lower(): 1 if way == "in" else -1 for title, way in given.get("section_signs", {}).items()
        }),
        ignored_lines=tuple(re.compile(pattern, re.IGNORECASE) for pattern in given.get("ignored_lines", ())),
        balance_owing=given.get("balance_owing", False),
        **texts,
    )  # fmt: skip


def _texts_by_key(given: Mapping[str, Sequence[str]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({key: tuple(texts) for key, texts in given.items()})
