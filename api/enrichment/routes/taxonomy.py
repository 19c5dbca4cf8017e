"""The categories that enrichment sorts transactions into."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.enrichment.schemas.taxonomy import TaxonomyView
from api.http.dependencies import READER_SCOPES, Allow, Caller
from api.http.documented import envelope
from api.http.responses import respond
from api.http.route import Route
from pipelines.vocabulary.taxonomy import TAXONOMY

router = APIRouter(route_class=Route, prefix="/v1/taxonomy", tags=["Transactions"])
Reader = Annotated[Caller, Depends(Allow(*READER_SCOPES))]


@router.get("", response_model=envelope(TaxonomyView))
def get_taxonomy(_: Reader) -> Response:
    """List the categories with their groups and what they mean for a lender."""
    groups, categories = [*TAXONOMY.groups.values()], [*TAXONOMY.categories.values()]
    return respond(TaxonomyView(version=TAXONOMY.version, groups=groups, categories=categories))
