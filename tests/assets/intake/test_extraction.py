"""PDF statements from their receipt to the customer's transactions, in batches as Dagster's runs execute them.

No PDF is really read: each test states what the reader returns for a file.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl
import pytest
from sqlalchemy import select, update

from assets.core.batches import Work, read_claimed_batch, without_jobs
from assets.enrichment.transactions import recompute
from assets.intake.statements import OnProgress, extract_all
from pipelines.figures.facts import select_as_known
from pipelines.intake.pdf.page.result import Extraction, Refusal, Verdict, refused_extraction
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.lake import StoredFile
from storage.core.models import JobStatus, Queue, Stage, events, statement_files
from storage.core.models import jobs as all_jobs
from storage.core.store import Store
from storage.intake import statements
from storage.intake.statements import StoredStatement
from storage.jobs import batches, jobs
from storage.jobs.batches import Superseded
from storage.jobs.jobs import Job
from storage.reports import reports
from tests.assets import lender as items
from tests.assets.conftest import FillStore
from tests.assets.lender import Lender, risk_status, run_refreshes
from tests.fake_statements import (
    COFFEE,
    RENT,
    SALE,
    FakeReader,
    entry,
    extract,
    extraction,
    opens_with,
    pdf,
    statement,
    submit_files,
)

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

JUNE = extraction(statement(RENT, COFFEE, SALE), pages=2)
STAGES = ("extraction", "enrichment", "job")
SAME_SALE = {**items.SALE, "date": "2026-06-04"}  # in the lender's own account, which has no BSB
OF_THE_FED_ACCOUNT = extraction(replace(statement(SALE), bsb=None))
IN_JULY = {"period_start": date(2026, 7, 1), "period_end": date(2026, 7, 31)}  # not June's, which it would replace
JULY = extraction(replace(statement(entry("WAGES", "1500.00", day=20)), **IN_JULY), pages=3)


@pytest.fixture
def lender(store: Store) -> Lender:
    return Lender(store)


class InJune(NamedTuple):
    """A lender whose statement of June was read and enriched."""

    lender: Lender
    read: FakeReader
    job: Job


@pytest.fixture
def in_june(fill_store: FillStore) -> InJune:
    return fill_store(with_june)


def with_june(store: Store) -> InJune:
    lender, read = Lender(store), FakeReader(june=JUNE)
    return InJune(lender, read, submit_and_end(lender, read, "june"))


def submit(lender: Lender, *names: str, password: str | None = None) -> Job:
    return submit_files(lender.store, lender.customer, *names, password=password)


def submit_and_end(lender: Lender, read: FakeReader, *names: str, password: str | None = None) -> Job:
    """Submit PDFs, read and enrich them, and return the ended job."""
    job = submit(lender, *names, password=password)
    extract(lender.store, read)
    lender.end_all()
    return lender.now(job)


def of_customer(lender: Lender) -> list[StoredStatement]:
    with lender.store.db.reading() as r:
        return list(statements.find(r, lender.customer).items)


def list_events(lender: Lender, job: Job) -> list[dict[str, Any]]:
    """Return the job's events in the order of creation."""
    query = select(events.c.body).where(events.c.job_id == job.job_id)
    with lender.store.db.reading() as r:
        bodies = [json.loads(body) for body in r.execute(query).scalars()]
    return sorted(bodies, key=lambda body: (body["timestamp"], STAGES.index(body["eventType"].split(".")[-2])))


def claim(store: Store, queue: Queue = Queue.EXTRACTION) -> Work:
    with store.db.writing() as w:
        batch = batches.claim(w, queue, store.settings, datetime.now(UTC))
    assert batch is not None
    return read_claimed_batch(store, batch.token, batch.partition_day)


def test_the_rows_of_a_statement_become_transactions(in_june: InJune) -> None:
    lender, _, job = in_june
    assert (job.status, job.stage, job.received_rows) == (JobStatus.COMPLETED, Stage.ENRICHMENT, 3)
    assert (job.processed_rows, job.enriched_rows, job.duplicate_rows, job.rejected_rows) == (3, 3, 0, 0)
    assert (job.pages_done, job.pages_total) == (2, 2)
    rows = lender.rows(job)
    assert [(row["description"], row["amount"]) for row in rows] == [
        ("RENT", Decimal("-900.00")),
        ("COFFEE", Decimal("-4.50")),
        ("SALE", Decimal("812.40")),
    ]
    assert {(row["bsb"], row["account_number"], row["bank_name"]) for row in rows} == {
        ("062000", "12345678", "Commonwealth Bank")
    }
    [found] = of_customer(lender)
    assert {row["statement_id"] for row in rows} == {found.statement_id.bytes}
    assert (found.verdict, found.row_count, found.file_name) == (Verdict.RECONCILED, 3, "june.pdf")
    assert (found.opening_balance, found.closing_balance) == (Decimal("5000.00"), Decimal("4907.90"))


