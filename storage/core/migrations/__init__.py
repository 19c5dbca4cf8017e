"""Migrations of the tables. `storage.core.upgrading` runs them.

The file `0016_….py` has the revision `tables_16`. Databases of earlier revisions are refused
(`docs/decisions/0026-baseline.md`).
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
NEWEST: Final = f"tables_{max(int(file.name[:4]) for file in (FOLDER / 'versions').glob('[0-9]*.py'))}"
