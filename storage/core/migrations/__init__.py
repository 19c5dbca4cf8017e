"""Migrations of the tables. `storage.core.upgrading` runs them.

The file `0003_….py` has the revision `tables_3`. A revision that is a bare number is of a Tidemark before 0.2.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
NEWEST: Final = f"tables_{max(int(file.name[:4]) for file in (FOLDER / 'versions').glob('[0-9]*.py'))}"
