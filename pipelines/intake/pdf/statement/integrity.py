"""Find signs of manipulation in a file. Some genuine files show them, too.

Each finding is a signal with its page and severity. Signals decide nothing and don't prevent reading. A reviewer weighs
them together with the verdict: that a file was saved twice means little if its balances add up; a pasted digit means
much more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from types import MappingProxyType

from pipelines.intake.pdf.document.documents import Document
from pipelines.intake.pdf.document.missing_pages import gaps_in
from pipelines.intake.pdf.layout.layout_files import find_mistakes_in_programs, parse_yaml
from pipelines.intake.pdf.layout.layouts import LayoutError, layouts
from pipelines.intake.pdf.page.amounts import amounts_of
from pipelines.intake.pdf.page.digit_fonts import odd_amounts
from pipelines.intake.pdf.page.file_facts import Facts, Overlay
from pipelines.intake.pdf.page.overprints import find_overprinted
from pipelines.intake.pdf.page.page import Page
from pipelines.intake.pdf.page.result import Box, Kind, Severity, Signal, Statement, Verdict

_VERSION_ENDS = re.compile(rb"startxref\s+([0-9]+)\s+%%EOF")
_PROGRAMS = (  # group of producers.yaml, signal, severity, message
    ("editors", "EditingProgram", Severity.ALERT, "The file was made or saved with {}, which changes pages."),
    ("office", "OfficeProgram", Severity.ALERT, "The file was made with {}, which is for writing documents."),
    ("printers", "PrintedAgain", Severity.WARNING, "The file was printed with {}, so it is not the bank's own file."),
    (
        "libraries",
        "GeneratedFile",
        Severity.INFORMATION,
        "The file was made with {}, which anybody can use.",
    ),
    ("scanners", "Scanned", Severity.INFORMATION, "The file was scanned from paper with {}."),
)
_SAVED_AT_ONCE = timedelta(minutes=10)  # between making a file and its last change; our judgement
_WIDEST_ZONE = timedelta(hours=14)  # the largest offset from UTC


def signals_of(
    content: bytes, facts: Facts, documents: Sequence[Document], statements: Sequence[Statement]
) -> tuple[Signal, ...]:
    """Return every signal of a file, the most severe first."""
    pages = [page for document in documents for page in document.pages]
    found = [
        *_versions(content),
        *_programs(facts, statements),
        *_times(facts, statements),
        *_overlays(facts.overlays, pages),
        *_mixed_fonts(pages, statements),
        *_overprints(pages),
        *_contradicted_balances(statements),
        *dict.fromkeys((*_page_order(documents), *_missing_pages(statements))),
        *_date_order(statements, {page.sheet: page.number for page in pages}),
        *_extras(content, facts),
    ]
    weights = (Severity.ALERT, Severity.WARNING, Severity.INFORMATION)
    return tuple(sorted(found, key=lambda signal: (weights.index(signal.severity), signal.page or 0)))


def _versions(content: bytes) -> Iterator[Signal]:
    """Count the ends of a file: each time that it is saved by appending adds one. A web-optimised file has an empty one
    in front.
    """
    later = sum(match[1].strip(b"0") != b"" for match in _VERSION_ENDS.finditer(content)) - 1
    if later > 0:
        again = "once" if later == 1 else f"{later} times"
        message = f"The file was changed {again} after it was made; the previous contents are still in it."
        yield Signal("IncrementalUpdate", Severity.WARNING, message)


@cache
def _known_programs() -> Mapping[str, re.Pattern[str]]:
    """Return patterns of programs' names by group, read once.

    Raises:
        LayoutError: the list has mistakes.
    """
    text = files("pipelines.intake.pdf").joinpath("producers.yaml").read_text("utf-8")
    groups, faults = parse_yaml(text)
    if found := faults or tuple(find_mistakes_in_programs(groups, [group for group, *_ in _PROGRAMS])):
        raise LayoutError("\n".join(f"producers.yaml, {fault}" for fault in found))
    return MappingProxyType({group: _any_of(names) for group, names in groups.items()})


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(longest_first)})(?![a-z0-9])", re.IGNORECASE)


def _programs(facts: Facts, statements: Sequence[Statement]) -> Iterator[Signal]:
    """Yield a signal if a file names a program that the bank doesn't use, or with which no bank makes statements."""
    named = {group: match[0] for group, match in _named_programs(facts)}
    expected = _expected_producers(statements)
    if any(name.lower() in f"{facts.producer} {facts.creator}".lower() for name in expected):
        return
    for group, code, severity, message in _PROGRAMS:
        if group in named:
            listed = bool(statements) and all(statement.kind is not Kind.STATEMENT for statement in statements)
            mild = group == "printers" and listed
            yield Signal(code, Severity.INFORMATION if mild else severity, message.format(named[group]))
            return
    if expected and facts.producer:
        message = f"The file was made with {facts.producer[:80]}, not with {' or '.join(expected)}."
        yield Signal("ProducerUnfamiliar", Severity.INFORMATION, message)


