"""Documentation pages: the API on one page, and a page for each error code."""

from functools import lru_cache

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.documented import Page
from api.http.problems import PAGES
from api.service import docs_page
from pipelines.pages import CONTENT_POLICY, Paragraph, Section, render
from pipelines.pages import Page as ReportPage
from pipelines.vocabulary.codes import Code, catalogue
from pipelines.vocabulary.errors import NotFound

router = APIRouter(include_in_schema=False)
READ = ["GET", "HEAD"]


@router.api_route("/docs", methods=READ)
def get_docs(request: Request) -> Response:
    """Return the OpenAPI document as a page."""
    return Page(_render_docs(request.app), headers={"Content-Security-Policy": CONTENT_POLICY})


@lru_cache(1)  # the application of this process
def _render_docs(app: FastAPI) -> str:
    return render(docs_page.page(app.openapi()))


@router.api_route(PAGES + "/{code}", methods=READ)
async def get_error(code: str) -> Response:
    """Return the page about an error code, to which the `type` of a problem leads."""
    entry = catalogue().get(code)
    if entry is None:
        raise NotFound("Request.UnknownPath", "There is no error code of this name.")
    return HTMLResponse(render(error_page(entry)), headers={"Content-Security-Policy": CONTENT_POLICY})


def error_page(code: Code) -> ReportPage:
    facts = (("Where", code.where), *((("Status", str(code.status)),) if code.status is not None else ()))
    sections = (
        Section("meaning", "What it means", (Paragraph(code.meaning),)),
        Section("remedy", "What to do", (Paragraph(code.remedy),)),
    )
    return ReportPage("Error code", code.name, facts, (), sections, "The API is documented at /docs.")
