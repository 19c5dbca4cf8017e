"""The categories, loaded from `rules/taxonomy.yaml` and checked: what each means, its group, and its side."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import yaml

Sign = Literal["credit", "debit", "either"]


@dataclass(frozen=True)
class Category:
    slug: str
    name: str
    group: str
    meaning: str
    sign: Sign
    counts_as_revenue: bool


@dataclass(frozen=True)
class Taxonomy:
    """Categories by slug, in the file's order, and the version of the whole."""

    version: int
    categories: Mapping[str, Category]


class RuleError(Exception):
    """A rule file that can't be loaded: which, where, and why."""


def load_rules(name: str) -> Any:
    """A file of `rules/` as plain data."""
    try:
        text = files("pipelines.enrich").joinpath("rules", name).read_text("utf-8")
        return yaml.load(text, yaml.CSafeLoader)  # a tenth of the time of the one in Python
    except yaml.YAMLError as error:
        raise RuleError(f"{name}: {error}") from error


def _load() -> Taxonomy:
    document = load_rules("taxonomy.yaml")
    categories = [
        Category(each["slug"], each["name"], group, each["meaning"], each["sign"], each["revenue"])
        for group, members in document["groups"].items()
        for each in members
    ]
    by_slug = {category.slug: category for category in categories}
    if len(by_slug) != len(categories):
        raise RuleError("taxonomy.yaml: a slug stands twice")
    return Taxonomy(document["version"], by_slug)


TAXONOMY = _load()
VERSION = TAXONOMY.version
TRANSFER = TAXONOMY.categories["own_transfer"]
UNKNOWN_CREDIT = TAXONOMY.categories["unknown_credit"]
UNKNOWN_DEBIT = TAXONOMY.categories["unknown_debit"]
