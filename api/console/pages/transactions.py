"""A customer's transactions with filters, one transaction with its place on a statement, and corrections with undo."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.datastructures import FormData
from starlette.responses import Response

from api.console.accounts import read_account_names
from api.console.calls import Refused
from api.console.declared import as_plain_number
from api.console.rendering import account_name
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from api.enrichment.schemas.corrections import TARGETS
from api.intake.schemas.transactions import NEWEST_FIRST
from pipelines.enrichment.flags import FLAGS
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.taxonomy import SIGNS, TAXONOMY

LISTED: Final = 50
FILTERS: Final = (
    *("from", "to", "text", "category", "accountId", "direction", "status", "minAmount", "maxAmount", "flag", "jobId"),
)
NOTHING: Final[Mapping[str, Any]] = {"transactions": [], "totalCount": 0, "currentPage": 1, "totalPages": 0}
ONE: Final = "one"
SIMILAR: Final = "similar"
CORRECTIONS: Final = ("transactions", "corrections")
RUNNING: Final = ("Queued", "Running")

PageOfList = Annotated[str, Query(alias="page")]  # the API refuses what isn't a number

router = APIRouter(route_class=PageRoute, include_in_schema=False, prefix="/customers/{customer_id}")


@router.get("/transactions")
async def list_transactions(page: SignedIn, customer_id: str, number: PageOfList = "1") -> Response:
    customer = await page.get("customer", customer_id)
    filters = {name: page.request.query_params.get(name, "").strip() for name in FILTERS}
    sort = page.request.query_params.get("sort", NEWEST_FIRST)
    faults: list[str] = []
    sent = filters | {name: as_plain_number(filters[name]) for name in ("minAmount", "maxAmount")}
    try:
        found = await page.get("customer", customer_id, "transactions", page=number, count=LISTED, sort=sort, **sent)
    except Refused as refused:
        if not refused.faults:
            raise
        found, faults = NOTHING, [*refused.faults.values()]
    names = {each["account"]["accountId"]: account_name(each["account"]) for each in found["transactions"]}
    names |= await read_account_names(page, customer_id)
    return page.show(
        "transactions.html",
        400 if faults else 200,
        customer=customer,
        found=found,
        faults=faults,
        filters=filters,
        sort=sort,
        accounts=_list_accounts(names, filters["accountId"]),
        categories=TAXONOMY.categories,
        flags=sorted(FLAGS),
    )


def _list_accounts(names: Mapping[str, str], chosen: str) -> list[tuple[str, str]]:
    """Return the options of the filter by account; what was chosen is one of them, whatever it is."""
    unknown = {chosen: "Unknown account"} if chosen else {}
    return [("", "Any"), *{**unknown, **names}.items()]


@router.get("/transactions/{transaction_id}")
async def show_transaction(page: SignedIn, customer_id: str, transaction_id: str) -> Response:
    return await _transaction_page(page, customer_id, transaction_id)


@router.post("/transactions/{transaction_id}/correct")
async def correct_transaction(page: SignedIn, customer_id: str, transaction_id: str) -> Response:
    """Show what a correction would change; make it once that was confirmed."""
    form = await page.form()
    transaction = await _transaction(page, customer_id, transaction_id)
    sent = _correction(form, transaction) | {"preview": form.get("confirmed") != "yes"}
    try:
        made = await page.post("customer", customer_id, *CORRECTIONS, json=sent)
    except Refused as refused:
        if refused.status != 400:
            raise
        return await _transaction_page(page, customer_id, transaction_id, form, refused)
    if not made["preview"]:
        return page.to(f"/customers/{customer_id}/corrections", "The correction is made. Undo it here if it was wrong.")
    customer = await page.get("customer", customer_id)
    shared = {"customer": customer, "transaction": transaction, "form": form}
    return page.show("correction.html", made=made, sent=sent, **shared)


@router.get("/corrections")
async def list_corrections(page: SignedIn, customer_id: str, number: PageOfList = "1") -> Response:
    """Show the corrections, with what those will change that their jobs haven't applied yet."""
    customer = await page.get("customer", customer_id)
    since = await _find_oldest_unfinished(page, customer_id)  # first: a job may end meanwhile
    found = await page.get("customer", customer_id, *CORRECTIONS, page=number, count=LISTED)
    pending = [each for each in found["corrections"] if since <= datetime.fromisoformat(_last_change(each))]
    reach = {
        each["correctionId"]: await _measure_reach(page, customer_id, each)
        for each in pending
        if each["dateRevoked"] is None
    }
    names = await page.names(each["madeBy"] for each in found["corrections"])
    shown = {"found": found, "names": names, "reach": reach, "pending": [each["correctionId"] for each in pending]}
    return page.show("corrections.html", customer=customer, **shown)


