"""What about a file a forged one would show, and some honest ones do, too.

Each finding is a signal of its own, with its page and how much it weighs; none decides anything, and none hinders the
reading. A reviewer weighs them together with the verdict: a statement whose balances add up in a file that was saved
twice is seldom a forgery, one with a pasted digit often is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from types import MappingProxyType

from pipelines.intake.pdf.document.documents import Document
from pipelines.intake.pdf.document.missing_pages import gaps_in
from pipelines.intake.pdf.layout.layout_files import mistakes_in_programs, parse_yaml
from pipelines.intake.pdf.layout.layouts import LayoutError, layouts
from pipelines.intake.pdf.page.amounts import amounts_of
from pipelines.intake.pdf.page.digit_fonts import odd_amounts
from pipelines.intake.pdf.page.file_facts import Facts, Overlay
from pipelines.intake.pdf.page.overprints import overprinted
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.result import Box, Kind, Severity, Signal, Statement, Verdict

_VERSION_ENDS = re.compile(rb"startxref\s+([0-9]+)\s+%%EOF")
_PROGRAMS = (  # group of producers.yaml, signal, how much it weighs, what it reads
    ("editors", "EditingProgram", Severity.ALERT, "The file was made or saved with {}, which changes pages."),
    ("office", "OfficeProgram", Severity.ALERT, "The file was made with {}, in which pages are written."),
    ("printers", "PrintedAgain", Severity.WARNING, "The file was printed with {}, so it is not the one the bank made."),
    ("libraries", "GeneratedFile", Severity.INFORMATION, "The file was made with {}, with which anybody makes files."),
    ("scanners", "Scanned", Severity.INFORMATION, "The file was made with {}, from paper."),
)
_SAVED_AT_ONCE = timedelta(minutes=10)
_WIDEST_ZONE = timedelta(hours=14)


def signals_of(
    content: bytes, facts: Facts, documents: Sequence[Document], statements: Sequence[Statement]
) -> tuple[Signal, ...]:
    """Every signal of a file, the weightiest first."""
    pages = [page for document in documents for page in document.pages]
    found = [
        *_versions(content),
        *_programs(facts, statements),
        *_moments(facts, statements),
        *_laid_over(facts.overlays, pages),
        *_mixed_fonts(pages, statements),
        *_overprinted(pages),
        *_contradicted(statements),
        *dict.fromkeys((*_page_order(documents), *_missing(statements))),
        *_date_order(statements, {page.sheet: page.number for page in pages}),
        *_extras(content, facts),
    ]
    weights = (Severity.ALERT, Severity.WARNING, Severity.INFORMATION)
    return tuple(sorted(found, key=lambda signal: (weights.index(signal.severity), signal.page or 0)))


def _versions(content: bytes) -> Iterator[Signal]:
    """A file that is saved again by appending ends once more; one made for the web ends twice, at nothing first."""
    later = sum(match[1].strip(b"0") != b"" for match in _VERSION_ENDS.finditer(content)) - 1
    if later > 0:
        again = "once" if later == 1 else f"{later} times"
        message = f"The file was changed {again} after it was made; what stood there before is still in it."
        yield Signal("IncrementalUpdate", Severity.WARNING, message)


@cache
def _known_programs() -> Mapping[str, re.Pattern[str]]:
    """Names of programs by group, read once.

    Raises:
        LayoutError: naming each mistake in the list.
    """
    text = files("pipelines.intake.pdf").joinpath("producers.yaml").read_text("utf-8")
    groups, faults = parse_yaml(text)
    if found := faults or tuple(mistakes_in_programs(groups, [group for group, *_ in _PROGRAMS])):
        raise LayoutError("\n".join(f"producers.yaml, {fault}" for fault in found))
    return MappingProxyType({group: _any_of(names) for group, names in groups.items()})


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(longest_first)})(?![a-z0-9])", re.IGNORECASE)


def _programs(facts: Facts, statements: Sequence[Statement]) -> Iterator[Signal]:
    """Banks make statements with programs for letters by the million, and never with one for editing."""
    said = {group: match[0] for group, match in _programs_named(facts)}
    expected = _expected(statements)
    if any(name.lower() in f"{facts.producer} {facts.creator}".lower() for name in expected):
        return
    for group, code, severity, reads in _PROGRAMS:
        if group in said:
            listed = bool(statements) and all(statement.kind is not Kind.STATEMENT for statement in statements)
            mild = group == "printers" and listed
            yield Signal(code, Severity.INFORMATION if mild else severity, reads.format(said[group]))
            return
    if expected and facts.producer:
        message = f"The file says it was made with {facts.producer[:80]}, not with {' or '.join(expected)}."
        yield Signal("ProducerUnfamiliar", Severity.INFORMATION, message)


def _programs_named(facts: Facts) -> Iterator[tuple[str, re.Match[str]]]:
    for group, names in _known_programs().items():
        for text in (facts.producer, facts.creator):
            if match := names.search(text):
                yield group, match
                break


def _expected(statements: Sequence[Statement]) -> Sequence[str]:
    banks = {statement.bank for statement in statements}
    return sorted({name for layout in layouts() if layout.slug in banks for name in layout.producers})


def _moments(facts: Facts, statements: Sequence[Statement]) -> Iterator[Signal]:
    created, modified = facts.created, facts.modified
    if created and modified and _passed(created, modified) > _SAVED_AT_ONCE:
        message = f"The file was made on {created:%d %B %Y} and modified on {modified:%d %B %Y}."
        yield Signal("ModifiedLater", Severity.WARNING, message)
    ends = [statement.period_end for statement in statements if statement.period_end]
    if created and ends and created.date() < min(ends) - timedelta(days=1):
        message = f"The file was made on {created:%d %B %Y}, before the period ended that it speaks of."
        yield Signal("MadeBeforePeriodEnd", Severity.WARNING, message)


def _passed(created: datetime, modified: datetime) -> timedelta:
    """At least so much; a time without a zone may be of any."""
    if (created.tzinfo is None) == (modified.tzinfo is None):
        return modified - created
    return modified.replace(tzinfo=None) - created.replace(tzinfo=None) - _WIDEST_ZONE


def _laid_over(overlays: Sequence[Overlay], pages: Sequence[Page]) -> Iterator[Signal]:
    """One signal a page and kind; over an amount it weighs more."""
    for (page, what), group in groupby(
        sorted(overlays, key=lambda each: (each.box.page, each.what)), lambda each: (each.box.page, each.what)
    ):
        these = list(group)
        covers = any(_covers_amount(each.box, on_it) for each in these for on_it in pages if on_it.sheet == page)
        severity = Severity.INFORMATION if these[0].is_note else Severity.ALERT if covers else Severity.WARNING
        place = "over an amount" if covers else "over the page"
        yield Signal("OverlayAnnotation", severity, f"There is {what} {place}, added after the page was made.", page)


def _covers_amount(box: Box, page: Page) -> bool:
    lines = ((line.box, amount) for line in page.lines for amount in amounts_of(line))
    amounts = (page.shown(replace(place, left=amount.left, right=amount.right)) for place, amount in lines)
    return any(_meets(box, each) and each.left < box.right and box.left < each.right for each in amounts)


def _meets(one: Box, other: Box) -> bool:
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    return overlap > 0.3 * (other.bottom - other.top)


def _mixed_fonts(pages: Sequence[Page], statements: Sequence[Statement]) -> Iterator[Signal]:
    boxes = [box for statement in statements for entry in statement.entries for box in entry.boxes]
    for page in pages:
        if fonts := odd_amounts(page, [box for box in boxes if box.page == page.sheet]):
            names = ", ".join(sorted(set(fonts)))
            message = f"Amounts on this page look unlike the rest of their column: {len(fonts)}, set in {names}."
            yield Signal("MixedDigitFonts", Severity.WARNING, message, page.sheet)


def _overprinted(pages: Sequence[Page]) -> Iterator[Signal]:
    for page in pages:
        if found := sum(1 for _ in overprinted(page)):
            message = f"Figures stand over other figures on this page, in {found} place{'s' if found > 1 else ''}."
            yield Signal("FigureOverFigure", Severity.ALERT, message, page.sheet)


def _contradicted(statements: Sequence[Statement]) -> Iterator[Signal]:
    """A balance that the rows before it don't make. Where most are so, it is rather the reading that went wrong."""
    for statement in statements:
        broken = [reason for reason in statement.reasons if reason.code == "BalanceMismatch"]
        if broken and statement.verdict is Verdict.UNRECONCILED:
            message = "The balances don't follow from the rows as they were read: look whether they were read rightly."
            yield Signal("BalanceContradicted", Severity.WARNING, message, broken[0].page)
        else:
            yield from (Signal("BalanceContradicted", Severity.ALERT, reason.message, reason.page) for reason in broken)


