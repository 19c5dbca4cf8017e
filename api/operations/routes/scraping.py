"""Metrics for the operator's monitoring. They need no key and may be polled."""

import logging

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from api.http.documented import Metrics, refuses
from api.http.problems import RETRY_AFTER_S, problem

router = APIRouter(tags=["Health"])

log = logging.getLogger("tidemark.api")


@router.get("/metrics", response_class=Metrics, responses=refuses("Service.Unavailable"))
async def get_service_metrics(request: Request) -> Response:
    """Count webhook deliveries and jobs of all clients together, in Prometheus's text format."""
    try:
        text = await request.app.state.scrape.ask()
    except Exception as error:  # the next scrape tries again
        log.warning("the metrics could not be counted: %s", type(error).__name__)
        text = b""
    if text:
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
    later = {"Retry-After": str(RETRY_AFTER_S)}
    return problem(request, 503, "Service.Unavailable", "The metrics can't be counted now. Try again.", headers=later)
