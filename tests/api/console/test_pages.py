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
from tests.api.conftest import Belongings, new_client
from tests.api.console.visitor import Visitor, visit_as

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
BEFORE_SIGNING_IN = {"/sign-in", "/sign-in/link", "/sign-in/openid", "/sign-in/openid/back"}


def list_paths(store: Store, method: str, id_of: Callable[[str], str] = lambda _: str(uuid4())) -> list[str]:
    """Return the paths of pages, with an id for each parameter: one that nothing has, unless `id_of` returns others."""
    routes = [context.original_route for context in iter_route_contexts(create_app(store).routes)]
    matching = [route for route in routes if isinstance(route, PageRoute) and method in (route.methods or ())]
    return [re.sub(r"\{([^}]+)\}", lambda name: id_of(name[1]), route.path) for route in matching]


def test_pages_are_for_signed_in_users(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    for method in ("GET", "POST"):
        for path in set(list_paths(store, method)) - BEFORE_SIGNING_IN:
            with subtests.test(f"{method} {path}"):
                visitor = Visitor(base_url)
                answer = visitor.get(path, follows=False) if method == "GET" else visitor.send(path)
                assert answer.status_code == 303
                assert answer.headers["location"].startswith("/sign-in?next=")


def test_forms_need_their_token(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client_id: UUID = new_client(store, base_url).client_id
    visitor = visit_as(store, base_url, client_id, Role.ADMIN)
    for path in set(list_paths(store, "POST")) - BEFORE_SIGNING_IN:
        with subtests.test(path):
            assert visitor.send(path, {"csrf": "0" * 64}).status_code == 403


def test_pages_of_ids_that_nothing_has_are_not_found(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client_id: UUID = new_client(store, base_url).client_id
    visitor = visit_as(store, base_url, client_id, Role.ADMIN)
    for path in list_paths(store, "GET"):
        with subtests.test(path):
            answer = visitor.get(path)
            has_id = re.search("[0-9a-f-]{36}", path)
            assert answer.status_code == (404 if has_id else 200)
            assert answer.headers["content-type"].startswith("text/html")


def test_roles_see_what_their_scopes_allow(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    """A page is refused as a whole if its API refuses, and then no page of this role links to it."""
    client_id: UUID = new_client(store, base_url).client_id
    paths = list_paths(store, "GET")
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


def test_pages_answer_head(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    """Link previews, and checks of links and health, send HEAD."""
    visitor = visit_as(store, base_url, new_client(store, base_url).client_id, Role.ADMIN)
    for path in {*list_paths(store, "GET"), "/docs", "/docs/errors/Request.UnknownPath"}:
        with subtests.test(path):
            head, get = (visitor.call(method, path) for method in ("HEAD", "GET"))
            assert (head.status_code, head.content) == (get.status_code, b"")
            assert head.headers.get("content-type") == get.headers.get("content-type")
    assert Visitor(base_url).call("HEAD", "/sign-in").status_code == 200
    location = Visitor(base_url).call("HEAD", "/customers?search=Bakery").headers["location"]
    assert location == "/sign-in?next=/customers%3Fsearch%3DBakery"


def test_other_sites_cannot_frame_a_page(store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    client = new_client(store, base_url)
    ids = Belongings(store, client)
    visitor = visit_as(store, base_url, client.client_id, Role.ADMIN)
    policy, ruleset = f"/policies/{ids['slug']}", f"/rulesets/{ids['rulesetId']}"
    evaluation = f"/evaluations/{ids['evaluationId']}"
    decided = {"outcome": "proceed", "reason": "Seen.", "decidedBy": "Dana Lee"}
    assert client.post(f"/v1{evaluation}/override", decided).ok  # an indeterminate decision has no letter
    sent_by_the_api = (
        f"{evaluation}/letter",
        f"{policy}/backtests/{ids['backtestId']}/page",
        f"{ruleset}/simulations/{ids['simulationId']}/page",
        f"/customers/{ids['customerId']}",
    )
    for path in (*list_paths(store, "GET"), *sent_by_the_api, "/docs", "/docs/errors/Request.UnknownPath", "/unknown"):
        with subtests.test(path):
            answer = visitor.get(path, headers=BROWSER)
            if path in sent_by_the_api:
                assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["content-security-policy"].count("frame-ancestors 'none'") == 1


def test_an_unknown_address_is_a_page_for_people(store: Store, base_url: str) -> None:
    visitor = visit_as(store, base_url, new_client(store, base_url).client_id, Role.VIEWER)
    found = visitor.get("/customer", headers=BROWSER)
    assert (found.status_code, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for words in ("There is no page at this address.", 'aria-label="Console"', "Sign out"):
        assert words in found.text
    form_only = visitor.get(f"/evaluations/{uuid4()}/override", headers=BROWSER)
    assert (form_only.status_code, form_only.headers["allow"]) == (405, "POST")
    assert "This address only takes a form." in form_only.text
    for path in ("/customer", "/docs/unknown", "/docs/errors/Unknown"):
        stranger = Visitor(base_url).get(path, headers=BROWSER)
        assert (stranger.status_code, "Sign out" in stranger.text) == (404, False)
        assert "There is no page at this address." in stranger.text


@pytest.mark.parametrize(
    ("path", "accept"), [("/customer", "application/json"), ("/customer", "*/*"), ("/v1", BROWSER["accept"]),
    ("/v1/customer", BROWSER["accept"]), ("/v1/unknown", BROWSER["accept"])],
)  # fmt: skip
def test_an_unknown_address_is_a_problem_for_software(base_url: str, path: str, accept: str) -> None:
    answer = Visitor(base_url).get(path, headers={"accept": accept})
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_refusal_of_the_api_keeps_the_frame_of_the_console(store: Store, base_url: str) -> None:
    visitor = visit_as(store, base_url, new_client(store, base_url).client_id, Role.ADMIN)
    answer = visitor.get(f"/customers/{uuid4()}")
    assert answer.status_code == 404
    for words in ("<title>Not found", "<h1>Not found</h1>", 'aria-label="Console"'):
        assert words in answer.text


def test_a_refusal_is_shown_in_place_of_the_part_of_a_page(store: Store, base_url: str) -> None:
    visitor = visit_as(store, base_url, new_client(store, base_url).client_id, Role.ADMIN)
    answer = visitor.get(f"/evaluations/{uuid4()}/changes")
    assert (answer.headers["hx-reselect"], answer.headers["hx-reswap"]) == ("#refusal", "innerHTML")
    assert re.search('id="refusal"[^>]*>[A-Z]', answer.text)


def test_a_part_of_a_page_is_not_replaced_by_the_sign_in_page(base_url: str) -> None:
    part = {"hx-request": "true"}
    read = Visitor(base_url).get("/customers?search=Bakery", headers=part)
    assert (read.status_code, read.headers["hx-refresh"]) == (204, "true")
    typed = Visitor(base_url).send("/policies/new", {"document": "name: Mine"}, headers=part)
    assert typed.status_code == 204
    assert "hx-refresh" not in typed.headers, "what was typed would be lost"