def test_each_stage_sends_its_event_in_order(in_june: InJune) -> None:
    lender, _, job = in_june
    happened = list_events(lender, job)
    assert [body["eventType"] for body in happened] == [
        "job.extraction.completed",
        "job.enrichment.completed",
        "job.completed",
    ]
    assert {body["jobType"] for body in happened} == {"Extraction"}
    assert (happened[0]["extractedCount"], happened[0]["duplicateCount"]) == (3, 0)
    assert (happened[1]["enrichedCount"], happened[1]["duplicateCount"]) == (3, 0)
    assert (happened[2]["totalProcessedTransactions"], happened[2]["totalReceivedTransactions"]) == (3, 3)


def test_several_accounts_of_one_file_stay_separate(lender: Lender) -> None:
    both = extraction(statement(RENT), statement(RENT, account_number="87654321"))
    submit_and_end(lender, FakeReader(both=both), "both")
    assert sorted(row["account_number"] for row in lender.rows()) == ["12345678", "87654321"]
    assert len({row["account_id"] for row in lender.rows()}) == 2


def test_a_row_in_two_files_counts_once(lender: Lender) -> None:
    overlapping = extraction(statement(SALE, entry("WAGES", "1500.00", day=20)))
    job = submit_and_end(lender, FakeReader(june=JUNE, july=overlapping), "june", "july")
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE", "WAGES"]
    assert (job.received_rows, job.repeated_rows, job.duplicate_rows) == (4, 1, 0)
    assert list_events(lender, job)[0]["duplicateCount"] == 1


def test_a_row_sent_as_json_before_is_a_duplicate(lender: Lender) -> None:
    fed = lender.submit_and_end(SAME_SALE)
    job = submit_and_end(lender, FakeReader(june=OF_THE_FED_ACCOUNT), "june")
    assert (job.received_rows, job.enriched_rows, job.duplicate_rows) == (1, 0, 1)
    assert [row["job_id"] for row in lender.rows()] == [fed.job_id.bytes]


def test_an_unreadable_file_fails_by_itself_with_its_code(lender: Lender) -> None:
    job = submit_and_end(lender, FakeReader(june=JUNE), "june", "letter")
    assert (job.status, job.refused_files) == (JobStatus.COMPLETED_WITH_ERRORS, 1)
    assert job.warnings == [
        {"code": "Statement.NotAStatement", "message": "File 2: The file has no account statement."}
    ]
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]
    assert list_events(lender, job)[-1]["eventType"] == "job.completed"


def test_a_job_without_a_readable_file_fails_and_sends_no_enrichment_event(lender: Lender) -> None:
    job = submit(lender, "letter", "poem")
    extract(lender.store, FakeReader())
    job = lender.now(job)
    assert (job.status, job.stage, job.refused_files) == (JobStatus.FAILED, Stage.EXTRACTION, 2)
    assert job.error is not None
    assert job.error["code"] == "Statement.NotAStatement"
    assert [body["eventType"] for body in list_events(lender, job)] == ["job.extraction.failed", "job.failed"]
    with lender.store.db.reading() as r:
        assert not jobs.has_unfinished_change(r, lender.customer.number)


def test_files_refused_for_different_reasons_fail_under_one_code(lender: Lender) -> None:
    broken = refused_extraction(Refusal.CORRUPT, "It is damaged.")
    job = submit(lender, "letter", "broken")
    extract(lender.store, FakeReader(broken=broken))
    assert (lender.now(job).error or {})["code"] == "Job.AllFilesRefused"


def test_a_statement_without_rows_is_not_a_failure(lender: Lender) -> None:
    job = submit_and_end(lender, FakeReader(quiet=extraction(statement())), "quiet")
    assert (job.status, job.received_rows, job.enriched_rows) == (JobStatus.COMPLETED, 0, 0)
    assert [each.row_count for each in of_customer(lender)] == [0]


