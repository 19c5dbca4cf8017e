"""A backtest as an HTML page: what would change, for which customers, and which rules cause it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.decisions.backtest.page.reading import About, read
from pipelines.pages import render

__all__ = ["About", "page", "read"]


def page(
    days: Sequence[Mapping[str, Any]], about: About, changed: Sequence[Mapping[str, Any]], changed_in_all: int
) -> str:
    """Return the page, a whole HTML document.

    Args:
        days: `result.describe_days`, or its JSON.
        changed: the first customers whose outcome or limit changes, as the API lists them.
        changed_in_all: how many such customers there are.
    """
    return render(read(days, about, changed, changed_in_all))
