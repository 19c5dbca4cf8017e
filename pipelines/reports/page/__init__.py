"""A customer's three reports as one page for people: read on a screen, on a phone, aloud, or printed on A4.

The page leaves out, or marks as unknown, what a report doesn't have. Every bundle gives a page, even an empty one.
"""

from collections.abc import Mapping

from pipelines.pages import render
from pipelines.reports.page.content import About, Annex, Member, page_content, read_annex

__all__ = ["About", "Annex", "Member", "page", "page_content", "read_annex"]


def page(bundle: Mapping[str, Member], about: About) -> str:
    """Return the page, a whole HTML document.

    Args:
        bundle: the members `completeness`, `risk` and `aggregate`; one that is absent counts as not computed yet.
        about: whom the reports are about.
    """
    return render(page_content(bundle, about))
