"""The console's style sheet and scripts. Their addresses contain a digest, so browsers may keep them for ever."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

from pipelines.pages.document import STYLE
from pipelines.vocabulary.errors import NotFound

TYPES = {
    "page.css": "text/css",
    "console.css": "text/css",
    "htmx.min.js": "text/javascript",
    "upload.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


@router.get("/console/{name}")
async def get_asset(name: str) -> Response:
    """Return a file of the console."""
    if name not in TYPES:
        raise NotFound("Request.UnknownPath", "There is nothing at this path.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, media_type=TYPES[name])


@cache
def address_of(name: str) -> str:
    """Return the address of a file, which changes with its content."""
    return f"/console/{name}?{sha256(_content(name)).hexdigest()[:12]}"


@cache
def _content(name: str) -> bytes:
    if name == "page.css":
        return STYLE.encode()  # of every page that people read
    return files("api.console").joinpath("static", name).read_bytes()
