"""Child processes with limits, which read untrusted files: a crash, a hang or a memory bomb stays inside them."""

from isolation.limits import LIMITS, ChildLimits
from isolation.parent import Export, decode, explained_pngs, extract, page_png, pdf_text, read_export

__all__ = [
    "LIMITS",
    "ChildLimits",
    "Export",
    "decode",
    "explained_pngs",
    "extract",
    "page_png",
    "pdf_text",
    "read_export",
]
