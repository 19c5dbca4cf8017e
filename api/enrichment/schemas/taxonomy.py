"""The taxonomy as it is shown."""

from typing import ClassVar

from pydantic import Field

from api.core.schemas.common import View
from pipelines.vocabulary.taxonomy import Line, Sign


class CategoryView(View):
    EXAMPLE: ClassVar = {
        "slug": "materials",
        "name": "Materials",
        "group": "cost_of_sales",
        "meaning": "Building and workshop materials, tools",
        "sign": "debit",
        "line": "cost_of_sales",
        "countsAsRevenue": False,
        "essential": True,
    }

    slug: str
    name: str
    group: str
    meaning: str
    sign: Sign = Field(description="Side of the account that it belongs on.")
    line: Line = Field(description="Line of the cash profit-and-loss statement.")
    counts_as_revenue: bool = Field(description="On the debit side it counts against revenue.")
    essential: bool = Field(description="A cost that trade depends on.")


class GroupView(View):
    EXAMPLE: ClassVar = {"slug": "cost_of_sales", "name": "Cost of sales"}

    slug: str
    name: str


class TaxonomyView(View):
    EXAMPLE: ClassVar = {"version": 2, "groups": [GroupView.EXAMPLE], "categories": [CategoryView.EXAMPLE]}

    version: int
    groups: list[GroupView]
    categories: list[CategoryView]
