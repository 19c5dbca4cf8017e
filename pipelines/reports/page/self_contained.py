"""What all pages for people have in common: a page is one document with one style sheet, which its content policy
allows; it runs no script and fetches nothing.
"""

import re
from base64 import b64encode
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# Control characters and halves of surrogate pairs are not allowed in a document. Those that control bidirectional text
# (Unicode's Bidi_Control) would let a name rearrange the text around it.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
COMMON = "pipelines.reports.page"  # the macros and the style of all pages


class SelfContained:
    """A kind of page, rendered from a template of its package."""

    def __init__(self, package: str, template: str, more_style: str | None = None) -> None:
        """
        Args:
            more_style: a style sheet in the package, added to that of all pages.
        """
        self._package = package
        self._template = template
        self._sheets = [(COMMON, "style.css")] + ([(package, more_style)] if more_style else [])

    @cached_property
    def style(self) -> str:
        return "".join(files(package).joinpath(name).read_text("utf-8") for package, name in self._sheets)

    @cached_property
    def content_policy(self) -> str:
        """Policy for the page itself, and for the headers of a server that shows it."""
        allowed = b64encode(sha256(self.style.encode()).digest()).decode()
        return f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"

    def render(self, shown: Any) -> str:
        """Return a whole HTML document. All of `shown` is text in it, never markup; `UNPRINTABLE` becomes U+FFFD."""
        template = self._templates.get_template(self._template)
        document = template.render(shown=shown, style=Markup(self.style), policy=self.content_policy)
        return UNPRINTABLE.sub("\ufffd", document)

    @cached_property
    def _templates(self) -> Environment:
        return Environment(
            loader=ChoiceLoader([PackageLoader(package, "templates") for package in (self._package, COMMON)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
