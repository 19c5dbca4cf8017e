"""A backtest goes over the whole book in slices, and says the same as deciding the customers one by one."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any
from uuid import uuid4

import polars as pl
import pytest
from dagster import RunRequest, SkipReason, build_sensor_context

from assets.portfolio import backtests as work
from assets.reports import reports as slicing
from pipelines.decisions import Attribute, Case, Policy, Ready, Told
from pipelines.decisions.backtest import KNOWN_OUTCOMES
from pipelines.decisions.decision import decided, figures
from pipelines.figures.facts import Facts
from storage.core.models import Flow, JobStatus
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.decisions import backtests, evaluations, policies
from storage.decisions.backtests import Against, Backtest, Knowledge, Request
from storage.decisions.evaluations import NewEvaluation
from storage.decisions.policies import StoredPolicy
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import attributes
from storage.monitoring.attributes import NewAttribute
from storage.portfolio import book_jobs
from tests.assets.conftest import Filled
from tests.assets.lender import Lender

MARCH, APRIL = date(2026, 3, 31), date(2026, 4, 30)
ABNS = ("51824753556", "53004085616", "83914571673", "33102417032")


def document(least: str, *, amount: Any = "1000") -> Policy:
    """Blocked below so many rows; conditional with a low score; else proceed. Nobody without a score is decided."""
    return Policy.model_validate(
        {
            "slug": "loan",
            "name": "Loan",
            "defaultOutcome": "proceed",
            "attributes": [{"name": "bureau_score", "kind": "decimal"}],
            "declaredInputs": [{"name": "requested", "kind": "decimal"}],
            "products": [{"slug": "loan", "name": "Loan"}],
            "limits": [{"product": "loan", "amount": amount}],
            "steps": [
                rules("Knock-outs", "blocked", "FEW", {"lessThan": [{"metric": "history_days"}, least]}),
                rules("Score", "conditional", "SCORE", {"lessThan": [{"attribute": "bureau_score"}, "500"]}),
            ],
        }
    )


def rules(name: str, outcome: str, code: str, condition: object) -> dict[str, Any]:
    rule = {"code": code, "message": code, "customerMessage": code, "condition": condition}
    return {"name": name, "outcome": outcome, "rules": [rule]}


class Book:
    """Four customers: 31 days of rows and a good score, 31 days and none, one day, and no rows at all."""

    def __init__(self, store: Store) -> None:
        self.store = store
        first = Lender(store, ABNS[0])
        self.client_id = first.customer.client_id
        self.lenders = [first, *(Lender(store, abn, self.client_id) for abn in ABNS[1:])]
        for lender, days in zip(self.lenders, (31, 31, 1), strict=False):
            lender.submit(*(item(MARCH - timedelta(days=back)) for back in {0, days - 1}), item(APRIL))
            lender.end_all()
        for nth, score in ((0, "700"), (2, "700"), (3, "400")):
            self.score(nth, score)

    def customer(self, nth: int) -> Customer:
        return self.lenders[nth].customer

    def number(self, nth: int) -> int:
        return self.customer(nth).number

    def score(self, nth: int, value: str) -> None:
        with self.store.db.writing() as w:
            given = {"bureau_score": NewAttribute(Decimal(value))}
            attributes.put(w, self.customer(nth), given, "test", datetime.now(UTC))

    def version(self, policy: Policy) -> int:
        with self.store.db.writing() as w:
            return policies.save_draft(w, self.client_id, policy, [], "test", datetime.now(UTC)).version

    @property
    def policy(self) -> StoredPolicy:
        with self.store.db.reading() as r:
            return policies.get(r, self.client_id, "loan")

    @property
    def today(self) -> date:
        return datetime.now(self.store.settings.zone).date()

    def ask(self, version: int, outcomes: Mapping[int, bool] | None = None, **asked: Any) -> Job:
        defaults: dict[str, Any] = {
            "against": Against.VERSION,
            "other_version": 1,
            "days": (MARCH,),
            "knowledge": Knowledge.NOW,
            "inputs": {"requested": Decimal(5)},
        }
        known = None
        if outcomes is not None:
            columns = {"customer_number": list(outcomes), "defaulted": list(outcomes.values())}
            known = pl.DataFrame(columns, schema=KNOWN_OUTCOMES)
        with self.store.db.writing() as w:
            asked_ = Request(**{**defaults, **asked})
            return backtests.request(w, self.policy, version, asked_, known, "test", datetime.now(UTC))

    def run(self, job: Job) -> list[Any]:
        work.run(self.store, job.job_id, lambda: datetime.now(UTC))
        with self.store.db.reading() as r:
            result: list[Any] = backtests.result(r, self.backtest(job))
            return result

    def backtest(self, job: Job) -> Backtest:
        with self.store.db.reading() as r:
            return backtests.get(r, self.policy, job.job_id)

    def rows(self, job: Job, change: str | None = None) -> list[dict[str, Any]]:
        with self.store.db.reading() as r:
            parts = backtests.parts(r, self.backtest(job))
        frames = backtests.changed(self.store.lake, parts, change, None)
        return [row for frame in frames for row in frame.to_dicts()]

    def decide(self, nth: int, policy: Policy, version: int, **also: Any) -> NewEvaluation:
        """An evaluation as the API makes it, kept."""
        customer, ready, now = self.customer(nth), Ready.of(policy), datetime.now(UTC)
        with self.store.db.reading() as r:
            stated = attributes.current(r, customer)
            places = transactions.current_locations(r, [customer.number])
        case = Case(
            evaluation_id=uuid4(),
            customer_id=customer.customer_id,
            customer_number=customer.number,
            policy_id=self.policy.policy_id,
            policy_version=version,
            data_version=customer.data_version,
            as_of=self.today,
            at=now,
            inputs={"requested": Decimal(7)},
            attributes={each.name: Told(Attribute(each.value)) for each in stated},
            shadow_of=also.get("shadow_of"),
        )
        facts = Facts(transactions.scan(self.store.lake, places).collect(), self.today)
        made = decided(ready, case, figures(facts, ready.plan, [customer.number]))
        new = NewEvaluation(
            evaluation_id=case.evaluation_id,
            client_id=self.client_id,
            customer_number=customer.number,
            policy_id=case.policy_id,
            version=version,
            at=now,
            who="test",
            what_if=False,
            outcome=made.outcome,
            data_version=case.data_version,
            as_of=case.as_of,
            record=made.record,
            shadow_of=case.shadow_of,
        )
        with self.store.db.writing() as w:
            evaluations.save(w, new)
        return new


def item(day: date) -> dict[str, str]:
    return {"date": day.isoformat(), "description": f"SALE {day}", "amount": "100.00"}


@pytest.fixture
def book(filled: Filled) -> Book:
    return filled(Book)


def counts(result: list[Any], side: str, day: int = 0) -> dict[str, int]:
    return {each["outcome"]: each[side]["customers"] for each in result[day]["outcomes"] if each[side]["customers"]}


def test_two_versions_over_the_book(book: Book) -> None:
    """Who has no rows is decided, too: the score alone can't settle what the missing history leaves open."""
    assert (book.version(document("10")), book.version(document("40", amount="2000"))) == (1, 2)
    job = book.ask(2, {book.number(0): True, book.number(2): False})
    result = book.run(job)
    assert result[0]["customers"] == 4
    assert counts(result, "before") == {"proceed": 1, "blocked": 1, "indeterminate": 2}
    assert counts(result, "after") == {"blocked": 3, "indeterminate": 1}
    outcomes = {each["outcome"]: each for each in result[0]["outcomes"]}
    assert outcomes["proceed"]["before"]["badRate"] == 1
    assert outcomes["blocked"]["after"]["badRate"] == Decimal("0.5")
    assert result[0]["changedBy"] == [{"code": "FEW", "customers": 2}]
    changed = {row["customer_number"]: (row["before"], row["after"], row["changed_by"]) for row in book.rows(job)}
    assert changed == {
        book.number(0): ("proceed", "blocked", ["FEW"]),
        book.number(1): ("indeterminate", "blocked", ["FEW"]),
    }
    finished = book.backtest(job)
    assert (finished.status, finished.customers_total, finished.customers_done) == (JobStatus.COMPLETED, 4, 4)


