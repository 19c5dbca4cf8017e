"""Documentation pages: the API on one page, and a page for each error code."""

from functools import lru_cache
from html import escape

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.documented import Page
from api.http.problems import PAGES
from api.service import docs_page
from pipelines.pages import CONTENT_POLICY, render
from pipelines.vocabulary.codes import Code, catalogue
from pipelines.vocabulary.errors import NotFound

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def get_docs(request: Request) -> Response:
    """Return the OpenAPI document as a page."""
    return Page(_rendered(request.app), headers={"Content-Security-Policy": CONTENT_POLICY})


@lru_cache(1)  # the application of this process
def _rendered(app: FastAPI) -> str:
    return render(docs_page.page(app.openapi()))


@router.get(PAGES + "/{code}")
async def get_error(code: str) -> Response:
    """Return the page about an error code, to which the `type` of a problem leads."""
    entry = catalogue().get(code)
    if entry is None:
        raise NotFound("Request.UnknownPath", "There is no error code of this name.")
    return HTMLResponse(error_page(entry))


def error_page(code: Code) -> str:
    paragraphs = [code.meaning, f"What to do: {code.remedy}", f"Where: {code.where}."]
    if code.status is not None:
        paragraphs.append(f"Status: {code.status}")
    body = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{code.name}</title><h1>{code.name}</h1>{body}'
