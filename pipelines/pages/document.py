"""Pages as HTML: one document with one style sheet. Its content policy allows nothing else."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipelines.pages.parts import Page

# Control characters and halves of surrogate pairs aren't allowed in a document. Characters that control bidirectional
# text (Unicode's Bidi_Control) would let a name rearrange the text around it.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
STYLE = files("pipelines.pages").joinpath("style.css").read_text("utf-8")
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
CONTENT_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"

_TEMPLATES = Environment(
    loader=PackageLoader("pipelines.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["kind"] = lambda part: type(part).__name__


def render(page: Page) -> str:
    """Return a whole HTML document. The page's texts are escaped, and each UNPRINTABLE character becomes U+FFFD."""
    template = _TEMPLATES.get_template("page.html")
    return UNPRINTABLE.sub("\ufffd", template.render(page=page, style=Markup(STYLE), policy=CONTENT_POLICY))
