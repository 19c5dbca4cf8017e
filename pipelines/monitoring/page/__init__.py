"""HTML page of a simulation: when a ruleset would have fired, for whom, and what was unknown."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.monitoring.page.content import About, page_content
from pipelines.pages import render

__all__ = ["About", "page", "page_content"]


def page(result: Mapping[str, Any], about: About, firings: Sequence[Mapping[str, Any]]) -> str:
    """Return the page, a whole HTML document.

    Args:
        result: `simulated.describe_result`, or its JSON.
        firings: the first of the firings, as the API lists them.
    """
    return render(page_content(result, about, firings))
