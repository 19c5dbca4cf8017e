"""Liveness and readiness. They need no key and may be polled."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.core.schemas.common import PartView
from api.http.documented import envelope, refuses
from api.http.problems import RETRY_AFTER_S, problem
from api.http.responses import respond
from api.operations.schemas.health import LiveView, ReadyView

router = APIRouter(prefix="/health", tags=["Health"])


@router.get("/live", response_model=envelope(LiveView))
async def get_liveness() -> Response:
    """Check that the process answers."""
    return respond(LiveView(status="live"))


@router.get("/ready", response_model=envelope(ReadyView), responses=refuses("Service.NotReady"))
async def get_readiness(request: Request) -> Response:
    """Check that the service can do its work.

    It can if the database answers, jobs are dispatched and processed, no schedule or sensor that should run is stopped,
    the lake can be written, and the disk has free space.
    """
    parts = await request.app.state.readiness.parts()
    failing = [name for name, part in parts.items() if not part.ok]
    if failing:
        detail, later = f"Not ready: {', '.join(failing)}.", {"Retry-After": str(RETRY_AFTER_S)}
        return problem(request, 503, "Service.NotReady", detail, headers=later, parts=parts)
    return respond(ReadyView(status="ready", parts={name: PartView.of(part) for name, part in parts.items()}))
