"""The page's one style sheet, and the hash by which a content policy allows it and no other."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

STYLE = files("pipelines.reports.page").joinpath("style.css").read_text("utf-8")
STYLE_HASH = f"sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}"
