"""A customer's three reports as one page for people: on a screen, on a phone, read aloud, or printed on A4.

The page is self-contained. It fetches nothing, runs no script and includes its only style sheet. A content policy
inside it makes browsers enforce that wherever the page is stored; CONTENT_POLICY lets a server send the same in its
headers. Everything that reports say is text here and never markup: templates escape, and only our own style is marked
as safe.

What a report leaves out, the page leaves out or shows as unknown; no bundle is an error.
"""

from collections.abc import Mapping

from pipelines.reports.page.reading import About, Member, Shown, read
from pipelines.reports.page.self_contained import SelfContained

__all__ = ["CONTENT_POLICY", "About", "Member", "Shown", "page", "read"]

PAGE = SelfContained("pipelines.reports.page", "page.html")
CONTENT_POLICY = PAGE.content_policy


def page(bundle: Mapping[str, Member], about: About) -> str:
    """Return the page, a whole HTML document.

    Args:
        bundle: the members `completeness`, `risk` and `aggregate`; an absent one counts as not computed yet.
        about: the customer.
    """
    return PAGE.render(read(bundle, about))
