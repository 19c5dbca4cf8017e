"""What is known of banks' statements, as data: who is told by what, and what a reader has to be warned of.

The engine reads a page by what stands on it, whoever printed it; a layout adds a bank's name to it, and the few habits
that no page shows. One file a bank in `pipelines/intake/layouts`, with the documents that the bank issues; it is
checked when loaded, all mistakes at once. Adding a bank is adding a file: no code names one.
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

from pipelines.intake.pdf.layout.layout_files import DATE_SHAPES, mistakes, parsed
from pipelines.intake.pdf.page.account_numbers import labelled
from pipelines.intake.pdf.page.labels import has_amount, is_row
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.result import Kind

_ENOUGH = 4  # of the evidence below; less may be a payee's bank
_LEGAL, _LOGO, _IN_HEAD, _OF_BRANCH = 3, 4, 3, 3
_MOST_NAMED, _MOST_WORDS = 3, 2
_HEAD = 14  # lines of the first page
_PAGES_READ = 3  # pages from the first; and the last
_NOT_COMPACT = re.compile(r"[^a-z0-9.\n]")
_LONG_NAME = 5  # letters: a shorter one is a word of the language unless it stands in capitals
_OF_ANOTHER = r"(?<!division of )(?<!brand of )(?<!subsidiary of )(?<!part of )(?<!business of )(?<!to )(?<!from )"


class LayoutError(Exception):
    """Layout files that can't be used: each mistake with the file and the place in it."""


@dataclass(frozen=True)
class Layout:
    """One kind of document of one bank. `slug` and `name` are the bank's."""

    slug: str
    name: str
    document: str  # which of the bank's; `statement`, `listing`, `card`, …
    kind: Kind
    account_type: str | None  # where the document is only ever of one
    # how it is recognised
    names: tuple[str, ...]
    logos: tuple[str, ...]  # names that are words of the language, too, and count as a line of their own
    web: tuple[str, ...]
    abn: tuple[str, ...]  # digits
    licences: tuple[str, ...]  # digits
    bsb_prefixes: tuple[str, ...]  # digits
    words: tuple[str, ...]  # that this bank's documents use, and others' hardly
    marks: tuple[str, ...]  # that tell this document from the bank's others
    dates: tuple[str, ...]  # how its rows write them, the usual form first; it tells documents apart, too
    products: Mapping[str, tuple[str, ...]]  # account type: names of accounts that don't say it
    # how it is read
    headings: Mapping[str, tuple[str, ...]]  # role: further words for it
    section_signs: Mapping[str, int]  # title in lower case: 1 money in, -1 money out
    balance_owing: bool  # a balance without a sign is owed
    ignored_lines: tuple[re.Pattern[str], ...]  # between rows, and no part of one
    # what the bank's own files say of who made them; empty where that isn't known
    producers: tuple[str, ...]

    def ignores(self, line: str) -> bool:
        return any(pattern.search(line) for pattern in self.ignored_lines)


def recognised(pages: Sequence[Page]) -> Layout | None:
    """The layout that most of the evidence on the pages speaks for; None where it is too little, or for two banks."""
    seen = _Seen.on(pages)
    weights = {slug: _weight(documents[0], seen) for slug, documents in _by_bank().items()}
    best, next_best = sorted(weights.values(), reverse=True)[:2]
    if best < _ENOUGH or best == next_best:
        return None
    bank = next(slug for slug, weight in weights.items() if weight == best)
    return max(_by_bank()[bank], key=lambda document: _likeness(document, seen))


def banks_hinted(page: Page) -> frozenset[str]:
    """The banks that a page may be of: named at its head, or by a legal mark anywhere. Cheap, and no evidence yet."""
    head = [line for line in page.lines[:_HEAD] if not is_row(line)]
    named = "\n".join(line.text for line in head)
    folded = named.lower()
    compact = "".join(_NOT_COMPACT.sub("", line.text.lower()) for line in page.lines)
    return frozenset(
        slug
        for slug, (bank, *_) in _by_bank().items()
        if any(mark in compact for mark in (*bank.web, *bank.abn, *bank.licences))
        or (any(name.lower() in folded for name in bank.names) and any(_names(bank, line.text) for line in head))
        or any(line.text in bank.logos for line in head)
    )


