"""A customer's three reports as one page for people: read on a screen, on a phone, aloud, or printed on A4.

The page stands alone. It fetches nothing, runs no script and carries its one style sheet with it; a policy inside it
holds a browser to that, wherever the page is kept. STYLE_HASH lets a server say the same in its headers. Whatever the
reports say is text here and never markup: templates escape, and nothing marks a string as safe but our own style.

What a report leaves out, the page leaves out, or says that it is unknown; no bundle is an error.
"""

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipelines.reports.page.reading import About, Member, Shown, read
from pipelines.reports.page.style import STYLE, STYLE_HASH

__all__ = ["CONTENT_POLICY", "STYLE_HASH", "About", "Member", "Shown", "page", "read"]

CONTENT_POLICY = f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def page(bundle: Mapping[str, Member], about: About) -> str:
    """The page, a whole HTML document.

    Args:
        bundle: the members `completeness`, `risk` and `aggregate`; one that is absent counts as not computed yet.
        about: whom the reports are about.
    """
    shown = read(bundle, about)
    return _templates().get_template("page.html").render(shown=shown, style=Markup(STYLE), policy=CONTENT_POLICY)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("pipelines.reports.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
