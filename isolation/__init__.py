"""Child processes with limits, which read untrusted files: a crash, a hang or a memory bomb stays inside them."""

from isolation.limits import LIMITS, ChildLimits
from isolation.parent import Export, decode, draw_explained_pages, draw_page, extract, read_export, read_pdf_text

__all__ = [
    "LIMITS",
    "ChildLimits",
    "Export",
    "decode",
    "draw_explained_pages",
    "draw_page",
    "extract",
    "read_export",
    "read_pdf_text",
]
