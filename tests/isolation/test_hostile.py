"""Files that mean harm are refused with a code; files that only look odd are read like any other."""

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
from tests.patience import until

pytestmark = pytest.mark.service  # each test starts child processes; tests/isolation/test_children.py is always run

MADE = statement_pdf("westpac", 7, rows=30)
STATEMENT = MADE.content
Rows = Sequence[tuple[date, str, Decimal]]
REFUSALS: Mapping[str, set[Refusal]] = {
    "compression_bomb": {Refusal.LIMITS_EXCEEDED},
    "bomb_of_a_picture": {Refusal.NOT_A_STATEMENT, Refusal.IMAGE_ONLY, Refusal.LIMITS_EXCEEDED},
    "endless_page": {Refusal.NOT_A_STATEMENT, Refusal.CORRUPT},
    "form_in_itself": {Refusal.LIMITS_EXCEEDED, Refusal.NOT_A_STATEMENT},
    "billion_forms": {Refusal.LIMITS_EXCEEDED},
    "deep_arrays": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "deep_page_tree": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "page_tree_in_a_ring": {Refusal.TOO_MANY_PAGES, Refusal.CORRUPT},
    "pages_that_are_not_there": {Refusal.TOO_MANY_PAGES, Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "table_in_a_ring": {Refusal.CORRUPT, Refusal.NOT_A_STATEMENT},
    "many_letters": {Refusal.LIMITS_EXCEEDED},
    "letters_that_are_none": {Refusal.NOT_A_STATEMENT},
    "numbers_beyond_numbers": {Refusal.NOT_A_STATEMENT, Refusal.CORRUPT},
}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    until(lambda: not psutil.Process().children(recursive=True), within_s=10)


class Told(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[object] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append(getattr(record, "fields", record.getMessage()))


@contextmanager
def no_fault_of_ours() -> Iterator[None]:
    """The reader itself says what is wrong with a file; it doesn't stumble."""
    reported = Told()
    log = logging.getLogger("isolation")
    log.addHandler(reported)
    try:
        yield
    finally:
        log.removeHandler(reported)
    assert reported.fields == []


def read(content: bytes, password: str | None = None) -> Extraction:
    with no_fault_of_ours():
        return extract(content, password)


def rows(extraction: Extraction) -> Rows:
    assert extraction.refusal is None, extraction.message
    return [(each.date, each.description, each.amount) for one in extraction.statements for each in one.entries]


@pytest.fixture(scope="module")
def honest() -> Rows:
    """The rows of the statement that the tests below wrap, cut and lock."""
    found = rows(read(STATEMENT))
    assert len(found) == len(MADE.rows)
    return found


# Three million characters are read before there are too many; the other one is harm to one, below.
TAKES_ITS_TIME = {"many_letters", "compression_bomb"}
BOMBS = [pytest.param(kind, marks=[pytest.mark.slow] * (kind in TAKES_ITS_TIME)) for kind in hostile.BOMBS]


@pytest.mark.parametrize("kind", BOMBS)
def test_a_file_made_to_harm_is_refused(kind: str) -> None:
    answer = read(hostile.BOMBS[kind]())
    assert answer.statements == ()
    assert answer.refusal in REFUSALS[kind]
    assert answer.message


def test_ten_thousand_pages_are_too_many() -> None:
    answer = read(hostile.pages(10_000))
    assert answer.refusal is Refusal.TOO_MANY_PAGES
    assert read(hostile.pages(LIMITS.pages + 1)).refusal is Refusal.TOO_MANY_PAGES


@pytest.mark.parametrize("content", hostile.SHAMS)
def test_what_is_no_pdf_is_corrupt(content: bytes) -> None:
    assert read(content).refusal is Refusal.CORRUPT


def test_an_owners_password_keeps_nobody_from_reading(honest: Rows) -> None:
    locked = hostile.locked(STATEMENT, owner="of the bank")
    assert rows(read(locked)) == honest
    assert rows(read(locked, "one that isn't needed")) == honest


PASSWORDS = ["pass word ü", *(pytest.param(each, marks=pytest.mark.slow) for each in ("19850612", "x" * 120))]


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_users_password_opens(honest: Rows, password: str) -> None:
    locked = hostile.locked(STATEMENT, owner="of the bank", user=password)
    assert read(locked).refusal is Refusal.ENCRYPTED
    assert read(locked, "").refusal in (Refusal.ENCRYPTED, Refusal.WRONG_PASSWORD)
    assert read(locked, password[::-1] + "!").refusal is Refusal.WRONG_PASSWORD
    assert rows(read(locked, password)) == honest


def test_a_password_that_nobody_could_have_set_is_wrong() -> None:
    locked = hostile.locked(STATEMENT, owner="of the bank", user="19850612")
    for password in ("\0", " ", "x" * 1_000, "\ud800"):
        assert read(locked, password).refusal in (Refusal.WRONG_PASSWORD, Refusal.ENCRYPTED)


@pytest.mark.parametrize("name", ["script", "attachment", "zip before", "zip after", "web page", "at 1,024"])
def test_what_a_file_holds_beside_is_passed_over(honest: Rows, name: str) -> None:
    dressed = {
        "script": hostile.with_script(STATEMENT),
        "attachment": hostile.with_attachment(STATEMENT, "../../etc/cron.d/x"),
        "zip before": hostile.zip_before(STATEMENT),
        "zip after": hostile.zip_after(STATEMENT),
        "web page": hostile.web_page(STATEMENT),
        "at 1,024": hostile.further_in(STATEMENT, 1024),
    }
    assert rows(read(dressed[name])) == honest


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_half_a_file_is_refused_or_read_soundly(honest: Rows, share: float) -> None:
    answer = read(STATEMENT[: int(len(STATEMENT) * share)])
    if answer.refusal is None:
        found = rows(answer)
        assert set(found) <= set(honest)
        assert found == honest or all(one.verdict is not Verdict.RECONCILED for one in answer.statements)
    else:
        assert answer.refusal in (Refusal.CORRUPT, Refusal.NOT_A_STATEMENT)


def test_characters_that_are_none_reach_nobody() -> None:
    page = hostile.letters_that_are_none()
    answer = read(page)
    texts = [entry.description for one in answer.statements for entry in one.entries]
    assert all(text.isprintable() for text in (*texts, answer.message or ""))


def test_harm_to_one_is_none_to_the_others(honest: Rows) -> None:
    contents = [hostile.compression_bomb(), STATEMENT, hostile.billion_forms(), STATEMENT, b"", STATEMENT]
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(extract, contents, [None] * len(contents)))
    assert [answer.refusal is None for answer in answers] == [False, True] * 3
    assert all(rows(answer) == honest for answer in answers[1::2])


PLACES = st.integers(0, len(STATEMENT) - 1)
FLIPS = st.lists(st.tuples(PLACES, st.integers(1, 255)), min_size=1, max_size=30)
CUTS = st.tuples(PLACES, st.integers(0, 500)) | st.none()


@settings(examples(8), phases=[Phase.generate])  # each example is a process: none to spare for a smaller one
@given(FLIPS, CUTS)
def test_a_damaged_file_is_answered(flips: list[tuple[int, int]], cut: tuple[int, int] | None) -> None:
    damaged = bytearray(STATEMENT)
    for place, change in flips:
        damaged[place] ^= change
    if cut is not None:
        del damaged[cut[0] : sum(cut)]
    answer = read(bytes(damaged))
    assert (answer.refusal is None) == bool(answer.statements)
