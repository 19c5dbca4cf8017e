"""Admin: the audit trail, with the names of what its entries concern."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.pages.wording import spell_out

router = APIRouter(route_class=PageRoute, prefix="/admin", include_in_schema=False)
ROWS = 25  # on a page


@dataclass(frozen=True)
class Subject:
    """What an id of an entry stands for: its title, and the address of its page if it has one."""

    name: str
    path: str | None


PAGES: Final[Mapping[str, str]] = {  # of what ids stand for, by the id's name
    "customerId": "/customers",
    "rulesetId": "/rulesets",
    "subscriptionId": "/admin/webhooks",
    "evaluationId": "/evaluations",
    "matchId": "/alerts",
    "policyId": "/policies",
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
    which = {"who": who, "action": action, "since": start, "cursor": cursor}
    found = await page.get("audit", **which, count=ROWS, includeSubjects=True)
    users = {user["userId"]: f"/admin/users/{user['userId']}" for user in (await page.get("users"))["users"]}
    keys = {key["keyId"]: f"/admin/keys/{key['keyId']}" for key in (await page.get("keys"))["keys"]}
    actor_ids = [*users, *keys, "operator", "service"]
    about_actors = {
        (name, id_) for entry in found["entries"] for name, id_ in entry["resource"].items() if name in ACTORS
    }
    who_acted = (entry["who"] for entry in found["entries"])
    names = await page.names([*actor_ids, *who_acted, *(id_ for _, id_ in about_actors)])
    subjects = {(each["name"], each["id"]): _link(each) for each in found["subjects"]}
    subjects |= {(name, id_): Subject(names[id_], (users | keys).get(id_)) for name, id_ in about_actors}
    shown: dict[str, Any] = {"filters": {"who": who, "action": action, "since": since}, "subjects": subjects}
    shown["actors"] = [("", "Everybody"), *((each, names[each]) for each in actor_ids)]
    shown["actions"] = await _list_actions(page, action)
    return page.show("admin-audit.html", found=found, names=names, action_words=_action_words, **shown)


async def _list_actions(page: Page, chosen: str) -> list[tuple[str, str]]:
    """Return the options of the filter by action, including the chosen one even if no entry has it."""
    done = {*(await page.get("audit", "actions"))["actions"], *filter(None, [chosen])}
    return [("", "All"), *sorted(((each, _action_words(each)) for each in done), key=lambda option: option[1])]


def _link(subject: Mapping[str, Any]) -> Subject:
    return Subject(subject["title"], f"{PAGES[subject['name']]}/{subject['slug'] or subject['id']}")


def _action_words(action: str) -> str:
    """Write `Policy.BacktestRequested` as `Policy backtest requested`."""
    return spell_out(action[:1].lower() + action[1:].replace(".", ""))


def _start_of(day: str, zone: ZoneInfo) -> str:
    """Return the moment when a day begins. Return other text as it is: the API refuses it."""
    try:
        return datetime.combine(date.fromisoformat(day), time(), zone).isoformat()
    except ValueError:
        return day
