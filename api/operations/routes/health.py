"""Whether the service is alive, and whether it is at work. Needs no key, and may be polled."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.core.schemas.common import PartView
from api.http.answers import answer
from api.http.documented import enveloped, refuses
from api.http.problems import RETRY_AFTER_S, problem
from api.operations.schemas.health import LiveView, ReadyView

router = APIRouter(prefix="/health", tags=["Health"])


@router.get("/live", response_model=enveloped(LiveView))
async def get_liveness() -> Response:
    """The process answers."""
    return answer(LiveView(status="live"))


@router.get("/ready", response_model=enveloped(ReadyView), responses=refuses("Service.NotReady"))
async def get_readiness(request: Request) -> Response:
    """The database answers, jobs are being dispatched and worked on, no schedule or sensor that should run is stopped,
    the lake takes files and the disk has room.
    """
    parts = await request.app.state.readiness.parts()
    ailing = [name for name, part in parts.items() if not part.ok]
    if ailing:
        detail, later = f"Not ready: {', '.join(ailing)}.", {"Retry-After": str(RETRY_AFTER_S)}
        return problem(request, 503, "Service.NotReady", detail, headers=later, parts=parts)
    return answer(ReadyView(status="ready", parts={name: PartView.of(part) for name, part in parts.items()}))
