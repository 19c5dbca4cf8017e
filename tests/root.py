"""The folder of the checkout, for tests of documents and data files."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
