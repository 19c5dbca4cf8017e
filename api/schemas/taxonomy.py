"""The taxonomy as it is shown."""

from typing import ClassVar

from api.schemas.common import View
from pipelines.enrich.taxonomy import Sign


class CategoryView(View):
    EXAMPLE: ClassVar = {
        "slug": "materials",
        "name": "Materials",
        "group": "cost_of_sales",
        "meaning": "Building and workshop materials, tools",
        "sign": "debit",
        "countsAsRevenue": False,
    }

    slug: str
    name: str
    group: str
    meaning: str
    sign: Sign
    counts_as_revenue: bool


class TaxonomyView(View):
    EXAMPLE: ClassVar = {"version": 1, "categories": [CategoryView.EXAMPLE]}

    version: int
    categories: list[CategoryView]