def test_rows_that_do_not_reconcile_are_stored_and_marked(lender: Lender) -> None:
    doubtful = extraction(statement(SALE, verdict=Verdict.UNRECONCILED))
    job = submit_and_end(lender, FakeReader(june=doubtful), "june")
    assert job.status is JobStatus.COMPLETED
    assert [warning["code"] for warning in job.warnings] == ["Statement.Unreconciled"]
    assert [each.verdict for each in of_customer(lender)] == [Verdict.UNRECONCILED]


def test_reports_state_the_share_of_unreconciled_rows(lender: Lender) -> None:
    lender.submit_and_end(items.RENT)
    submit_and_end(lender, FakeReader(june=extraction(statement(SALE, verdict=Verdict.UNRECONCILED))), "june")
    lender.ask_for_reports()
    run_refreshes(lender)
    with lender.store.db.reading() as r:
        stored = reports.read_bundle(r, lender.customer)
    reported = [json.loads(each.data_json or "")["unreconciled"] for each in stored.values()]
    assert [(each["rows"], each["shareOfRows"]) for each in reported] == [(1, 0.5)] * 3


def test_a_statement_in_another_currency_is_refused_and_not_stored(lender: Lender) -> None:
    foreign = extraction(replace(statement(SALE), currency="INR"))
    job = submit_and_end(lender, FakeReader(mumbai=foreign), "mumbai")
    assert (job.status, (job.error or {})["code"]) == (JobStatus.FAILED, "Statement.UnsupportedCurrency")
    assert "INR" in (job.error or {})["message"]
    assert of_customer(lender) == []


def test_only_our_currency_is_stored_of_a_file_with_several_currencies(lender: Lender) -> None:
    dollars = replace(statement(RENT, account_number="87654321"), currency="USD")
    both = extraction(replace(statement(SALE), currency="AUD"), dollars)
    for _ in range(2):  # the second time it is not read again
        job = submit_and_end(lender, FakeReader(june=both), "june")
        assert (job.status, job.received_rows) == (JobStatus.COMPLETED_WITH_ERRORS, 1)
        assert [warning["code"] for warning in job.warnings] == ["Statement.UnsupportedCurrency"]


def test_a_row_in_another_currency_than_its_statement_is_rejected(lender: Lender) -> None:
    mixed = extraction(statement(SALE, replace(RENT, currency="EUR")))
    job = submit_and_end(lender, FakeReader(june=mixed), "june")
    assert (job.status, job.received_rows, job.enriched_rows) == (JobStatus.COMPLETED_WITH_ERRORS, 2, 1)


def test_implausible_amounts_are_refused(lender: Lender) -> None:
    absurd = extraction(statement(entry("LOTTERY", "9" * 20)))
    job = submit_and_end(lender, FakeReader(absurd=absurd, june=JUNE), "absurd", "june")
    assert [warning["code"] for warning in job.warnings] == ["Statement.LimitsExceeded"]
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]


def test_card_numbers_are_masked_everywhere(lender: Lender) -> None:
    number = "4111 1111 1111 1111"
    submit_and_end(
        lender, FakeReader(card=extraction(statement(entry(f"PAID {number}", "-1.00"), account_number=number))), "card"
    )
    [row], [found] = lender.rows(), of_customer(lender)
    with lender.store.db.reading() as r:
        [retained] = statements.read_rows(r, lender.store.lake, found).to_dicts()
    for text in (row["description"], row["account_number"], found.account_number, retained["description"]):
        assert text is not None
        assert "11111111" not in text.replace(" ", "")


# Files sent again


def test_the_same_file_again_is_not_read_again_and_its_rows_are_duplicates(in_june: InJune) -> None:
    lender, read, _ = in_june
    again = submit_and_end(lender, read, "june")
    assert read.read == [pdf("june")]
    assert (again.status, again.received_rows, again.duplicate_rows, again.enriched_rows) == (
        JobStatus.COMPLETED,
        3,
        3,
        0,
    )
    assert len(of_customer(lender)) == 2


def test_the_same_file_twice_in_one_submission_is_read_once(lender: Lender) -> None:
    read = FakeReader(june=JUNE)
    job = submit_and_end(lender, read, "june", "june")
    assert read.read == [pdf("june")]
    assert (job.received_rows, job.repeated_rows) == (3, 3)
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]


def test_a_file_whose_submission_was_retracted_is_read_again(in_june: InJune) -> None:
    lender, read, job = in_june
    lender.retract_and_end(job)
    assert (lender.rows(), of_customer(lender)) == ([], [])
    submit_and_end(lender, read, "june")
    assert read.read == [pdf("june")] * 2
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]


