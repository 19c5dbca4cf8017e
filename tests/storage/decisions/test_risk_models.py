"""Fitted scorecards: the last one activated for a client is used for its customers."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select, update

from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.expected import EVERYTHING, Expected
from pipelines.scorecards.scorecard import Band, Feature, Link, Scorecard
from pipelines.vocabulary.errors import Conflict, NotFound, Unprocessable
from storage.access import keys
from storage.core.database import Writing
from storage.core.models import Flow, JobStatus, Queue, jobs, reports
from storage.core.models import risk_models as table
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import NewCustomer
from storage.decisions import risk_models
from storage.decisions.risk_models import StoredModel
from storage.jobs import batches
from storage.jobs.jobs import Ending, as_job, finish, select_jobs

COMPARED = {"against": "default", "logLoss": 0.3, "logLossOfOther": 0.31, "lowerIn": 0.9, "aucChange": 0.01}
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def a_client(w: Writing) -> UUID:
    return keys.create_client(w, "Harbour Lending", decision_policies=True, now=NOW).client_id


def a_scorecard(metric: str = "buffer_days_180d", *, better: bool = True) -> Scorecard:
    bands = (Band(Decimal(30), Decimal(100)), Band(None, Decimal(0)))
    facts = {"cases": 400, "comparison": {**COMPARED, "better": better}}
    feature = Feature(metric, more_is_better=True, bands=bands, reason="Why.")
    return Scorecard("spring", "1", "client", (feature,), Link(Decimal(20), Decimal(10)), facts)


def a_model(w: Writing, client_id: UUID | None = None) -> StoredModel:
    return risk_models.add(w, a_scorecard(), client_id, NOW)


def test_model_is_stored_unchanged_and_not_used(store: Store) -> None:
    with store.db.writing() as w:
        model = a_model(w)
    with store.db.reading() as r:
        assert risk_models.find(r) == [model]
        retained = risk_models.scorecard(r, model.model_id)
        assert (retained.features, retained.link, retained.facts) == (
            a_scorecard().features,
            a_scorecard().link,
            a_scorecard().facts,
        )
        assert risk_models.find_uses(r) == {}


def test_model_is_used_for_the_client_it_was_activated_for(store: Store) -> None:
    with store.db.writing() as w:
        client, other = a_client(w), a_client(w)
        first, second = a_model(w, client), a_model(w)
        risk_models.activate(w, first.model_id, client, "operator", NOW)
        risk_models.activate(w, second.model_id, client, "operator", NOW)
        assert risk_models.find_uses(w) == {client: second.model_id}
        assert {each: found.name for each, found in risk_models.read_in_use(w, [client, other]).items()} == {
            client: "spring"
        }
        assert risk_models.deactivate(w, client, "operator", NOW) == second.model_id
        assert risk_models.read_in_use(w, [client]) == {}
        assert risk_models.deactivate(w, client, "operator", NOW) is None


def test_customers_with_a_report_get_a_new_one(store: Store) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        seen, unseen = (
            customers.create(w, client, NewCustomer(abn, abn_checksum_valid=True, reference=abn), "test", NOW).customer
            for abn in ("51824753556", "53004085616")
        )
        w.execute(insert(reports).values(customer_number=seen.number, kind="risk", failed=False))
        model = a_model(w, client)
        for _ in range(2):  # requested only once, though activated twice
            risk_models.activate(w, model.model_id, client, "operator", NOW)
        asked = w.execute(select(jobs.c.customer_number, jobs.c.flow)).all()
        assert [tuple(row) for row in asked] == [(seen.number, Flow.REPORT_REFRESH)]
        assert unseen.number != seen.number


def test_a_refresh_that_was_live_during_a_change_is_followed_by_another(store: Store) -> None:
    """It may have read the scorecard, or the expected evidence, before the change."""
    with store.db.writing() as w:
        client = a_client(w)
        new = NewCustomer("51824753556", abn_checksum_valid=True, reference="seen")
        seen = customers.create(w, client, new, "test", NOW).customer
        w.execute(insert(reports).values(customer_number=seen.number, kind="risk", failed=False))
        model = a_model(w, client)
        risk_models.activate(w, model.model_id, client, "operator", NOW)
    for change in (
        lambda w: risk_models.deactivate(w, client, "operator", NOW),
        lambda w: risk_models.set_expected(w, client, Expected.of(["balances"]), NOW),
    ):
        run_refresh(store, meanwhile=change)
        run_refresh(store, meanwhile=lambda _: None)
        with store.db.writing() as w:
            assert batches.claim(w, Queue.REFRESH, store.settings, NOW) is None, "the second was not overtaken"
            risk_models.activate(w, model.model_id, client, "operator", NOW)


def run_refresh(store: Store, meanwhile: Callable[[Writing], object]) -> None:
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.REFRESH, store.settings, NOW)
        assert batch is not None, "nothing is queued"
    with store.db.writing() as w:
        meanwhile(w)
    with store.db.writing() as w:
        [row] = w.execute(select_jobs().where(jobs.c.batch_token == batch.token)).all()
        batches.commit(w, batch.token)
        finish(w, [Ending(as_job(row), JobStatus.COMPLETED, 0)], NOW)


def test_model_of_another_client_cannot_be_activated(store: Store) -> None:
    with store.db.writing() as w:
        own = a_model(w, a_client(w))
        with pytest.raises(Conflict):
            risk_models.activate(w, own.model_id, a_client(w), "operator", NOW)


def test_model_that_is_not_better_needs_a_reason(store: Store) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        worse = risk_models.add(w, a_scorecard(better=False), client, NOW)
        with pytest.raises(Conflict, match="not better than the default: log loss") as refused:
            risk_models.activate(w, worse.model_id, client, "operator", NOW)
        assert refused.value.code == "RiskModel.NotBetter"
        with pytest.raises(Conflict):
            risk_models.activate(w, worse.model_id, client, "operator", NOW, anyway=" \t")
        assert risk_models.find_uses(w) == {}
        risk_models.activate(w, worse.model_id, client, "operator", NOW, anyway="a regulator asks for it")
        assert risk_models.find_uses(w) == {client: worse.model_id}


def test_pinning_keeps_the_current_or_the_previous_scorecard(store: Store) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        with pytest.raises(NotFound, match="no other scorecard"):
            risk_models.pin(w, client, "operator", NOW, previous=True)
        own = risk_models.pin(w, client, "operator", NOW, previous=False)
        assert risk_models.scorecard(w, own.model_id).features == DEFAULT.features
        assert risk_models.read_in_use(w, [client])[client].calibration == "none"
        fitted = a_model(w, client)
        risk_models.activate(w, fitted.model_id, client, "operator", NOW)
        assert risk_models.pin(w, client, "operator", NOW, previous=False) == fitted
        assert risk_models.pin(w, client, "operator", NOW, previous=True) == own
        assert risk_models.find_uses(w) == {client: own.model_id}


def test_previous_default_is_the_version_that_was_used_then(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        risk_models.activate(w, a_model(w, client).model_id, client, "operator", NOW)
        today = Scorecard("default", "9", "none", DEFAULT.features[:3], DEFAULT.link)
        monkeypatch.setattr(risk_models, "DEFAULT", today)
        back = risk_models.pin(w, client, "operator", NOW, previous=True)
        assert risk_models.scorecard(w, back.model_id).features == DEFAULT.features
        risk_models.deactivate(w, client, "operator", NOW)
        risk_models.activate(w, a_model(w, client).model_id, client, "operator", NOW)
        back = risk_models.pin(w, client, "operator", NOW, previous=True)
        assert risk_models.scorecard(w, back.model_id).features == today.features


def test_same_scorecard_is_stored_once_for_a_client(store: Store) -> None:
    with store.db.writing() as w:
        client, other = a_client(w), a_client(w)
        own = a_model(w, client)
        assert a_model(w, client) == own
        assert a_model(w, other) != own
        assert a_model(w) != own
        assert risk_models.add(w, a_scorecard(better=False), client, NOW) != own
        pinned = [risk_models.pin(w, each, "operator", NOW, previous=False) for each in (client, client, other)]
        assert pinned[0] == pinned[1] != pinned[2]


def test_model_that_reads_unknown_metrics_cannot_be_activated(store: Store) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        model = risk_models.add(w, a_scorecard("loan_amount"), client, NOW)
        with pytest.raises(Unprocessable, match="Reports don't have these metrics: loan_amount"):
            risk_models.activate(w, model.model_id, client, "operator", NOW)


def test_unknown_models_and_clients_are_not_found(store: Store) -> None:
    with store.db.writing() as w:
        client, model = a_client(w), a_model(w)
        with pytest.raises(NotFound):
            risk_models.activate(w, uuid4(), client, "operator", NOW)
        with pytest.raises(NotFound):
            risk_models.activate(w, model.model_id, uuid4(), "operator", NOW)
        with pytest.raises(NotFound):
            risk_models.add(w, a_scorecard(), uuid4(), NOW)


def test_damaged_model_is_not_used_and_logged(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        model = a_model(w, client)
        risk_models.activate(w, model.model_id, client, "operator", NOW)
        w.execute(update(table).values(content=b"{}"))
        with caplog.at_level(logging.ERROR):
            assert risk_models.read_in_use(w, [client]) == {}
    assert str(model.model_id) in caplog.text


def test_evidence_is_expected_of_all_customers_of_a_client(store: Store) -> None:
    with store.db.writing() as w:
        client, other = a_client(w), a_client(w)
        assert risk_models.read_expected(w, [client]) == {client: EVERYTHING}
        risk_models.set_expected(w, client, Expected.of(["months", "balances"]), NOW)
        assert risk_models.read_expected(w, [client, other]) == {
            client: Expected(words=False, accounts=False),
            other: EVERYTHING,
        }
        with pytest.raises(NotFound):
            risk_models.set_expected(w, uuid4(), EVERYTHING, NOW)
