"""A client uses the model last activated for it or, without one, the model last activated for all."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access import keys
from storage.core.database import Writing
from storage.core.store import Store
from storage.enrichment import category_models
from storage.enrichment.category_models import StoredModel

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def a_client(w: Writing) -> UUID:
    return keys.create_client(w, "Harbour Lending", decision_policies=True, now=NOW).client_id


def a_model(w: Writing, client_id: UUID | None = None) -> StoredModel:
    return category_models.add(w, b"content", "f" * 64, {"rows": 1}, client_id, NOW)


def test_a_model_is_stored_as_it_was_added_and_not_used(store: Store) -> None:
    with store.db.writing() as w:
        model = a_model(w)
    with store.db.reading() as r:
        assert category_models.find(r) == [model]
        assert category_models.read_content(r, model.model_id) == b"content"
        assert category_models.uses(r) == {}


def test_a_clients_own_model_takes_precedence_over_the_one_for_all(store: Store) -> None:
    with store.db.writing() as w:
        client, other = a_client(w), a_client(w)
        general, own = a_model(w), a_model(w, client)
        category_models.activate(w, general.model_id, None, "operator", NOW)
        category_models.activate(w, own.model_id, client, "operator", NOW)
        assert category_models.in_use(w, [client, other]) == {client: own.model_id, other: general.model_id}


def test_deactivating_goes_back_to_the_model_for_all_and_then_to_tidemarks_own(store: Store) -> None:
    with store.db.writing() as w:
        client = a_client(w)
        general, own = a_model(w), a_model(w, client)
        category_models.activate(w, general.model_id, None, "operator", NOW)
        category_models.activate(w, own.model_id, client, "operator", NOW)
        assert category_models.deactivate(w, client, "operator", NOW) == own.model_id
        assert category_models.in_use(w, [client]) == {client: general.model_id}
        assert category_models.deactivate(w, None, "operator", NOW) == general.model_id
        assert category_models.in_use(w, [client]) == {}
        assert category_models.deactivate(w, None, "operator", NOW) is None
        category_models.activate(w, own.model_id, client, "operator", NOW)
        assert category_models.in_use(w, [client]) == {client: own.model_id}


def test_a_model_of_one_client_is_refused_for_others(store: Store) -> None:
    with store.db.writing() as w:
        own = a_model(w, a_client(w))
        for scope in (None, a_client(w)):
            with pytest.raises(Conflict):
                category_models.activate(w, own.model_id, scope, "operator", NOW)


def test_unknown_models_and_clients_are_not_found(store: Store) -> None:
    with store.db.writing() as w:
        with pytest.raises(NotFound):
            category_models.activate(w, uuid4(), None, "operator", NOW)
        with pytest.raises(NotFound):
            category_models.activate(w, a_model(w).model_id, uuid4(), "operator", NOW)
        with pytest.raises(NotFound):
            a_model(w, uuid4())