def test_after_a_retraction_the_second_submission_of_a_file_has_its_rows(in_june: InJune) -> None:
    lender, read, first = in_june
    second = submit_and_end(lender, read, "june")
    lender.retract_and_end(first)
    assert lender.descriptions(second) == ["COFFEE", "RENT", "SALE"]
    assert [each.job_id for each in of_customer(lender)] == [second.job_id]


def test_an_identical_file_of_another_customer_is_read_again(in_june: InJune) -> None:
    lender, read, _ = in_june
    submit_and_end(Lender(lender.store), read, "june")
    assert read.read == [pdf("june")] * 2


# Passwords


def password_of(store: Store, job: Job) -> list[bytes | None]:
    with store.db.reading() as r:
        return [file.password for file in statements.list_files(r, job)]


def test_a_password_opens_the_file_and_is_deleted(lender: Lender) -> None:
    job = submit(lender, "locked", password="s3cret")
    [sealed] = password_of(lender.store, job)
    assert sealed is not None
    assert b"s3cret" not in sealed
    extract(lender.store, FakeReader(locked=opens_with("s3cret", JUNE)))
    assert password_of(lender.store, job) == [None]
    lender.end_all()
    assert lender.now(job).status is JobStatus.COMPLETED


@pytest.mark.parametrize(("password", "code"), [(None, "Statement.Encrypted"), ("wrong", "Statement.WrongPassword")])
def test_without_the_right_password_the_file_is_refused(lender: Lender, password: str | None, code: str) -> None:
    job = submit(lender, "locked", password=password)
    extract(lender.store, FakeReader(locked=opens_with("s3cret", JUNE)))
    assert (lender.now(job).error or {})["code"] == code
    assert password_of(lender.store, job) == [None]


def test_a_password_of_abandoned_work_is_deleted(lender: Lender) -> None:
    job = submit(lender, "locked", password="s3cret")
    for _ in range(lender.store.settings.job_max_attempts):
        work = claim_regardless_of_pauses(lender.store)
        with lender.store.db.writing() as w:
            batches.release(w, work.token, lender.store.settings, datetime.now(UTC))
    assert (lender.now(job).error or {})["code"] == "Job.Abandoned"
    assert password_of(lender.store, job) == [None]
    assert [body["eventType"] for body in list_events(lender, job)] == ["job.extraction.failed", "job.failed"]


def claim_regardless_of_pauses(store: Store) -> Work:
    """Claim jobs even while they pause before a retry."""
    with store.db.writing() as w:
        w.execute(update(all_jobs).values(not_before=None))
    return claim(store)


# The order of receipt


def test_statements_count_as_received_when_they_are_read(lender: Lender) -> None:
    """A row that is enriched before the PDF was read counts as received first, and the PDF's row as its duplicate."""
    waiting = submit(lender, "june")
    fed = lender.submit_and_end(SAME_SALE)
    extract(lender.store, FakeReader(june=OF_THE_FED_ACCOUNT))
    landed = lender.now(waiting)
    assert landed.received_seq > fed.received_seq > waiting.received_seq
    assert landed.received_at > fed.received_at > landed.created_at
    lender.end_all()
    assert [row["job_id"] for row in lender.rows()] == [fed.job_id.bytes]
    assert (lender.now(waiting).enriched_rows, lender.now(waiting).duplicate_rows) == (0, 1)


def test_a_replay_includes_a_pdf_from_the_moment_it_was_read(lender: Lender) -> None:
    lender.submit_and_end(items.RENT)
    job = submit(lender, "june")
    between = datetime.now(UTC)
    extract(lender.store, FakeReader(june=JUNE))
    lender.end_all()
    rows = pl.DataFrame(lender.rows(), infer_schema_length=None).select(
        "since_seq", "superseded_seq", "retracted_seq", "description"
    )
    with lender.store.db.reading() as r:
        before = jobs.find_last_received(r, lender.customer, between)
        after = jobs.find_last_received(r, lender.customer, datetime.now(UTC))
        of_all = jobs.find_last_received_of_all(r, between)
    frame = rows.with_columns(pl.col("superseded_seq").cast(pl.Int64))
    assert select_as_known(frame, before)["description"].to_list() == ["RENT"]
    assert select_as_known(frame, of_all)["description"].to_list() == ["RENT"]
    assert sorted(select_as_known(frame, after)["description"]) == ["COFFEE", "RENT", "RENT", "SALE"]
    assert lender.now(job).received_seq == after


