"""Child processes with limits, which read untrusted files: a crash, a hang or a memory bomb stays inside them."""

from isolation.limits import LIMITS, ChildLimits
from isolation.parent import decode, explained_pngs, extract, page_png

__all__ = ["LIMITS", "ChildLimits", "decode", "explained_pngs", "extract", "page_png"]
