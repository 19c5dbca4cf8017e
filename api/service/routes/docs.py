"""The documentation page: Swagger UI out of a package, so that it works with no internet."""

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

ASSETS = "/docs/assets"
PARAMETERS = {
    "validatorUrl": None,  # its badge would ask a public server
    "persistAuthorization": True,
    "displayRequestDuration": True,
    "defaultModelsExpandDepth": 0,
    "docExpansion": "list",
    "tagsSorter": None,
}
router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def get_docs() -> Response:
    """The OpenAPI document as a page to browse and try."""
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Tidemark API",
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
        swagger_ui_parameters=PARAMETERS,
    )


def install(app: FastAPI) -> None:
    """Put the page and what it needs into `app`."""
    app.include_router(router)
    app.mount(ASSETS, StaticFiles(packages=[("fastapi_swagger", "resources")]))
