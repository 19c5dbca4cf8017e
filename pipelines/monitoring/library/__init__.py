"""Library of complete rulesets that a client can adopt.

Thresholds are a starting point for lenders to small businesses: each ruleset's `notes` give their reasons and limits.
No rule uses a personal characteristic. All rulesets are muted for customers in hardship.
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
def load_library() -> Mapping[str, LibraryRuleset]:
    """Return the library by slug, sorted."""
    listed = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    read = [_parse_ruleset(file.name, file.read_text("utf-8")) for file in listed if file.name.endswith(".yaml")]
    return {each.document["slug"]: each for each in read}


def _parse_ruleset(name: str, text: str) -> LibraryRuleset:
    """Parse a document; the first paragraph of its notes is its description."""
    document = parse(text, name)
    return LibraryRuleset(document, text, document["notes"].partition("\n")[0])