def test_jobs_are_listed_by_creation_even_if_reading_took_long(lender: Lender) -> None:
    first = submit(lender, "june")
    second = lender.submit_and_end(items.RENT)
    extract(lender.store, FakeReader(june=JUNE))
    with lender.store.db.reading() as r:
        listed = [job.job_id for job in jobs.find(r, lender.customer.client_id).items]
    assert listed == [second.job_id, first.job_id]


def test_a_day_started_by_hand_includes_customers_whose_pdfs_were_read_then(in_june: InJune) -> None:
    lender, _, job = in_june
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with lender.store.db.writing() as w:
        w.execute(update(all_jobs).where(all_jobs.c.job_id == job.job_id).values(created_at=yesterday))
    with lender.store.db.reading() as r:
        assert jobs.find_customers_with_jobs_on(r, datetime.now(UTC).date()) == {lender.customer.number}
        assert jobs.find_customers_with_jobs_on(r, yesterday.date()) == set()


# A submission of PDFs among other jobs


def test_a_report_is_stale_from_the_moment_pdfs_are_accepted(lender: Lender) -> None:
    lender.submit_and_end(items.RENT)
    lender.ask_for_reports()
    run_refreshes(lender)
    assert risk_status(lender) is ReportStatus.READY
    submit(lender, "june")
    assert risk_status(lender) is ReportStatus.STALE
    extract(lender.store, FakeReader(june=JUNE))
    assert risk_status(lender) is ReportStatus.STALE


def test_an_enrichment_batch_claims_no_unread_pdfs(lender: Lender) -> None:
    waiting = submit(lender, "june")
    lender.submit_and_end(items.RENT)
    assert lender.now(waiting).status is JobStatus.QUEUED
    with lender.store.db.reading() as r:
        now = datetime.now(UTC)
        assert batches.waiting_since(r, Queue.ENRICHMENT, lender.store.settings, now) is None
        assert batches.waiting_since(r, Queue.EXTRACTION, lender.store.settings, now) == waiting.created_at


def test_reading_locks_no_customer(lender: Lender) -> None:
    """Two batches read at once for one customer, while a third enriches it."""
    submit(lender, "june")
    first = claim(lender.store)
    submit(lender, "july")
    second = claim(lender.store)
    assert [len(work.jobs) for work in (first, second)] == [1, 1]
    lender.submit_and_end(items.RENT)
    read = FakeReader(june=JUNE, july=JULY)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda work: extract_all(lender.store, work, read), (first, second)))
    lender.end_all()
    assert lender.descriptions() == ["COFFEE", "RENT", "RENT", "SALE", "WAGES"]


def test_a_batch_reads_few_submissions_at_a_time(lender: Lender) -> None:
    for _ in range(batches.MAX_EXTRACTIONS + 1):
        submit(lender, "june")
    assert len(claim(lender.store).jobs) == batches.MAX_EXTRACTIONS


def test_a_retraction_needs_an_ended_submission(in_june: InJune) -> None:
    lender, _, job = in_june
    retraction = lender.retract(job)
    with pytest.raises(NotFound):
        lender.retract(retraction)
    lender.end_all()
    assert lender.rows() == []


def test_recomputing_a_day_by_hand_changes_nothing(lender: Lender) -> None:
    submit_and_end(lender, FakeReader(june=JUNE), "june")
    before = lender.rows()
    with without_jobs(lender.store, Queue.ENRICHMENT, datetime.now(UTC).date(), [lender.customer.number]) as work:
        recompute(lender.store, work)
    assert lender.rows() == before


def test_progress_is_reported_in_pages(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.intake.statements.REPORT_EVERY_S", 0.0)
    job = submit(lender, "june")
    seen = []

    def read(_content: bytes, _password: str | None, reported: OnProgress) -> Extraction:
        for done in (1, 2):
            reported(done, 2)
            seen.append((lender.now(job).pages_done, lender.now(job).pages_total))
        return JUNE

    extract(lender.store, read)
    assert seen == [(1, 2), (2, 2)]


# Interruptions


class KilledError(BaseException):
    """An exception that ends a run like a kill: no code of the run handles it."""


def test_a_run_that_dies_while_reading_is_repeated_without_duplicates(lender: Lender) -> None:
    job = submit(lender, "june")
    work = claim(lender.store)

    def dies(_content: bytes, _password: str | None, _reported: OnProgress) -> Extraction:
        raise KilledError

    with pytest.raises(KilledError):
        extract_all(lender.store, work, dies)
    assert lender.now(job).status is JobStatus.RUNNING
    give_up(lender.store, work)
    assert lender.now(job).status is JobStatus.QUEUED
    extract(lender.store, FakeReader(june=JUNE))
    lender.end_all()
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]


