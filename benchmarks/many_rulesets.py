"""The rulesets that are measured: the library's again and again, each time with other thresholds."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from benchmarks.reports import AS_OF
from pipelines.decisions.readings import Attribute, Attributes
from pipelines.monitoring import Ruleset, Watch, Watched, watch
from pipelines.monitoring.library import rulesets

LOAN_START = AS_OF - timedelta(days=200)
IN_HARDSHIP = 50  # every so manyth customer
_HUNDREDTH = Decimal("0.01")
_CONSTANT = re.compile(r"[0-9]+(\.[0-9]+)?")


def watching(count: int) -> Watch:
    """So many rulesets in one plan. What they read is the same in every round, and so it is computed once."""
    return watch([Watched(UUID(int=nth + 1), 1, ruleset, None) for nth, ruleset in enumerate(_varied(count))])


def known(customer_numbers: Sequence[int]) -> Attributes:
    """Everybody has a loan that began on one day, and some are in hardship."""
    began = Attribute(LOAN_START.isoformat())
    return {
        number: {"loanStart": began, "hardship_flag": Attribute(number % IN_HARDSHIP == 0)}
        for number in customer_numbers
    }


def _varied(count: int) -> list[Ruleset]:
    library = [each.document for each in rulesets().values()]
    return [_of_round(library[nth % len(library)], nth // len(library)) for nth in range(count)]


def _of_round(document: Mapping[str, Any], nth: int) -> Ruleset:
    rules = [{**rule, "condition": _moved(rule["condition"], nth)} for rule in document["rules"]]
    return Ruleset.model_validate({**document, "slug": f"{document['slug']}-{nth}", "active": True, "rules": rules})


def _moved(condition: Any, nth: int) -> Any:
    """Every constant but zero a little higher: whole numbers by the number of the round, others by hundredths."""
    if isinstance(condition, dict):
        return {name: _moved(each, nth) for name, each in condition.items()}
    if isinstance(condition, list):
        return [_moved(each, nth) for each in condition]
    if isinstance(condition, str) and _CONSTANT.fullmatch(condition) and Decimal(condition):
        return str(Decimal(condition) + nth * (_HUNDREDTH if "." in condition else 1))
    return condition
