"""A simulation as one page for people: when a ruleset would have fired, for whom, and what it couldn't tell.

Like the reports' page it stands alone: it fetches nothing, runs no script, and what a ruleset or a lender has named is
text in it and never markup. It is drawn with that page's style and macros.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipelines.monitoring.page.reading import About, Shown, read
from pipelines.reports.page.style import STYLE, STYLE_HASH

__all__ = ["CONTENT_POLICY", "About", "Shown", "page", "read"]

CONTENT_POLICY = f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def page(result: Mapping[str, Any], about: About, firings: Sequence[Mapping[str, Any]]) -> str:
    """The page, a whole HTML document.

    Args:
        result: `simulated.told`, or what its JSON says.
        firings: the first of them, as the API lists them.
    """
    shown = read(result, about, firings)
    return _templates().get_template("simulation.html").render(shown=shown, style=Markup(STYLE), policy=CONTENT_POLICY)


@cache
def _templates() -> Environment:
    return Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("pipelines.monitoring.page", "templates"),
                PackageLoader("pipelines.reports.page", "templates"),  # its macros
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