async def _find_oldest_unfinished(page: Page, customer_id: str) -> datetime:
    """Return when the oldest unfinished job of corrections was queued: the moment of the change that it applies.

    Jobs follow one another, so changes before it are applied. Without such a job, it is the end of time.
    """
    which = {"customerId": customer_id, "flow": "Correction"}
    queued = [job for status in RUNNING for job in (await page.get("jobs", status=status, **which))["jobs"]]
    return min((datetime.fromisoformat(job["dateCreated"]) for job in queued), default=datetime.max.replace(tzinfo=UTC))


def _last_change(correction: Mapping[str, Any]) -> str:
    moment: str = correction["dateRevoked"] or correction["dateMade"]
    return moment


async def _measure_reach(page: Page, customer_id: str, correction: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the preview of a correction for this customer; None if it is of a transaction that is gone."""
    sent = {name: correction[name] for name in (*TARGETS, "direction", "category", "counterpartyName")}
    try:
        found: dict[str, Any] = await page.post("customer", customer_id, *CORRECTIONS, json={**sent, "preview": True})
    except Refused as refused:
        if refused.status != 404:
            raise
        return None
    return found


@router.post("/corrections/{correction_id}/undo")
async def undo_correction(page: SignedIn, customer_id: str, correction_id: str) -> Response:
    await page.check_form()
    await page.delete("customer", customer_id, *CORRECTIONS, correction_id)
    return page.to(f"/customers/{customer_id}/corrections", "The correction is undone.")


def _correction(form: FormData, transaction: dict[str, Any]) -> dict[str, Any]:
    """Return the correction that a form asks for: of one transaction, or of all with its counterparty or its text."""
    changes = {name: form.get(name) for name in ("category", "counterpartyName")}
    if form.get("which") != SIMILAR:
        return {**changes, "transactionId": transaction["transactionId"]}
    name, text = transaction["counterparty"]["name"], transaction["cleanDescription"] or transaction["description"]
    target = {"counterparty": name} if name else {"pattern": text}
    return {**changes, **target, "direction": transaction["direction"]}


async def _transaction(page: Page, customer_id: str, transaction_id: str) -> dict[str, Any]:
    """Return the customer's transaction.

    Raises:
        NotFound: there is none with this id, or the text is not an id.
    """
    try:
        found: dict[str, Any] = await page.get("customer", customer_id, "transactions", transactionId=transaction_id)
    except Refused as refused:
        if refused.status != 400:
            raise
        found = {"transactions": []}
    if not found["transactions"]:
        raise NotFound("Transaction.NotFound", "The customer has no transaction with this id.")
    transaction: dict[str, Any] = found["transactions"][0]
    return transaction


async def _source(page: Page, customer_id: str, transaction_id: str) -> dict[str, Any] | None:
    """Return where the transaction is on its statement; None if it is on none, or the user may not see it."""
    try:
        found: dict[str, Any] = await page.get("customer", customer_id, "transactions", transaction_id, "source")
    except Refused as refused:
        if refused.status not in (403, 404):
            raise
        return None
    return found


async def _transaction_page(
    page: Page,
    customer_id: str,
    transaction_id: str,
    form: FormData | None = None,
    refused: Refused | None = None,
) -> Response:
    customer = await page.get("customer", customer_id)
    transaction = await _transaction(page, customer_id, transaction_id)
    return page.show(
        "transaction.html",
        200 if refused is None else refused.status,
        customer=customer,
        transaction=transaction,
        source=await _source(page, customer_id, transaction_id),
        categories=[slug for slug, sign in SIGNS.items() if sign in (transaction["direction"], "either")],
        form=form or {},
        problem="" if refused is None else refused.detail,
    )
