"""A backtest computes the whole portfolio in slices, and has the same result as deciding customers one by one."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import polars as pl
import pytest
from dagster import RunRequest, SkipReason, build_sensor_context

from assets.core import waiting
from assets.dagster_internals import dagster_home
from assets.portfolio import backtests as backtesting
from assets.portfolio import portfolio_jobs as work
from assets.portfolio.kinds import PortfolioWork
from assets.reports import reports as slicing
from pipelines.decisions import Attribute, Case, PlannedPolicy, Policy, StatedAttribute
from pipelines.decisions.backtest import KNOWN_OUTCOMES
from pipelines.decisions.decision import compute_figures, decide
from pipelines.figures.facts import Facts
from storage.core import leases
from storage.core.bucket import Unreachable
from storage.core.database import Reading
from storage.core.models import Flow, JobStatus
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.decisions import evaluations, policies
from storage.decisions.backtests import Against, Knowledge, Request
from storage.decisions.evaluations import NewEvaluation
from storage.decisions.policies import StoredPolicy
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.jobs.jobs import Job
from storage.monitoring import attributes
from storage.monitoring.attributes import NewAttribute
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, NewPortfolioJob, PartialResult, PortfolioJob, Slice
from tests.assets.conftest import FillStore
from tests.assets.lender import Lender

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own

MARCH, APRIL = date(2026, 3, 31), date(2026, 4, 30)
ABNS = ("51824753556", "53004085616", "83914571673", "33102417032")


def document(least: str, *, amount: Any = "1000") -> Policy:
    """Return a policy: blocked with a history of fewer than `least` days, conditional with a low score, else proceed.

    A customer without a score is indeterminate unless it is blocked.
    """
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


class Portfolio:
    """Four customers: the first two have 31 days of rows by the end of March, the third one day, the last none.

    All but the second have a score, which is low only for the last.
    """

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
        text = Request(**{**defaults, **asked}).as_json()
        new = NewPortfolioJob(BACKTEST, self.client_id, self.policy.policy_id, version, text, known)
        with self.store.db.writing() as w:
            return portfolio_jobs.request(w, new, "test", datetime.now(UTC))

    def run(self, job: Job) -> list[Any]:
        done = work.run(self.store, job.job_id, lambda: datetime.now(UTC))
        with self.store.db.reading() as r:
            result: list[Any] = portfolio_jobs.read_result(r, done)
            return result

    def backtest(self, job: Job) -> PortfolioJob:
        with self.store.db.reading() as r:
            return portfolio_jobs.get(r, BACKTEST, self.client_id, job.job_id, self.policy.policy_id)

    def rows(self, job: Job, change: str | None = None, page: Page | None = None) -> list[dict[str, Any]]:
        with self.store.db.reading() as r:
            listing = portfolio_jobs.read_listing(r, self.backtest(job), change)
        frames = portfolio_jobs.read_rows(self.store.lake, listing, page)
        return [row for frame in frames for row in frame.to_dicts()]

    def files(self, job: Job) -> int:
        with self.store.db.reading() as r:
            return len(portfolio_jobs.read_listing(r, self.backtest(job)).files)

    def decide(self, nth: int, policy: Policy, version: int, **also: Any) -> NewEvaluation:
        """Decide on a customer as the API does, and store the evaluation."""
        customer, planned, now = self.customer(nth), PlannedPolicy.of(policy), datetime.now(UTC)
        with self.store.db.reading() as r:
            stated = attributes.read_current(r, customer)
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
            attributes={each.name: StatedAttribute(Attribute(each.value)) for each in stated},
            shadow_of=also.get("shadow_of"),
        )
        facts = Facts(transactions.scan(self.store.lake, places).collect(), self.today)
        made = decide(planned, case, compute_figures(facts, planned.plan, [customer.number]))
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
def portfolio(fill_store: FillStore) -> Portfolio:
    return fill_store(Portfolio)


def counts(result: list[Any], side: str, day: int = 0) -> dict[str, int]:
    return {each["outcome"]: each[side]["customers"] for each in result[day]["outcomes"] if each[side]["customers"]}


def test_two_versions_are_compared_over_the_portfolio(portfolio: Portfolio) -> None:
    """Customers without rows count, too. They are indeterminate, because the policy depends on their history."""
    assert (portfolio.version(document("10")), portfolio.version(document("40", amount="2000"))) == (1, 2)
    job = portfolio.ask(2, {portfolio.number(0): True, portfolio.number(2): False})
    result = portfolio.run(job)
    assert result[0]["customers"] == 4
    assert counts(result, "before") == {"proceed": 1, "blocked": 1, "indeterminate": 2}
    assert counts(result, "after") == {"blocked": 3, "indeterminate": 1}
    outcomes = {each["outcome"]: each for each in result[0]["outcomes"]}
    assert outcomes["proceed"]["before"]["badRate"] == 1
    assert outcomes["blocked"]["after"]["badRate"] == Decimal("0.5")
    assert result[0]["changedBy"] == [{"code": "FEW", "customers": 2}]
    changed = {row["customer_number"]: (row["before"], row["after"], row["changed_by"]) for row in portfolio.rows(job)}
    assert changed == {
        portfolio.number(0): ("proceed", "blocked", ["FEW"]),
        portfolio.number(1): ("indeterminate", "blocked", ["FEW"]),
    }
    finished = portfolio.backtest(job)
    assert (finished.status, finished.customers_total, finished.customers_done) == (JobStatus.COMPLETED, 4, 4)


def test_rows_in_the_lake_have_the_customers_public_ids(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)
    portfolio.run(job)
    ids = {row["customer_number"]: row["customer_id"] for row in portfolio.rows(job)}
    assert ids[portfolio.number(0)] == portfolio.customer(0).customer_id.bytes


def test_slices_make_no_difference(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40", amount={"multiply": [{"metric": "history_days"}, "1.5"]}))
    whole = portfolio.run(one := portfolio.ask(2))
    monkeypatch.setattr(slicing, "SLICE_ROWS", 1)
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 3)
    in_parts = portfolio.run(other := portfolio.ask(2))
    assert in_parts == whole
    assert portfolio.rows(other) == portfolio.rows(one)
    assert (portfolio.files(one), portfolio.files(other)) == (1, 2)


def test_each_of_several_days_uses_rows_dated_up_to_it(portfolio: Portfolio) -> None:
    """By the end of April the third customer has 31 days of rows, too; before March nobody has any."""
    portfolio.version(document("10"))
    portfolio.version(document("10", amount="2000"))
    days = (MARCH - timedelta(days=60), MARCH, APRIL)
    result = portfolio.run(portfolio.ask(2, days=days))
    assert [each["asOf"] for each in result] == [day.isoformat() for day in days]
    assert [counts(result, "after", nth) for nth in range(3)] == [
        {"indeterminate": 4},
        {"proceed": 1, "blocked": 1, "indeterminate": 2},
        {"proceed": 2, "indeterminate": 2},
    ]


def test_what_was_known_then_is_what_was_received_and_set_by_that_day(portfolio: Portfolio) -> None:
    """Everything was received today, so on a past day nothing was known, though there are rows dated before it."""
    portfolio.version(document("10"))
    portfolio.version(document("10", amount="2000"))
    result = portfolio.run(portfolio.ask(2, days=(MARCH,), knowledge=Knowledge.THEN))
    assert counts(result, "after") == {"indeterminate": 4}
    assert {each["cause"] for each in result[0]["causes"]["after"]} == {"no_transactions"}


def test_customers_are_filtered_by_id_and_by_attribute(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    some = portfolio.run(portfolio.ask(2, customers=(portfolio.customer(0).customer_id, uuid4())))
    assert some[0]["customers"] == 1
    scored = portfolio.run(portfolio.ask(2, attributes={"bureau_score": Decimal(700)}))
    assert scored[0]["customers"] == 2


def test_neither_an_expired_attribute_nor_one_of_another_kind_passes_the_filter(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    now = datetime.now(UTC)
    for nth, given in (
        (0, NewAttribute(Decimal(1))),
        (1, NewAttribute(True, expires_at=now)),
        (2, NewAttribute(True, expires_at=now + timedelta(days=1))),
    ):
        with portfolio.store.db.writing() as w:
            attributes.put(w, portfolio.customer(nth), {"has_guarantor": given}, "test", now)
    guaranteed = portfolio.run(portfolio.ask(2, attributes={"has_guarantor": True}))
    assert guaranteed[0]["customers"] == 1


def test_a_version_is_compared_with_recorded_decisions_and_uses_their_inputs(portfolio: Portfolio) -> None:
    """Customers without a recorded decision are not compared."""
    first, second = document("10"), document("40")
    portfolio.version(first)
    portfolio.version(second)
    for nth in (0, 2):
        portfolio.decide(nth, first, 1)
    result = portfolio.run(portfolio.ask(2, against=Against.RECORDED, other_version=None, days=(portfolio.today,)))
    assert result[0]["customers"] == 2
    assert counts(result, "before") == {"proceed": 2}
    assert counts(result, "after") == {"blocked": 1, "proceed": 1}
    assert result[0]["rules"]["before"] is None


def test_recorded_decisions_are_compared_with_the_challengers(portfolio: Portfolio) -> None:
    first, second = document("10"), document("400")
    portfolio.version(first)
    portfolio.version(second)
    answered = portfolio.decide(0, first, 1)
    portfolio.decide(0, second, 2, shadow_of=answered.evaluation_id)
    portfolio.decide(2, first, 1)
    result = portfolio.run(portfolio.ask(2, against=Against.CHALLENGER, other_version=None, days=(portfolio.today,)))
    assert (counts(result, "before"), counts(result, "after")) == ({"proceed": 1}, {"blocked": 1})
    assert result[0]["changedBy"] == [{"code": "FEW", "customers": 1}]


@pytest.mark.parametrize("step", ["begin", "list_slices", "put_rows", "record", "read_tallies", "end"])
def test_a_run_that_was_killed_is_resumed(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Wherever it was killed, the result is the same in the end, and no customer counts twice."""
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    whole = portfolio.run(portfolio.ask(2))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 2)
    job = portfolio.ask(2)
    with monkeypatch.context() as patched:
        patched.setattr(portfolio_jobs, step, kill)
        patched.setattr(portfolio_jobs, "fail", kill)
        with pytest.raises(KeyboardInterrupt):
            portfolio.run(job)
    assert not portfolio.backtest(job).is_done
    assert portfolio.run(job) == whole
    finished = portfolio.backtest(job)
    assert (finished.status, finished.customers_total, finished.customers_done) == (JobStatus.COMPLETED, 4, 4)
    assert len(portfolio.rows(job)) == 2


