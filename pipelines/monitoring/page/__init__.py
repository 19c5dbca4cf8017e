"""A simulation as one page for people: when a ruleset would have fired, for whom, and what it couldn't tell.

Like the reports' page it stands alone: it fetches nothing, runs no script, and what a ruleset or a lender has named is
text in it and never markup. It is drawn with that page's style and macros.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.monitoring.page.reading import About, Shown, read
from pipelines.reports.page.self_contained import SelfContained

__all__ = ["CONTENT_POLICY", "About", "Shown", "page", "read"]

PAGE = SelfContained("pipelines.monitoring.page", "simulation.html")
CONTENT_POLICY = PAGE.content_policy


def page(result: Mapping[str, Any], about: About, firings: Sequence[Mapping[str, Any]]) -> str:
    """The page, a whole HTML document.

    Args:
        result: `simulated.told`, or what its JSON says.
        firings: the first of them, as the API lists them.
    """
    return PAGE.render(read(result, about, firings))
