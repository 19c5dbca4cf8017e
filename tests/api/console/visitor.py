"""A person with a browser: signs in, follows links and sends forms, without scripts."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import requests

from storage.access import users
from storage.access.roles import Role
from storage.access.users import User
from storage.core.store import Store
from tests.api.conftest import HTTP

MAX_REDIRECTS = 5
Fields = Mapping[str, object] | Sequence[tuple[str, str]]  # pairs for one that is sent several times


class Visitor:
    """Sends what a browser would: cookies, and the origin of forms."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.cookies: dict[str, str] = {}
        self._csrf: str | None = None

    def get(self, path: str, *, follows: bool = True, **options: Any) -> requests.Response:
        answer = self.call("GET", path, **options)
        for _ in range(MAX_REDIRECTS if follows else 0):
            if not answer.is_redirect:
                break
            answer = self.call("GET", answer.headers["location"])
        return answer

    def send(self, path: str, fields: Fields | None = None, **options: Any) -> requests.Response:
        """Send a form as it is, from a page of this site; redirects are not followed."""
        origin = {"origin": self.base_url} | dict(options.pop("headers", {}))
        return self.call("POST", path, data=fields, headers=origin, **options)

    def call(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= options.pop("headers", {})
        answer = HTTP.request(
            method, self.base_url + path, headers=headers, timeout=20, allow_redirects=False, **options
        )
        for text in answer.raw.headers.getlist("set-cookie"):
            for name, morsel in SimpleCookie(text).items():
                self.cookies[name] = morsel.value
                if morsel["max-age"] == "0":
                    del self.cookies[name]
        return answer

    def post(self, path: str, **fields: object) -> requests.Response:
        """Send a form of a signed-in user's page, and follow where it leads."""
        answer = self.send(path, {"csrf": self.csrf} | fields)
        return self.get(answer.headers["location"]) if answer.is_redirect else answer

    @property
    def csrf(self) -> str:
        if self._csrf is None:
            found = re.search('name="csrf" value="([0-9a-f]+)"', self.get("/account").text)
            assert found is not None, "nobody is signed in"
            self._csrf = found[1]
        return self._csrf


def new_user(store: Store, client_id: UUID, role: Role = Role.ANALYST) -> User:
    with store.db.writing() as w:
        return users.create(w, client_id, f"{uuid4()}@example.com", f"Ada, {role}", role, datetime.now(UTC))


def visit_as(store: Store, base_url: str, client_id: UUID, role: Role) -> Visitor:
    """Return a new user of this role who is signed in."""
    return sign_in(store, base_url, new_user(store, client_id, role))


def sign_in(store: Store, base_url: str, user: User) -> Visitor:
    """Sign a user in by a link."""
    with store.db.writing() as w:
        token = users.create_link(w, user, datetime.now(UTC) + timedelta(hours=1))
    visitor = Visitor(base_url)
    answer = visitor.send("/sign-in/link", {"token": token})
    assert (answer.status_code, urlsplit(answer.headers["location"]).path) == (303, "/"), answer.text
    return visitor
