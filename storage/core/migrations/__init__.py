"""The revisions of the tables, oldest first. `storage.core.upgrading` runs them."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
NEWEST: Final = max(file.name[:4] for file in (FOLDER / "versions").glob("[0-9]*.py"))
