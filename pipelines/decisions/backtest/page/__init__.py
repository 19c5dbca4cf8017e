"""A backtest as an HTML page: what would change, for which customers, and which rules cause it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.decisions.backtest.page.content import About, page_content
from pipelines.pages import render

__all__ = ["About", "page", "page_content"]


def page(
    days: Sequence[Mapping[str, Any]], about: About, changed: Sequence[Mapping[str, Any]], changed_in_all: int
) -> str:
    """Return the page, a whole HTML document.

    Args:
        days: `result.describe_days`, or its JSON.
        changed: the first customers whose outcome or limit changes, as the API lists them.
        changed_in_all: how many such customers there are.
    """
    return render(page_content(days, about, changed, changed_in_all))
