"""Resource limits for reading one file. The values are our judgement."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class ChildLimits:
    """Limits of a child that reads a file, and of the OCR processes that read its scanned pages."""

    memory_bytes: int = 512 * MIB  # of address space, beyond what the child has before it gets the file
    cpu_s: int = 30
    wall_s: float = 45  # not counting the time that the child waits for OCR
    message_bytes: int = 32 * MIB  # of one message to the parent: all rows, or one picture
    pages: int = 400
    characters: int = 3_000_000
    scanned_pages: int = 60
    scanned_page_s: int = 15  # per page: processor time, and also wall time


LIMITS: Final = ChildLimits()
# No document within the bounds of `strict_json` needs more than half of this memory.
DECODING: Final = ChildLimits(memory_bytes=1024 * MIB)
# Polars takes about 600 MiB of address space before it reads anything.
EXPORTS: Final = ChildLimits(memory_bytes=1536 * MIB)