def _named_programs(facts: Facts) -> Iterator[tuple[str, re.Match[str]]]:
    for group, names in _known_programs().items():
        for text in (facts.producer, facts.creator):
            if match := names.search(text):
                yield group, match
                break


def _expected_producers(statements: Sequence[Statement]) -> Sequence[str]:
    banks = {statement.bank for statement in statements}
    return sorted({name for layout in layouts() if layout.slug in banks for name in layout.producers})


def _times(facts: Facts, statements: Sequence[Statement]) -> Iterator[Signal]:
    created, modified = facts.created, facts.modified
    if created and modified and _least_time_between(created, modified) > _SAVED_AT_ONCE:
        message = f"The file was made on {created:%d %B %Y} and modified on {modified:%d %B %Y}."
        yield Signal("ModifiedLater", Severity.WARNING, message)
    ends = [statement.period_end for statement in statements if statement.period_end]
    if created and ends and created.date() < min(ends) - timedelta(days=1):
        message = f"The file was made on {created:%d %B %Y}, before the end of its statement's period."
        yield Signal("MadeBeforePeriodEnd", Severity.WARNING, message)


def _least_time_between(created: datetime, modified: datetime) -> timedelta:
    """Return the time between the two. If only one has a zone, the other may be up to _WIDEST_ZONE from UTC."""
    if (created.tzinfo is None) == (modified.tzinfo is None):
        return modified - created
    return _in_utc(modified) - _in_utc(created) - _WIDEST_ZONE