def test_slices_that_were_recorded_before_a_run_was_killed_are_not_repeated(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    job, real = portfolio.ask(2), portfolio_jobs.record

    def kill_at_the_third(w: Any, lake: Any, slice_: Slice, *of: Any) -> None:
        if slice_.number == 2:
            raise KeyboardInterrupt
        real(w, lake, slice_, *of)

    with monkeypatch.context() as patched:
        patched.setattr(portfolio_jobs, "record", kill_at_the_third)
        patched.setattr(portfolio_jobs, "fail", kill)
        with pytest.raises(KeyboardInterrupt):
            portfolio.run(job)
    half = portfolio.backtest(job)
    assert (half.status, half.customers_total, half.customers_done) == (JobStatus.RUNNING, 4, 2)
    computed, compute = list[int](), backtesting.Backtest.compute

    def note_and_compute(self: backtesting.Backtest, rows: pl.DataFrame, numbers: Sequence[int]) -> PartialResult:
        computed.extend(numbers)
        return compute(self, rows, numbers)

    monkeypatch.setattr(backtesting.Backtest, "compute", note_and_compute)
    assert portfolio.run(job)[0]["customers"] == 4
    assert computed == [portfolio.number(2), portfolio.number(3)]


def test_four_runs_at_once_share_the_slices_and_have_the_result_of_one(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    whole = portfolio.run(alone := portfolio.ask(2))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    computed, compute, all_compute = list[int](), backtesting.Backtest.compute, threading.Barrier(4)

    def note_and_compute(self: backtesting.Backtest, rows: pl.DataFrame, numbers: Sequence[int]) -> PartialResult:
        computed.extend(numbers)
        all_compute.wait(20)  # passes only if four runs compute at the same time
        return compute(self, rows, numbers)

    monkeypatch.setattr(backtesting.Backtest, "compute", note_and_compute)
    shared = portfolio.ask(2)
    with ThreadPoolExecutor(4) as runs:
        for run in [runs.submit(portfolio.run, shared) for _ in range(4)]:
            run.result()
    assert sorted(computed) == [portfolio.number(nth) for nth in range(4)]
    assert portfolio.run(shared) == whole
    assert portfolio.rows(shared) == portfolio.rows(alone)


def test_the_slice_of_a_lost_run_is_taken_over_when_its_lease_ends(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 2)
    job, db = portfolio.ask(2), portfolio.store.db
    with db.writing() as w:
        assert leases.hold(w, f"portfolio job/{job.job_id}/0", uuid4(), 1, datetime.now(UTC))
    assert portfolio.run(job)[0]["customers"] == 4


def test_a_run_leaves_what_remains_to_the_run_that_will_end_the_job(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 2)
    job, db = portfolio.ask(2), portfolio.store.db
    with (
        leases.hold_if_free(db, f"portfolio job/{job.job_id}"),
        leases.hold_if_free(db, f"portfolio job/{job.job_id}/0"),
    ):
        assert portfolio.run(job) is None
        left = portfolio.backtest(job)
        assert (left.status, left.customers_done) == (JobStatus.RUNNING, 2)
    assert portfolio.run(job)[0]["customers"] == 4


def test_a_run_that_begins_after_the_job_has_ended_changes_nothing(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    portfolio.run(job := portfolio.ask(2))
    with portfolio.store.db.writing() as w:
        assert portfolio_jobs.begin(w, job.job_id, datetime.now(UTC)).status is JobStatus.COMPLETED


def test_a_resumed_run_decides_as_of_the_same_time(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    """For today that is the time at which the first run began, however long ago that was."""
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2, days=(portfolio.today,))
    began, later = datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1)
    seen, opened = list[datetime](), work.KINDS[Flow.POLICY_BACKTEST]

    def note_and_open(r: Reading, store: Store, job: PortfolioJob) -> PortfolioWork:
        assert job.started_at is not None
        seen.append(job.started_at)
        return opened(r, store, job)

    monkeypatch.setattr(work, "KINDS", {Flow.POLICY_BACKTEST: note_and_open})
    with monkeypatch.context() as patched:
        patched.setattr(portfolio_jobs, "end", kill)
        patched.setattr(portfolio_jobs, "fail", kill)
        with pytest.raises(KeyboardInterrupt):
            work.run(portfolio.store, job.job_id, lambda: began)
    work.run(portfolio.store, job.job_id, lambda: later)
    assert seen == [began, began]


def kill(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_run_that_fails_fails_its_job(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)
    monkeypatch.setattr(portfolio_jobs, "end", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work.run(portfolio.store, job.job_id, lambda: datetime.now(UTC))
    with portfolio.store.db.reading() as r:
        failed = jobs.get(r, portfolio.client_id, job.job_id)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Backtest.Failed")


def test_a_stopped_run_ends_the_job_and_no_other_run_resumes_it(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)

    with monkeypatch.context() as patched:
        patched.setattr(portfolio_jobs, "end", kill)
        with pytest.raises(KeyboardInterrupt):
            work.run(portfolio.store, job.job_id, lambda: datetime.now(UTC))
    assert portfolio.run(job) is None
    with portfolio.store.db.reading() as r:
        failed = jobs.get(r, portfolio.client_id, job.job_id)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Backtest.Stopped")


def tick(store: Store) -> list[RunRequest]:
    answer = work.requested_portfolio_jobs_sensor(build_sensor_context(resources={"store": store}))
    assert isinstance(answer, (list, SkipReason))
    return answer if isinstance(answer, list) else []


def test_a_run_is_requested_until_it_has_begun(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)
    [asked] = tick(portfolio.store)
    assert (asked.run_key, asked.tags["tidemark/portfolio_job"]) == (f"PolicyBacktest {job.job_id} 0", str(job.job_id))
    result = work.portfolio_job.execute_in_process(tags=asked.tags, resources={"store": portfolio.store})
    assert result.success
    assert portfolio.backtest(job).status is JobStatus.COMPLETED
    assert tick(portfolio.store) == []


def test_a_backtest_waits_for_the_object_store(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    whole = portfolio.run(portfolio.ask(2))
    monkeypatch.setattr(waiting, "AGAIN_AFTER_S", 0)
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 2)
    put_rows, attempts = portfolio_jobs.put_rows, list[int]()

    def be_away_once(*arguments: Any) -> Any:
        attempts.append(len(attempts))
        if len(attempts) == 2:
            raise Unreachable
        return put_rows(*arguments)

    monkeypatch.setattr(portfolio_jobs, "put_rows", be_away_once)
    job = portfolio.ask(2)
    tags = {"tidemark/portfolio_job": str(job.job_id)}
    assert work.portfolio_job.execute_in_process(tags=tags, resources={"store": portfolio.store}).success
    assert len(attempts) == 3
    assert portfolio.run(job) == whole


def test_a_run_is_requested_for_every_worker(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)
    with portfolio.store.db.writing() as w:
        for slot in range(3):
            worker = f"{dagster_home.worker_role(portfolio.store.settings)}/{slot}"
            assert leases.hold(w, worker, uuid4(), 60, leases.clock(portfolio.store.db))
    assert [each.run_key for each in tick(portfolio.store)] == [
        f"PolicyBacktest {job.job_id} {nth}" for nth in range(3)
    ]


def test_a_customer_with_a_damaged_file_is_left_out_and_counted(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    with portfolio.store.db.reading() as r:
        place = transactions.current_locations(r, [portfolio.number(2)])[0]
    (portfolio.store.lake.root / place.path).write_bytes(b"damaged")
    job = portfolio.ask(2)
    assert portfolio.run(job)[0]["customers"] == 3
    finished = portfolio.backtest(job)
    assert (finished.status, finished.customers_failed) == (JobStatus.COMPLETED_WITH_ERRORS, 1)


def test_changed_decisions_are_paged_over_several_files(portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MIN_SLICE_CUSTOMERS", 1)
    portfolio.version(document("10"))
    portfolio.version(document("40", amount="2000"))
    job = portfolio.ask(2)
    portfolio.run(job)
    everything = portfolio.rows(job)
    paged = [row for nth in (1, 2, 3) for row in portfolio.rows(job, page=Page(nth, 1))]
    assert paged == everything
    assert len(everything) == 2
    by_change = [portfolio.rows(job, change) for change in ("outcome", "limits")]
    assert sorted(map(len, by_change)) == [0, 2]


def test_jobs_that_belong_to_no_customer_are_listed_with_the_others(portfolio: Portfolio) -> None:
    portfolio.version(document("10"))
    portfolio.version(document("40"))
    job = portfolio.ask(2)
    assert (job.customer_id, job.customer_number) == (None, 0)
    with portfolio.store.db.reading() as r:
        assert jobs.find(r, portfolio.client_id).items[0].job_id == job.job_id
        assert [each.job_id for each in portfolio_jobs.find_waiting(r)] == [job.job_id]
