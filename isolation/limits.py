"""What reading one file may take of the machine."""

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class ChildLimits:
    """Of a child that reads a file, and of those that read its pictures."""

    memory_bytes: int = 512 * MIB  # of addresses, beyond what it has before it sees the file
    cpu_s: int = 30
    wall_s: float = 45  # without the time that it waits for pictures to be read
    message_bytes: int = 32 * MIB  # of what it answers at once: all rows, or one picture
    pages: int = 400
    characters: int = 3_000_000
    scanned_pages: int = 60
    scanned_page_s: int = 15  # of processor and of waiting, for each


LIMITS: Final = ChildLimits()
# The bounds of `strict_json` let through nothing that takes more than half of it.
DECODING: Final = ChildLimits(memory_bytes=1024 * MIB)
