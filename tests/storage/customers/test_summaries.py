"""Summaries always equal what they follow from, and a list by them equals one that plain Python sorts and filters."""

import json
import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, select, update

from pipelines.vocabulary.report_status import ReportStatus
from storage.core import paging
from storage.core.database import Reading
from storage.core.models import (
    REPORT_KINDS,
    Queue,
    customer_summaries,
    customers,
    decision_overrides,
    evaluations,
    reports,
    work_items,
)
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers import customers as stored_customers
from storage.customers import summaries, summary_listing
from storage.customers.customers import Customer, NewCustomer
from storage.customers.summary_listing import Filter, Order, Place, Sort, Summary
from storage.decisions import evaluations as stored_evaluations
from storage.decisions.evaluations import NewEvaluation
from storage.jobs import batches
from storage.monitoring import rulesets
from storage.monitoring.rulesets import StoredRuleset
from storage.reports import reports as stored_reports
from storage.reports.reports import NewReport
from storage.work import items
from storage.work.items import Action, ItemAction
from tests.storage.decisions.test_policies import save_a_draft
from tests.storage.examples import ABN, a_client, a_submission
from tests.storage.ruleset_evaluations import a_rule, a_ruleset, an_evaluation, apply_evaluation, create_ruleset
from tests.storage.values import commit, on_postgresql, on_sqlite, plans_of

STEPS: Final = 30
NAMES: Final = (
    None,
    "Harbour Coffee",
    "harbour Bakery",
    "Österreich Café",
    'A "quoted" 100% name_',
    "ΟΔΟΣ",
    "李小龍商店",
)
OUTCOMES: Final = ("proceed", "conditional", "blocked", "indeterminate")


