"""What holds for every page of the console."""

import re
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from fastapi.routing import iter_route_contexts

from api.console.routes import PageRoute
from api.service.app import create_app
from storage.access.roles import Role
from storage.core.store import Store
from tests.api.conftest import new_client
from tests.api.console.visitor import Visitor, visit_as

BEFORE_SIGNING_IN = {"/sign-in", "/sign-in/link", "/sign-in/openid", "/sign-in/openid/back"}


def pages(store: Store, method: str, id_of: Callable[[str], str] = lambda _: str(uuid4())) -> list[str]:
    """Return the paths of pages, with an id for each parameter: one that nothing has, unless `id_of` returns others."""
    routes = [context.original_route for context in iter_route_contexts(create_app(store).routes)]
    of_method = [route for route in routes if isinstance(route, PageRoute) and method in (route.methods or ())]
    return [re.sub(r"\{([^}]+)\}", lambda name: id_of(name[1]), route.path) for route in of_method]


def test_pages_are_for_signed_in_users(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    for method in ("GET", "POST"):
        for path in set(pages(store, method)) - BEFORE_SIGNING_IN:
            with subtests.test(f"{method} {path}"):
                visitor = Visitor(base_url)
                answer = visitor.get(path, follows=False) if method == "GET" else visitor.send(path)
                assert answer.status_code == 303
                assert answer.headers["location"].startswith("/sign-in?next=")


def test_forms_need_their_token(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client_id: UUID = new_client(store, base_url).client_id
    visitor = visit_as(store, base_url, client_id, Role.ADMIN)
    for path in set(pages(store, "POST")) - BEFORE_SIGNING_IN:
        with subtests.test(path):
            assert visitor.send(path, {"csrf": "0" * 64}).status_code == 403


def test_pages_of_ids_that_nothing_has_are_not_found(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client_id: UUID = new_client(store, base_url).client_id
    visitor = visit_as(store, base_url, client_id, Role.ADMIN)
    for path in pages(store, "GET"):
        with subtests.test(path):
            answer = visitor.get(path)
            named = re.search("[0-9a-f-]{36}", path)
            assert answer.status_code == (404 if named else 200)
            assert answer.headers["content-type"].startswith("text/html")


def test_roles_see_what_their_scopes_allow(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    """A page is refused as a whole if its API refuses, and then no page of this role links to it."""
    client_id: UUID = new_client(store, base_url).client_id
    paths = pages(store, "GET")
    for role in Role:
        visitor = visit_as(store, base_url, client_id, role)
        answers = {path: visitor.get(path) for path in paths}
        refused = {path for path, answer in answers.items() if answer.status_code == 403}
        linked = {
            link for answer in answers.values() if answer.ok for link in re.findall('href="(/[^"?#]*)', answer.text)
        }
        with subtests.test(str(role)):
            assert refused & linked == set()
            assert {answer.status_code for answer in answers.values()} <= {200, 403, 404}
            assert bool(refused) == (role is not Role.ADMIN)
