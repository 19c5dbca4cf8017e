"""The console's pages, by subject."""

from api.console import assets, signing_in
from api.console.pages import start, uploads

ROUTERS = (assets.router, signing_in.router, start.router, uploads.router)
from api.console import assets, openid, signing_in
from api.console.pages import access, operations, start, webhooks

ROUTERS = (
    *(assets.router, signing_in.router, openid.router, start.router),
    *(access.router, webhooks.router, operations.router),
)
