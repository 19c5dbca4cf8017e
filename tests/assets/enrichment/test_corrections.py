"""Corrections are applied by batches, as Dagster's runs execute them."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from sqlalchemy import delete

from api.reports import replay
from api.reports.schemas.reports import Moment
from assets.core.batches import without_jobs
from assets.enrichment.transactions import recompute
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import Knowledge
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.reports.diff import diff
from pipelines.reports.report_view import ReportView
from pipelines.vocabulary.errors import Gone
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import Flow, JobStatus, Queue, locations
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.enrichment import corrections, knowledge, related_parties, transactions
from storage.enrichment.corrections import Correction, NewCorrection
from storage.enrichment.related_parties import Party
from storage.jobs import batches, jobs
from storage.jobs.jobs import Job
from storage.reports import reports
from tests.assets.conftest import FillStore
from tests.assets.lender import BAD, COFFEE, RENT, SALE, Lender, risk_status, run_refreshes
from tests.storage.examples import a_customer

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

WHO = "a key"
RENT_IS_PREMISES = NewCorrection(words="rent", direction="debit", category="strata")
AGAIN = {**COFFEE, "date": "2026-03-09"}


class Corrector(Lender):
    """A lender that makes and revokes corrections."""

    def correct(self, new: NewCorrection, customer: Customer | None = None) -> tuple[Correction, Job]:
        mine = customer or self.customer
        lake, now = self.store.lake, datetime.now(UTC)
        with self.store.db.reading() as r:
            on = corrections.read_stored_rows(r, lake, mine, client_wide=new.client_wide)
        found_rows = on, corrections.measure_reach(lake, on, new)
        with self.store.db.writing() as w:
            return corrections.make(w, mine, new, found_rows, WHO, now)

    def revoke(self, correction: Correction) -> Job:
        lake = self.store.lake
        with self.store.db.reading() as r:
            on = corrections.read_stored_rows(r, lake, self.customer, client_wide=True)
        found_rows = (on, corrections.find_decided_customers(lake, on, correction)) if correction.client_wide else None
        with self.store.db.writing() as w:
            return corrections.revoke(w, self.customer, correction, found_rows, WHO, datetime.now(UTC))

    def count_decided(self, correction: Correction) -> int:
        """Return how many rows the correction decides, as the list of corrections shows it."""
        with self.store.db.reading() as r:
            on = corrections.read_stored_rows(r, self.store.lake, self.customer, client_wide=False)
        return corrections.count_decided_rows(self.store.lake, on).get(correction.correction_id, 0)

    def categories(self) -> dict[str, tuple[str, str]]:
        """Return each row's category and its source, by description."""
        return {row["description"]: (row["category"], row["category_source"]) for row in self.rows()}

    def find_queued(self) -> list[Job]:
        with self.store.db.reading() as r:
            return list(jobs.find(r, self.customer.client_id, status=JobStatus.QUEUED).items)


@pytest.fixture
def lender(store: Store) -> Corrector:
    return Corrector(store)


@pytest.fixture
def renting(fill_store: FillStore) -> Corrector:
    return fill_store(with_rent)


def with_rent(store: Store) -> Corrector:
    lender = Corrector(store)
    lender.submit_and_end(RENT)
    return lender


def test_a_correction_applies_to_stored_and_new_rows_until_it_is_revoked(lender: Corrector) -> None:
    lender.submit_and_end(RENT, COFFEE)
    before = lender.categories()
    lender.ask_for_reports()
    run_refreshes(lender)
    assert risk_status(lender) is ReportStatus.READY

    coffee, job = lender.correct(NewCorrection(words="coffee", category="repairs"))
    assert risk_status(lender) is ReportStatus.STALE
    version = lender.customer.data_version
    lender.end_all()
    assert lender.now(job).status is JobStatus.COMPLETED
    assert lender.categories() == before | {"COFFEE": ("repairs", "client_rule")}
    assert lender.customer.data_version == version + 1
    assert risk_status(lender) is ReportStatus.STALE

    lender.submit_and_end(AGAIN, SALE)
    assert [row["category"] for row in lender.rows() if row["description"] == "COFFEE"] == ["repairs"] * 2
    assert lender.count_decided(coffee) == 2

    revoked = lender.revoke(coffee)
    lender.end_all()
    assert lender.now(revoked).status is JobStatus.COMPLETED
    assert lender.categories()["COFFEE"] == before["COFFEE"]
    assert lender.count_decided(coffee) == 0
    assert lender.revoke(coffee).job_id == revoked.job_id


