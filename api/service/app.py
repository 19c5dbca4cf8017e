"""Assemble the HTTP API: routes, problems, documentation, and the objects that live as long as the process."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from socket import socket
from typing import Any, cast

import uvicorn
from fastapi import APIRouter, FastAPI
from pydantic.alias_generators import to_camel
from starlette.routing import BaseRoute

from api.access.routes import approvals, four_eyes, trail, users
from api.access.routes import keys as api_keys
from api.console import routes as pages
from api.console.pages import ROUTERS as PAGES
from api.core.derived import MAX_BYTES, ConcurrencyLimit
from api.core.grouped_calls import GroupedCalls
from api.core.limits import Limits
from api.core.refusals import Refusals
from api.customers.routes import customers, knowledge
from api.decisions.deciding import Cache
from api.decisions.routes import evaluations, letters, policies
from api.enrichment.routes import corrections, taxonomy
from api.http import problems
from api.http.dependencies import check_keys
from api.http.middleware import EveryRequest
from api.intake.routes import statements, transactions, uploads
from api.intake.statements import DRAWN_AT_ONCE
from api.intake.uploads import READ_AT_ONCE
from api.jobs import routes as jobs
from api.jobs.waiting import Watcher
from api.metrics import routes as metrics
from api.monitoring import routes as monitoring
from api.operations.readiness import Check, Readiness
from api.operations.routes import health, scraping
from api.operations.scraping import Scrape
from api.portfolio.routes import backtests, simulations
from api.reports import replay
from api.reports.browser import PRINTED_AT_ONCE
from api.reports.routes import derived, report_page, reports, resolutions
from api.sandbox import routes as sandbox
from api.service import openapi
from api.service.connections import Connection, check_progress
from api.service.routes import docs
from api.webhooks import events
from api.webhooks.routes import webhooks
from api.work.routes import records, work
from storage.core import logs
from storage.core.heartbeat import watched_loop
from storage.core.memory import freeze_loaded
from storage.core.settings import Environment
from storage.core.store import Store
from storage.webhooks import delivery_figures
from storage.webhooks.delivery_figures import Load

ROUTERS = (
    *(customers, knowledge, transactions, statements, uploads, derived, corrections, taxonomy, jobs),
    *(reports, report_page, resolutions, metrics, policies, backtests, evaluations, letters),
    *(monitoring, simulations, work, records, approvals, four_eyes, webhooks),
    *(users, api_keys, trail, health, scraping),
)
OF_A_SANDBOX = (sandbox,)
TICKS_PER_CHECK = 10  # uvicorn's ticks are a tenth of a second
GRACE_S = 10  # how long requests in flight may take when the service stops
NAME, VERSION = "Tidemark", version("tidemark")
DESCRIPTION = """\
Bank transactions in, decision-ready reports out.

- Every success in JSON is `{"data": …, "message": …}`; pages, pictures and files are sent as they are. Everything
  else is `application/problem+json` with a stable `code`.
- Most lists take `page` and `count`, and return everything without a page; some take a `cursor`.
- Money is exact to the cent, times are UTC.
- `RateLimit` says how many requests a key has left; 429 and 503 say in `Retry-After` when to try again.
"""


def create_app(store: Store, *, shows_docs: bool = True, is_sandbox: bool = True) -> FastAPI:
    """Return the application over one store.

    Args:
        shows_docs: adds `/docs` and `/openapi.json`.
        is_sandbox: adds the routes that make synthetic customers.
    """
    app = FastAPI(
        title=NAME,
        version=VERSION,
        lifespan=_lifespan,
        openapi_url="/openapi.json" if shows_docs else None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        webhooks=events.router,
        routes=_routes(is_sandbox),
    )
    app.state.store = store
    app.add_middleware(EveryRequest)
    problems.install(app)
    pages.install(app)
    if shows_docs:
        app.include_router(docs.router)
    app.openapi = partial(_document, is_sandbox)  # pyrefly: ignore[method-assign]  # FastAPI's own way
    return app


@cache
def _routes(is_sandbox: bool) -> list[BaseRoute]:
    """Return the routes of every application: FastAPI prepares a route on its first request, which takes a while."""
    every = APIRouter(generate_unique_id_function=lambda route: to_camel(route.name))
    for routes in ROUTERS + OF_A_SANDBOX if is_sandbox else ROUTERS:
        every.include_router(routes.router)
    for of_subject in PAGES:
        every.include_router(of_subject)
    return every.routes


@cache
def _document(is_sandbox: bool) -> dict[str, Any]:
    return openapi.document(NAME, VERSION, DESCRIPTION, _routes(is_sandbox), events.router.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.limits = Limits(app.state.store.settings)
    app.state.memory = ConcurrencyLimit(MAX_BYTES)
    app.state.drawing = ConcurrencyLimit(DRAWN_AT_ONCE)
    app.state.printing = ConcurrencyLimit(PRINTED_AT_ONCE)
    app.state.reading = ConcurrencyLimit(READ_AT_ONCE)
    app.state.cache = Cache()
    app.state.replays = replay.Cache()
    app.state.watcher = Watcher(app.state.store)
    app.state.refusals = Refusals(app.state.store.db)
    app.state.key_checks = GroupedCalls(partial(check_keys, app.state.store, app.state.limits, app.state.refusals))
    app.state.readiness = Readiness(app.state.store)
    app.state.scrape = Check(Scrape(partial(_load, app.state.store)), b"")
    yield
    app.state.scrape.close()
    app.state.readiness.close()
    await asyncio.to_thread(app.state.watcher.stop)
    await asyncio.to_thread(app.state.refusals.stop)
    app.state.limits.close()


def _load(store: Store) -> Load:
    with store.db.reading() as r:
        return delivery_figures.read_load(r, datetime.now(UTC))


def serve(store: Store, listener: socket) -> None:
    """Answer at a listening socket until SIGINT or SIGTERM."""
    logs.log_to_stderr("api", store.settings)
    application = server(store)
    freeze_loaded()
    application.run(sockets=[listener])


def server(store: Store) -> uvicorn.Server:
    """Return the uvicorn server of the application."""
    logging.getLogger("uvicorn.access").disabled = True  # it logs paths, which may contain an ABN
    proxies = [str(network) for network in store.settings.trusted_proxies]
    config = uvicorn.Config(
        create_app(
            store,
            shows_docs=store.settings.shows_docs,
            is_sandbox=store.settings.environment is Environment.SANDBOX,
        ),
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),  # X-Forwarded-For is trusted only from these proxies
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=GRACE_S,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """A server that checks its connections every second, and on shutdown first answers requests that wait for a job."""

    checked_at = 0.0

    async def main_loop(self) -> None:
        with watched_loop("event loop") as self._report_round:
            await super().main_loop()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_CHECK == 0:
            self._report_round()
            now = time.monotonic()
            check_progress(self.server_state.connections, now - self.checked_at)
            self.checked_at = now
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        app = cast("FastAPI", self.config.app)
        app.state.watcher.release()
        await super().shutdown(sockets)
