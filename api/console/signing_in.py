"""Signing in by password or by a link, signing out, and a user's own password."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.console import rendering
from api.console.routes import PageRoute
from api.console.visits import (
    Page,
    SignedIn,
    SignInNeeded,
    local_path,
    read_form,
    signed_in,
    with_session,
    without_session,
)
from api.core.limits import Limits
from pipelines.vocabulary.errors import InvalidRequest
from storage.access import passwords, sessions, users
from storage.access.users import User
from storage.core import audit
from storage.core.audit import ANONYMOUS, Actor, Outcome
from storage.core.database import Writing
from storage.core.settings import Settings
from storage.core.store import Store

Result = TypeVar("Result")

router = APIRouter(route_class=PageRoute, include_in_schema=False)
WRONG = "This email address and password don't match, or the account is locked for some minutes."
ENDED_LINK = "This link was used or has expired. Ask for a new one."
UNSENT = "Your session had ended, so nothing was stored or changed. Sign in to go back to the form."


@router.get("/sign-in")
async def show_sign_in(
    request: Request, then: Annotated[str, Query(alias="next")] = "/", unsent: Annotated[str, Query()] = ""
) -> Response:
    try:
        await signed_in(request)
    except SignInNeeded:
        return sign_in_page(request, then, fault=UNSENT if unsent else "")
    return RedirectResponse(local_path(then), 303)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Start a session for the right password. Wrong ones count against the user.

    Every attempt counts against its address before the password is checked, because a check costs memory and time.
    """
    limits: Limits = request.app.state.limits
    limits.count_wrong_key(request.scope)
    form = await read_form(request)
    email, password, then = (str(form.get(name, "")) for name in ("email", "password", "next"))
    token = await _hash_in_turn(request, partial(_sign_in_by_password, request, email, password))
    if token is None:
        return sign_in_page(request, then, email, WRONG, 401)
    return with_session(RedirectResponse(local_path(then), 303), request, token)


@router.get("/sign-in/link")
async def show_link(request: Request, token: Annotated[str, Query()] = "") -> Response:
    """Ask to use the link. The question is a form, because mail programs follow links before people do."""
    return rendering.render_page("link.html", {"token": token}, request.app.state.store.settings.zone)


@router.post("/sign-in/link")
async def sign_in_by_link(request: Request) -> Response:
    form = await read_form(request)
    token = await run_in_threadpool(_sign_in_by_link, request, str(form.get("token", "")))
    if token is None:
        limits: Limits = request.app.state.limits
        limits.count_wrong_key(request.scope)
        return sign_in_page(request, "/", "", ENDED_LINK, 401)
    return with_session(RedirectResponse("/", 303), request, token)


@router.post("/sign-out")
async def sign_out(page: SignedIn) -> Response:
    await page.check_form()
    await run_in_threadpool(_sign_out, page)
    return without_session(RedirectResponse("/sign-in", 303), page.request)


@router.get("/account")
async def show_account(page: SignedIn) -> Response:
    return page.show("account.html", fault="", shortest=passwords.SHORTEST)


@router.post("/account/password")
async def change_password(page: SignedIn) -> Response:
    """Change the user's own password, which ends all other sessions of the user."""
    form = await page.form()
    old, new, again = (str(form.get(name, "")) for name in ("old", "new", "again"))
    try:
        token = await _hash_in_turn(page.request, partial(_change_password, page, old, new, again))
    except InvalidRequest as refusal:
        return page.show("account.html", 400, fault=refusal.detail, shortest=passwords.SHORTEST)
    return with_session(page.to("/account", "The password is changed."), page.request, token)


def sign_in_page(request: Request, then: str, email: str = "", fault: str = "", status: int = 200) -> Response:
    """Show the form, why the last attempt failed, and the way to the OpenID Connect provider if there is one."""
    settings: Settings = request.app.state.store.settings
    provider = urlsplit(settings.oidc_issuer).netloc
    values = {"next": local_path(then), "email": email, "fault": fault, "provider": provider}
    return rendering.render_page("sign-in.html", values, settings.zone, status)


async def _hash_in_turn(request: Request, work: Callable[[], Result]) -> Result:
    """Run, in a thread, work that hashes passwords, when it is this visitor's turn."""
    limits: Limits = request.app.state.limits
    async with limits.hashing.turn(request.state.held.requester):
        return await run_in_threadpool(work)


def _sign_in_by_password(request: Request, email: str, password: str) -> str | None:
    """Return the token of a new session, or None. It takes equally long for any address."""
    store: Store = request.app.state.store
    now = datetime.now(UTC)
    with store.db.reading() as r:
        user = users.with_email(r, email)
    may_sign_in = user is not None and user.may_sign_in(now)
    is_right = passwords.verify_password(password, user.password_hash if user is not None and may_sign_in else None)
    with store.db.writing() as w:
        if user is not None and is_right:
            users.forget_failures(w, user)
            return start_session(w, request, user, now)
        record_refusal(w, request, user, counts=may_sign_in, now=now)
    return None


def record_refusal(w: Writing, request: Request, user: User | None, *, counts: bool, now: datetime) -> None:
    """Write in the audit trail that somebody was not signed in. If it counts, it may lock the user out."""
    if user is None:
        audit.append(w, _actor(request, None), "User.SignInRefused", {}, now, outcome=Outcome.REFUSED)
        return
    locks = counts and users.count_failure(w, user, now)
    actor, ids = _actor(request, user), {"userId": user.user_id}
    audit.append(w, actor, "User.LockedOut" if locks else "User.SignInRefused", ids, now, outcome=Outcome.REFUSED)


def _sign_in_by_link(request: Request, link: str) -> str | None:
    store: Store = request.app.state.store
    now = datetime.now(UTC)
    with store.db.writing() as w:
        user = users.follow_link(w, link, now)
        return None if user is None else start_session(w, request, user, now)


def start_session(w: Writing, request: Request, user: User, now: datetime) -> str:
    """Return the token of a new session, which the audit trail records."""
    audit.append(w, _actor(request, user), "User.SignedIn", {"userId": user.user_id}, now)
    return sessions.start(w, user, now)


def _sign_out(page: Page) -> None:
    store: Store = page.request.app.state.store
    user = page.session.user
    with store.db.writing() as w:
        sessions.end(w, page.session)
        audit.append(w, _actor(page.request, user), "User.SignedOut", {"userId": user.user_id}, datetime.now(UTC))


def _change_password(page: Page, old: str, new: str, again: str) -> str:
    """Return the token of a new session.

    Raises:
        InvalidRequest: the old password is wrong, or the new one can't be used.
    """
    user = page.session.user
    if user.password_hash is not None and not passwords.verify_password(old, user.password_hash):
        raise InvalidRequest("User.WrongPassword", "The old password is wrong.")
    if new != again:
        raise InvalidRequest("User.PasswordsDiffer", "The new password was typed in two different ways.")
    password_hash = passwords.hash_password(new)
    store: Store = page.request.app.state.store
    now = datetime.now(UTC)
    with store.db.writing() as w:
        users.set_password(w, user, password_hash)
        audit.append(w, _actor(page.request, user), "User.PasswordChanged", {"userId": user.user_id}, now)
        return sessions.start(w, user, now)


def _actor(request: Request, user: User | None) -> Actor:
    who, client_id = (ANONYMOUS, None) if user is None else (str(user.user_id), user.client_id)
    return Actor(who, client_id, request.state.request_id, request.state.own_request_id)
