"""What a lender knows of a customer besides its transactions: attributes and related parties, to be changed."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.datastructures import FormData
from starlette.responses import Response

from api.console import declared
from api.console.calls import Correctable
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
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
Faults = Mapping[str, str]  # by the name of a field; "" is the whole form


@router.get("/details")
async def show_details(page: SignedIn, customer_id: str, attribute: Annotated[str, Query()] = "") -> Response:
    """Show attributes and related parties, with forms; that of attributes has those of `attribute`."""
    return await _show(page, customer_id, attribute)


@router.post("/attributes")
async def set_attribute(page: SignedIn, customer_id: str) -> Response:
    sent = _fields_of(await page.form(), ATTRIBUTE)
    kind = {"kind": sent["kind"], "format": None}
    try:
        value = declared.read_value(kind, sent["value"])
    except ValueError as fault:
        return await _show(page, customer_id, attribute=sent, faults={"value": str(fault)})
    expires_at = add_offset(page, sent["expiresAt"])
    whole = {"value": value, "source": sent["source"], "evidenceDate": sent["evidenceDate"], "expiresAt": expires_at}
    try:
        await _put_attribute(page, customer_id, sent["name"], whole)
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
    sent = _fields_of(await page.form(), PARTY)
    stored, _ = await _read_parties(page, customer_id)
    try:
        await _put_parties(page, customer_id, [*stored, sent])
    except Correctable as refusal:
        return await _show(page, customer_id, party=sent, party_faults=_faults_of(refusal), status=refusal.status)
    return page.to(_path(customer_id), "The related party is added.")


@router.post("/related-parties/remove")
async def remove_party(page: SignedIn, customer_id: str) -> Response:
    """Remove the party at a position of the list that the page showed, unless there is another list by now."""
    form = await page.form()
    position = declared.as_number(form, "position")
    stored, current = await _read_parties(page, customer_id)
    if form.get("list") != current["dateSet"] or position is None or position >= len(stored):
        return page.to(_path(customer_id), "The list was changed meanwhile, so nothing was removed.")
    await _put_parties(page, customer_id, stored[:position] + stored[position + 1 :])
    return page.to(_path(customer_id), "The related party is removed.")


def _path(customer_id: str) -> str:
    return f"/customers/{customer_id}/details"


def _fields_of(form: FormData, names: tuple[str, ...]) -> dict[str, str]:
    return {name: str(form.get(name, "")).strip() for name in names}


def _faults_of(refusal: Correctable) -> Faults:
    """Return the faults by the last part of their pointers; those of no field of the form are of the whole."""
    named = {pointer.rpartition("/")[2]: message for pointer, message in refusal.faults.items()}
    fields = {name: message for name, message in named.items() if name in (*ATTRIBUTE, *PARTY)}
    return fields or {"": refusal.detail}


async def _put_attribute(page: Page, customer_id: str, name: str, attribute: Mapping[str, Any] | None) -> None:
    await page.put("customer", customer_id, "attributes", json={"attributes": {name: attribute}})


async def _put_parties(page: Page, customer_id: str, parties: list[Mapping[str, Any]]) -> None:
    sent = [{name: each[name] for name in PARTY} for each in parties]
    await page.put("customer", customer_id, "related-parties", json=sent)


async def _read_parties(page: Page, customer_id: str) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the related parties, and when and by whom this list was set."""
    found = await page.get("customer", customer_id, "related-parties", page=1, count=1)
    return found["relatedParties"], next(iter(found["history"]), {"dateSet": None, "setBy": None})


async def _show(
    page: Page,
    customer_id: str,
    chosen: str = "",
    *,
    attribute: Mapping[str, str] = NOTHING,
    faults: Faults = NOTHING,
    party: Mapping[str, str] = NOTHING,
    party_faults: Faults = NOTHING,
    status: int = 400,
) -> Response:
    """Show the page: with what was sent of an attribute or a party and its faults, or with the attribute `chosen`."""
    stored = (await page.get("customer", customer_id, "attributes", page=1, count=1))["attributes"]
    customer = await page.get("customer", customer_id)
    parties, last = await _read_parties(page, customer_id)
    names = await page.names([*(each["setBy"] for each in stored.values()), last["setBy"]])
    filled = attribute or (_fill(page, chosen, stored[chosen]) if chosen in stored else dict.fromkeys(ATTRIBUTE, ""))
    return page.show(
        "customer-details.html",
        status if faults or party_faults else 200,
        customer=customer,
        stored={name: each | {"text": declared.as_text(each["value"])} for name, each in stored.items()},
        parties=parties,
        last=last,
        names=names,
        kinds=KINDS.items(),
        roles=PARTY_ROLES,
        attribute=filled,
        faults=faults,
        party=party or dict.fromkeys(PARTY, ""),
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
