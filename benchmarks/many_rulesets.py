"""The rulesets that are measured: those of the library, repeated with different thresholds."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from benchmarks.reports import AS_OF
from pipelines.decisions.readings import Attribute, Attributes
from pipelines.monitoring import MonitoringPlan, Ruleset, VersionedRuleset, plan_rulesets
from pipelines.monitoring.library import load_library

LOAN_START = AS_OF - timedelta(days=200)
HARDSHIP_EVERY = 50  # one customer in 50 is in hardship
_HUNDREDTH = Decimal("0.01")
_CONSTANT = re.compile(r"[0-9]+(\.[0-9]+)?")


def plan_rulesets_of_rounds(count: int) -> MonitoringPlan:
    """Return a plan of `count` rulesets. All rounds of the library read the same figures, which are computed once."""
    return plan_rulesets(
        [VersionedRuleset(UUID(int=nth + 1), 1, ruleset, None) for nth, ruleset in enumerate(_vary(count))]
    )


def attributes_of(customer_numbers: Sequence[int]) -> Attributes:
    """Return attributes: all customers have a loan that began on the same day, and some are in hardship."""
    began = Attribute(LOAN_START.isoformat())
    return {
        number: {"loanStart": began, "hardship_flag": Attribute(number % HARDSHIP_EVERY == 0)}
        for number in customer_numbers
    }


def _vary(count: int) -> list[Ruleset]:
    library = [each.document for each in load_library().values()]
    return [_ruleset_of_round(library[nth % len(library)], nth // len(library)) for nth in range(count)]


def _ruleset_of_round(document: Mapping[str, Any], nth: int) -> Ruleset:
    rules = [{**rule, "condition": _with_other_constants(rule["condition"], nth)} for rule in document["rules"]]
    return Ruleset.model_validate({**document, "slug": f"{document['slug']}-{nth}", "active": True, "rules": rules})


def _with_other_constants(condition: Any, nth: int) -> Any:
    """Raise every constant except zero: whole numbers by the number of the round, others by hundredths."""
    if isinstance(condition, dict):
        return {name: _with_other_constants(each, nth) for name, each in condition.items()}
    if isinstance(condition, list):
        return [_with_other_constants(each, nth) for each in condition]
    if isinstance(condition, str) and _CONSTANT.fullmatch(condition) and Decimal(condition):
        return str(Decimal(condition) + nth * (_HUNDREDTH if "." in condition else 1))
    return condition
