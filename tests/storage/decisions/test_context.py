"""Data about a customer that reports need besides its transactions."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

from sqlalchemy import insert, update

from pipelines.figures.context import Context
from pipelines.intake.pdf.page.result import Verdict
from storage.core.models import Flow, JobStatus, jobs, resolutions
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.decisions import context
from storage.enrichment import related_parties
from storage.enrichment.related_parties import Party
from storage.monitoring import attributes
from storage.monitoring.attributes import NewAttribute
from tests.fake_statements import JUNE, RENT, FakeReader, extract, extraction, statement, submit_files
from tests.storage.examples import a_client, a_customer


def read_context(store: Store, customer: Customer, now: datetime, data_version: int = 1) -> Context:
    with store.db.reading() as r:
        return context.read(r, {customer.number: data_version}, now, now.date(), store.settings.zone)


def test_current_attributes_are_returned_as_text_without_expired_ones(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    given = {
        "basG1-2026Q1": NewAttribute(Decimal("1200.50")),
        "gstRegistered": NewAttribute(True),
        "purpose": NewAttribute("stock"),
        "old": NewAttribute("x", expires_at=now),
        "removed": NewAttribute("y"),
    }
    with store.db.writing() as w:
        attributes.put(w, customer, given, "key", now)
        attributes.put(w, customer, {"removed": None}, "key", now)
    reported = read_context(store, customer, now).attributes
    assert reported.select("name", "value").rows() == [
        ("basG1-2026Q1", "1200.50"),
        ("gstRegistered", "true"),
        ("purpose", "stock"),
    ]


def test_customer_and_related_parties_are_named(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    with store.db.writing() as w:
        related_parties.put(w, customer, [Party("Sam Lee", None, None, "director")], "key", now)
    found = read_context(store, customer, now)
    assert found.customers["abn"].to_list() == [customer.abn]
    assert found.related_parties.rows() == [(customer.number, "Sam Lee", None)]


def submission(
    customer: Customer, now: datetime, data_version: int, enriched: int, **others: object
) -> dict[str, object]:
    flow = {"flow": Flow.ENRICHMENT, "retracts": None, "duplicate_rows": 3, "rejected_rows": 2} | others
    return flow | {
        "job_id": flow.get("job_id", uuid4()),
        "client_id": customer.client_id,
        "customer_number": customer.number,
        "status": JobStatus.COMPLETED,
        "created_at": now,
        "warnings": [],
        "data_version": data_version,
        "enriched_rows": enriched,
    }


def test_refused_and_repeated_rows_are_counted_up_to_the_version(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    retracted = uuid4()
    rows = [
        submission(customer, now, 1, 10, job_id=retracted),
        submission(customer, now, 2, 10),
        submission(customer, now, 2, 0),  # nothing but duplicates: it made no version
        submission(customer, now, 3, 0, flow=Flow.RETRACTION, retracts=retracted),
    ]
    with store.db.writing() as w:
        for row in rows:
            w.execute(insert(jobs).values(row))

    def read_counts(data_version: int) -> tuple[int, int]:
        [(_, repeated, refused)] = read_context(store, customer, now + timedelta(days=1), data_version).intake.rows()
        return repeated, refused

    assert [read_counts(version) for version in (0, 1, 2, 3)] == [(0, 0), (3, 2), (6, 4), (3, 2)]


def test_statement_is_evidence_from_the_version_that_its_rows_made(store: Store, now: datetime) -> None:
    """A statement with only duplicates makes no version, so it counts from the next one. A version stays as it is."""
    customer = a_customer(store, a_client(store, now), now)
    reader = FakeReader(**{name: extraction(statement(RENT), pages=1) for name in ("new", "known", "gone")})
    submitted = {}
    for name in ("new", "known", "gone"):
        submitted[name] = submit_files(store, customer, name).job_id
        extract(store, reader)
    with store.db.writing() as w:
        for name, version, enriched in (("new", 2, 1), ("known", 2, 0), ("gone", 4, 1)):
            ended = {"status": JobStatus.COMPLETED, "data_version": version, "enriched_rows": enriched}
            w.execute(update(jobs).where(jobs.c.job_id == submitted[name]).values(ended))
        taken_back = submission(customer, now, 5, 0, flow=Flow.RETRACTION, retracts=submitted["gone"])
        w.execute(insert(jobs).values(taken_back))

    def read_file_names(data_version: int) -> list[str]:
        return read_context(store, customer, now, data_version).statements["file_name"].to_list()

    assert [read_file_names(version) for version in (1, 2, 3, 4, 5)] == [
        [],
        ["new.pdf"],
        ["new.pdf", "known.pdf"],
        ["new.pdf", "known.pdf", "gone.pdf"],
        ["new.pdf", "known.pdf"],
    ]


def test_statement_has_balances_verdict_and_signals_once_per_file(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    reader = FakeReader(june=extraction(statement(RENT, verdict=Verdict.PARTIAL)))
    submit_files(store, customer, "june", "june")
    extract(store, reader)
    with store.db.writing() as w:
        w.execute(update(jobs).values(status=JobStatus.COMPLETED, data_version=1, enriched_rows=1))
    [found] = read_context(store, customer, now).statements.to_dicts()
    figures = ("kind", "verdict", "opening_balance", "closing_balance", "period_start")
    expected = ("statement", "partial", Decimal("5000.00"), Decimal("4907.90"), JUNE)
    assert tuple(found[name] for name in figures) == expected
    assert [(each["code"], each["severity"], each["page"]) for each in found["signals"]] == [
        ("IncrementalUpdate", "warning", None)
    ]


def test_the_last_resolution_of_a_finding_applies(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    word = {"customer_number": customer.number, "kind": "finding", "made_at": now, "made_by": "key"}
    reasons = [("a", "seen"), ("b", "seen"), ("a", None), ("c", "first"), ("c", "second")]
    with store.db.writing() as w:
        w.execute(insert(resolutions), [{**word, "key": key, "reason": reason} for key, reason in reasons])
    found = read_context(store, customer, now).resolutions
    assert found.select("key", "reason").rows() == [("b", "seen"), ("c", "second")]


def test_a_resolution_has_the_day_of_the_services_time_zone(store: Store) -> None:
    now = datetime(2026, 6, 30, 20, tzinfo=UTC)  # six in the morning in Sydney
    customer = a_customer(store, a_client(store, now), now)
    with store.db.writing() as w:
        word = {"kind": "finding", "key": "a", "reason": "seen", "made_at": now, "made_by": "key"}
        w.execute(insert(resolutions).values(customer_number=customer.number, **word))
    assert read_context(store, customer, now).resolutions["resolved_on"].to_list() == [date(2026, 7, 1)]


def test_what_was_resolved_later_is_not_known_at_an_earlier_time(store: Store, now: datetime) -> None:
    customer, later = a_customer(store, a_client(store, now), now), now + timedelta(hours=1)
    word = {"customer_number": customer.number, "kind": "finding", "made_by": "key"}
    reasons = [("a", "seen", now), ("a", None, later), ("b", "seen", later)]
    with store.db.writing() as w:
        w.execute(insert(resolutions), [{**word, "key": key, "reason": why, "made_at": at} for key, why, at in reasons])
    with store.db.reading() as r:
        whose, zone = [customer.number], store.settings.zone
        then, since = (context.read_for_metrics(r, whose, zone, at).resolutions for at in (now, later))
        replayed = context.read(r, dict.fromkeys(whose, 1), now, now.date(), zone, now).resolutions
    assert (then["key"].to_list(), since["key"].to_list(), replayed["key"].to_list()) == (["a"], ["b"], ["a"])