def test_a_run_that_resumes_after_it_was_given_up_changes_nothing(lender: Lender) -> None:
    job = submit(lender, "june")
    late, read = claim(lender.store), FakeReader(june=JUNE)
    give_up(lender.store, late)
    extract(lender.store, read)
    landed = lender.now(job)
    with pytest.raises(Superseded):
        extract_all(lender.store, late, read)
    assert lender.now(job) == landed
    lender.end_all()
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]
    assert len(list_events(lender, job)) == 3


def test_a_run_that_dies_between_two_jobs_keeps_the_first(lender: Lender) -> None:
    first, second = submit(lender, "june"), submit(lender, "july")
    work = claim(lender.store)

    def read(content: bytes, _password: str | None, _reported: OnProgress) -> Extraction:
        if content == pdf("july"):
            raise KilledError
        return JUNE

    with pytest.raises(KilledError):
        extract_all(lender.store, work, read)
    assert (lender.now(first).stage, lender.now(first).status) == (Stage.ENRICHMENT, JobStatus.QUEUED)
    give_up(lender.store, work)
    again = FakeReader(june=JUNE, july=JULY)
    extract(lender.store, again)
    assert again.read == [pdf("july")]
    lender.end_all()
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE", "WAGES"]
    assert [len(list_events(lender, job)) for job in (first, second)] == [3, 3]


def test_a_run_that_dies_before_its_commit_names_no_file(lender: Lender) -> None:
    """The files are written but the transaction is not committed, so nothing was read."""
    job = submit(lender, "june")
    work = claim(lender.store)
    store = lender.store

    class Dying(type(store.lake)):
        def put_frame(self, path: str, frame: pl.DataFrame) -> StoredFile:
            stored = super().put_frame(path, frame)
            if path.startswith("statements/"):
                raise KilledError
            return stored

    dying = Store(store.settings, store.db, Dying(store.lake.root), store.vault)
    with pytest.raises(KilledError):
        extract_all(dying, work, FakeReader(june=JUNE))
    assert (lender.now(job).stage, of_customer(lender)) == (Stage.EXTRACTION, [])
    give_up(store, work)
    extract(store, FakeReader(june=JUNE))
    lender.end_all()
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]


def test_work_interrupted_in_its_second_stage_continues_there(lender: Lender) -> None:
    job, read = submit(lender, "june"), FakeReader(june=JUNE)
    extract(lender.store, read)
    give_up(lender.store, claim(lender.store, Queue.ENRICHMENT))
    lender.end_all()
    assert lender.now(job).status is JobStatus.COMPLETED
    assert read.read == [pdf("june")]


def give_up(store: Store, work: Work) -> None:
    with store.db.writing() as w:
        assert batches.release(w, work.token, store.settings, datetime.now(UTC))


def test_a_damaged_stored_file_is_refused(lender: Lender) -> None:
    job = submit(lender, "june", "july")
    with lender.store.db.reading() as r:
        damaged = r.execute(select(statement_files.c.path).order_by(statement_files.c.position).limit(1)).scalar_one()
    (lender.store.lake.root / damaged).write_bytes(b"other bytes")
    extract(lender.store, FakeReader(june=JUNE, july=JULY))
    assert [warning["code"] for warning in lender.now(job).warnings] == ["Statement.Corrupt"]
    lender.end_all()
    assert lender.descriptions() == ["WAGES"]


def test_a_bug_in_the_reader_fails_only_its_own_job(lender: Lender) -> None:
    bad, good = submit(lender, "bad"), submit(lender, "june")

    def read(content: bytes, _password: str | None, _reported: OnProgress) -> Extraction:
        if content == pdf("bad"):
            raise RuntimeError
        return JUNE

    for _ in range(lender.store.settings.job_max_attempts):
        work = claim_regardless_of_pauses(lender.store)
        with pytest.raises(RuntimeError):
            extract_all(lender.store, work, read)
        give_up(lender.store, work)
    assert lender.now(bad).status is JobStatus.FAILED
    assert lender.now(good).stage is Stage.ENRICHMENT