class Lender:
    """A client whose customers change at random."""

    def __init__(self, store: Store, now: datetime, seed: int) -> None:
        self.store, self.now, self.drawn = store, now, random.Random(seed)
        self.client_id = a_client(store, now)
        self.version = save_a_draft(store, self.client_id, now, "loan")
        self.rulesets = [
            create_ruleset(store, self.client_id, a_ruleset(a_rule("A"), a_rule("B"), slug=slug), now)
            for slug in ("x", "y")
        ]
        self.customers: list[Customer] = []
        self.create()

    def act(self) -> None:
        """Do one of the things that change what summaries follow from."""
        self.now += timedelta(hours=1)
        acts = (self.create, self.enrich, self.report, self.fail, self.evaluate, self.watch, self.settle, self.work)
        self.drawn.choice(acts)()

    def some(self) -> list[Customer]:
        return self.drawn.sample(self.customers, self.drawn.randint(1, len(self.customers)))

    def create(self) -> None:
        reference = self.drawn.choice((None, f"L-{len(self.customers)}"))
        new = NewCustomer(ABN, True, self.drawn.choice(NAMES), reference)
        with self.store.db.writing() as w:
            self.customers.append(stored_customers.create(w, self.client_id, new, "test", self.now).customer)

    def enrich(self) -> None:
        commit(self.store, {customer.number: self.drawn.randint(0, 3) for customer in self.some()}, self.now)

    def report(self) -> None:
        """Store reports of one kind or all, of the current data or older ones."""
        kinds = self.drawn.choice([REPORT_KINDS, (self.drawn.choice(REPORT_KINDS),)])
        some, delay = self.some(), self.drawn.choice((0, 0, 0, 1))
        with self.store.db.writing() as w:
            token = batches.open_without_jobs(w, Queue.REFRESH, self.now.date(), self.store.settings, self.now)
            versions = stored_customers.versions(w, [customer.number for customer in some])
            for kind in kinds:
                computed = [self._report(kind, number, version - delay) for number, version in versions.items()]
                stored_reports.save(w, token, kind, 1, computed, self.now.date(), self.now)

    def _report(self, kind: str, number: int, data_version: int) -> NewReport:
        score = round(100 * self.drawn.random(), 2)
        data: dict[str, Any] = {
            "risk": {
                "value": round(self.drawn.random(), 4),
                "rating": self.drawn.choice("ABCDE"),
                "calibration": "none",
            },
            "completeness": {"summary": {"completenessScore": score, "completenessTier": "partial"}},
            "aggregate": {"tables": []},
        }
        through = self.drawn.choice((None, date(2026, 1, 1) + timedelta(days=self.drawn.randrange(9))))
        return NewReport(number, data_version, json.dumps(data[kind]), through)

    def fail(self) -> None:
        numbers = [customer.number for customer in self.some()]
        with self.store.db.writing() as w:
            token = batches.open_without_jobs(w, Queue.REFRESH, self.now.date(), self.store.settings, self.now)
            stored_reports.save_failures(w, token, self.drawn.choice(REPORT_KINDS), numbers)

    def evaluate(self) -> None:
        """Evaluate one customer: a decision, perhaps with a challenger and an override, or a what-if."""
        customer, what_if = self.drawn.choice(self.customers), self.drawn.random() < 0.3
        with self.store.db.writing() as w:
            stored_evaluations.save(w, real := self.evaluation(customer, what_if=what_if))
            if not what_if:
                stored_evaluations.save(w, self.evaluation(customer, shadow_of=real.evaluation_id))
        if not what_if and self.drawn.random() < 0.5:
            with self.store.db.writing() as w:
                made = stored_evaluations.get(w, self.client_id, real.evaluation_id)
                by = ("because", "J. Citizen", "a key")
                stored_evaluations.add_override(w, made, self.drawn.choice(OUTCOMES), *by, self.now)

    def evaluation(self, customer: Customer, *, what_if: bool = False, shadow_of: UUID | None = None) -> NewEvaluation:
        return NewEvaluation(
            evaluation_id=uuid4(),
            client_id=self.client_id,
            customer_number=customer.number,
            policy_id=self.version.policy_id,
            version=self.version.version,
            at=self.now,
            who="a key",
            what_if=what_if,
            outcome=self.drawn.choice(OUTCOMES),
            data_version=0,
            as_of=self.now.date(),
            record=b"{}",
            shadow_of=shadow_of,
        )

    def watch(self) -> None:
        chosen = product(self.some(), self.rulesets, "AB")
        holds: dict[tuple[Customer, StoredRuleset, str], bool | None] = {
            each: self.drawn.choice((True, True, False, None)) for each in chosen
        }
        apply_evaluation(self.store, an_evaluation(self.store, self.now, holds), self.now)

    def settle(self) -> None:
        """Replace a ruleset by one without its second rule, which forgets that rule's states, and back."""
        nth = self.drawn.randrange(2)
        before = self.rulesets[nth]
        with self.store.db.writing() as w:
            for rules in ((a_rule("A"),), (a_rule("A"), a_rule("B"))):
                current = rulesets.get(w, self.client_id, before.ruleset_id)
                changed = a_ruleset(*rules, slug=before.ruleset.slug)
                self.rulesets[nth] = rulesets.replace(w, current, changed, "test", self.now)

    def work(self) -> None:
        """Act on some alerts, and end the snoozes that are over."""
        until = self.now + timedelta(hours=2)
        with self.store.db.writing() as w:
            items.end_snoozes(w, self.now)
            found = items.find_alerts(w, self.client_id, self.now).items
            for alert in self.drawn.sample(found, min(3, len(found))):
                action = self.drawn.choice([*ItemAction])
                act = Action(action, until if action is ItemAction.SNOOZE else None)
                items.act(w, self.client_id, alert.item_id, act, "dana", self.now)


