"""Every page of the console, with a lender's own ids, another lender's and unknown ones, and with hostile texts.

The pages are read from the application, so that a new one is tried as soon as it exists.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import pytest
import requests
from fastapi.routing import iter_route_contexts

import isolation
from api.console.routes import PageRoute
from api.reports import browser
from api.service.app import create_app
from benchmarks.filled_console import list_pages
from storage.access.roles import Role
from storage.core.store import Store
from tests.api.conftest import Belongings, new_client
from tests.api.console.hostile import HostileConsole, find_injected, hostile, is_local, names_in
from tests.api.console.visitor import Visitor, visit_as
from tests.pipelines.pages.documents import Element, parse_html

SAME_FOR_ALL = {"page_number": "1", "section_id": "counterparties"}  # parameters that are no ids
QUERIES = {  # what pages need, or show only if asked for
    "/customers": ["", "search=javascript"],
    "/customers/{customer_id}/details": ["", "attribute=bureau"],
    "/customers/{customer_id}/transactions": ["", "text=javascript"],
    "/customers/{customer_id}/reports": ["", "asOf=2026-06-30"],
    "/customers/{customer_id}/reports/annex": ["table=Top+counterparties"],
    "/customers/{customer_id}/reports/figure": ["kind=completeness&figure=/summary/completenessScore"],
    "/customers/{customer_id}/reports/compare/changes": ["", "report=completeness", "report=aggregate"],
    "/alerts/{match_id}/figure": ["figure=/spent_30d"],
    "/approvals": ["status=pending", "status=declined"],
    "/policies/{slug}": ["", "version=2"],
    "/rulesets/new": ["", "from=data-stale"],
    "/work": ["kind=decision", "kind=alert"],
}
WITH_FILES = {"/customers/{customer_id}/upload", "/customers/{customer_id}/attachments"}
OFFERED_OTHERWISE: Mapping[str, Mapping[str, str]] = {  # forms that need another state, with their fields
    "/customers/{customer_id}/resolutions": {"kind": "event", "key": "0" * 32, "reason": "Explained."},
    "/policies/{slug}/publish": {"version": "1"},
    "/policies/{slug}/challenger": {"version": "1", "percent": "10"},
    "/policies/{slug}/unarchive": {},
    "/approvals/{approval_id}/withdraw": {},
    "/rulesets/{ruleset_id}/unarchive": {},
    "/admin/users/{user_id}/enable": {},
    "/admin/webhooks/{subscription_id}/resume": {},
}
LOWEST_ROLES: Mapping[str, Role] = {  # that may send a form, by the beginning of its path; the longest one counts
    "/account": Role.VIEWER,
    "/admin": Role.ADMIN,
    "/alerts": Role.ANALYST,
    "/approvals": Role.APPROVER,
    "/approvals/{approval_id}/withdraw": Role.ANALYST,
    "/customers": Role.ANALYST,
    "/customers/{customer_id}/refresh": Role.VIEWER,
    "/evaluations": Role.ANALYST,
    "/evaluations/{evaluation_id}/override": Role.APPROVER,
    "/policies": Role.ANALYST,
    "/policies/{slug}/publish": Role.APPROVER,
    "/policies/{slug}/archive": Role.APPROVER,
    "/policies/{slug}/unarchive": Role.APPROVER,
    "/rulesets": Role.APPROVER,
    "/sign-out": Role.VIEWER,
}
NOT_ON_PAGES = {  # texts that no page shows today
    *("row-bank-name", "row-clean-description", "row-counterparty-group", "row-location", "row-other-account"),
    *("row-reference", "row-related-party"),
    *("transactions-accountname", "transactions-bankname", "transactions-description"),  # the fake worker drops them
}


@dataclass
class Seen:
    """A lender with hostile texts, and its pages as its admin sees them, by path with braces and query."""

    console: HostileConsole
    pages: dict[tuple[str, str], requests.Response] = field(default_factory=dict)

    def open(self, path: str, query: str) -> requests.Response:
        """Open a page as the lender's admin; but pages for signing in without being signed in."""
        visitor = Visitor(self.console.admin.base_url) if path.startswith("/sign-in") else self.console.admin
        return visitor.get(f"{insert(path, self.console)}?{query}")

    def html(self) -> Iterator[tuple[str, Element]]:
        """Yield the pages that aren't files."""
        for (path, _), answer in self.pages.items():
            if answer.headers["content-type"].startswith("text/html"):
                yield path, parse_html(answer.text)