def _page_order(documents: Sequence[Document]) -> Iterator[Signal]:
    """What numbers say of pages that stand elsewhere in the file, and of those that aren't in it."""
    for document in documents:
        said = [(page.sheet, found) for page, found in zip(document.pages, document.numbers, strict=True) if found]
        for (_, one), (page, two) in pairwise(sorted(said, key=lambda each: each[0])):
            if two.number < one.number or (document.is_mixed and two.number == one.number):
                message = f"The page says that it is number {two.number}, after number {one.number}."
                yield Signal("PageOutOfSequence", Severity.WARNING, message, page)
        yield from (Signal("PageMissing", Severity.WARNING, text, page.sheet) for page, text in gaps_in(document))
        last = document.numbers[-1]
        if last and last.of and last.number < last.of:
            message = f"The page says that it is number {last.number} of {last.of}, and no further one follows."
            yield Signal("PageMissing", Severity.WARNING, message, document.pages[-1].sheet)


def _missing(statements: Sequence[Statement]) -> Iterator[Signal]:
    """A page that its neighbours speak of."""
    for statement in statements:
        for reason in statement.reasons:
            if reason.code == "PageMissing":
                yield Signal("PageMissing", Severity.WARNING, reason.message, reason.page)


def _date_order(statements: Sequence[Statement], read_as: Mapping[int, int]) -> Iterator[Signal]:
    """Rows run one way through the pages; a page that runs against the rest was put there, or comes from elsewhere."""
    for statement in statements:
        by_page: dict[int, list[int]] = {}
        for entry in statement.entries:
            if entry.boxes:
                by_page.setdefault(entry.boxes[0].page, []).append(entry.date.toordinal())
        in_order = sorted(by_page.items(), key=lambda each: read_as.get(each[0], each[0]))
        middles = [(page, sorted(days)[len(days) // 2]) for page, days in in_order]
        steps = [(page, after - before) for (_, before), (page, after) in pairwise(middles)]
        if (against := _against(steps)) is not None:
            balances_hold = all(entry.proved for entry in statement.entries[1:])  # nothing may precede the oldest
            severity = Severity.INFORMATION if balances_hold else Severity.WARNING
            message = "The dates of this page run against those of the pages before it."
            yield Signal("DatesOutOfSequence", severity, message, against)


def _against(steps: Sequence[tuple[int, int]]) -> int | None:
    """The first page whose step goes against most others."""
    up, down = (sum(step * way > 0 for _, step in steps) for way in (1, -1))
    if not up or not down:
        return None
    rare = -1 if up >= down else 1
    return next(page for page, step in steps if step * rare > 0)


def _extras(content: bytes, facts: Facts) -> Iterator[Signal]:
    """By what the file lists, and by the names that it can't do without where they aren't compressed."""
    if facts.scripts or b"/JavaScript" in content:
        yield Signal("Script", Severity.INFORMATION, "The file holds JavaScript; it was not run.")
    if facts.attachments or b"/EmbeddedFile" in content:
        yield Signal("Attachment", Severity.INFORMATION, "The file has other files attached; they were not read.")
