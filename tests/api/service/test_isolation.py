"""No client reaches anything of another, with any id that any operation takes, wherever the operation takes it.

The places are read from the OpenAPI document, so that a new operation is tried as soon as it exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

import pytest
import requests
from fastapi.routing import APIRoute, iter_route_contexts

from api.console.routes import PageRoute
from api.service.app import create_app
from storage.core.store import Store
from tests.api.conftest import Belongings, Client, new_client
from tests.api.core.operations import document, list_operations
from tests.api.places import Place, example_with, places, set_id

ABOUT_SOMETHING_ELSE = {"Resolution.NothingFound"}  # the customer is found; its report has nothing with the key
PUBLIC = {"/docs", "/docs/{subject}", "/openapi.json", "/health/live", "/health/ready", "/metrics"}


@dataclass
class Requester:
    """A client with everything it may own."""

    client: Client
    own: Mapping[str, str]

    def ask(self, place: Place, an_id: str) -> requests.Response:
        """Send a request with this id in this place, and the client's own ids elsewhere."""
        operation = place.operation
        ids = {
            "path": {name: self.own[name] for name in operation.ids},
            "query": {},
            "body": example_with(operation, self.own),
        }
        set_id(ids[place.within], place, an_id)
        headers = {"X-Request-Id": "same"}
        path = operation.path_for(ids["path"])
        return self.client.call(operation.method, path, params=ids["query"], json=ids["body"], headers=headers)


def new_requester(store: Store, base_url: str) -> Requester:
    """Create all resources now, because the tests later create more of the same kinds."""
    client = new_client(store, base_url)
    return Requester(client, dict(Belongings(store, client)))


@pytest.fixture(scope="module")
def owner(store: Store, base_url: str) -> Requester:
    return new_requester(store, base_url)


@pytest.fixture(scope="module")
def stranger(store: Store, base_url: str) -> Requester:
    """Another client. All its requests here are refused, so its own resources stay unchanged."""
    return new_requester(store, base_url)


def test_another_clients_id_is_as_unknown_as_a_random_one(
    subtests: pytest.Subtests, owner: Requester, stranger: Requester
) -> None:
    for place in places():
        with subtests.test(str(place)):
            assert place.kind in owner.own, f"teach Belongings in tests/api/conftest.py to make a {place.kind}"
            foreign, unknown = stranger.ask(place, owner.own[place.kind]), stranger.ask(place, str(uuid4()))
            assert foreign.status_code in (400, 404) or place.within != "path"  # a filter may find nothing
            assert (foreign.status_code, foreign.text) == (unknown.status_code, unknown.text)


@pytest.mark.service  # proves that the test before it can fail; slow, because every operation answers
def test_an_id_of_ones_own_is_found(subtests: pytest.Subtests, store: Store, base_url: str, owner: Requester) -> None:
    """Once a request has ended one of the client's resources, go on as another client with fresh ones."""
    requester = owner
    for place in places():
        with subtests.test(str(place)):
            known, unknown = requester.ask(place, requester.own[place.kind]), requester.ask(place, str(uuid4()))
            if known.status_code in (400, 404):
                requester = new_requester(store, base_url)
                known = requester.ask(place, requester.own[place.kind])
            assert known.status_code not in (400, 404) or known.json()["code"] in ABOUT_SOMETHING_ELSE
            finds_nothing = unknown.status_code == 200 and place.within != "path" and known.text != unknown.text
            assert unknown.status_code in (400, 404) or finds_nothing


def test_every_route_is_documented(store: Store) -> None:
    routes = [context.original_route for context in iter_route_contexts(create_app(store).routes)]
    documented_routes = [route for route in routes if isinstance(route, APIRoute) and route.include_in_schema]
    assert {route.path_format for route in documented_routes} <= document()["paths"].keys()
    pages = [route for route in routes if isinstance(route, PageRoute)]  # tests/api/console/test_hostile_texts.py
    others = {getattr(route, "path", "") for route in routes} - {route.path for route in (*documented_routes, *pages)}
    assert {path for path in others if not path.startswith(("/docs/assets", "/docs/errors", "/console/"))} <= PUBLIC


def test_every_private_route_needs_a_key() -> None:
    assert {operation.path for operation in list_operations() if not operation.needs_key} <= PUBLIC
