"""Hostile files are refused with a code; unusual but harmless files are read like any other."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

import psutil
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from isolation import LIMITS, extract
from pipelines.intake.pdf.page.result import Extraction, Refusal, Verdict
from pipelines.synthetic.pdf import statement_pdf
from tests.conftest import examples
from tests.isolation import hostile
from tests.waiting import until

pytestmark = pytest.mark.service  # each test starts child processes

MADE = statement_pdf("westpac", 7, rows=30)
STATEMENT = MADE.content
Rows = Sequence[tuple[date, str, Decimal]]
REFUSALS: Mapping[str, set[Refusal]] = {
    "compression_bomb": {Refusal.LIMITS_EXCEEDED},
    "image_bomb": {Refusal.NOT_A_STATEMENT, Refusal.IMAGE_ONLY, Refusal.LIMITS_EXCEEDED},
    "endless_page": {Refusal.NOT_A_STATEMENT, Refusal.CORRUPT},
    "form_in_itself": {Refusal.LIMITS_EXCEEDED, Refusal.NOT_A_STATEMENT},
    "billion_forms": {Refusal.LIMITS_EXCEEDED},
    "deep_arrays": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "deep_page_tree": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "page_tree_in_a_ring": {Refusal.TOO_MANY_PAGES, Refusal.CORRUPT},
    "missing_pages": {Refusal.TOO_MANY_PAGES, Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "table_in_a_ring": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "many_letters": {Refusal.LIMITS_EXCEEDED},
    "unprintable_letters": {Refusal.NOT_A_STATEMENT},
    "out_of_range_numbers": {Refusal.NOT_A_STATEMENT, Refusal.CORRUPT},
}


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    until(lambda: not psutil.Process().children(recursive=True), within_s=10)


class Recorder(logging.Handler):
    """A log handler that records what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[object] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append(getattr(record, "fields", record.getMessage()))


@contextmanager
def assert_no_bug_logged() -> Iterator[None]:
    """Check that a file is refused by a decision of the reader, not by an exception in it."""
    recorder = Recorder()
    log = logging.getLogger("isolation")
    log.addHandler(recorder)
    try:
        yield
    finally:
        log.removeHandler(recorder)
    assert recorder.fields == []


def extract_without_bug(content: bytes, password: str | None = None) -> Extraction:
    with assert_no_bug_logged():
        return extract(content, password)


def rows(extraction: Extraction) -> Rows:
    assert extraction.refusal is None, extraction.message
    entries = (entry for statement in extraction.statements for entry in statement.entries)
    return [(entry.date, entry.description, entry.amount) for entry in entries]


@pytest.fixture(scope="module")
def expected_rows() -> Rows:
    """Return the rows of the statement that the tests below wrap, cut and lock."""
    read_rows = rows(extract_without_bug(STATEMENT))
    assert len(read_rows) == len(MADE.rows)
    return read_rows


# The first reads three million characters before it is refused; the second is also in the test with threads below.
SLOW_BOMBS = {"many_letters", "compression_bomb"}
BOMBS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW_BOMBS)) for kind in hostile.BOMBS]


@pytest.mark.parametrize("kind", BOMBS)
def test_a_hostile_file_is_refused(kind: str) -> None:
    answer = extract_without_bug(hostile.BOMBS[kind]())
    assert answer.statements == ()
    assert answer.refusal in REFUSALS[kind]
    assert answer.message


def test_ten_thousand_pages_are_too_many() -> None:
    answer = extract_without_bug(hostile.pages(10_000))
    assert answer.refusal is Refusal.TOO_MANY_PAGES
    assert extract_without_bug(hostile.pages(LIMITS.pages + 1)).refusal is Refusal.TOO_MANY_PAGES


@pytest.mark.parametrize("content", hostile.NOT_PDF)
def test_a_file_that_is_not_a_pdf_is_corrupt(content: bytes) -> None:
    assert extract_without_bug(content).refusal is Refusal.CORRUPT


def test_a_file_with_only_an_owner_password_is_read(expected_rows: Rows) -> None:
    locked = hostile.encrypt_pdf(STATEMENT, owner="of the bank")
    assert rows(extract_without_bug(locked)) == expected_rows
    assert rows(extract_without_bug(locked, "one that isn't needed")) == expected_rows