def _in_utc(moment: datetime) -> datetime:
    """Return a time with a zone as one of UTC; one without a zone stays as it is. Neither has a zone afterwards."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _overlays(overlays: Sequence[Overlay], pages: Sequence[Page]) -> Iterator[Signal]:
    """Yield one signal per page and kind of overlay, which is more severe over an amount."""
    by_page_and_kind = sorted(overlays, key=_page_and_kind)
    for (page, what), group in groupby(by_page_and_kind, _page_and_kind):
        same = list(group)
        covers = any(_covers_amount(overlay.box, on_it) for overlay in same for on_it in pages if on_it.sheet == page)
        severity = Severity.INFORMATION if same[0].is_note else Severity.ALERT if covers else Severity.WARNING
        place = "over an amount" if covers else "over the page"
        yield Signal("OverlayAnnotation", severity, f"There is {what} {place}, added after the page was made.", page)


def _page_and_kind(overlay: Overlay) -> tuple[int, str]:
    return overlay.box.page, overlay.what


def _covers_amount(box: Box, page: Page) -> bool:
    lines = ((line.box, amount) for line in page.lines for amount in amounts_of(line))
    amounts = (page.to_sheet(replace(place, left=amount.left, right=amount.right)) for place, amount in lines)
    return any(_overlaps(box, amount) and amount.left < box.right and box.left < amount.right for amount in amounts)


def _overlaps(one: Box, other: Box) -> bool:
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    return overlap > 0.3 * (other.bottom - other.top)


def _mixed_fonts(pages: Sequence[Page], statements: Sequence[Statement]) -> Iterator[Signal]:
    boxes = [box for statement in statements for entry in statement.entries for box in entry.boxes]
    for page in pages:
        if fonts := odd_amounts(page, [box for box in boxes if box.page == page.sheet]):
            names = ", ".join(sorted(set(fonts)))
            message = f"Amounts on this page look different from the rest of their column: {len(fonts)}, in {names}."
            yield Signal("MixedDigitFonts", Severity.WARNING, message, page.sheet)


def _overprints(pages: Sequence[Page]) -> Iterator[Signal]:
    for page in pages:
        if found := sum(1 for _ in find_overprinted(page)):
            message = f"Figures are printed over others on this page, in {found} place{'s' if found > 1 else ''}."
            yield Signal("FigureOverFigure", Severity.ALERT, message, page.sheet)


def _contradicted_balances(statements: Sequence[Statement]) -> Iterator[Signal]:
    """Yield the balances that don't follow from the rows before them. If most don't, the reading is probably wrong."""
    for statement in statements:
        broken = [reason for reason in statement.reasons if reason.code == "BalanceMismatch"]
        if broken and statement.verdict is Verdict.UNRECONCILED:
            message = "The balances don't follow from the rows as they were read: check the reading."
            yield Signal("BalanceContradicted", Severity.WARNING, message, broken[0].page)
        else:
            yield from (Signal("BalanceContradicted", Severity.ALERT, reason.message, reason.page) for reason in broken)


def _page_order(documents: Sequence[Document]) -> Iterator[Signal]:
    """Yield the pages that are out of order or missing, by their numbers."""
    for document in documents:
        numbered = [(page.sheet, found) for page, found in zip(document.pages, document.numbers, strict=True) if found]
        for (_, one), (page, two) in pairwise(sorted(numbered, key=lambda placed: placed[0])):
            if two.number < one.number or (document.is_mixed and two.number == one.number):
                message = f"The page is numbered {two.number} but follows number {one.number}."
                yield Signal("PageOutOfSequence", Severity.WARNING, message, page)
        yield from (Signal("PageMissing", Severity.WARNING, text, page.sheet) for page, text in gaps_in(document))
        last = document.numbers[-1]
        if last and last.total and last.number < last.total:
            message = f"The page is numbered {last.number} of {last.total}, and no page follows."
            yield Signal("PageMissing", Severity.WARNING, message, document.pages[-1].sheet)


def _missing_pages(statements: Sequence[Statement]) -> Iterator[Signal]:
    """Yield the missing pages that neighbouring pages refer to."""
    for statement in statements:
        for reason in statement.reasons:
            if reason.code == "PageMissing":
                yield Signal("PageMissing", Severity.WARNING, reason.message, reason.page)


def _date_order(statements: Sequence[Statement], read_as: Mapping[int, int]) -> Iterator[Signal]:
    """Yield pages whose dates run against the rest: such a page was inserted or comes from another document."""
    for statement in statements:
        by_page: dict[int, list[int]] = {}
        for entry in statement.entries:
            if entry.boxes:
                by_page.setdefault(entry.boxes[0].page, []).append(entry.date.toordinal())
        in_order = sorted(by_page.items(), key=lambda dated: read_as.get(dated[0], dated[0]))
        middles = [(page, sorted(days)[len(days) // 2]) for page, days in in_order]
        steps = [(page, after - before) for (_, before), (page, after) in pairwise(middles)]
        if (against := _first_against(steps)) is not None:
            balances_hold = all(entry.proved for entry in statement.entries[1:])  # the oldest has no balance before it
            severity = Severity.INFORMATION if balances_hold else Severity.WARNING
            message = "The dates of this page run against those of the pages before it."
            yield Signal("DatesOutOfSequence", severity, message, against)


def _first_against(steps: Sequence[tuple[int, int]]) -> int | None:
    """Return the first page whose step goes against most others."""
    up, down = (sum(step * direction > 0 for _, step in steps) for direction in (1, -1))
    if not up or not down:
        return None
    rare = -1 if up >= down else 1
    return next(page for page, step in steps if step * rare > 0)


def _extras(content: bytes, facts: Facts) -> Iterator[Signal]:
    """Yield signals of scripts and attachments: those that the file lists, and any whose name is in its bytes.

    Names in compressed parts of the file are not found.
    """
    if facts.scripts or b"/JavaScript" in content:
        yield Signal("Script", Severity.INFORMATION, "The file contains JavaScript; it was not run.")
    if facts.attachments or b"/EmbeddedFile" in content:
        yield Signal("Attachment", Severity.INFORMATION, "The file has other files attached; they were not read.")
