"""Upload files of a customer, follow how they are read, and see where a statement's rows are on its pages."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Refused
from api.console.file_names import PassingForm
from api.console.pages.transactions import NOTHING, RUNNING
from api.console.refusals import reword
from api.console.routes import PageRoute
from api.console.visits import Page, SignedIn
from pipelines.vocabulary.codes import catalogue
from pipelines.vocabulary.errors import NotFound, Unavailable

LISTED = 20
ROWS = 100  # rejected ones, on one page
BUSY = 503
SUBMISSIONS = ("Enrichment", "Extraction")
MAX_RETRACTIONS = 1_000  # of a customer, among which that of a submission is found

PageOfList = Annotated[str, Query(alias="page")]  # the API refuses what isn't a number

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/customers/{customer_id}/upload")
async def show_upload(page: SignedIn, customer_id: str, number: PageOfList = "1") -> Response:
    return await _upload_page(page, customer_id, number)


async def _upload_page(
    page: Page, customer_id: str, number: str = "1", refused: Refused | None = None, names: Sequence[str] = ()
) -> Response:
    """Show the form, what was submitted before, and why nothing was accepted of the files with these names.

    While a job runs, the list fetches itself again.
    """
    customer = await page.get("customer", customer_id)
    jobs = await page.get("jobs", customerId=customer_id, page=number, count=LISTED)
    running = [job for job in jobs["jobs"] if job["status"] in RUNNING]
    shown = {"customer": customer, "jobs": jobs, "running": len(running)}
    if refused is None:
        return page.show("upload.html", problem="", refused=(), **shown)
    files = list(_list_refused(refused, names))
    return page.show("upload.html", refused.status, problem=refused.detail, refused=files, **shown)


def _list_refused(refused: Refused, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the files that can't be read, each with why and what to do."""
    numbered = {f"/files/{place}": name for place, name in enumerate(names)}
    for pointer, name in numbered.items():
        if pointer in refused.faults:
            message, remedy = refused.faults[pointer], remedy_of(refused.codes[pointer])
            yield {"name": name or "File without a name", "message": message, "remedy": remedy}


@router.post("/customers/{customer_id}/upload")
async def upload_files(page: SignedIn, customer_id: str) -> Response:
    """Pass the files on, and lead to the job; to the list of jobs if there are several."""
    form = PassingForm(page.request)
    try:
        response = await page.pass_on("customer", customer_id, "uploads", form=form)
    except Refused as refused:
        if refused.status == 404:
            raise
        return await _upload_page(page, customer_id, refused=refused, names=form.file_names)
    jobs = msgspec.json.decode(response.content)["data"]["jobs"]
    if len(jobs) == 1:
        return page.to(f"/customers/{customer_id}/uploads/{jobs[0]['jobId']}")
    return page.to(f"/customers/{customer_id}/upload", f"{len(jobs)} submissions were accepted.")


@router.get("/customers/{customer_id}/uploads/{job_id}")
async def show_job(page: SignedIn, customer_id: str, job_id: str, number: PageOfList = "1") -> Response:
    """Show the state of a submission, or of its retraction, and a page of its rejected rows.

    While it runs, the page fetches itself again.
    """
    files = await page.get("customer", customer_id, "submissions", job_id, "files")
    customer = await page.get("customer", customer_id)
    job = await page.get("jobs", job_id, "status")
    statements = await page.get("customer", customer_id, "statements", jobId=job_id)
    which = {"page": number, "count": ROWS}
    rejected = await page.get("jobs", job_id, "errors", **which) if job["errors"] else {"errors": []}
    refusals = {f"File {file['position']}: {file['refused']['message']}" for file in files["files"] if file["refused"]}
    warnings = [
        each | {"remedy": remedy_of(each["code"])} for each in job["warnings"] if each["message"] not in refusals
    ]
    return page.show(
        "job.html",
        customer=customer,
        job=job,
        names=await page.names([job["createdBy"]]),
        is_running=job["status"] in RUNNING,
        files=[file | {"remedy": _remedy_of_file(file)} for file in files["files"]],
        statements=statements["statements"],
        warnings=warnings,
        retraction=await _retraction(page, customer_id, job),
        rejected=rejected,
        errors=[
            each | {"message": reword(each["message"]), "remedy": remedy_of(each["code"])}
            for each in rejected["errors"]
        ],
        failure="" if job["error"] is None else remedy_of(job["error"]["code"]),
        may_retract=job["flow"] in SUBMISSIONS and job["status"].startswith("Completed"),
    )


