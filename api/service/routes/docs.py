"""Documentation pages: one that lists the API, one for each of its subjects, and one for each error code."""

from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.documented import Page
from api.http.problems import PAGES
from api.service import docs_page
from pipelines.pages import CONTENT_POLICY, Paragraph, Section, render
from pipelines.pages import Page as ReportPage
from pipelines.vocabulary.codes import Code, catalogue

router = APIRouter(include_in_schema=False)
READ = ["GET", "HEAD"]


@router.api_route(docs_page.DOCS, methods=READ)
@router.api_route(docs_page.DOCS + "/{subject}", methods=READ)
def get_docs(request: Request) -> Response:
    """Return a page of the OpenAPI document: the list of operations, or a subject's."""
    page = _pages(request.app).get(request.url.path)
    if page is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Page(render(page), headers={"Content-Security-Policy": CONTENT_POLICY})


@lru_cache(1)  # the application of this process
def _pages(app: FastAPI) -> Mapping[str, ReportPage]:
    document = app.openapi()
    return {docs_page.DOCS: docs_page.index_page(document), **docs_page.subject_pages(document)}


@router.api_route(PAGES + "/{code}", methods=READ)
async def get_error(code: str) -> Response:
    """Return the page about an error code, to which the `type` of a problem leads."""
    entry = catalogue().get(code)
    if entry is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return HTMLResponse(render(error_page(entry)), headers={"Content-Security-Policy": CONTENT_POLICY})


def error_page(code: Code) -> ReportPage:
    facts = (("Where", code.where), *((("Status", str(code.status)),) if code.status is not None else ()))
    sections = (
        Section("meaning", "What it means", (Paragraph(code.meaning),)),
        Section("remedy", "What to do", (Paragraph(code.remedy),)),
    )
    return ReportPage("Error code", code.name, facts, (), sections, "The API is documented at /docs.")
