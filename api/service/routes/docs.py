"""Documentation pages: Swagger UI, served from a package so that it needs no internet, and pages of error codes."""

from html import escape

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from starlette.responses import HTMLResponse, Response

from api.http.problems import PAGES
from pipelines.vocabulary.codes import Code, catalogue
from pipelines.vocabulary.errors import NotFound

ASSETS = "/docs/assets"
PARAMETERS = {
    "validatorUrl": None,  # the badge would call a public server
    "persistAuthorization": True,
    "displayRequestDuration": True,
    "defaultModelsExpandDepth": 0,
    "docExpansion": "list",
    "tagsSorter": None,
}
router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def get_docs() -> Response:
    """Return the OpenAPI document as a page to browse and try."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Tidemark API",
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
        swagger_ui_parameters=PARAMETERS,
    )


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


def install(app: FastAPI) -> None:
    """Add the pages and Swagger UI's files to `app`."""
    app.include_router(router)
    app.mount(ASSETS, StaticFiles(packages=[("fastapi_swagger", "resources")]))
