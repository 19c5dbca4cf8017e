"""A backtest as one page for people: what would change, for whom, and which rules make it so.

Like the reports' page it stands alone: it fetches nothing, runs no script, and what a policy or a lender has named is
text in it and never markup. It is drawn with that page's style and macros.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.decisions.backtest.page.reading import About, Shown, read
from pipelines.reports.page.self_contained import SelfContained

__all__ = ["CONTENT_POLICY", "About", "Shown", "page", "read"]

PAGE = SelfContained("pipelines.decisions.backtest.page", "backtest.html", more_style="backtest.css")
CONTENT_POLICY = PAGE.content_policy


def page(
    days: Sequence[Mapping[str, Any]], about: About, changed: Sequence[Mapping[str, Any]], changed_in_all: int
) -> str:
    """The page, a whole HTML document.

    Args:
        days: `result.told`, or what its JSON says.
        changed: customers of the swap set that are shown, as the API lists them; `changed_in_all`: how many
            there are.
    """
    return PAGE.render(read(days, about, changed, changed_in_all))