def test_a_counterparty_is_found_by_its_corrected_name(lender: Corrector) -> None:
    lender.submit_and_end(RENT, COFFEE)
    lender.correct(NewCorrection(words="rent", counterparty_name="Harbour Estates"))
    lender.end_all()
    lender.correct(NewCorrection(counterparty="harbour estates", category="strata"))
    lender.end_all()
    [rent] = [row for row in lender.rows() if row["description"] == "RENT"]
    assert (rent["category"], rent["counterparty_name"]) == ("strata", "Harbour Estates")
    assert rent["counterparty_group"] == "HARBOUR ESTATES"


def test_a_correction_made_before_any_rows_applies_to_the_first(lender: Corrector) -> None:
    _, job = lender.correct(RENT_IS_PREMISES)
    lender.end_all()
    assert lender.now(job).status is JobStatus.COMPLETED
    lender.submit_and_end(RENT)
    assert lender.categories()["RENT"] == ("strata", "client_rule")


def test_a_client_wide_correction_recomputes_affected_customers_and_applies_to_all(lender: Corrector) -> None:
    others = Corrector(lender.store)
    neighbour, idle = (a_customer(lender.store, lender.customer.client_id, datetime.now(UTC)) for _ in range(2))
    lender.submit_and_end(COFFEE)
    neighbours = Corrector(lender.store)
    neighbours._customer = neighbour  # of the same client
    neighbours.submit_and_end(RENT)
    others.submit_and_end(RENT)

    wide, _ = lender.correct(NewCorrection(words="rent", category="strata", client_wide=True))
    assert {job.customer_number for job in lender.find_queued()} == {lender.customer.number, neighbour.number}
    lender.end_all()
    assert neighbours.categories()["RENT"] == ("strata", "client_rule")
    assert others.categories()["RENT"][0] != "strata"
    newcomer = Corrector(lender.store)
    newcomer._customer = idle
    newcomer.submit_and_end(RENT)
    assert newcomer.categories()["RENT"] == ("strata", "client_rule")

    lender.revoke(wide)
    assert {job.customer_number for job in lender.find_queued()} == {
        job.number for job in (lender.customer, neighbour, idle)
    }
    lender.end_all()
    assert {each.categories()["RENT"][0] for each in (neighbours, newcomer)} == {others.categories()["RENT"][0]}


def during_a_batch(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Call `then` once, after a batch has read what is known and before it commits."""
    really, waiting = enrich, [then]

    def meanwhile(*given: Any) -> Any:
        while waiting:
            waiting.pop()()
        return really(*given)

    monkeypatch.setattr("assets.enrichment.transactions.enrich", meanwhile)


@pytest.mark.parametrize("client_wide", [False, True])
def test_a_correction_made_while_a_batch_computes_is_not_lost(
    lender: Corrector, monkeypatch: pytest.MonkeyPatch, client_wide: bool
) -> None:
    rent = NewCorrection(words="rent", category="strata", client_wide=client_wide)
    neighbour = a_customer(lender.store, lender.customer.client_id, datetime.now(UTC))
    during_a_batch(monkeypatch, lambda: lender.correct(rent, neighbour if client_wide else None))
    submission = lender.submit(RENT)
    lender.end_all()
    assert lender.now(submission).status is JobStatus.QUEUED  # left to the next batch, with its correction
    lender.end_all()
    assert lender.now(submission).status is JobStatus.COMPLETED
    assert lender.categories()["RENT"] == ("strata", "client_rule")


def test_maintenance_that_read_before_a_correction_is_superseded(
    renting: Corrector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the correction's own batch has ended by then and has changed nothing."""
    renting.correct(RENT_IS_PREMISES)
    renting.end_all()
    held = renting.rows()

    def correct_again() -> None:
        renting.correct(RENT_IS_PREMISES)
        renting.end_all()

    during_a_batch(monkeypatch, correct_again)
    really, early = knowledge.read, [Knowledge()]
    monkeypatch.setattr("storage.enrichment.knowledge.read", lambda *given: early.pop() if early else really(*given))
    today = datetime.now(UTC).date()
    with without_jobs(renting.store, Queue.PORTFOLIO, today, [renting.customer.number]) as work:
        _, committed = recompute(renting.store, work)
    assert committed.superseded == {renting.customer.number}
    shown = ("transaction_id", "category", "category_source")
    assert [[row[name] for name in shown] for row in renting.rows()] == [[row[name] for name in shown] for row in held]


def test_concurrent_corrections_all_apply_while_batches_end(renting: Corrector) -> None:
    names = [f"Name {number}" for number in range(8)]

    def say(number: int) -> None:
        words = NewCorrection(words="rent", counterparty_name=names[number], client_wide=number % 2 == 0)
        renting.correct(words)
        renting.end_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(say, range(8)))
    while renting.find_queued():
        renting.end_all()
    with renting.store.db.reading() as r:
        made = corrections.find(r, renting.customer).items
    assert sorted(each.counterparty_name or "" for each in made) == names
    assert [row["counterparty_name"] for row in renting.rows()] == [made[0].counterparty_name]


