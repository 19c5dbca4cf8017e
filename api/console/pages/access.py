"""Admin: users and API keys."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from api.console.calls import Refused
from api.console.declared import changed_fields
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.pages.wording import spell_out
from storage.access.roles import Role

router = APIRouter(route_class=PageRoute, prefix="/admin", include_in_schema=False)
ROWS = 50  # of a table on one page
ROLES = [(role, spell_out(role)) for role in Role]
LIFETIMES = (("", "No end"), ("30", "30 days"), ("90", "90 days"), ("365", "A year"))
OVERLAPS = (("0", "None: the old key ends now"), ("24", "A day"), ("168", "A week"), ("720", "30 days"))
SCOPES_IN_WORDS: Final[Mapping[str, str]] = {
    "customer:riskscore": "Refresh reports",
    "customer:reports": "Read reports and metrics, with the transactions behind them",
    "customer:completeness": "Read the completeness report",
    "customer:attributes": "Read and set attributes",
    "customer:delete": "Erase customers; nothing does so yet",
    "transactions:enrich": "Create customers, submit and correct transactions",
    "transactions:extract": "Upload PDF statements and exports",
    "transactions:aggregate": "Read transactions",
    "decision-policies:read": "Read policies",
    "decision-policies:evaluate": "Decide, and read decisions",
    "decision-policies:write": "Write drafts of policies, and backtest them",
    "decision-policies:publish": "Publish policies",
    "decision-policies:override": "Override decisions",
    "monitoring:rules": "Write and simulate rulesets, and read what they found",
    "webhooks:subscribe": "Manage webhooks",
    "customer:work": "Work on alerts and applications, with notes and attachments",
    "access:manage": "Manage users and keys, and read the audit trail",
}


@router.get("")
async def show_admin(_: SignedIn) -> Response:
    return RedirectResponse("/admin/users", 303)


@router.get("/users")
async def show_users(page: SignedIn) -> Response:
    found = await page.get("users", page=page.request.query_params.get("page", 1), count=ROWS)
    return page.show("admin-users.html", found=found)


@router.get("/users/new")
async def show_new_user(page: SignedIn) -> Response:
    return await _user_form(page, {"name": "", "email": "", "role": Role.ANALYST})


@router.post("/users")
async def create_user(page: SignedIn) -> Response:
    sent = _fields_of(await page.form(), "name", "email", "role")
    try:
        user = await page.post("users", json=sent)
    except Refused as refusal:
        return await _user_form(page, sent, refusal)
    return _show_link(page, user["name"], user["link"], user["linkExpiresAt"])


@router.get("/users/{user_id}")
async def show_user(page: SignedIn, user_id: str) -> Response:
    return await _show_user(page, user_id)


@router.post("/users/{user_id}")
async def change_user(page: SignedIn, user_id: str) -> Response:
    changed = changed_fields(await page.form(), ("name", "role"))
    try:
        await page.patch("users", user_id, json=changed)
    except Refused as refusal:
        return await _show_user(page, user_id, refusal)
    return page.to(f"/admin/users/{user_id}", "The user is changed.")


@router.post("/users/{user_id}/disable")
async def disable_user(page: SignedIn, user_id: str) -> Response:
    await page.check_form()
    try:
        await page.post("users", user_id, "disable")
    except Refused as refusal:
        return await _show_user(page, user_id, refusal)
    return page.to(f"/admin/users/{user_id}", "The user is disabled and signed out.")


@router.post("/users/{user_id}/erase")
async def erase_user(page: SignedIn, user_id: str) -> Response:
    await page.check_form()
    try:
        await page.delete("users", user_id)
    except Refused as refusal:
        return await _show_user(page, user_id, refusal)
    return page.to("/admin/users", "The user is erased.")


@router.post("/users/{user_id}/enable")
async def enable_user(page: SignedIn, user_id: str) -> Response:
    await page.check_form()
    await page.post("users", user_id, "enable")
    return page.to(f"/admin/users/{user_id}", "The user can sign in again.")


@router.post("/users/{user_id}/link")
async def make_link(page: SignedIn, user_id: str) -> Response:
    await page.check_form()
    user = await page.get("users", user_id)
    made = await page.post("users", user_id, "link")
    return _show_link(page, user["name"], made["link"], made["expiresAt"])


@router.get("/keys")
async def show_keys(page: SignedIn) -> Response:
    found = await page.get("keys", page=page.request.query_params.get("page", 1), count=ROWS)
    states = [_state(key) for key in found["keys"]]
    return page.show("admin-keys.html", found=found, states=states, meanings=SCOPES_IN_WORDS)


@router.get("/keys/new")
async def show_new_key(page: SignedIn) -> Response:
    return _key_form(page, FormData())


@router.post("/keys")
async def create_key(page: SignedIn) -> Response:
    form = await page.form()
    days = str(form.get("days", ""))
    expires_at = datetime.now(UTC) + timedelta(days=int(days)) if days in dict(LIFETIMES) and days else None
    sent = {"scopes": form.getlist("scope"), "expiresAt": None if expires_at is None else expires_at.isoformat()}
    try:
        key = await page.post("keys", json=sent)
    except Refused as refusal:
        return _key_form(page, form, refusal)
    return page.show("admin-key-made.html", made=key, meanings=SCOPES_IN_WORDS)


@router.get("/keys/{key_id}")
async def show_key(page: SignedIn, key_id: str) -> Response:
    """Show a key, and ask before it is replaced or revoked."""
    key = await page.get("keys", key_id)
    return page.show("admin-key.html", key=key, state=_state(key), overlaps=OVERLAPS, meanings=SCOPES_IN_WORDS)


@router.post("/keys/{key_id}/rotate")
async def rotate_key(page: SignedIn, key_id: str) -> Response:
    form = await page.form()
    overlap = str(form.get("overlap", ""))
    sent = {"overlapHours": int(overlap)} if overlap in dict(OVERLAPS) else {}
    made = await page.post("keys", key_id, "rotate", json=sent)
    return page.show("admin-key-made.html", made=made, meanings=SCOPES_IN_WORDS)


@router.post("/keys/{key_id}/revoke")
async def revoke_key(page: SignedIn, key_id: str) -> Response:
    await page.check_form()
    await page.post("keys", key_id, "revoke")
    return page.to("/admin/keys", "The key is revoked. Its next request is refused.")


async def _user_form(page: Page, given: Mapping[str, Any], refusal: Refused | None = None) -> Response:
    roles = (await page.get("roles"))["roles"]
    shown = {"given": given, "roles": roles, "choices": ROLES, "refusal": refusal}
    return page.show("admin-user-new.html", _status(refusal), **shown)


async def _show_user(page: Page, user_id: str, refusal: Refused | None = None) -> Response:
    user = await page.get("users", user_id)
    locked = user["lockedUntil"] is not None and datetime.fromisoformat(user["lockedUntil"]) > datetime.now(UTC)
    shown = {"person": user, "locked": locked, "roles": ROLES, "refusal": refusal}
    return page.show("admin-user.html", _status(refusal), **shown)


def _show_link(page: Page, name: str, link: str, expires_at: str) -> Response:
    url = page.request.url
    return page.show("admin-link.html", name=name, link=f"{url.scheme}://{url.netloc}{link}", expires_at=expires_at)


def _key_form(page: Page, form: FormData, refusal: Refused | None = None) -> Response:
    page.require("access:manage")
    sent = {"chosen": form.getlist("scope"), "days": form.get("days", "90")}
    offered = {"scopes": SCOPES_IN_WORDS, "lifetimes": LIFETIMES}
    return page.show("admin-key-new.html", _status(refusal), refusal=refusal, **offered, **sent)


def _fields_of(form: FormData, *names: str) -> dict[str, str]:
    return {name: str(form.get(name, "")) for name in names}


def _status(refusal: Refused | None) -> int:
    return 200 if refusal is None else refusal.status


def _state(key: Mapping[str, Any]) -> str:
    """Return what a key can do now: `live`, `replaced` while the overlap lasts, `expired` or `revoked`."""
    if key["revokedAt"] is not None:
        return "revoked"
    if key["expiresAt"] is not None and datetime.fromisoformat(key["expiresAt"]) <= datetime.now(UTC):
        return "expired"
    return "live" if key["rotatedTo"] is None else "replaced"
