"""Rulesets to start from, as documents: complete, with their reasons, and switched off until somebody chooses one.

Thresholds are a starting point for lenders to small business: `notes` say why they are what they are, and what they
can't see. None asks who somebody is. Customers in hardship are left alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pipelines.vocabulary.rule_files import parse


@dataclass(frozen=True)
class LibraryRuleset:
    document: Mapping[str, Any]  # plain data
    text: str  # the same as YAML
    about: str  # in a sentence


@cache
def rulesets() -> Mapping[str, LibraryRuleset]:
    """The library by slug, sorted."""
    here = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    read = [_read(file.name, file.read_text("utf-8")) for file in here if file.name.endswith(".yaml")]
    return {each.document["slug"]: each for each in read}


def _read(name: str, text: str) -> LibraryRuleset:
    """The first paragraph of the notes says what it is about."""
    document = parse(text, name)
    return LibraryRuleset(document, text, document["notes"].partition("\n")[0])
