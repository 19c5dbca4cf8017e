"""Submit files of any kind, and list those of a submission."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.http.dependencies import Allow, Caller, CustomerId, JobId, as_uuid
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond_list
from api.http.route import Route
from api.http.uploads import Files
from api.intake import uploads
from api.intake.schemas.uploads import SubmittedFileListView, UploadView
from storage.core.paging import Paged
from storage.intake import statements

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Statements"])
Submitter = Annotated[Caller, Depends(Allow("transactions:extract"))]
Reader = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract", "transactions:aggregate"))]
FORM_ERRORS = ("Request.MalformedForm", "Statement.TooManyParts", "Statement.PasswordsDontMatch")
FILE_ERRORS = ("Statement.WrongCount", "Statement.FileTooLarge", "Upload.NothingToRead")


@router.post(
    "/uploads",
    status_code=202,
    response_model=envelope(UploadView),
    responses=refuses(*FORM_ERRORS, *FILE_ERRORS, *DAMAGED_FILE),
    dependencies=[IDEMPOTENT],
)
def submit_upload(caller: Submitter, customer_id: CustomerId, files: Files) -> Response:
    """Submit files as people have them: PDF statements and banks' exports (CSV), in one request.

    One job reads the PDFs. Exports are read during the request: each of their accounts becomes a submission with its
    own job, whose rows may overlap those of others. A file that can't be read fails by itself: the response and a job's
    warnings say why.
    """
    return uploads.submit(caller, customer_id, files)


@router.get("/submissions/{jobId}/files", response_model=envelope(SubmittedFileListView))
def list_submission_files(
    caller: Reader, customer_id: CustomerId, job_id: JobId, query: Annotated[Paging, Query()]
) -> Response:
    """List the files of a submission of PDF statements, in the order of the request; others have none."""
    with caller.reading() as r:
        job = caller.job_of(r, caller.customer(r, customer_id), as_uuid(job_id))
        found = statements.find_files(r, job, query.requested_page())
    files = [uploads.describe_file(file) for file in found.items]
    return respond_list("files", Paged(files, found.total, found.page))