def test_rows_of_the_lake_name_customers_as_clients_do(book: Book) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)
    book.run(job)
    ids = {row["customer_number"]: row["customer_id"] for row in book.rows(job)}
    assert ids[book.number(0)] == book.customer(0).customer_id.bytes


def test_slices_make_no_difference(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.version(document("10"))
    book.version(document("40", amount={"multiply": [{"metric": "history_days"}, "1.5"]}))
    whole = book.run(one := book.ask(2))
    monkeypatch.setattr(slicing, "SLICE_ROWS", 1)
    monkeypatch.setattr(work, "CUSTOMERS_AT_ONCE", 3)
    in_parts = book.run(other := book.ask(2))
    assert in_parts == whole
    by_customer = itemgetter("customer_number")
    assert sorted(book.rows(other), key=by_customer) == sorted(book.rows(one), key=by_customer)
    with book.store.db.reading() as r:
        assert len(backtests.parts(r, book.backtest(other))) > len(backtests.parts(r, book.backtest(one)))


def test_several_days_each_see_what_is_dated_up_to_them(book: Book) -> None:
    """In April the history of customer 2 is 31 days, too; before March there is none."""
    book.version(document("10"))
    book.version(document("10", amount="2000"))
    days = (MARCH - timedelta(days=60), MARCH, APRIL)
    result = book.run(book.ask(2, days=days))
    assert [each["asOf"] for each in result] == [day.isoformat() for day in days]
    assert [counts(result, "after", nth) for nth in range(3)] == [
        {"indeterminate": 4},
        {"proceed": 1, "blocked": 1, "indeterminate": 2},
        {"proceed": 2, "indeterminate": 2},
    ]


def test_what_was_known_then_is_what_had_been_received_and_set_by_the_day(book: Book) -> None:
    """All of it was received today: on a past day nothing was known, though rows are dated before it."""
    book.version(document("10"))
    book.version(document("10", amount="2000"))
    result = book.run(book.ask(2, days=(MARCH,), knowledge=Knowledge.THEN))
    assert counts(result, "after") == {"indeterminate": 4}
    assert {each["cause"] for each in result[0]["causes"]["after"]} == {"no_transactions"}


def test_a_filter_by_ids_and_by_attributes(book: Book) -> None:
    book.version(document("10"))
    book.version(document("40"))
    some = book.run(book.ask(2, customers=(book.customer(0).customer_id, uuid4())))
    assert some[0]["customers"] == 1
    scored = book.run(book.ask(2, attributes={"bureau_score": Decimal(700)}))
    assert scored[0]["customers"] == 2


def test_against_what_was_recorded_with_the_inputs_of_each(book: Book) -> None:
    """Customers of whom nothing was decided are not compared."""
    first, second = document("10"), document("40")
    book.version(first)
    book.version(second)
    for nth in (0, 2):
        book.decide(nth, first, 1)
    result = book.run(book.ask(2, against=Against.RECORDED, other_version=None, days=(book.today,)))
    assert result[0]["customers"] == 2
    assert counts(result, "before") == {"proceed": 2}
    assert counts(result, "after") == {"blocked": 1, "proceed": 1}
    assert result[0]["rules"]["before"] is None


def test_against_the_challengers_shadow_runs(book: Book) -> None:
    first, second = document("10"), document("400")
    book.version(first)
    book.version(second)
    answered = book.decide(0, first, 1)
    book.decide(0, second, 2, shadow_of=answered.evaluation_id)
    book.decide(2, first, 1)
    result = book.run(book.ask(2, against=Against.CHALLENGER, other_version=None, days=(book.today,)))
    assert (counts(result, "before"), counts(result, "after")) == ({"proceed": 1}, {"blocked": 1})
    assert result[0]["changedBy"] == [{"code": "FEW", "customers": 1}]


def test_a_run_that_was_lost_begins_anew(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backtests, "end", killed)
        patched.setattr(book_jobs, "fail", killed)
        with pytest.raises(KeyboardInterrupt):
            work.run(book.store, job.job_id, lambda: datetime.now(UTC))
    assert book.backtest(job).status is JobStatus.RUNNING
    assert book.run(job)[0]["customers"] == 4
    finished = book.backtest(job)
    assert (finished.status, finished.customers_done) == (JobStatus.COMPLETED, 4)
    assert len(book.rows(job)) == 2


def test_what_fails_is_told_in_the_job(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)
    monkeypatch.setattr(backtests, "end", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work.run(book.store, job.job_id, lambda: datetime.now(UTC))
    with book.store.db.reading() as r:
        failed = jobs.get(r, book.client_id, job.job_id)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Backtest.Failed")


def test_a_run_that_is_stopped_ends_the_job_and_none_begins_it_again(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backtests, "end", stopped)
        with pytest.raises(KeyboardInterrupt):
            work.run(book.store, job.job_id, lambda: datetime.now(UTC))
    assert book.run(job) is None
    with book.store.db.reading() as r:
        failed = jobs.get(r, book.client_id, job.job_id)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Backtest.Stopped")


def tick(store: Store) -> list[RunRequest]:
    answer = work.requested_backtests_sensor(build_sensor_context(resources={"store": store}))
    assert isinstance(answer, (list, SkipReason))
    return answer if isinstance(answer, list) else []


def test_dagster_is_asked_for_a_run_until_it_has_begun(book: Book) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)
    [asked] = tick(book.store)
    assert (asked.run_key, asked.tags["tidemark/backtest"]) == (f"backtest {job.job_id}", str(job.job_id))
    result = work.policy_backtest.execute_in_process(tags=asked.tags, resources={"store": book.store})
    assert result.success
    assert book.backtest(job).status is JobStatus.COMPLETED
    assert tick(book.store) == []


def test_one_customers_damaged_file_is_left_out_and_counted(book: Book) -> None:
    book.version(document("10"))
    book.version(document("40"))
    with book.store.db.reading() as r:
        place = transactions.current_locations(r, [book.number(2)])[0]
    (book.store.lake.root / place.path).write_bytes(b"damaged")
    job = book.ask(2)
    assert book.run(job)[0]["customers"] == 3
    finished = book.backtest(job)
    assert (finished.status, finished.customers_failed) == (JobStatus.COMPLETED_WITH_ERRORS, 1)


def test_the_swap_set_is_paged_over_files(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicing, "SLICE_ROWS", 1)
    book.version(document("10"))
    book.version(document("40", amount="2000"))
    job = book.ask(2)
    book.run(job)
    everything = book.rows(job)
    with book.store.db.reading() as r:
        parts = backtests.parts(r, book.backtest(job))
    paged = [
        row
        for nth in (1, 2, 3)
        for frame in backtests.changed(book.store.lake, parts, None, Page(nth, 1))
        for row in frame.to_dicts()
    ]
    assert paged == everything
    assert len(everything) == 2


def test_jobs_of_no_customer_are_found_among_the_others(book: Book) -> None:
    book.version(document("10"))
    book.version(document("40"))
    job = book.ask(2)
    assert (job.customer_id, job.customer_number) == (None, 0)
    with book.store.db.reading() as r:
        assert jobs.find(r, book.client_id).items[0].job_id == job.job_id
        assert [each.job_id for each in book_jobs.waiting(r, Flow.POLICY_BACKTEST)] == [job.job_id]
