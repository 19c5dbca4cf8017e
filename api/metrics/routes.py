"""The registry of metrics, and a customer's values of them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.derived import BYTES_PER_ROW
from api.core.schemas.common import Paging
from api.http.dependencies import READER_SCOPES, Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.responses import respond, respond_list
from api.http.route import Route
from api.metrics.schemas import MetricListView, ReadingsView
from api.reports import replay
from api.reports.routes.reports import VERSIONS
from api.reports.schemas.reports import Moment
from pipelines import metrics
from pipelines.metrics.listing import record
from storage.core.paging import Paged

router = APIRouter(route_class=Route, prefix="/v1", tags=["Metrics"])
Anybody = Annotated[Caller, Depends(Allow(*READER_SCOPES))]
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]


@router.get("/metrics", response_model=envelope(MetricListView))
def list_metrics(_: Anybody, query: Annotated[Paging, Query()]) -> Response:
    """List the metrics that reports, policies and rules may read, in the registry's order."""
    every = [record(metric) for metric in metrics.METRICS.values()]
    page = query.requested_page()
    return respond_list(
        "metrics", Paged(every if page is None else every[page.offset :][: page.count], len(every), page)
    )


@router.get(
    "/customer/{customerId}/metrics",
    response_model=envelope(ReadingsView),
    responses=refuses(*VERSIONS, *DAMAGED_FILE),
)
def read_metrics(caller: Reader, customer_id: CustomerId, query: Annotated[Moment, Query()]) -> Response:
    """Compute every metric of a customer: its value, or why it has none."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        basis = replay.find_basis(r, caller, customer, query)
    with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW):
        facts = basis.facts(caller)
        readings = metrics.readings(facts)
    outcomes = {slug: (value, cause) for slug, value, cause in readings.select("metric", "value", "cause").iter_rows()}
    return respond(
        {
            "asOf": basis.as_of,
            "dataThrough": facts.history["data_through"].max(),
            "dataVersion": basis.data_version,
            "metricsVersion": metrics.VERSION,
            "metrics": [
                {"metricId": metric.id, "slug": slug, **dict(zip(("value", "cause"), outcomes[slug], strict=True))}
                for slug, metric in metrics.METRICS.items()
                if slug in outcomes
            ],
        }
    )
