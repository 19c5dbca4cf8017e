"""Tax and super rules as dated data, from `pipelines/reports/rules/`, read once and checked as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.resources import files
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.vocabulary.report_values import RATIO
from pipelines.vocabulary.rule_files import RuleError, parse
from pipelines.vocabulary.taxonomy import TAXONOMY, Taxonomy

OBLIGATIONS_FILE, GST_FILE = "obligations.yaml", "gst.yaml"


@dataclass(frozen=True)
class DatedShares:
    """Shares (0–1) by the first day that each applies; the last one has no end."""

    steps: tuple[tuple[date, Decimal], ...]

    @property
    def first_day(self) -> date:
        return self.steps[0][0]

    def share_on(self, day: pl.Expr) -> pl.Expr:
        """Return the share that applies on a day; null before the first."""
        latest_first = (pl.when(day >= start).then(pl.lit(share, RATIO)) for start, share in reversed(self.steps))
        return pl.coalesce(*latest_first)


@dataclass(frozen=True)
class SuperGuarantee:
    rates: DatedShares
    due_day: int
    payday_super_from: date
    business_days: int
    days_ahead: int
    met_from: Decimal
    missing_below: Decimal


@dataclass(frozen=True)
class ActivityStatements:
    due_day: int
    met_from: Decimal
    missing_below: Decimal
    unpaid_below: Decimal


@dataclass(frozen=True)
class Obligations:
    years_listed: int
    super_guarantee: SuperGuarantee
    withheld: DatedShares
    activity_statements: ActivityStatements

    @property
    def first_day(self) -> date:
        """First day that rules exist for; nothing is computed for earlier days."""
        return max(self.super_guarantee.rates.first_day, self.withheld.first_day)


@dataclass(frozen=True)
class Gst:
    """`untaxed_revenue` and `taxed_costs` are categories."""

    divisor: int
    registered_from: int
    least_days: int
    untaxed_revenue: frozenset[str]
    taxed_costs: frozenset[str]


def parse_obligations(document: Mapping[str, Any]) -> Obligations:
    """Check and parse the file's content.

    Raises:
        RuleError: names every fault.
    """
    _refuse(OBLIGATIONS_FILE, _obligation_faults(document))
    guarantee, statements = document["super_guarantee"], document["activity_statements"]
    exact: dict[str, Any] = {**_parse_shares(guarantee), "rates": _parse_dated_shares(guarantee["rates"])}
    return Obligations(
        document["years_listed"],
        SuperGuarantee(**exact),
        _parse_dated_shares(document["withholding"]["shares"]),
        ActivityStatements(**_parse_shares(statements)),
    )


def parse_gst(document: Mapping[str, Any], taxonomy: Taxonomy = TAXONOMY) -> Gst:
    """Check and parse the file's content.

    Raises:
        RuleError: names every fault.
    """
    _refuse(GST_FILE, _gst_faults(document, taxonomy))
    groups = set(document["taxed_cost_groups"])
    of_groups = {slug for slug, category in taxonomy.categories.items() if category.group in groups}
    return Gst(
        document["divisor"],
        document["registered_from"],
        document["least_days"],
        frozenset(document["untaxed_revenue"]),
        frozenset((of_groups - set(document["untaxed_costs"])) | set(document["other_taxed_costs"])),
    )


_SHARES = ("met_from", "missing_below", "unpaid_below")
_KEYS: Mapping[str, set[str]] = {
    "super_guarantee": {
        "rates",
        "due_day",
        "payday_super_from",
        "business_days",
        "days_ahead",
        "met_from",
        "missing_below",
    },
    "withholding": {"shares"},
    "activity_statements": {"due_day", *_SHARES},
}
_GST_NUMBERS = ("divisor", "registered_from", "least_days")
_GST_LISTS = ("untaxed_revenue", "taxed_cost_groups", "untaxed_costs", "other_taxed_costs")


def _refuse(file: str, faults: Iterator[str]) -> None:
    if named := list(faults):
        raise RuleError("\n".join(f"{file}: {fault}" for fault in named))


def _obligation_faults(document: Mapping[str, Any]) -> Iterator[str]:
    if set(document) != {"years_listed", *_KEYS}:
        yield f"the file's keys must be years_listed, {', '.join(_KEYS)}"
        return
    if not _is_count(document["years_listed"]):
        yield "years_listed must be a whole number above zero"
    for section, keys in _KEYS.items():
        if set(document[section]) != keys:
            yield f"{section}'s keys must be {', '.join(sorted(keys))}"
            continue
        for name, value in document[section].items():
            if fault := _find_fault(name, value):
                yield f"{section}.{name} {fault}"


def _find_fault(name: str, value: object) -> str | None:
    if name in ("rates", "shares"):
        return _find_fault_of_steps(value)
    if name == "payday_super_from":
        # Quarters before payday super must be whole.
        return None if isinstance(value, date) and (value.day, value.month % 3) == (1, 1) else "must start a quarter"
    if name in _SHARES:
        return None if _is_share(value) else "must be a share between 0 and 1, in quotes"
    return None if _is_count(value) else "must be a whole number above zero"


def _find_fault_of_steps(steps: object) -> str | None:
    if not isinstance(steps, list) or not steps:
        return "must be a list with at least one entry"
    for step in steps:
        if not isinstance(step, dict) or set(step) != {"from", "share"}:
            return "has an entry that isn't {from, share}"
        if not isinstance(step["from"], date) or not _is_share(step["share"]):
            return f"has an entry that isn't a day and a share in quotes: {step}"
    rising = all(earlier["from"] < later["from"] for earlier, later in pairwise(steps))
    return None if rising else "must go from the earliest to the latest"


def _gst_faults(document: Mapping[str, Any], taxonomy: Taxonomy) -> Iterator[str]:
    if set(document) != {*_GST_NUMBERS, *_GST_LISTS}:
        yield f"the file's keys must be {', '.join((*_GST_NUMBERS, *_GST_LISTS))}"
        return
    yield from (f"{name} must be a whole number above zero" for name in _GST_NUMBERS if not _is_count(document[name]))
    for name in _GST_LISTS:
        known = taxonomy.groups if name == "taxed_cost_groups" else taxonomy.categories
        yield from (f"{name} has {slug!r}, which the taxonomy lacks" for slug in document[name] if slug not in known)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_share(value: object) -> bool:
    """Return whether a value is a share, written as text, because a YAML number is a binary fraction."""
    try:
        return isinstance(value, str) and 0 < Decimal(value) < 1
    except ArithmeticError:
        return False


def _parse_shares(section: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Decimal(value) if name in _SHARES else value for name, value in section.items()}


def _parse_dated_shares(steps: Sequence[Mapping[str, Any]]) -> DatedShares:
    return DatedShares(tuple((step["from"], Decimal(step["share"])) for step in steps))


def _load(file: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = parse(files("pipelines.reports").joinpath("rules", file).read_text("utf-8"), file)
    return document


OBLIGATIONS = parse_obligations(_load(OBLIGATIONS_FILE))
GST = parse_gst(_load(GST_FILE))