def test_a_correction_applies_after_its_batch_was_released(renting: Corrector) -> None:
    _, job = renting.correct(RENT_IS_PREMISES)
    settings = renting.store.settings
    with renting.store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, settings, datetime.now(UTC))
        assert batch is not None
        batches.release(w, batch.token, settings, datetime.now(UTC))
    assert renting.categories()["RENT"][0] != "strata"
    renting.end_all()
    assert (renting.now(job).status, renting.categories()["RENT"][0]) == (JobStatus.COMPLETED, "strata")


def test_a_new_list_of_related_parties_enriches_the_customer_again(lender: Corrector) -> None:
    def put(*parties: Party) -> None:
        with lender.store.db.writing() as w:
            related_parties.put(w, lender.customer, parties, WHO, datetime.now(UTC))

    director = Party("Alex Nguyen", None, None, "director")
    put(director)
    assert lender.find_queued() == []  # there is nothing to enrich yet
    lender.submit_and_end(RENT)
    put(director)
    assert lender.find_queued() == []
    put()
    [job] = lender.find_queued()
    assert job.flow is Flow.REENRICHMENT
    assert risk_status(lender) is ReportStatus.PENDING
    lender.end_all()
    assert lender.now(job).status is JobStatus.COMPLETED


def test_related_parties_set_while_a_batch_computes_are_not_missed(
    lender: Corrector, monkeypatch: pytest.MonkeyPatch
) -> None:
    director, read = Party("Alex Nguyen", None, None, "director"), list[pl.DataFrame]()

    def noting(held: Any, accepted: Any, retractions: Any, known: Knowledge, *others: Any) -> Any:
        read.append(known.related_parties)
        if len(read) == 1:
            with lender.store.db.writing() as w:
                related_parties.put(w, lender.customer, [director], WHO, datetime.now(UTC))
        return enrich(held, accepted, retractions, known, *others)

    monkeypatch.setattr("assets.enrichment.transactions.enrich", noting)
    submission = lender.submit(RENT)
    lender.end_all()
    lender.end_all()
    assert lender.now(submission).status is JobStatus.COMPLETED
    assert [frame["name"].to_list() for frame in read] == [[], ["Alex Nguyen"]]


def test_a_corrections_job_counts_no_rows(renting: Corrector) -> None:
    _, job = renting.correct(RENT_IS_PREMISES)
    renting.end_all()
    ended = renting.now(job)
    assert (ended.received_rows, ended.processed_rows, ended.enriched_rows) == (0, 0, 0)
    with renting.store.db.reading() as r:
        assert customers.versions(r, [renting.customer.number]) == {renting.customer.number: ended.data_version}


# What was known at an earlier time


def replay_reports(store: Store, customer: Customer, moment: Moment) -> Mapping[str, ReportView]:
    """Return the reports that the API computes for a past moment."""
    now = datetime.now(UTC)
    caller: Any = SimpleNamespace(store=store, now=now, today=now.date())
    with store.db.reading() as r:
        basis = replay.find_basis(r, caller, customer, moment)
    facts = basis.facts(caller)
    return {kind: replay.compute_report(kind, facts, basis, replay.Cache()) for kind in REPORTS}


def moment_known_at(moment: datetime, as_of: date | None = None) -> Moment:
    return Moment.model_construct(known_at=moment, as_of=as_of)


def versions_and_data(bundle: Mapping[str, ReportView]) -> dict[str, tuple[int | None, str | None]]:
    return {kind: (report.data_version, report.data_json) for kind, report in bundle.items()}


