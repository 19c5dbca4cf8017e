"""Check whether a policy may be saved: all faults of a document at once, and the warnings to be acknowledged.

    bounds      limits of size, checked before anything is built from the document
    files       YAML or JSON text as plain data
    shape       strict reading, with pydantic's errors in plain words
    references  names that occur twice or refer to nothing
    ranges      conditions that are never or always true, found with `truth`, `spans` and `folding`
    leniency    places where a customer with less data gets a better result

All faults are reported at once, with two exceptions. If a bound is exceeded, the check ends there. Contradictions that
depend on a reference of the wrong kind are not reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from pipelines.decisions.check import leniency, ranges, references
from pipelines.decisions.check.bounds import find_broken_bound
from pipelines.decisions.check.files import parse_file
from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.check.shape import parse_shape, plain
from pipelines.decisions.plan import Plan
from pipelines.decisions.policy import Policy

__all__ = ["CheckedPolicy", "Finding", "check_document", "check_text", "find_unreached", "ranges", "references"]

MAX_FAULTS = 1_000  # reported at once; our judgement: nobody reads more
CALCULATING = ("steps", "limits")  # members that contain numbers and conditions


@dataclass(frozen=True)
class CheckedPolicy:
    """The result of a check. `policy` is None if there are faults. Warnings are acknowledged by code and pointer."""

    policy: Policy | None
    faults: list[Finding]
    warnings: list[Finding]


def check_document(document: object) -> CheckedPolicy:
    """Check a document given as plain data, from JSON (`strict_json` or the standard library's) or YAML."""
    if beyond := find_broken_bound(document, CALCULATING):
        return CheckedPolicy(None, [beyond], [])
    data = plain(document)
    policy, misshapen = parse_shape(data, Policy)
    dangling = list(islice(references.find_faults(data), MAX_FAULTS))
    wrong_kind = references.pointers_of_wrong_kind(dangling)
    faults = sort_findings([*misshapen, *dangling, *ranges.find_faults(data, wrong_kind)])[:MAX_FAULTS]
    own = [] if policy is None else [*leniency.find_warnings(policy), *_find_products_without_limit(policy)]
    warnings = sort_findings([*own, *ranges.find_warnings(data, wrong_kind)])
    return CheckedPolicy(None if faults else policy, faults, warnings)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort the findings by their place in the document, and remove duplicates."""
    return sorted(dict.fromkeys(findings), key=lambda each: (_sort_key(each.pointer), each.code))


def _sort_key(pointer: str) -> list[tuple[int, str]]:
    return [(int(step), "") if step.isdecimal() else (-1, step) for step in pointer.split("/")]


def _find_products_without_limit(policy: Policy) -> Iterable[Finding]:
    priced = {limit.product for limit in policy.limits}
    for nth, product in enumerate(policy.products):
        if product.slug not in priced:
            message = "No limit is computed for this product, so no answer will include it."
            yield finding(f"/products/{nth}", "ProductWithoutLimit", message)


def check_text(text: str, yaml: bool) -> CheckedPolicy:
    """Check a file's text, as YAML or JSON."""
    document, unreadable = parse_file(text, yaml)
    return CheckedPolicy(None, [unreadable], []) if unreadable else check_document(document)


# The portfolio


def find_unreached(plan: Plan, reached: Mapping[int, int], customers: int) -> list[Finding]:
    """Return a warning for each step that no customer reaches; none if there are no customers.

    Args:
        reached: the number of customers that reached a step, by the step's number from 0.
        customers: the number of customers in the portfolio.
    """
    message = f"None of the {customers:,} customers in the portfolio reaches this step."
    never = [nth for nth in range(len(plan.steps)) if customers and not reached.get(nth)]
    return [finding(f"/steps/{nth}", "StepNeverReached", message) for nth in never]
