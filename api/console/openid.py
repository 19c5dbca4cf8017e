"""Signing in with an OpenID Connect provider: the authorisation code flow with PKCE.

A user is found by the email address that the provider has verified; nobody is created. What ties the two requests of a
browser together is one secret in a short-lived cookie: state, nonce and the PKCE verifier are derived from it, so a
response of the provider counts only in the browser that asked, and only once.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, cast
from urllib.parse import quote, unquote

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from fastapi import APIRouter, Query
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.console.routes import PageRoute
from api.console.signing_in import record_refusal, sign_in_page, start_session
from api.console.visits import local_path, with_session
from api.core.limits import Limits
from storage.access import users
from storage.core.settings import Settings
from storage.core.store import Store

router = APIRouter(route_class=PageRoute, prefix="/sign-in/openid", include_in_schema=False)
BACK: Final = "/sign-in/openid/back"
COOKIE_LASTS_S: Final = 600  # as long as a person may take at the provider: our judgement
TIMEOUT_S: Final = (5.0, 10.0)  # to connect to the provider, and between the bytes of its response: our judgement
LEEWAY_S: Final = 60  # by which the provider's clock may differ: our judgement
# Asymmetric ones only: with a symmetric one, whoever knows the provider's public key could sign.
ALGORITHMS: Final = tuple(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512))

PLACES: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")

OTHER_BROWSER = "This sign-in was begun in another browser, or took too long. Try again."
REFUSED = "The provider did not confirm who you are. Try again, or sign in with a password."
UNREACHABLE = "The provider can't be reached at the moment. Try again later, or sign in with a password."
UNVERIFIED = "The provider has not verified your email address."
NO_USER = "There is no user with your email address, or it is disabled. Ask an admin of your organisation."


class SignInRefused(Exception):
    """The person is not signed in. The message is for the person."""


@dataclass(frozen=True)
class Attempt:
    """A sign-in of one browser. `secret` is known to the browser and this service only."""

    secret: str
    then: str  # where to go afterwards

    @property
    def state(self) -> str:
        return self._derive(b"state")

    @property
    def nonce(self) -> str:
        return self._derive(b"nonce")

    @property
    def verifier(self) -> str:
        return self._derive(b"verifier")

    def _derive(self, name: bytes) -> str:
        return hmac.new(self.secret.encode(), name, hashlib.sha256).hexdigest()


class Provider:
    """The OpenID Connect provider that is configured."""

    def __init__(self, settings: Settings) -> None:
        self._issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        self._client_secret = settings.oidc_client_secret.get_secret_value()
        self._back = settings.public_url + BACK

    def address(self, attempt: Attempt) -> str:
        """Return the address at which the provider asks the person to sign in.

        Raises:
            SignInRefused: the provider can't be reached.
        """
        session, described = self._session()
        address, _ = session.create_authorization_url(
            described["authorization_endpoint"],
            state=attempt.state,
            nonce=attempt.nonce,
            code_verifier=attempt.verifier,
        )
        return str(address)

    def email(self, attempt: Attempt, code: str) -> str:
        """Return the verified email address of the person whom the provider gave this code for.

        Raises:
            SignInRefused: the provider can't be reached, or doesn't vouch for an address.
        """
        session, described = self._session()
        try:
            token = session.fetch_token(described["token_endpoint"], code=code, code_verifier=attempt.verifier)
            keys = KeySet.import_key_set(cast("Any", _json(session, described["jwks_uri"])))
            read = jwt.decode(token["id_token"], keys, list(ALGORITHMS))
            self._claims(read, attempt, str(token.get("access_token", ""))).validate(leeway=LEEWAY_S)
        except requests.RequestException as error:
            raise SignInRefused(UNREACHABLE) from error
        except (AuthlibBaseError, JoseError, ValueError, LookupError, TypeError) as error:
            raise SignInRefused(REFUSED) from error
        address = read.claims.get("email")
        if read.claims.get("email_verified") is not True or not isinstance(address, str):
            raise SignInRefused(UNVERIFIED)
        return address

    def _claims(self, read: jwt.Token, attempt: Attempt, access_token: str) -> CodeIDToken:
        needed = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        known = {"nonce": attempt.nonce, "client_id": self._client_id, "access_token": access_token}
        return CodeIDToken(read.claims, read.header, needed, known)

    def _session(self) -> tuple[OAuth2Session, Mapping[str, Any]]:
        """Return a session, and how the provider describes itself.

        Raises:
            SignInRefused: the provider can't be reached, or describes itself as another one.
        """
        session = OAuth2Session(
            self._client_id,
            self._client_secret,
            scope="openid email",
            redirect_uri=self._back,
            code_challenge_method="S256",
            default_timeout=TIMEOUT_S,
        )
        try:
            described = _json(session, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        except (requests.RequestException, ValueError) as error:
            raise SignInRefused(UNREACHABLE) from error
        if described.get("issuer") != self._issuer or not all(isinstance(described.get(each), str) for each in PLACES):
            raise SignInRefused(REFUSED)
        if "client_secret_basic" not in described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
            session.token_endpoint_auth_method = "client_secret_post"
        return session, described


@router.get("")
async def begin(request: Request, then: Annotated[str, Query(alias="next")] = "/") -> Response:
    """Send the browser to the provider."""
    settings: Settings = request.app.state.store.settings
    if not settings.oidc_issuer:
        return RedirectResponse("/sign-in", 303)
    attempt = Attempt(secrets.token_urlsafe(32), local_path(then))
    _count(request)
    try:
        address = await run_in_threadpool(Provider(settings).address, attempt)
    except SignInRefused as refusal:
        return sign_in_page(request, attempt.then, fault=str(refusal), status=503)
    response = RedirectResponse(address, 303)
    is_https = request.url.scheme == "https"
    response.set_cookie(
        _cookie_name(request),
        f"{attempt.secret}.{quote(attempt.then, safe='')}",
        max_age=COOKIE_LASTS_S,
        httponly=True,
        samesite="lax",
        secure=is_https,
    )
    return response


@router.get("/back")
async def come_back(
    request: Request, state: Annotated[str, Query()] = "", code: Annotated[str, Query()] = ""
) -> Response:
    """Sign the person in whom the provider vouches for."""
    settings: Settings = request.app.state.store.settings
    if not settings.oidc_issuer:
        return RedirectResponse("/sign-in", 303)
    _count(request)
    attempt = _attempt(request)
    try:
        token = await run_in_threadpool(_sign_in, request, Provider(settings), attempt, state, code)
        response = with_session(RedirectResponse(attempt.then, 303), request, token)
    except SignInRefused as refusal:
        response = sign_in_page(request, attempt.then, fault=str(refusal), status=401)
    response.delete_cookie(_cookie_name(request), secure=request.url.scheme == "https", httponly=True, samesite="lax")
    return response


def _sign_in(request: Request, provider: Provider, attempt: Attempt, state: str, code: str) -> str:
    """Return the token of a new session.

    Raises:
        SignInRefused: this browser didn't ask, or the provider vouches for nobody, or for nobody who is a user.
    """
    if not attempt.secret or not hmac.compare_digest(state.encode(), attempt.state.encode()):
        raise SignInRefused(OTHER_BROWSER)
    if not code:
        raise SignInRefused(REFUSED)
    email = provider.email(attempt, code)
    store: Store = request.app.state.store
    now = datetime.now(UTC)
    with store.db.writing() as w:
        user = users.with_email(w, email)
        if user is not None and user.disabled_at is None:
            return start_session(w, request, user, now)
        record_refusal(w, request, user, counts=False, now=now)
    raise SignInRefused(NO_USER)


def _count(request: Request) -> None:
    """Count the request as one without a good key, because each causes requests to the provider.

    Raises:
        RateLimited: there were too many from this address.
    """
    limits: Limits = request.app.state.limits
    limits.count_wrong_key(request.scope)


def _attempt(request: Request) -> Attempt:
    secret, _, then = request.cookies.get(_cookie_name(request), "").partition(".")
    return Attempt(secret, local_path(unquote(then)))


def _cookie_name(request: Request) -> str:
    return "__Host-tidemark_openid" if request.url.scheme == "https" else "tidemark_openid"


def _json(session: OAuth2Session, url: str) -> dict[str, Any]:
    response = session.get(url, withhold_token=True)
    response.raise_for_status()
    found = response.json()
    if not isinstance(found, dict):
        raise ValueError("the provider's response is not a JSON object")
    return found
