"""The migration that renames `rearmAfterDays` to `repeatAfterDays` in every stored document of a ruleset."""

import json
from datetime import date, datetime
from hashlib import sha256
from importlib import import_module

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import insert, update
from sqlalchemy.exc import IntegrityError

from pipelines.decisions.canonical import canonical
from storage.access import approvals
from storage.core import models
from storage.core.models import ApprovalKind, monitoring_ruleset_versions
from storage.core.store import Store
from storage.monitoring import rulesets, simulations
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import SIMULATION, NewPortfolioJob
from tests.storage.examples import a_client
from tests.storage.watching import a_rule, a_ruleset, created

MESSAGE = 'The key "rearmAfterDays": is in a text, too.'
RULESET = a_ruleset(a_rule("LONG", repeatAfterDays=30, message=MESSAGE), a_rule("EVER", recommendedActions=["Call."]))


def in_old_form() -> str:
    document = json.loads(canonical(RULESET))
    for rule in document["rules"]:
        rule["rearmAfterDays"] = rule.pop("repeatAfterDays")
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def migrate(store: Store) -> None:
    with store.db.writing() as w, Operations.context(MigrationContext.configure(w)):
        import_module("storage.core.migrations.versions.0015_repeat_after_days").upgrade()


def test_versions_of_rulesets(store: Store, now: datetime) -> None:
    stored, document = created(store, a_client(store, now), RULESET, now), in_old_form()
    old = {"document": document, "sha256": sha256(document.encode()).digest(), "created_at": now, "created_by": "test"}
    with store.db.writing() as w:
        w.execute(insert(monitoring_ruleset_versions).values(ruleset_id=stored.ruleset_id, version=2, **old))
    migrate(store)
    with store.db.reading() as r:
        before, after = (rulesets.version(r, stored.ruleset_id, number) for number in (1, 2))
    assert after.ruleset == RULESET
    assert (after.document, after.sha256) == (before.document, before.sha256)
    with pytest.raises(IntegrityError), store.db.writing() as w:
        w.execute(update(monitoring_ruleset_versions).values(document="{}"))


def test_requests_for_approval(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    ruleset = {"document": json.loads(in_old_form()), "replaces": None}
    policy = {"rearmAfterDays": "a member of something else"}
    with store.db.writing() as w:
        for kind, sent in ((ApprovalKind.ACTIVATE, ruleset), (ApprovalKind.PUBLISH, policy)):
            approvals.request(w, client_id, approvals.Request(kind, "early-warning", {}, sent), "test", now)
    migrate(store)
    with store.db.reading() as r:
        found = {each.kind: each.request for each in approvals.find(r, client_id).items}
    assert found[ApprovalKind.ACTIVATE] == {"document": json.loads(canonical(RULESET)), "replaces": None}
    assert found[ApprovalKind.PUBLISH] == policy
    with pytest.raises(IntegrityError), store.db.writing() as w:
        w.execute(update(models.approvals).values(request={}))


@pytest.mark.parametrize("document", [in_old_form(), None])
def test_simulations(store: Store, now: datetime, document: str | None) -> None:
    stored = created(store, a_client(store, now), RULESET, now)
    request = simulations.Request(date(2026, 1, 1), date(2026, 3, 1), document=document)
    new = NewPortfolioJob(SIMULATION, stored.client_id, stored.ruleset_id, 1, request.as_json())
    with store.db.writing() as w:
        job_id = portfolio_jobs.request(w, new, "test", now).job_id
    migrate(store)
    with store.db.reading() as r:
        job = portfolio_jobs.with_id(r, job_id)
        assert simulations.simulated_ruleset(r, job) == RULESET
    after = simulations.Request.of_json(job.request)
    assert after.document == (None if document is None else canonical(RULESET))
