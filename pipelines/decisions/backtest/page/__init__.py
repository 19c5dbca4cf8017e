"""A backtest as one page for people: what would change, for whom, and which rules make it so.

Like the reports' page it stands alone: it fetches nothing, runs no script, and what a policy or a lender has named is
text in it and never markup. It is drawn with that page's style and macros.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipelines.decisions.backtest.page.reading import About, Shown, read
from pipelines.reports.page.style import STYLE as REPORTS_STYLE

__all__ = ["CONTENT_POLICY", "About", "Shown", "page", "read"]

STYLE = REPORTS_STYLE + files("pipelines.decisions.backtest.page").joinpath("backtest.css").read_text("utf-8")
_HASH = f"sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}"
CONTENT_POLICY = f"default-src 'none'; style-src '{_HASH}'; base-uri 'none'; form-action 'none'"


def page(
    days: Sequence[Mapping[str, Any]], about: About, changed: Sequence[Mapping[str, Any]], changed_in_all: int
) -> str:
    """The page, a whole HTML document.

    Args:
        days: `result.told`, or what its JSON says.
        changed: customers of the swap set that are shown, as the API lists them; `changed_in_all`: how many
            there are.
    """
    shown = read(days, about, changed, changed_in_all)
    return _templates().get_template("backtest.html").render(shown=shown, style=Markup(STYLE), policy=CONTENT_POLICY)


@cache
def _templates() -> Environment:
    return Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("pipelines.decisions.backtest.page", "templates"),
                PackageLoader("pipelines.reports.page", "templates"),  # its macros
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