class Stranger:
    """An admin of another client, who has one of everything, too."""

    def __init__(self, store: Store, base_url: str) -> None:
        client = new_client(store, base_url)
        self.own = dict(Belongings(store, client))
        self.visitor = visit_as(store, base_url, client.client_id, Role.ADMIN)

    def answer(self, path: str, ids: Mapping[str, str], sent: Mapping[str, str] | None) -> str:
        """Open a page with these ids and otherwise the own ones, or send it a form; return the answer without ids."""
        address = insert(path, {**self.own, **ids})
        if sent is None:
            answer = self.visitor.get(address, follows=False)
        elif path in WITH_FILES:
            token = f"?csrf={self.visitor.csrf}"
            answer = self.visitor.send(address + token, files={"file": ("june.csv", b"Date,Amount\n")})
        else:
            answer = self.visitor.send(address, {**sent, "csrf": self.visitor.csrf})
        text = f"{answer.status_code} {answer.headers.get('location')}\n{answer.text}"
        for name, an_id in ids.items():
            text = text.replace(an_id, name)
        return text


def find_forms(seen: Seen, store: Store) -> dict[str, Mapping[str, str]]:
    """Return the fields of the form for each path with braces: as a page shows it, or from OFFERED_OTHERWISE."""
    shown = {
        urlsplit(form.attributes.get("action", "")).path: fields(form)
        for _, page in seen.html()
        for form in page.all("form")
        if form.attributes.get("method") == "post"
    }
    found = dict[str, Mapping[str, str]](OFFERED_OTHERWISE)
    for path in list_pages(store, "POST"):
        form = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        fitting = [sent for action, sent in shown.items() if form.fullmatch(action)]
        found |= {path: fitting[0]} if fitting else {}
        assert path in found or not parameters(path), f"{path}: no page has this form; add it to OFFERED_OTHERWISE"
    return found


@pytest.fixture(scope="module")
def seen(store: Store, base_url: str) -> Iterator[Seen]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browser, "print_pdf", lambda _: b"%PDF")
        patch.setattr(isolation, "draw_page", lambda *_: b"PNG")
        found = Seen(HostileConsole(store, base_url))
        for path in (*list_pages(store), *found.console.more_pages()):
            for query in QUERIES.get(path, [""]):
                found.pages[path, query] = found.open(path, query)
        yield found


def parameters(path: str) -> list[str]:
    return [name for name in re.findall(r"\{(\w+)\}", path) if name not in SAME_FOR_ALL]


def kind(name: str) -> str:
    """Return the name of an id in the API: `customerId` for `customer_id`."""
    return re.sub("_(.)", lambda letter: letter[1].upper(), name)


def insert(path: str, ids: Mapping[str, str]) -> str:
    """Put ids into a path, by their names in the API."""
    for name in parameters(path):
        assert kind(name) in ids, f"{path}: teach Belongings in tests/api/conftest.py to make a {kind(name)}"
    return re.sub(r"\{(\w+)\}", lambda found: SAME_FOR_ALL.get(found[1]) or ids[kind(found[1])], path)


def test_hostile_texts_are_only_text(seen: Seen, base_url: str, subtests: pytest.Subtests) -> None:
    for (path, query), answer in seen.pages.items():
        with subtests.test(f"{path}?{query}"):
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"
            if answer.headers["content-type"].startswith("text/html"):
                assert find_injected(answer.text, base_url) == []
            else:
                assert answer.headers["content-type"] in ("application/octet-stream", "application/pdf", "image/png")
    shown = set(chain.from_iterable(names_in(page.text) for _, page in seen.html()))
    values = (each.attributes.get("value", "") for _, page in seen.html() for each in page.all("input"))
    shown |= set(chain.from_iterable(map(names_in, values)))
    assert seen.console.names - shown <= NOT_ON_PAGES


