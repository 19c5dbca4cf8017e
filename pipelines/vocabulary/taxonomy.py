"""The taxonomy of categories, loaded from `rules/taxonomy.yaml` and checked: meaning, group, sign and line of each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pipelines.vocabulary.rule_files import RuleError, load_rules

Sign = Literal["credit", "debit", "either"]
SIDES: tuple[Sign, Sign] = ("credit", "debit")  # of an account: money in, money out
LISTED_IN = "GET /v1/taxonomy"  # where a user reads all categories
Line = Literal[
    "revenue",
    "other_income",
    "cost_of_sales",
    "payroll",
    "premises",
    "operations",
    "vehicle_travel",
    "tax",
    "finance_costs",
    "financing",
    "investing",
    "owner",
    "none",  # neither income nor cost: money that remains the customer's own
    "unallocated",
]
"""A line of the cash profit-and-loss statement."""

FILE = "taxonomy.yaml"
_INHERITED: Mapping[str, object] = {"line": "unallocated", "revenue": False, "essential": False}
_OWN = {"slug", "name", "sign", "meaning"}


@dataclass(frozen=True)
class Category:
    slug: str
    name: str
    group: str
    meaning: str
    sign: Sign
    line: Line
    counts_as_revenue: bool  # on the debit side, it reduces revenue
    essential: bool  # a cost that the business can't trade without


@dataclass(frozen=True)
class Group:
    slug: str
    name: str


@dataclass(frozen=True)
class Taxonomy:
    """Groups and categories by slug, in the order of the file, and the version of the taxonomy."""

    version: int
    groups: Mapping[str, Group]
    categories: Mapping[str, Category]


def parse_taxonomy(document: Mapping[str, Any]) -> Taxonomy:
    """Parse the file's content as a taxonomy.

    Raises:
        RuleError: names every fault.
    """
    if faults := list(_faults(document)):
        raise RuleError("\n".join(f"{FILE}: {fault}" for fault in faults))
    groups = {slug: Group(slug, group["name"]) for slug, group in document["groups"].items()}
    categories = [_parse_category(slug, group, each) for slug, group, each in _list_members(document)]
    return Taxonomy(document["version"], groups, {category.slug: category for category in categories})


def describe_other_version(facts: Mapping[str, Any]) -> str | None:
    """Return a sentence if a fitted model states another version of the taxonomy (`taxonomy`), else None.

    A model that states no version counts as fitted with the present one.
    """
    fitted = facts.get("taxonomy", VERSION)
    if fitted == VERSION:
        return None
    return f"It was fitted with version {fitted} of the taxonomy; the present one is {VERSION}. Fit it again."


def _list_members(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    return ((slug, group, each) for slug, group in document["groups"].items() for each in group["categories"])


def _parse_category(group_slug: str, group: Mapping[str, Any], own: Mapping[str, Any]) -> Category:
    fields: dict[str, Any] = {**_INHERITED, **{name: group[name] for name in _INHERITED if name in group}, **own}
    return Category(
        slug=fields["slug"],
        name=fields["name"],
        group=group_slug,
        meaning=fields["meaning"],
        sign=fields["sign"],
        line=fields["line"],
        counts_as_revenue=fields["revenue"],
        essential=fields["essential"],
    )


def _faults(document: Mapping[str, Any]) -> Iterator[str]:
    for group, inherited, own in _list_members(document):
        where = f"{group}, {own.get('slug', 'a category without slug')}"
        if odd := _OWN - own.keys() | own.keys() - _OWN - _INHERITED.keys():
            yield f"{where}: missing or unknown: {', '.join(sorted(odd))}"
        if own.get("sign") not in get_args(Sign):
            yield f"{where}: there is no sign {own.get('sign')}"
        if (line := own.get("line", inherited.get("line", "unallocated"))) not in get_args(Line):
            yield f"{where}: there is no line {line}"
    slugs = Counter(own.get("slug") for _, _, own in _list_members(document))
    yield from (f"{slug} occurs {count} times" for slug, count in slugs.items() if count > 1)


TAXONOMY = parse_taxonomy(load_rules(FILE))
GROUPS: Mapping[str, str] = {slug: category.group for slug, category in TAXONOMY.categories.items()}
SIGNS: Mapping[str, Sign] = {slug: category.sign for slug, category in TAXONOMY.categories.items()}
VERSION = TAXONOMY.version
TRANSFER = TAXONOMY.categories["own_transfer"]
RELATED_ENTITY = TAXONOMY.categories["related_entity"]
UNKNOWN_CREDIT = TAXONOMY.categories["unknown_credit"]
UNKNOWN_DEBIT = TAXONOMY.categories["unknown_debit"]