def test_a_replay_equals_the_report_stored_at_that_time(lender: Corrector, subtests: pytest.Subtests) -> None:
    """This holds whatever came later: corrections, revocations, further rows, retractions."""
    stored: list[tuple[str, Moment, dict[str, Any]]] = []

    def report(what: str) -> None:
        lender.end_all()
        lender.ask_for_reports()
        run_refreshes(lender)
        with lender.store.db.reading() as r:
            bundle = reports.read_bundle(r, lender.customer)
        stored.append((what, moment_known_at(datetime.now(UTC), bundle["risk"].as_of), versions_and_data(bundle)))

    first = lender.submit_and_end(SALE, RENT, COFFEE, {**SALE, "date": "2026-03-10"})
    report("rows")
    sale = next(row["transaction_id"] for row in lender.rows() if row["description"] == "SALE")
    lender.correct(NewCorrection(transaction_id=UUID(bytes=sale), category="owner_contribution"))
    rent, _ = lender.correct(RENT_IS_PREMISES)
    report("a transaction and words corrected")
    lender.submit(AGAIN, BAD)
    lender.correct(NewCorrection(words="coffee", counterparty_name="The Cart", client_wide=True))
    report("more rows, corrected for all customers")
    lender.revoke(rent)
    lender.retract(first)
    report("a correction revoked, a submission retracted")
    assert len({str(bundle) for _, _, bundle in stored}) == len(stored)
    for what, moment, bundle in stored:
        with subtests.test(what):
            assert versions_and_data(replay_reports(lender.store, lender.customer, moment)) == bundle


def forget_version(store: Store, customer: Customer, data_version: int) -> None:
    """Delete where a version lies, as if it were no longer retained."""
    lies = (locations.c.customer_number == customer.number, locations.c.data_version == data_version)
    with store.db.writing() as w:
        w.execute(delete(locations).where(*lies))


def test_a_replay_of_a_deleted_version_uses_the_history(lender: Corrector) -> None:
    lender.submit_and_end(SALE)
    then = datetime.now(UTC)
    lender.submit_and_end(RENT)
    forget_version(lender.store, lender.customer, 1)
    facts = replay_reports(lender.store, lender.customer, moment_known_at(then))
    assert '"transactionCount":1' in (facts["completeness"].data_json or "").replace(" ", "")


@pytest.mark.parametrize("change", ["made", "revoked", "for all"])
def test_a_replay_of_a_deleted_version_from_before_a_correction_is_refused(lender: Corrector, change: str) -> None:
    """Only today's categories are left, which the correction has changed."""
    lender.submit_and_end(RENT)
    correction = lender.correct(RENT_IS_PREMISES)[0] if change == "revoked" else None
    lender.end_all()
    then, version = datetime.now(UTC), lender.customer.data_version
    if correction is None:
        lender.correct(replace(RENT_IS_PREMISES, client_wide=change == "for all"))
    else:
        lender.revoke(correction)
    lender.end_all()
    forget_version(lender.store, lender.customer, version)
    with pytest.raises(Gone) as refused:
        replay_reports(lender.store, lender.customer, moment_known_at(then))
    assert refused.value.code == "Report.VersionExpired"
    replay_reports(lender.store, lender.customer, moment_known_at(datetime.now(UTC)))


def test_a_correction_is_the_cause_of_all_figures_in_a_diff(lender: Corrector) -> None:
    """A row's facility, series and flags follow from its corrected category and counterparty."""
    instalment = {"description": "PROSPA LOAN REPAYMENT", "amount": "-450.00"}
    lender.submit_and_end(SALE, *({**instalment, "date": f"2026-0{month}-02"} for month in range(1, 7)))
    lender.correct(NewCorrection(words="prospa loan repayment", category="rent", counterparty_name="Landlord"))
    lender.end_all()
    before, after = replayed_rows(lender, 1), replayed_rows(lender, 2)
    today = datetime.now(UTC).date()
    found = diff(Facts(before, today), Facts(after, today))
    assert (found.rows_added, found.rows_gone, found.rows_corrected, found.rows_reenriched) == (0, 0, 6, 0)
    assert {each.causes for each in found.figures} == {("correction",)}


def replayed_rows(lender: Corrector, data_version: int) -> pl.DataFrame:
    with lender.store.db.reading() as r:
        place = transactions.find_location(r, lender.customer, data_version)
    assert place is not None
    return place.scan(lender.store.lake).collect()