def test_hostile_queries_are_only_text(seen: Seen, store: Store, base_url: str, subtests: pytest.Subtests) -> None:
    """Everything that a page reads from its address is tried: the fields of its filters, and declared parameters."""
    queries = declared_queries(store)
    for path, page in seen.html():
        filters = [each for form in page.all("form") if form.attributes.get("method") == "get" for each in fields(form)]
        for name in {*queries.get(path, ()), *filters}:
            with subtests.test(f"{path}?{name}"):
                answer = seen.open(path, urlencode({name: hostile("query")}))
                assert answer.status_code in (200, 400, 404)
                assert find_injected(answer.text, base_url) == []


def declared_queries(store: Store) -> dict[str, list[str]]:
    routes = [context.original_route for context in iter_route_contexts(create_app(store).routes)]
    return {
        each.path: [param.alias for param in each.dependant.query_params]
        for each in routes
        if isinstance(each, PageRoute) and "GET" in (each.methods or ())
    }


def fields(form: Element) -> dict[str, str]:
    """Return what a browser would send if somebody filled in a form without much thought."""
    sent = {}
    for each in form.all("input", "select", "textarea", "button"):
        name, given = each.attributes.get("name"), each.attributes.get("value", "")
        chosen = next((option.attributes["value"] for option in each.all("option") if option.attributes["value"]), "")
        if name is not None and name not in sent and each.attributes.get("type") != "file":
            sent[name] = given or chosen or each.text or "1"
    return sent


def test_another_client_gets_what_an_unknown_id_gets(
    seen: Seen, store: Store, base_url: str, subtests: pytest.Subtests
) -> None:
    """Foreign ids are tried in each place of an address, with the stranger's own ids elsewhere; and in all at once."""
    stranger = Stranger(store, base_url)
    forms = find_forms(seen, store)
    for method in ("GET", "POST"):
        for path in list_pages(store, method):
            if method == "GET" and not parameters(path):
                with subtests.test(path):
                    assert names_in(stranger.visitor.get(path).text) == set()
            for places in {*((name,) for name in parameters(path)), tuple(parameters(path))} - {()}:
                with subtests.test(f"{method} {path} {places}"):
                    sent = forms.get(path) if method == "POST" else None
                    foreign = stranger.answer(path, {kind(name): seen.console[kind(name)] for name in places}, sent)
                    unknown = stranger.answer(path, {kind(name): str(uuid4()) for name in places}, sent)
                    assert foreign.startswith("404 ")
                    assert foreign == unknown


def test_forms_are_for_the_roles_with_their_scope(
    seen: Seen, store: Store, base_url: str, subtests: pytest.Subtests
) -> None:
    """The ids don't exist, so a role that may send a form is refused, too, but for another reason."""
    found = find_forms(seen, store)
    forms = {path: sent for path, sent in found.items() if path not in WITH_FILES and not path.startswith("/sign-in")}
    unknown = {kind(name): str(uuid4()) for path in forms for name in parameters(path)}
    for role in Role:
        visitor = visit_as(store, base_url, seen.console.user.client_id, role)
        for path, sent in forms.items():
            lowest = LOWEST_ROLES[max(filter(path.startswith, LOWEST_ROLES), key=len)]
            refused = list(Role).index(role) < list(Role).index(lowest)
            if refused or parameters(path):
                with subtests.test(f"{role} {path}"):
                    address = insert(path, seen.console if refused else unknown)
                    answer = visitor.send(address, {**sent, "csrf": visitor.csrf})
                    assert (answer.status_code == 403) is refused


def test_hostile_values_of_forms_are_only_text(
    seen: Seen, store: Store, base_url: str, subtests: pytest.Subtests
) -> None:
    """A hostile value is tried in each field by itself, whether the form is then refused or carried out."""
    admin = seen.console.admin
    for path, sent in find_forms(seen, store).items():
        for name in sent.keys() - {"csrf"}:
            with subtests.test(f"{path} {name}"):
                values = {**sent, name: hostile("posted"), "csrf": admin.csrf}
                require_only_text(admin.send(insert(path, seen.console), values), base_url)
    for name in ("email", "password", "next"):
        with subtests.test(f"/sign-in {name}"):
            values = {"email": "a@b.example", name: hostile(name)}
            require_only_text(Visitor(base_url).send("/sign-in", values), base_url)


def require_only_text(answer: requests.Response, base_url: str) -> None:
    assert answer.status_code < 500
    assert find_injected(answer.text, base_url) == []
    assert is_local(answer.headers.get("location", ""), base_url)
