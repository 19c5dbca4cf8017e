"""The taxonomy as it is shown."""

from pydantic import Field

from api.core.schemas.common import View
from pipelines.vocabulary.taxonomy import Line, Sign


class CategoryView(View):
    slug: str = Field(description="Names the category in transactions, corrections and reports.")
    name: str = Field(description="For people.")
    group: str = Field(description="Slug of its group.")
    meaning: str = Field(description="What belongs to it.")
    sign: Sign = Field(description="Side of the account it belongs to.")
    line: Line = Field(description="Line of the cash profit-and-loss statement.")
    counts_as_revenue: bool = Field(description="Credits count as revenue; debits reduce it.")
    essential: bool = Field(description="Whether the business depends on this cost to trade.")


class GroupView(View):
    slug: str = Field(description="Names the group in categories and transactions.")
    name: str = Field(description="For people.")


class TaxonomyView(View):
    version: int = Field(description="Grows when categories change.")
    groups: list[GroupView] = Field(description="In the taxonomy's order.")
    categories: list[CategoryView] = Field(description="In the taxonomy's order.")