@dataclass(frozen=True)
class _Seen:
    """What the pages say outside of rows, where payees' banks are named, too."""

    lines: tuple[str, ...]  # without an amount
    head: tuple[str, ...]
    everything: str  # in lower case
    compact: str  # without blanks
    branches: tuple[str, ...]
    date_form: str | None  # of the rows

    @classmethod
    def on(cls, pages: Sequence[Page]) -> "_Seen":
        read = [*pages[:_PAGES_READ], *pages[_PAGES_READ:][-1:]]
        every = [line for page in read for line in page.lines]
        outside = [line.text for line in every if not is_row(line)]
        lines = tuple(text for text in outside if not has_amount(text))
        head = tuple(line.text for page in pages[:1] for line in list(page.lines)[:_HEAD] if not is_row(line))
        branches = tuple(found.bsb for text in chain(head, lines) for found in labelled(text) if found.bsb)
        everything = "\n".join(outside).lower()
        compact = _NOT_COMPACT.sub("", everything)
        return cls(lines, head, everything, compact, branches[:4], _date_form([line.text for line in every]))


def _weight(layout: Layout, seen: _Seen) -> int:
    """How much speaks for a bank: its legal marks, its name (most at the head), its branch, its own words."""
    legal = sum(_LEGAL for marks in (layout.web, layout.abn, layout.licences) if _any_in(marks, seen.compact))
    named = min(sum(_names(layout, line) for line in seen.lines), _MOST_NAMED)
    at_head = any(_names(layout, line) for line in seen.head)
    of_branch = any(branch.startswith(layout.bsb_prefixes) for branch in seen.branches)
    words = sum(word.lower() in seen.everything for word in layout.words)
    is_logo = any(line in (*layout.names, *layout.logos) for line in seen.head)
    shown = _LOGO if is_logo else _IN_HEAD * at_head
    return legal + named + shown + _OF_BRANCH * of_branch + min(words, _MOST_WORDS)


def _any_in(marks: Sequence[str], compact: str) -> bool:
    """A number counts only as a whole one, an address also where blanks were lost around it."""
    return any(re.search(rf"(?<![0-9]){re.escape(mark)}(?![0-9])", compact) for mark in marks)


def _names(layout: Layout, line: str) -> bool:
    return any(pattern.search(line) for pattern in _name_patterns(layout.names))


@cache
def _name_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Names as whole words, not as the owner of a brand nor as where money went; short ones as they are written."""
    return tuple(
        re.compile(
            rf"(?i:{_OF_ANOTHER})(?<![A-Za-z0-9])" + r"\s*".join(map(re.escape, name.split())) + r"(?![A-Za-z0-9])",
            re.IGNORECASE if len(name) >= _LONG_NAME else re.NOFLAG,
        )
        for name in names
    )


def _likeness(document: Layout, seen: _Seen) -> tuple[int, int]:
    """How many of its marks there are; of two alike, whose dates are written so."""
    marks = sum(mark.lower() in seen.everything for mark in document.marks)
    place = document.dates.index(seen.date_form) if seen.date_form in document.dates else len(DATE_SHAPES)
    return marks, -place


def _date_form(texts: Sequence[str]) -> str | None:
    """How most rows write their dates."""
    forms = Counter(form for text in texts for form, shape in DATE_SHAPES.items() if shape.match(text))
    return max(forms, key=lambda form: forms[form], default=None)


@cache
def _by_bank() -> Mapping[str, tuple[Layout, ...]]:
    slugs = dict.fromkeys(layout.slug for layout in layouts())
    return {slug: tuple(layout for layout in layouts() if layout.slug == slug) for slug in slugs}


@cache
def layouts() -> tuple[Layout, ...]:
    """Every known layout, read once.

    Raises:
        LayoutError: naming each mistake in each file.
    """
    folder = files("pipelines.intake").joinpath("layouts")
    texts = {each.name: each.read_text("utf-8") for each in folder.iterdir() if each.name.endswith(".yaml")}
    return checked(dict(sorted(texts.items())), _banks_by_prefix())


def _banks_by_prefix() -> Mapping[str, str]:
    """Banks by the first digits of a BSB: enrichment's list, read without waking enrichment."""
    text = files("pipelines.enrichment").joinpath("rules", "bsb.yaml").read_text("utf-8")
    return {str(prefix): name for prefix, name in yaml.load(text, yaml.CSafeLoader).items()}


def checked(texts: Mapping[str, str], banks: Mapping[str, str]) -> tuple[Layout, ...]:
    """The layouts of files by name, or every mistake of theirs at once."""
    documents = {name: parsed(text) for name, text in texts.items()}
    known = frozenset(banks.values())
    found = [
        f"{name}, {mistake}"
        for name, (bank, faults) in documents.items()
        for mistake in (faults or mistakes(bank, known))
    ]
    if found:
        raise LayoutError("\n".join(found))
    return tuple(
        layout for name, (bank, _) in documents.items() for layout in _layouts(name.removesuffix(".yaml"), bank, banks)
    )


def _layouts(slug: str, bank: Mapping[str, Any], banks: Mapping[str, str]) -> Iterator[Layout]:
    """The documents of a bank; what stands at the bank holds for each that doesn't say otherwise."""
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