def expected_summaries(r: Reading) -> dict[int, dict[str, Any]]:
    """Compute all summaries from the other tables, in plain Python."""
    of_reports: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in r.execute(select(reports)):
        of_reports[row.customer_number][row.kind] = row
    overrides = {row.evaluation_id: row.outcome for row in r.execute(select(decision_overrides).order_by("number"))}
    decisions = {
        row.customer_number: row
        for row in r.execute(select(evaluations).order_by("number"))
        if not row.what_if and row.shadow_of is None
    }
    open_alerts = [
        row.customer_number
        for row in r.execute(select(work_items))
        if (row.kind, row.state, row.snoozed_until) == ("alert", "open", None)
    ]
    return {
        row.number: {
            "customer_number": row.number,
            "client_id": row.client_id,
            "name_key": row.name.casefold() if row.name else None,
            "search_text": "\n".join(filter(None, (row.name, row.abn, row.reference))).casefold(),
            **of_data(of_reports[row.number], row.data_version),
            "evaluation_number": decisions[row.number].number if row.number in decisions else None,
            "outcome": overrides.get(decisions[row.number].evaluation_id, decisions[row.number].outcome)
            if row.number in decisions
            else None,
            "open_alerts": open_alerts.count(row.number),
        }
        for row in r.execute(select(customers))
    }


def of_data(stored: dict[str, Any], data_version: int) -> dict[str, Any]:
    data = {kind: json.loads(row.data) for kind, row in stored.items() if row.data is not None}
    ready = [kind for kind in data if stored[kind].data_version == data_version and not stored[kind].failed]
    risk, summary = data.get("risk", {}), data.get("completeness", {}).get("summary", {})
    status = "pending" if not data else "ready" if len(ready) == len(REPORT_KINDS) else "stale"
    return {
        "rating": risk.get("rating"),
        "risk_value": risk.get("value"),
        "calibration": risk.get("calibration"),
        "completeness_score": summary.get("completenessScore"),
        "completeness_tier": summary.get("completenessTier"),
        "report_status": status,
        "data_through": max((row.data_through for row in stored.values() if row.data_through), default=None),
    }


def summaries_in(r: Reading) -> dict[int, dict[str, Any]]:
    return {row.customer_number: row._asdict() for row in r.execute(select(customer_summaries))}


def test_summaries_equal_what_they_follow_from_after_every_change(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 1)
    for _ in range(STEPS):
        lender.act()
        with store.db.reading() as r:
            assert summaries_in(r) == expected_summaries(r)
            assert summaries.find_differing(r, [customer.number for customer in lender.customers]) == []


def test_a_summary_that_is_missing_or_wrong_is_found(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 3)
    lender.create()
    numbers = [customer.number for customer in lender.customers]
    of_second = customer_summaries.c.customer_number == numbers[1]
    with store.db.writing() as w:
        w.execute(update(customer_summaries).where(of_second).values(open_alerts=99))
        assert summaries.find_differing(w, numbers) == [numbers[1]]
        w.execute(delete(customer_summaries).where(of_second))
        assert summaries.find_differing(w, numbers) == [numbers[1]]


def test_an_alert_is_open_until_somebody_acts_on_it_and_again_after_a_snooze(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 9)
    [customer] = lender.customers
    holds: dict[tuple[Customer, StoredRuleset, str], bool | None] = {
        (customer, each, "A"): True for each in lender.rulesets
    }
    one, other = (match.match_id for match in apply_evaluation(store, an_evaluation(store, now, holds), now).matches)

    def count_open_alerts(at: datetime) -> int:
        with store.db.writing() as w:
            if items.has_ended_snoozes(w, at):
                items.end_snoozes(w, at)
            assert not items.has_ended_snoozes(w, at)
            return summary_listing.get(w, customer).open_alerts

    def act(item_id: UUID, action: ItemAction, until: datetime | None = None) -> int:
        with store.db.writing() as w:
            items.act(w, lender.client_id, item_id, Action(action, until), "dana", now)
        return count_open_alerts(now)

    later = now + timedelta(hours=1)
    assert count_open_alerts(now) == 2
    assert act(one, ItemAction.ASSIGN) == 2
    assert act(one, ItemAction.ACKNOWLEDGE) == 1
    assert act(other, ItemAction.SNOOZE, later) == 0
    assert count_open_alerts(later - timedelta(seconds=1)) == 0
    assert count_open_alerts(later) == 1
    assert act(other, ItemAction.CLOSE) == 0
    assert act(one, ItemAction.REOPEN) == 1
    apply_evaluation(store, an_evaluation(store, now, dict.fromkeys(holds, False)), now)
    assert count_open_alerts(now) == 1  # that the rule was reset doesn't close its alert