SLOW_PASSWORDS = (pytest.param(password, marks=pytest.mark.slow) for password in ("19850612", "x" * 120))


@pytest.mark.parametrize("password", ["pass word ü", *SLOW_PASSWORDS])
def test_the_user_password_opens_a_file(expected_rows: Rows, password: str) -> None:
    locked = hostile.encrypt_pdf(STATEMENT, owner="of the bank", user=password)
    assert extract_without_bug(locked).refusal is Refusal.ENCRYPTED
    assert extract_without_bug(locked, "").refusal in (Refusal.ENCRYPTED, Refusal.WRONG_PASSWORD)
    assert extract_without_bug(locked, password[::-1] + "!").refusal is Refusal.WRONG_PASSWORD
    assert rows(extract_without_bug(locked, password)) == expected_rows


def test_an_impossible_password_is_wrong() -> None:
    locked = hostile.encrypt_pdf(STATEMENT, owner="of the bank", user="19850612")
    for password in ("\0", " ", "x" * 1_000, "\ud800"):
        assert extract_without_bug(locked, password).refusal in (Refusal.WRONG_PASSWORD, Refusal.ENCRYPTED)


@pytest.mark.parametrize("name", ["script", "attachment", "zip before", "zip after", "web page", "at 1,024"])
def test_extra_content_of_a_file_is_ignored(expected_rows: Rows, name: str) -> None:
    variants = {
        "script": hostile.with_script(STATEMENT),
        "attachment": hostile.with_attachment(STATEMENT, "../../etc/cron.d/x"),
        "zip before": hostile.zip_before(STATEMENT),
        "zip after": hostile.zip_after(STATEMENT),
        "web page": hostile.web_page(STATEMENT),
        "at 1,024": hostile.with_header_at(STATEMENT, 1024),
    }
    assert rows(extract_without_bug(variants[name])) == expected_rows


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_a_truncated_file_is_refused_or_read_correctly(expected_rows: Rows, share: float) -> None:
    answer = extract_without_bug(STATEMENT[: int(len(STATEMENT) * share)])
    if answer.refusal is None:
        read_rows = rows(answer)
        assert set(read_rows) <= set(expected_rows)
        all_unreconciled = all(statement.verdict is not Verdict.RECONCILED for statement in answer.statements)
        assert read_rows == expected_rows or all_unreconciled
    else:
        assert answer.refusal in (Refusal.CORRUPT, Refusal.NOT_A_STATEMENT)


def test_unprintable_characters_are_removed() -> None:
    answer = extract_without_bug(hostile.unprintable_letters())
    texts = [entry.description for statement in answer.statements for entry in statement.entries]
    assert all(text.isprintable() for text in (*texts, answer.message or ""))


def test_a_hostile_file_does_not_affect_others_read_at_the_same_time(expected_rows: Rows) -> None:
    contents = [hostile.compression_bomb(), STATEMENT, hostile.billion_forms(), STATEMENT, b"", STATEMENT]
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(extract, contents, [None] * len(contents)))
    assert [answer.refusal is None for answer in answers] == [False, True] * 3
    assert all(rows(answer) == expected_rows for answer in answers[1::2])


PLACES = st.integers(0, len(STATEMENT) - 1)
FLIPS = st.lists(st.tuples(PLACES, st.integers(1, 255)), min_size=1, max_size=30)
CUTS = st.tuples(PLACES, st.integers(0, 500)) | st.none()


@settings(examples(4), phases=[Phase.generate])  # each example is a process, so failures are not minimised
@given(FLIPS, CUTS)
def test_a_damaged_file_is_read_or_refused(flips: list[tuple[int, int]], cut: tuple[int, int] | None) -> None:
    damaged = bytearray(STATEMENT)
    for place, change in flips:
        damaged[place] ^= change
    if cut is not None:
        del damaged[cut[0] : sum(cut)]
    answer = extract_without_bug(bytes(damaged))
    assert (answer.refusal is None) == bool(answer.statements)
