"""Admin: the audit trail, with the names of what its entries concern."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Correctable, Refused
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.pages.wording import abn, spell_out
from storage.decisions.policies import MAX_POLICIES

router = APIRouter(route_class=PageRoute, prefix="/admin", include_in_schema=False)
ROWS = 25  # on a page, which requests the name of each of their subjects
REQUESTS_AT_ONCE = 4  # of one page, so that it leaves most of the service to others
NO_NAME: Final = "Customer without a name"


@dataclass(frozen=True)
class Subject:
    """What an id of an entry stands for: its name, and the address of its page if it has one."""

    name: str
    path: str | None


@dataclass(frozen=True)
class Kind:
    """How the things of a kind are found: the route and the page that take the id, and the name in the response."""

    route: tuple[str, ...]
    page: str
    name: Callable[[Mapping[str, Any]], str]


KINDS: Final[Mapping[str, Kind]] = {
    "customerId": Kind(("customer",), "/customers", lambda found: found["name"] or abn(found["abn"])),
    "rulesetId": Kind(("monitoring", "rulesets"), "/rulesets", lambda found: found["name"]),
    "subscriptionId": Kind(
        ("webhooks", "subscriptions"), "/admin/webhooks", lambda found: f"{found['eventType']} to {found['webhookUrl']}"
    ),
    "evaluationId": Kind(
        ("evaluations",), "/evaluations", lambda found: f"{found['policyName']}: {spell_out(found['outcome'])}"
    ),
    "matchId": Kind(
        ("alerts",), "/alerts", lambda found: f"{found['ruleset']['name']}, {found['customerName'] or NO_NAME}"
    ),
}
ACTORS: Final = ("userId", "keyId", "successorKeyId", "requestedBy")  # names of ids that stand for users and keys


@router.get("/audit")
async def show_audit(
    page: SignedIn,
    who: Annotated[str, Query()] = "",
    action: Annotated[str, Query()] = "",
    since: Annotated[str, Query()] = "",
    cursor: Annotated[str, Query()] = "",
) -> Response:
    start = _start_of(since, page.request.app.state.store.settings.zone)
    found = await page.get("audit", who=who, action=action, since=start, cursor=cursor, count=ROWS)
    users = {user["userId"]: f"/admin/users/{user['userId']}" for user in (await page.get("users"))["users"]}
    keys = {key["keyId"]: f"/admin/keys/{key['keyId']}" for key in (await page.get("keys"))["keys"]}
    actor_ids = [*users, *keys, "operator", "service"]
    concerned = {pair for entry in found["entries"] for pair in entry["resource"].items() if isinstance(pair[1], str)}
    who_acted = (entry["who"] for entry in found["entries"])
    about_actors = {pair for pair in concerned if pair[0] in ACTORS}
    names = await page.names([*actor_ids, *who_acted, *(id_ for _, id_ in about_actors)])
    subjects = await _find_subjects(page, concerned - about_actors)
    subjects |= {(name, id_): Subject(names[id_], (users | keys).get(id_)) for name, id_ in about_actors}
    shown: dict[str, Any] = {"filters": {"who": who, "action": action, "since": since}, "subjects": subjects}
    shown["actors"] = [("", "Everybody"), *((each, names[each]) for each in actor_ids)]
    shown["actions"] = await _list_actions(page, action)
    return page.show("admin-audit.html", found=found, names=names, action_words=_action_words, **shown)


async def _list_actions(page: Page, chosen: str) -> list[tuple[str, str]]:
    """Return the options of the filter by action, including the chosen one even if no entry has it."""
    done = {*(await page.get("audit", "actions"))["actions"], *filter(None, [chosen])}
    return [("", "All"), *sorted(((each, _action_words(each)) for each in done), key=lambda option: option[1])]


async def _find_subjects(page: Page, concerned: Collection[tuple[str, str]]) -> dict[tuple[str, str], Subject]:
    """Return what ids stand for, by the id's name, such as `customerId`, and the id. What is gone is left out."""
    known = [(name, id_) for name, id_ in concerned if name in KINDS]
    requests = asyncio.Semaphore(REQUESTS_AT_ONCE)
    subjects = await asyncio.gather(*(_find_subject(page, KINDS[name], id_, requests) for name, id_ in known))
    found = {each: subject for each, subject in zip(known, subjects, strict=True) if subject is not None}
    if any(name == "policyId" for name, _ in concerned):
        which = {"includeDrafts": True, "includeArchived": True, "page": 1, "pageSize": MAX_POLICIES}
        for policy in (await page.get("decision-policies", **which))["items"]:
            found["policyId", policy["policyId"]] = Subject(policy["name"], f"/policies/{policy['slug']}")
    return found


async def _find_subject(page: Page, kind: Kind, id_: str, requests: asyncio.Semaphore) -> Subject | None:
    async with requests:
        try:
            return Subject(kind.name(await page.get(*kind.route, id_)), f"{kind.page}/{id_}")
        except Correctable:
            raise
        except Refused:
            return None


def _action_words(action: str) -> str:
    """Write `Policy.BacktestRequested` as `Policy backtest requested`."""
    return spell_out(action[:1].lower() + action[1:].replace(".", ""))


def _start_of(day: str, zone: ZoneInfo) -> str:
    """Return the moment when a day begins. Return other text as it is: the API refuses it."""
    try:
        return datetime.combine(date.fromisoformat(day), time(), zone).isoformat()
    except ValueError:
        return day