@router.get("/customers/{customer_id}/uploads/{job_id}/duplicates")
async def show_duplicates(page: SignedIn, customer_id: str, job_id: str, number: PageOfList = "1") -> Response:
    """Show which rows of a submission repeat a transaction, each with that transaction."""
    await page.get("customer", customer_id, "submissions", job_id, "files", page=1, count=1)  # it is of this customer
    customer = await page.get("customer", customer_id)
    found = await page.get("jobs", job_id, "duplicates", page=number, count=LISTED)
    ids = {each["transactionId"] for each in found["duplicates"]}
    listed = await page.get("customer", customer_id, "transactions", transactionIds=",".join(ids)) if ids else NOTHING
    repeated = {each["transactionId"]: each for each in listed["transactions"]}
    return page.show("duplicates.html", customer=customer, job_id=job_id, found=found, repeated=repeated)


def remedy_of(code: str) -> str:
    """Return what to do about a code of the catalogue, as its page says it."""
    known = catalogue().get(code)
    return "" if known is None else known.remedy


def _remedy_of_file(file: dict[str, Any]) -> str:
    return "" if file["refused"] is None else remedy_of(file["refused"]["code"])


async def _retraction(page: Page, customer_id: str, job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the job that retracts a submission, if there is one that did not fail."""
    if job["flow"] not in SUBMISSIONS or job["status"] in RUNNING:
        return None
    found = await page.get("jobs", customerId=customer_id, flow="Withdrawal", page=1, count=MAX_RETRACTIONS)
    of_job = (each for each in found["jobs"] if each["withdraws"] == job["jobId"] and each["status"] != "Failed")
    return next(of_job, None)


@router.post("/customers/{customer_id}/uploads/{job_id}/retract")
async def retract_submission(page: SignedIn, customer_id: str, job_id: str) -> Response:
    await page.check_form()
    retraction = await page.delete("customer", customer_id, "submissions", job_id)
    path = f"/customers/{customer_id}/uploads/{retraction['jobId']}"
    return page.to(path, "The submission is being retracted.")


@router.get("/customers/{customer_id}/statements")
async def list_statements(page: SignedIn, customer_id: str, number: PageOfList = "1") -> Response:
    customer = await page.get("customer", customer_id)
    found = await page.get("customer", customer_id, "statements", page=number, count=LISTED)
    return page.show("statements.html", customer=customer, found=found)


@router.get("/customers/{customer_id}/statements/{statement_id}")
async def show_statement(
    page: SignedIn,
    customer_id: str,
    statement_id: str,
    number: Annotated[str, Query(alias="page")] = "",
    row: Annotated[str, Query()] = "",
) -> Response:
    """Show a page of a statement with the rows that are on it: `page`, or else that of the row, or else the first."""
    customer = await page.get("customer", customer_id)
    statement = await page.get("customer", customer_id, "statements", statement_id)
    pages = range(statement["firstPage"], statement["lastPage"] + 1)
    marked = next((each for each in statement["rows"] if str(each["row"]) == row), None)
    wanted = number or str(pages_of(marked)[0] if marked else pages[0])
    shown = next((each for each in pages if str(each) == wanted), None)
    if shown is None or (row and marked is None):
        raise NotFound("Statement.PageNotFound", "The statement has no such page or row.")
    rows = [each for each in statement["rows"] if shown in pages_of(each)]
    return page.show(
        "statement.html",
        customer=customer,
        statement=statement,
        pages=pages,
        shown=shown,
        rows=rows,
        marked=marked if marked in rows else None,
    )


def pages_of(row: Mapping[str, Any]) -> list[int]:
    """Return the pages that a row is printed on."""
    return [box["page"] for box in row["boxes"]]


@router.get("/customers/{customer_id}/statements/{statement_id}/pages/{page_number}.png")
async def show_picture(
    page: SignedIn, customer_id: str, statement_id: str, page_number: str, row: Annotated[str, Query()] = ""
) -> Response:
    """Return the picture of a page, with the place of a row marked."""
    name = f"{page_number}.png"
    for waited_s in (0.5, 1, 2, 4):  # a client's pages are drawn one at a time
        try:
            drawn = await page.file("customer", customer_id, "statements", statement_id, "pages", name, row=row)
        except Refused as refused:
            if refused.status != BUSY:
                raise
            await asyncio.sleep(waited_s)
        else:
            return Response(drawn.content, media_type="image/png")
    raise Unavailable("Service.Busy", "The service is busy. Try again.")
