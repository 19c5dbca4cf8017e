"""Child processes with limits: what may break, starve or hang a process does so in one of its own."""

from isolation.limits import LIMITS, ChildLimits
from isolation.parent import decode, explained_pngs, extract, page_png

__all__ = ["LIMITS", "ChildLimits", "decode", "explained_pngs", "extract", "page_png"]
