"""What a lender knows of a customer besides its transactions: attributes and related parties, to be changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.datastructures import FormData
from starlette.responses import Response

from api.console import declared
from api.console.calls import Correctable, retry
from api.console.moments import add_offset
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from api.customers.schemas.related_parties import ROLES
from pipelines.pages.wording import spell_out

router = APIRouter(route_class=PageRoute, prefix="/customers/{customer_id}", include_in_schema=False)
KINDS: Final[Mapping[str, str]] = {"string": "Text", "decimal": "Number", "boolean": "Yes or no"}
ATTRIBUTE: Final = ("name", "kind", "value", "source", "evidenceDate", "expiresAt")
PARTY: Final = ("name", "abn", "role")
PARTY_ROLES: Final = [(role, spell_out(role)) for role in ROLES]
ONE_LINE: Final = ("source", "evidenceDate", "expiresAt")  # fields of an attribute besides its name and value
CHANGED: Final = "Customer.ChangedMeanwhile"
MEANWHILE: Final = "Console.ChangedMeanwhile"
SEEN_ATTRIBUTE: Final = "Somebody else changed this attribute meanwhile, so nothing was stored."
SEEN_LIST: Final = "The list was changed meanwhile, so nothing was stored. Choose the party again."
AGAIN: Final = "To store it in place of what is listed now, send the form again."
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
Faults = Mapping[str, str]  # by the name of a field; "" is the whole form


@router.get("/details")
async def show_details(
    page: SignedIn, customer_id: str, attribute: Annotated[str, Query()] = "", party: Annotated[str, Query()] = ""
) -> Response:
    """Show attributes and related parties, with forms: of the attribute, and of the party at a position of the list."""
    return await _show(page, customer_id, attribute, declared.as_whole(party))


@router.post("/attributes")
async def set_attribute(page: SignedIn, customer_id: str) -> Response:
    """Store the attribute, unless somebody else has changed it since the page showed it."""
    sent = _fields_of(await page.form(), (*ATTRIBUTE, "seen"))

    async def store() -> None:
        stored, known = await _read_attributes(page, customer_id)
        current = stored.get(sent["name"].strip())
        if sent["seen"] not in ("", _mark(sent["name"].strip(), current)):
            raise Correctable(409, MEANWHILE, f"{SEEN_ATTRIBUTE} {AGAIN}", {})
        await _put_attribute(page, customer_id, sent["name"].strip(), _attribute_of(page, sent, current), known)

    try:
        await retry(store, CHANGED)
    except ValueError as fault:
        return await _show(page, customer_id, attribute=sent, faults={"value": str(fault)})
    except Correctable as refusal:
        return await _show(page, customer_id, attribute=sent, faults=_faults_of(refusal), status=refusal.status)
    return page.to(_path(customer_id), "The attribute is stored.")


@router.post("/attributes/remove")
async def remove_attribute(page: SignedIn, customer_id: str) -> Response:
    name = str((await page.form()).get("name", ""))
    try:
        await _put_attribute(page, customer_id, name, None)
    except Correctable as refusal:
        return await _show(page, customer_id, faults={"": refusal.detail}, status=refusal.status)
    return page.to(_path(customer_id), "The attribute is removed.")


@router.post("/related-parties")
async def add_party(page: SignedIn, customer_id: str) -> Response:
    """Add a party to the list as it is by now; or change the one at a position of the list that the page showed."""
    sent = _fields_of(await page.form(), (*PARTY, "position", "list"))

    async def store() -> None:
        parties = await _read_parties(page, customer_id)
        if sent["position"] == "":
            changed = [*parties.listed, _party_of(sent, None)]
        else:
            position = parties.find(sent["position"], sent["list"])
            changed = [*parties.listed]
            changed[position] = _party_of(sent, changed[position])
        await _put_parties(page, customer_id, changed, parties.known)

    try:
        await retry(store, CHANGED)
    except Correctable as refusal:
        return await _show(page, customer_id, party=sent, party_faults=_faults_of(refusal), status=refusal.status)
    done = "added" if sent["position"] == "" else "changed"
    return page.to(_path(customer_id), f"The related party is {done}.")


@router.post("/related-parties/remove")
async def remove_party(page: SignedIn, customer_id: str) -> Response:
    """Remove the party at a position of the list that the page showed, unless there is another list by now."""
    sent = _fields_of(await page.form(), ("position", "list"))
    try:
        parties = await _read_parties(page, customer_id)
        position = parties.find(sent["position"], sent["list"])
        await _put_parties(page, customer_id, parties.listed[:position] + parties.listed[position + 1 :], parties.known)
    except Correctable as refusal:
        if refusal.code != MEANWHILE:
            raise
        return page.to(_path(customer_id), "The list was changed meanwhile, so nothing was removed.")
    return page.to(_path(customer_id), "The related party is removed.")


def _attribute_of(page: Page, sent: Mapping[str, str], current: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the attribute of a form: what nobody changed is as it is stored, which forms can't always show.

    Raises:
        ValueError: the value is not of its kind, with words for the page.
    """
    typed = {name: sent[name].strip() for name in ONE_LINE}
    whole: dict[str, Any] = {**typed, "expiresAt": add_offset(page, typed["expiresAt"])}
    if current is None:
        return whole | {"value": _value_of(sent)}
    shown = _fill(page, sent["name"], current)
    unchanged = {name: current[name] for name in ONE_LINE if declared.is_same_line(sent[name], shown[name])}
    is_unchanged = sent["kind"] == shown["kind"] and declared.is_same(sent["value"], shown["value"])
    return whole | unchanged | {"value": current["value"] if is_unchanged else _value_of(sent)}


