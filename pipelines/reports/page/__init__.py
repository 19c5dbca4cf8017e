"""A customer's three reports as one page for people: read on a screen, on a phone, aloud, or printed on A4.

The page stands alone. It fetches nothing, runs no script and carries its one style sheet with it; a policy inside it
holds a browser to that, wherever the page is kept. CONTENT_POLICY lets a server say the same in its headers. Whatever
the reports say is text here and never markup: templates escape, and nothing marks a string as safe but our own style.

What a report leaves out, the page leaves out, or says that it is unknown; no bundle is an error.
"""

from collections.abc import Mapping

from pipelines.reports.page.reading import About, Member, Shown, read
from pipelines.reports.page.self_contained import SelfContained

__all__ = ["CONTENT_POLICY", "About", "Member", "Shown", "page", "read"]

PAGE = SelfContained("pipelines.reports.page", "page.html")
CONTENT_POLICY = PAGE.content_policy


def page(bundle: Mapping[str, Member], about: About) -> str:
    """The page, a whole HTML document.

    Args:
        bundle: the members `completeness`, `risk` and `aggregate`; one that is absent counts as not computed yet.
        about: whom the reports are about.
    """
    return PAGE.drawn(read(bundle, about))