def test_snoozes_end_while_people_act(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 11)
    for _ in range(5):
        lender.create()
    holds: dict[tuple[Customer, StoredRuleset, str], bool | None] = {
        (customer, each, "A"): True for customer in lender.customers for each in lender.rulesets
    }
    alerts = [match.match_id for match in apply_evaluation(store, an_evaluation(store, now, holds), now).matches]
    for each in alerts:
        with store.db.writing() as w:
            items.act(w, lender.client_id, each, Action(ItemAction.SNOOZE, now), "dana", now)

    def step(nth: int) -> None:
        with store.db.writing() as w:
            if nth % 3:
                items.act(w, lender.client_id, alerts[nth % len(alerts)], Action(ItemAction.CLOSE), "dana", now)
            else:
                items.end_snoozes(w, now)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(step, range(3 * len(alerts))))
    with store.db.reading() as r:
        assert summaries_in(r) == expected_summaries(r)


@on_postgresql
def test_the_last_of_concurrent_decisions_is_the_one_shown(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 4)

    def decide(_: int) -> None:
        with store.db.writing() as w:
            stored_evaluations.save(w, lender.evaluation(lender.customers[0]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(decide, range(24)))
    with store.db.reading() as r:
        assert summaries_in(r) == expected_summaries(r)


def test_lists_have_the_order_and_the_customers_that_were_asked_for(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    lender = Lender(store, now, 5)
    for _ in range(15):
        lender.create()
        lender.act()
    Lender(store, now, 6)
    with store.db.reading() as r:
        everything = summary_listing.find(r, lender.client_id, Filter(), Order()).items
        assert [each.customer_id for each in everything] == [each.customer_id for each in lender.customers]
        asked = [*product([Filter()], Sort), *((wanted, lender.drawn.choice([*Sort])) for wanted in WANTED)]
        for wanted, by in asked:
            order = Order(by, descending=lender.drawn.random() < 0.5)
            right = sorted(filter(WANTED[wanted], everything), key=partial(rank, by), reverse=order.descending)
            assert summary_listing.find(r, lender.client_id, wanted, order).items == right
            for most in (2, 10_000):
                monkeypatch.setattr(paging, "MAX_COUNTED", most)
                monkeypatch.setattr(summary_listing, "MAX_COUNTED", most)
                for page in (Page(1, 3), Page(2, 3), Page(9, 3)):
                    found, _ = summary_listing.find_page(r, lender.client_id, wanted, order, page)
                    assert found.items == right[page.offset : page.offset + page.count], (wanted, order, most)
                    assert (found.total, found.has_more) == (min(most, len(right)), len(right) > most)
                assert walk(r, lender.client_id, wanted, order) == right, (wanted, order, most)


def walk(r: Reading, client_id: UUID, wanted: Filter, order: Order) -> list[Summary]:
    """Return what a reader finds that goes from place to place."""
    found, place = summary_listing.find_page(r, client_id, wanted, order, Page(1, 3))
    every = [*found.items]
    while place is not None:
        found, place = summary_listing.find_page(r, client_id, wanted, order, Page(1, 3), place)
        assert found.items, "a place has something after it"
        every += found.items
    return every


@on_sqlite
def test_many_matches_are_read_in_their_order_without_sorting(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_listing, "MAX_COUNTED", 0)
    lender = Lender(store, now, 8)
    wanted = Filter(report_status=ReportStatus.PENDING, with_alerts=False)
    with store.db.reading() as r:
        for by, descending in product(Sort, (False, True)):
            order, place = Order(by, descending), Place(0 if by is Sort.OPEN_ALERTS else None, 0)
            of_list: dict[str, Any] = {"client_id": lender.client_id, "wanted": wanted, "order": order}
            read = partial(summary_listing.find_page, **of_list, page=Page(1, 3), after=place)
            steps = [step for plan in plans_of(r, read) for step in plan]
            assert not [step for step in steps if "TEMP B-TREE" in step], order
            assert [step for step in steps if "COVERING INDEX ix_customer_summaries_" in step], order


@on_sqlite
@pytest.mark.parametrize(
    "wanted",
    [
        Filter(rating="A"),
        Filter(outcome="blocked"),
        Filter(rating="A", outcome="blocked"),
        Filter(rating="A", with_alerts=True),
        Filter(outcome="blocked", report_status=ReportStatus.STALE),
    ],
)
def test_few_customers_are_found_by_an_index_of_all_filters(store: Store, now: datetime, wanted: Filter) -> None:
    read = partial(summary_listing.find_page, client_id=a_client(store, now), wanted=wanted, order=Order())
    with store.db.reading() as r:
        counted, *_ = plans_of(r, partial(read, page=Page(1, 3)))
    by_facets = "USING INDEX ix_customer_summaries_facets (client_id=? AND <expr>=?)"
    assert [step for step in counted if by_facets in step], counted


@on_sqlite
def test_the_index_of_parts_is_searched_once(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    with store.db.writing() as w:
        for number in range(200):
            stored_customers.create(w, client_id, NewCustomer(ABN, True, f"Harbour {number}"), "test", now)
    wanted = Filter(part="harbour")
    with store.db.reading() as r:
        plans = plans_of(r, lambda r: summary_listing.find_page(r, client_id, wanted, Order(), Page(1, 20)))
    steps = [step for plan in plans for step in plan if "VIRTUAL TABLE" in step]
    [step] = steps
    assert "=" not in step, f"{step}: once for each row"


def rank(by: Sort, summary: Summary) -> tuple[object, ...]:
    """Return what Python sorts by: values that are missing come first."""
    value: Any = {
        Sort.CREATED: summary.number,
        Sort.NAME: summary.name and summary.name.casefold(),
        Sort.RATING: summary.rating,
        Sort.RISK_VALUE: summary.risk_value,
        Sort.COMPLETENESS: summary.completeness_score,
        Sort.DATA_THROUGH: summary.data_through,
        Sort.OPEN_ALERTS: summary.open_alerts,
    }[by]
    return (value is not None, *(() if value is None else (value,)), summary.number)


def has_part(part: str) -> Callable[[Summary], bool]:
    return lambda each: part in "\n".join(filter(None, (each.name, each.abn, each.reference))).casefold()


WANTED: Final[dict[Filter, Callable[[Summary], bool]]] = {
    Filter(): lambda _: True,
    Filter(rating="B"): lambda each: each.rating == "B",
    Filter(outcome="blocked"): lambda each: each.outcome == "blocked",
    Filter(report_status=ReportStatus.STALE): lambda each: each.report_status == "stale",
    Filter(with_alerts=True): lambda each: each.open_alerts > 0,
    Filter(with_alerts=False, rating="A"): lambda each: each.open_alerts == 0 and each.rating == "A",
    Filter(outcome="proceed", rating="C"): lambda each: each.outcome == "proceed" and each.rating == "C",
    Filter(part="harbour", with_alerts=False): lambda each: has_part("harbour")(each) and each.open_alerts == 0,
    **{Filter(part=part): has_part(part) for part in ("harbour", "our b", "öst", ABN[2:7], "l-1", '"quoted" 100% ')},
    **{Filter(part=part): has_part(part) for part in ("100_ n", "%%%", "our coff", "οδο", "小龍商", "no such")},
}


def test_the_last_submission_and_the_decision_are_shown(store: Store, now: datetime) -> None:
    lender = Lender(store, now, 7)
    [customer] = lender.customers
    a_submission(store, customer, now + timedelta(days=1))
    a_submission(store, customer, now + timedelta(days=2))
    new = lender.evaluation(customer)
    with store.db.writing() as w:
        stored_evaluations.save(w, new)
        [found] = summary_listing.find(w, lender.client_id, Filter(), Order()).items
    assert found.last_submission_at == now + timedelta(days=2)
    assert (found.evaluation_id, found.decided_at, found.slug) == (new.evaluation_id, new.at, "loan")
