"""Where the checkout is: for tests of documents and of data files."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
