"""Signing in with an OpenID Connect provider, which may be wrong, slow or somebody else's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from time import time
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from pydantic import SecretStr, ValidationError

from api.console import openid
from storage.access import keys, users
from storage.access.roles import Role
from storage.access.users import User
from storage.core import audit
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store
from tests.api.conftest import answering
from tests.api.console.provider import CLIENT_ID, CLIENT_SECRET, STRANGE_KEY, Provider, answering_provider
from tests.api.console.visitor import Visitor
from tests.conftest import open_store

PUBLIC = "https://tidemark.lender.example"
EMAIL = "ada@lender.example"


@dataclass
class Site:
    store: Store
    url: str
    provider: Provider
    user: User

    def begin(self, then: str = "/account") -> tuple[Visitor, str, str]:
        """Return a browser that was sent to the provider, the address there, and the state for the way back."""
        visitor = Visitor(self.url)
        address = visitor.get(f"/sign-in/openid?next={then}", follows=False).headers["location"]
        return visitor, address, parse_qs(urlsplit(address).query)["state"][0]

    def sign_in(self, **claims: object) -> requests.Response:
        """Sign in with these claims; return the answer to the way back."""
        visitor, address, state = self.begin()
        code = self.provider.confirm(address, **{"email": EMAIL, "email_verified": True} | claims)
        return back(visitor, state, code)


def back(visitor: Visitor, state: str, code: str) -> requests.Response:
    return visitor.get(f"/sign-in/openid/back?state={state}&code={code}", follows=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with answering_provider() as provider:
        settings = Settings(
            home=tmp_path_factory.mktemp("home"),
            public_url=PUBLIC,
            oidc_issuer=provider.issuer,
            oidc_client_id=CLIENT_ID,
            oidc_client_secret=SecretStr(CLIENT_SECRET),
        )
        store = open_store(settings)
        now = datetime.now(UTC)
        with store.db.writing() as w:
            client = keys.create_client(w, "Lender", decision_policies=True, now=now)
            user = users.create(w, client.client_id, EMAIL, "Ada", Role.ANALYST, now)
        with answering(store) as url:
            yield Site(store, url, provider, user)
        store.close()


def test_person_signs_in_with_a_verified_address(site: Site) -> None:
    page = Visitor(site.url).get("/sign-in?next=/account").text
    assert f"Sign in with {urlsplit(site.provider.issuer).netloc}" in page
    assert "/sign-in/openid?next=/account" in page
    visitor, address, state = site.begin()
    assert address.startswith(f"{site.provider.issuer}/authorize?")
    assert parse_qs(urlsplit(address).query)["redirect_uri"] == [f"{PUBLIC}/sign-in/openid/back"]
    code = site.provider.confirm(address, email=EMAIL.upper(), email_verified=True)
    answer = back(visitor, state, code)
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert "Ada" in visitor.get("/account").text
    assert "tidemark_openid" not in visitor.cookies
    with site.store.db.reading() as r:
        assert audit.find(r, site.user.client_id)[0].action == "User.SignedIn"


def test_what_the_provider_does_not_vouch_for_is_refused(site: Site, subtests: pytest.Subtests) -> None:
    now = int(time())
    cases: dict[str, tuple[str, dict[str, object]]] = {
        "wrong nonce": (openid.REFUSED, {"nonce": "another"}),
        "no nonce": (openid.REFUSED, {"nonce": None}),
        "wrong audience": (openid.REFUSED, {"aud": "another"}),
        "several audiences, another's token": (openid.REFUSED, {"aud": [CLIENT_ID, "another"], "azp": "another"}),
        "wrong issuer": (openid.REFUSED, {"iss": "https://another.example"}),
        "no issuer": (openid.REFUSED, {"iss": None}),
        "expired": (openid.REFUSED, {"exp": now - 120}),
        "without an end": (openid.REFUSED, {"exp": None}),
        "of the future": (openid.REFUSED, {"iat": now + 3600}),
        "unverified address": (openid.UNVERIFIED, {"email_verified": False}),
        "address verified in words": (openid.UNVERIFIED, {"email_verified": "true"}),
        "nothing about verification": (openid.UNVERIFIED, {"email_verified": None}),
        "no address": (openid.UNVERIFIED, {"email": None}),
        "several addresses": (openid.UNVERIFIED, {"email": [EMAIL]}),
        "unknown user": (openid.NO_USER, {"email": "nobody@lender.example"}),
    }
    for name, (sentence, claims) in cases.items():
        with subtests.test(name):
            answer = site.sign_in(**claims)
            assert (answer.status_code, sentence in answer.text) == (401, True), answer.text
            assert "tidemark_session" not in answer.headers.get("set-cookie", "")


def test_disabled_user_is_not_signed_in(site: Site) -> None:
    with site.store.db.writing() as w:
        users.disable(w, site.user, datetime.now(UTC))
    try:
        assert openid.NO_USER in site.sign_in().text
        with site.store.db.reading() as r:
            refused = audit.find(r, site.user.client_id)[0]
        assert (refused.action, refused.resource) == ("User.SignInRefused", {"userId": str(site.user.user_id)})
    finally:
        with site.store.db.writing() as w:
            users.enable(w, site.user)


def test_answer_counts_once_and_in_the_browser_that_asked(site: Site, subtests: pytest.Subtests) -> None:
    visitor, address, state = site.begin()
    cookies = dict(visitor.cookies)
    code = site.provider.confirm(address, email=EMAIL, email_verified=True)

    def confirm() -> str:
        return site.provider.confirm(address, email=EMAIL, email_verified=True)

    tries: dict[str, Callable[[], requests.Response]] = {
        "in another browser": lambda: back(Visitor(site.url), state, confirm()),
        "in a browser that asked for itself": lambda: back(site.begin()[0], state, confirm()),
        "with another state": lambda: back(site.begin()[0], "0" * 64, confirm()),
        "without a state": lambda: back(site.begin()[0], "", confirm()),
    }
    for name, attempt in tries.items():
        with subtests.test(name):
            answer = attempt()
            assert (answer.status_code, openid.OTHER_BROWSER in answer.text) == (401, True)
    assert back(visitor, state, code).status_code == 303
    with subtests.test("again"):
        assert openid.OTHER_BROWSER in back(visitor, state, code).text
    with subtests.test("again, with a cookie that was kept"):
        thief = Visitor(site.url)
        thief.cookies.update(cookies)
        assert openid.REFUSED in back(thief, state, code).text
    with subtests.test("a code of another attempt"):
        other, _, its_state = site.begin()
        assert openid.REFUSED in back(other, its_state, confirm()).text, "the PKCE verifier is another's"
    with subtests.test("no code"):
        other, _, its_state = site.begin()
        assert openid.REFUSED in back(other, its_state, "").text


def test_provider_that_is_wrong_or_away_is_a_sentence(
    site: Site, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    with subtests.test("a strange signature"), monkeypatch.context() as patch:
        patch.setattr(site.provider, "signs_with", STRANGE_KEY)
        assert openid.REFUSED in site.sign_in().text
    cases = {
        "another issuer": ({"issuer": "https://another.example"}, openid.REFUSED),
        "no endpoint": ({"token_endpoint": None}, openid.REFUSED),
        "keys at a closed port": ({"jwks_uri": "http://127.0.0.1:9/keys"}, openid.UNREACHABLE),
    }
    for name, (described, sentence) in cases.items():
        visitor, address, state = site.begin()
        with subtests.test(name), monkeypatch.context() as patch:
            patch.setattr(site.provider, "described_as", described)
            code = site.provider.confirm(address, email=EMAIL, email_verified=True)
            assert sentence in unescape(back(visitor, state, code).text)
    with subtests.test("at the beginning"), monkeypatch.context() as patch:
        patch.setattr(site.provider, "described_as", {"issuer": "https://another.example"})
        answer = Visitor(site.url).get("/sign-in/openid", follows=False)
        assert (answer.status_code, openid.REFUSED in answer.text) == (503, True)


def test_next_leads_to_this_site_only(site: Site) -> None:
    visitor, address, state = site.begin("https://evil.example")
    code = site.provider.confirm(address, email=EMAIL, email_verified=True)
    assert back(visitor, state, code).headers["location"] == "/"


def test_incomplete_settings_are_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    whole = {
        "public_url": PUBLIC,
        "oidc_issuer": "https://login.example",
        "oidc_client_id": "a",
        "oidc_client_secret": SecretStr("b"),
    }
    for missing in whole.keys() - {"oidc_issuer"}:
        given = {name: value for name, value in whole.items() if name != missing}
        with subtests.test(missing), pytest.raises(SettingsError, match=f"needs TIDEMARK_{missing.upper()}"):
            Settings(home=tmp_path, **given).prepare()  # pyrefly: ignore[bad-argument-type]
    for wrong in ({"oidc_issuer": "http://login.example"}, {"public_url": "https://a.example/path"}):
        with subtests.test(str(wrong)), pytest.raises(ValidationError):
            Settings(home=tmp_path, **whole | wrong)  # pyrefly: ignore[bad-argument-type]