def _value_of(sent: Mapping[str, str]) -> Any:
    return declared.read_value({"kind": sent["kind"], "format": None}, sent["value"].strip())


def _party_of(sent: Mapping[str, str], current: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the party of a form: what nobody changed is as it is stored."""
    typed: dict[str, Any] = {name: sent[name].strip() for name in PARTY}
    stored = current or {}
    unchanged = {
        name: each for name, each in stored.items() if name in PARTY and declared.is_same_line(sent[name], each or "")
    }
    return typed | unchanged


def _path(customer_id: str) -> str:
    return f"/customers/{customer_id}/details"


def _fields_of(form: FormData, names: tuple[str, ...]) -> dict[str, str]:
    return {name: declared.as_typed(str(form.get(name, ""))) for name in names}


def _faults_of(refusal: Correctable) -> Faults:
    """Return the faults by the last part of their pointers; those of no field of the form are of the whole."""
    named = {pointer.rpartition("/")[2]: message for pointer, message in refusal.faults.items()}
    fields = {name: message for name, message in named.items() if name in (*ATTRIBUTE, *PARTY)}
    return fields or {"": refusal.detail}


async def _put_attribute(
    page: Page, customer_id: str, name: str, attribute: Mapping[str, Any] | None, known: int | None = None
) -> None:
    sent = {"attributes": {name: attribute}}
    await page.put("customer", customer_id, "attributes", json=sent, knownChanges=known)


async def _put_parties(page: Page, customer_id: str, parties: Sequence[Mapping[str, Any]], known: int) -> None:
    sent = [{name: each[name] for name in PARTY} for each in parties]
    await page.put("customer", customer_id, "related-parties", json=sent, knownChanges=known)


async def _read_attributes(page: Page, customer_id: str) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the attributes by name, and the number of all changes until now."""
    found = await page.get("customer", customer_id, "attributes", page=1, count=1)
    return found["attributes"], found["totalCount"]


def _mark(name: str, stored: Mapping[str, Any] | None) -> str:
    """Return what a form sends to say which attribute it was filled in from."""
    return "" if stored is None else f"{stored['dateSet']} {name}"


@dataclass(frozen=True)
class Parties:
    """The list of related parties, when and by whom it was set, and the number of lists until now."""

    listed: list[dict[str, Any]]
    date_set: str | None
    set_by: str | None
    known: int

    def find(self, position: str, date_set: str) -> int:
        """Return a position in the list that a page showed. Raise Correctable if this is another list by now."""
        place = declared.as_whole(position)
        if date_set != self.date_set or place is None or place >= len(self.listed):
            raise Correctable(409, MEANWHILE, SEEN_LIST, {})
        return place


async def _read_parties(page: Page, customer_id: str) -> Parties:
    found = await page.get("customer", customer_id, "related-parties", page=1, count=1)
    last = next(iter(found["history"]), {"dateSet": None, "setBy": None})
    return Parties(found["relatedParties"], last["dateSet"], last["setBy"], found["totalCount"])


async def _show(
    page: Page,
    customer_id: str,
    chosen: str = "",
    position: int | None = None,
    *,
    attribute: Mapping[str, str] = NOTHING,
    faults: Faults = NOTHING,
    party: Mapping[str, str] = NOTHING,
    party_faults: Faults = NOTHING,
    status: int = 400,
) -> Response:
    """Show the page: with what was sent of an attribute or a party and its faults, or with the attribute `chosen` or
    the party at the position.
    """
    stored, _ = await _read_attributes(page, customer_id)
    customer = await page.get("customer", customer_id)
    parties = await _read_parties(page, customer_id)
    names = await page.names([*(each["setBy"] for each in stored.values()), parties.set_by])
    filled = attribute or (_fill(page, chosen, stored[chosen]) if chosen in stored else dict.fromkeys(ATTRIBUTE, ""))
    name = filled["name"].strip()
    is_listed = position is not None and position < len(parties.listed)
    edited = parties.listed[position] | {"position": position} if is_listed else dict.fromkeys((*PARTY, "position"), "")
    return page.show(
        "customer-details.html",
        status if faults or party_faults else 200,
        customer=customer,
        stored={name: each | {"text": declared.as_text(each["value"])} for name, each in stored.items()},
        parties=parties,
        seen=_mark(name, stored.get(name)) if attribute or chosen in stored else "",
        names=names,
        kinds=KINDS.items(),
        roles=PARTY_ROLES,
        attribute=filled,
        faults=faults,
        party=party or edited,
        party_faults=party_faults,
    )


def _fill(page: Page, name: str, stored: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a stored attribute's form."""
    match stored["value"]:
        case bool():
            kind = "boolean"
        case int() | Decimal():
            kind = "decimal"
        case _:
            kind = "string"
    expires_at = "" if stored["expiresAt"] is None else add_offset(page, stored["expiresAt"])[:19]
    texts = {"value": declared.as_text(stored["value"]), "source": stored["source"] or "", "expiresAt": expires_at}
    return {"name": name, "kind": kind, "evidenceDate": stored["evidenceDate"] or "", **texts}
